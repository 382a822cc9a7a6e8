//! Matrix factorisation: gradient descent on factors and the nuclear norm.

use super::{angle, distance, larger, largest_margin, least_margin, margins, smaller, trajectory, values};
use crate::{Claim, ClaimError, Columns, Finished, Lab, Moments, Outcome, Sketch, measures};
use limitpoint::data::{DataSpec, Dataset, Points};
use limitpoint::experiments::Task;
use limitpoint::linalg::{Eigen, matmul, matmul_nt, norm2};
use limitpoint::norms::NormSpec;
use limitpoint::params::ParamLayout;
use limitpoint::reference::{InterpolationTarget, MarginProblem, MaxMargin, interpolate, max_margin};

pub(super) const CLAIMS: [Claim; 5] = [
    Claim {
        id: "B.eq15-19",
        covers: &["B.eq15", "B.eq18", "B.eq19"],
        statement: "Gradient descent on W = UUᵀ is W⁺ = W − η(GW + WG) + η²GWG, with half the step on U",
        experiments: &["b-factored"],
        try_out: update,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.lift",
        statement: "Gradient descent on UVᵀ is gradient descent on a symmetric factorisation of twice the size",
        experiments: &["b-factored"],
        try_out: lift,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.thm7",
        statement: "Gradient descent on W = UUᵀ with the exponential loss converges in direction to the positive \
                    semidefinite matrix with the largest margin per nuclear norm",
        experiments: &["b-factored"],
        try_out: nuclear_margin,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.thm7.contrast",
        statement: "On the squared loss the limit of factored descent depends on the scale of the start: the nuclear norm \
                    of the solution falls to the smallest one as the start shrinks",
        experiments: &["b-sensing"],
        try_out: sensing,
        ..Claim::FINDING
    },
    Claim {
        id: "B.disguise",
        statement: "Other factorisations: UVᵀ goes to the largest margin per nuclear norm, deep linear networks to the \
                    largest ℓ2 margin, u⊙v to the largest ℓ1 margin",
        experiments: &["b-factored", "b-deep"],
        try_out: disguises,
        ..Claim::FORMULA
    },
];

/// W = UUᵀ, row by row.
pub(super) fn product(u: &[f64], size: usize) -> Vec<f64> {
    let mut w = vec![0.0; size * size];
    matmul_nt(&mut w, u, u, size, u.len() / size, size);
    w
}

fn trace(w: &[f64], size: usize) -> f64 {
    (0..size).map(|i| w[i * size + i]).sum()
}

/// −∇_W ln L = Σ pₙyₙXₙ at W, for the exponential loss.
pub(super) fn pull(data: &Dataset, w: &[f64]) -> Vec<f64> {
    let margins = margins(data, w);
    let least = margins.iter().copied().fold(f64::INFINITY, smaller);
    let weights: Vec<f64> = margins.iter().map(|q| (least - q).exp()).collect();
    let total: f64 = weights.iter().sum();
    let mut out = vec![0.0; w.len()];
    for (n, (p, y)) in weights.iter().zip(values(data)).enumerate() {
        data.inputs.add_row(n, p * y / total, &mut out);
    }
    out
}

fn eigenvalues(matrix: &[f64], size: usize) -> Result<Vec<f64>, ClaimError> {
    let mut eigen = Eigen::new(size);
    eigen.factor(matrix)?;
    Ok(eigen.values().to_vec())
}

fn update(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let (size, eta) = (5, 0.02);
    for seed in 0..lab.choose(3, 10) {
        // U⁺ = U − (η/2)·2GU
        let overrides =
            [format!("seed={seed}"), format!("schedule=constant(rate={})", eta / 2.0), "stop.steps=100".into()];
        let task = lab.tasks("b-factored", &overrides)?.remove(0);
        let data = lab.data(&task)?.train;
        let (trail, run) = trajectory(lab, &task, Moments::every(1))?;
        let mut w = product(&trail[0], size);
        let (mut gw, mut wg, mut gwg) = (vec![0.0; 25], vec![0.0; 25], vec![0.0; 25]);
        let misses = trail[1..].iter().zip(run.column("u")).map(|(next, u)| {
            let g: Vec<f64> = pull(&data, &w).iter().map(|z| -z * (-u).exp()).collect();
            matmul(&mut gw, &g, &w, size, size, size);
            matmul(&mut wg, &w, &g, size, size, size);
            matmul(&mut gwg, &gw, &g, size, size, size);
            for i in 0..25 {
                w[i] += -eta * (gw[i] + wg[i]) + eta * eta * gwg[i];
            }
            distance(&product(next, size), &w) / norm2(&w)
        });
        let what = format!("start {seed}: largest difference of W in 100 steps, relative");
        outcome.largest(what, misses, 1e-12).by_theory();
    }
    outcome.note("(15) lacks the sum over n, and (18) the factor 2 of ∇_U L(UUᵀ) = 2GU: (19) is a step of η/2 on U.");
    Ok(outcome)
}

fn lift(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let (r, c, k, rate) = (3, 4, 2, 0.02);
    for seed in 0..lab.choose(3, 10) {
        let overrides = [
            format!("seed={seed}"),
            "data={matrices={count=8, rows=3, columns=4, margin=0.3}}".to_owned(),
            "model={matrix={rows=3, factors=2, width=2}}".to_owned(),
            format!("schedule=constant(rate={rate})"),
            "stop.steps=200".to_owned(),
        ];
        let asymmetric = lab.tasks("b-factored", &overrides)?.remove(0);
        let data = lab.data(&asymmetric)?.train;
        let dense = data.dense()?;
        let (plain, _) = trajectory(lab, &asymmetric, Moments::every(1))?;
        // factor1 is U (r×k), factor2 is Vᵀ (k×c); the lifted factor stacks U over V
        let stack = |params: &[f64]| -> Vec<f64> {
            let (u, vt) = params.split_at(r * k);
            let v = (0..c).flat_map(|j| (0..k).map(move |l| vt[l * c + j]));
            u.iter().copied().chain(v).collect()
        };
        // X̃ = (0 X; Xᵀ 0)/2 gives ⟨W̃, X̃⟩ = ⟨UVᵀ, X⟩
        let size = r + c;
        let inputs: Vec<Vec<f64>> = (0..data.len())
            .map(|n| {
                let x = dense.row(n);
                let mut lifted = vec![0.0; size * size];
                for i in 0..r {
                    for j in 0..c {
                        lifted[i * size + r + j] = 0.5 * x[i * c + j];
                        lifted[(r + j) * size + i] = 0.5 * x[i * c + j];
                    }
                }
                lifted
            })
            .collect();
        let mut symmetric: Task = asymmetric.clone();
        let shape = Some(vec![size, size]);
        symmetric.recipe.data =
            DataSpec::Points(Points { inputs, labels: Some(values(&data).to_vec()), values: None, shape });
        symmetric.recipe.model =
            limitpoint::models::ModelSpec::Matrix { rows: size, factors: 1, width: Some(k), symmetric: true };
        symmetric.recipe.initialiser = limitpoint::models::Initialiser::Given { values: stack(&plain[0]) };
        let (lifted, _) = trajectory(lab, &symmetric, Moments::every(1))?;
        let misses = plain.iter().zip(&lifted).map(|(plain, lifted)| {
            let expected = stack(plain);
            distance(lifted, &expected) / norm2(&expected)
        });
        let what = format!("start {seed}: largest difference of the factors in 200 steps, relative");
        outcome.largest(what, misses, 1e-12).by_theory();
    }
    outcome.note("With X̃ = (0 X; Xᵀ 0) instead of its half, the matching step is half as long.");
    Ok(outcome)
}

/// The judge's positive semidefinite matrix of unit trace with the largest margin.
fn semidefinite(data: &Dataset) -> Result<MaxMargin, ClaimError> {
    Ok(max_margin(&MarginProblem::linear(data, NormSpec::Nuclear)?.semidefinite()?)?)
}

/// `margin` per nuclear norm and `stationarity` ‖W − ZW‖/‖W‖ of W = UUᵀ.
fn optimality(size: usize) -> Columns {
    Columns::new(["margin", "stationarity"], move |bound| {
        let data = bound.data.clone();
        Ok(Box::new(move |seen, out| {
            let w = product(seen.point.params, size);
            out.push(least_margin(&data, &w) / trace(&w, size));
            out.push(kkt(&data, &w, size).unwrap_or(f64::NAN));
        }))
    })
}

fn nuclear_margin(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let size = 5;
    let tasks = lab.tasks("b-factored", &[format!("seed=0..{}", lab.choose(3, 5) - 1)])?;
    let named = tasks.into_iter().map(|task| (format!("seed {}", task.label.seed), task)).collect();
    let mut sketch = Sketch::new("nuclear-margin", "Theorem 7: margin per nuclear norm", "log(1/L)", "1 − margin/γ*")
        .logarithmic(true, true);
    for run in lab.all_series(named, Moments::every(20), |_| vec![measures::basics(), optimality(size)])? {
        let (seed, judge) = (&run.what, semidefinite(&run.end.data)?);
        // where ln 1/L has grown by 30 %
        let mut level = 10.0;
        let mut rows = run.rows(["u", "margin", "stationarity"]);
        rows.retain(|[u, ..]| {
            let kept = *u >= level;
            level = if kept { u * 1.3 } else { level };
            kept
        });
        let gap = 1.0 - run.last("margin") / judge.margin;
        let what = format!("{seed}: 1 − margin/γ* at log(1/L) = {:.0}", run.last("u"));
        outcome.at_most(what, gap, 0.05);
        outcome.at_least(format!("{seed}: the same is not negative"), gap, -1e-9).by_theory();
        let path: Vec<[f64; 2]> = rows.iter().map(|row| [row[0], (1.0 - row[1] / judge.margin).max(1e-16)]).collect();
        let mut shrinks = |what: String, [early, late]: [f64; 2]| {
            outcome.push(what, "shrinks", format!("{early:.2e}, then {late:.2e}"), late < early).by_theory();
        };
        let (middle, last) = (rows.len() / 2, rows.len() - 1);
        shrinks(format!("{seed}: half way (in log u) and at the end"), [path[middle][1], path[last][1]]);
        shrinks(format!("{seed}: ‖W − ZW‖/‖W‖, Z = −∇L/λ_max"), [rows[middle][2], rows[last][2]]);
        // the dual certificate: I − Σ αₙyₙXₙ ⪰ 0 with α = dual/γ*
        let mut slack = vec![0.0; size * size];
        (0..size).for_each(|i| slack[i * size + i] = 1.0);
        let data = &run.end.data;
        for (n, y) in values(data).iter().enumerate() {
            data.inputs.add_row(n, -judge.dual[n] * y / judge.margin, &mut slack);
        }
        let least = eigenvalues(&slack, size)?.into_iter().fold(f64::INFINITY, smaller);
        outcome.at_least(format!("{seed}: smallest eigenvalue of I − Σ αₙyₙXₙ"), least, -1e-9).by_theory();
        outcome.at_most(format!("{seed}: the judge's duality gap"), judge.bracket.relative_gap(), 1e-9).by_theory();
        sketch = sketch.curve(seed, path);
    }
    outcome.sketch(sketch);
    outcome.note(
        "The theorem assumes that increments and gradients converge in direction. The gap closes like a power of log(1/L) \
         whose exponent depends on the data.",
    );
    Ok(outcome)
}

/// ‖W − ZW‖/‖W‖ with Z = −∇L/λ_max(−∇L), 0 at a point that satisfies the optimality conditions (56)–(59).
fn kkt(data: &Dataset, w: &[f64], size: usize) -> Result<f64, ClaimError> {
    let mut z = pull(data, w);
    let largest = eigenvalues(&z, size)?.into_iter().fold(f64::NEG_INFINITY, larger);
    z.iter_mut().for_each(|x| *x /= largest);
    let mut zw = vec![0.0; w.len()];
    matmul(&mut zw, &z, w, size, size, size);
    zw.iter_mut().zip(w).for_each(|(zw, w)| *zw = w - *zw);
    Ok(norm2(&zw) / norm2(w))
}

fn sensing(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let size = 5;
    let scales = [1.0, 0.1, 0.01, 0.001];
    let task = |scale: f64| lab.tasks("b-sensing", &[format!("initialiser=normal(deviation={scale})")]);
    let tasks = scales.into_iter().map(task).collect::<Result<Vec<_>, _>>()?.concat();
    let ends = lab.finish_all(&tasks)?;
    let data = &ends[0].data;
    let layout = ParamLayout::new([("w", size, size)])?;
    let judge =
        interpolate(&*data.dense()?, values(data), &InterpolationTarget::Norm(NormSpec::Nuclear), &layout, None)?;
    let mut excess = Vec::new();
    for (scale, end) in scales.iter().zip(&ends) {
        let w = product(&end.params, size);
        let miss = values(data).iter().enumerate().map(|(n, y)| (data.inputs.row_dot(n, &w) - y).abs());
        outcome.at_most(format!("U(0) of size {scale}: largest residual"), miss.fold(0.0, larger), 1e-8);
        excess.push(trace(&w, size) / judge.objective - 1.0);
    }
    let words: Vec<String> = excess.iter().map(|excess| format!("{excess:.2e}")).collect();
    let falls = excess.windows(2).all(|pair| pair[1] < pair[0]);
    outcome.push(
        format!("nuclear norm over the smallest one ({:.6}) − 1, U(0) of size 1, 0.1, 0.01, 0.001", judge.objective),
        "falls as U(0) shrinks",
        words.join(", "),
        falls,
    );
    outcome.at_least("the same at size 1: the start is not forgotten", excess[0], 0.01);
    outcome.at_most("the same at size 0.001", excess[3], 0.01);
    // and on the step size, from one start
    let limit = |rate: f64| -> Result<Vec<f64>, ClaimError> {
        let overrides = [format!("schedule=constant(rate={rate})"), "initialiser=normal(deviation=0.5)".to_owned()];
        Ok(product(&lab.run("b-sensing", &overrides)?.remove(0).params, size))
    };
    let (coarse, fine) = (limit(0.002)?, limit(0.0005)?);
    outcome.at_least(
        "distance of the limits at η = 0.002 and 0.0005, U(0) of size 0.5",
        distance(&coarse, &fine),
        1e-6,
    );
    Ok(outcome)
}

fn disguises(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    // UVᵀ
    for seed in 0..lab.choose(2, 5) {
        let overrides = [
            format!("seed={seed}"),
            "data={matrices={count=8, rows=5, columns=4, margin=0.3}}".to_owned(),
            "model={matrix={rows=5, factors=2}}".to_owned(),
        ];
        let end = lab.run("b-factored", &overrides)?.remove(0);
        let judge = max_margin(&MarginProblem::linear(&end.data, NormSpec::Nuclear)?)?;
        let (u, v) = end.params.split_at(5 * 4);
        let mut w = vec![0.0; 20];
        matmul(&mut w, u, v, 5, 4, 4);
        let layout = ParamLayout::new([("w", 5, 4)])?;
        let size = NormSpec::Nuclear.build(&layout)?.value(&w);
        let gap = 1.0 - least_margin(&end.data, &w) / size / judge.margin;
        outcome.at_most(format!("UVᵀ, seed {seed}: 1 − margin/γ* per nuclear norm"), gap, 0.05);
    }
    // deep linear networks: the end-to-end weights are the gradient of the score with respect to the input
    for (depth, widths) in [(2, "[6]"), (3, "[6, 6]")] {
        let miss = |log10_loss: u32| -> Result<f64, ClaimError> {
            let overrides = [format!("model.widths={widths}"), format!("stop.log10_loss=-{log10_loss}")];
            let end = lab.run("b-deep", &overrides)?.remove(0);
            let judge = largest_margin(&end.data, &limitpoint::models::ModelSpec::Linear, &NormSpec::L2)?;
            Ok(angle(&end_to_end(lab, &end)?, &judge.direction))
        };
        let (early, late) = (miss(434)?, miss(4343)?);
        let what = format!("linear network of depth {depth}: angle to the largest ℓ2 margin at log(1/L) = 10³ and 10⁴");
        outcome.push(
            what,
            "falls to at most 0.05",
            format!("{early:.4}, then {late:.4}"),
            late < early && late <= 0.05,
        );
    }
    let diagonal = [
        "model=diagonal".to_owned(),
        "initialiser={given={values=[1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]}}".to_owned(),
    ];
    for seed in 1..=lab.choose(2, 5) {
        let mut overrides = diagonal.to_vec();
        overrides.push(format!("data.seed={seed}"));
        let end = lab.run("b-deep", &overrides)?.remove(0);
        let w: Vec<f64> = (0..5).map(|i| end.params[i] * end.params[5 + i]).collect();
        let judge = largest_margin(&end.data, &limitpoint::models::ModelSpec::Linear, &NormSpec::L1)?;
        let gap = 1.0 - least_margin(&end.data, &w) / limitpoint::linalg::sum_abs(&w) / judge.margin;
        outcome.at_most(format!("u⊙v, data {seed}: 1 − margin/γ* per ℓ1 norm"), gap, 0.02);
    }
    Ok(outcome)
}

/// The linear map a deep linear network computes: its score on every unit vector.
fn end_to_end(lab: &Lab, run: &Finished) -> Result<Vec<f64>, ClaimError> {
    let d = run.data.dimension();
    let units = Dataset::new(
        "units",
        limitpoint::linalg::Matrix::identity(d),
        limitpoint::data::Targets::Binary(vec![1.0; d]),
        vec![d],
    )?;
    let mut objective = lab.objective(&run.task, &units)?;
    objective.forward(&run.params);
    Ok(objective.margins().to_vec())
}
