//! Matrix factorisation: gradient descent on factors and the nuclear norm.

use super::{angle, distance, end, larger, largest_margin, least_margin, margins, smaller, smallest_solution};
use super::{task, tasks, trajectory, values};
use crate::{Claim, ClaimError, Columns, Lab, Moments, Outcome, Sketch, measures};
use limitpoint::data::{DataSpec, Dataset, Points, Targets};
use limitpoint::linalg::{Eigen, Matrix, matmul, matmul_nt, norm2, sum_abs};
use limitpoint::models::{Initialiser, ModelSpec};
use limitpoint::norms::NormSpec;
use limitpoint::params::ParamLayout;
use limitpoint::reference::{MarginProblem, max_margin};

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

/// W of the experiments is 5×5.
pub(super) const SIZE: usize = 5;

/// W = UUᵀ, row by row.
pub(super) fn product(u: &[f64], size: usize) -> Vec<f64> {
    let mut w = vec![0.0; size * size];
    matmul_nt(&mut w, u, u, size, u.len() / size, size);
    w
}

/// AB of an m×k and a k×n matrix.
fn times(a: &[f64], b: &[f64], [m, k, n]: [usize; 3]) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    matmul(&mut out, a, b, m, k, n);
    out
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

/// Rising.
pub(super) fn eigenvalues(matrix: &[f64], size: usize) -> Result<Vec<f64>, ClaimError> {
    let mut eigen = Eigen::new(size);
    eigen.factor(matrix)?;
    Ok(eigen.values().to_vec())
}

fn update(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let (shape, eta) = ([SIZE; 3], 0.02);
    for seed in 0..lab.choose(3, 10) {
        // U⁺ = U − (η/2)·2GU
        let settings = format!("seed={seed}; schedule=constant(rate={}); stop.steps=100", eta / 2.0);
        let (trail, run) = trajectory(lab, &task(lab, "b-factored", &settings)?, Moments::every(1))?;
        let mut w = product(&trail[0], SIZE);
        let misses = trail[1..].iter().zip(run.column("u")).map(|(next, u)| {
            let g: Vec<f64> = pull(&run.end.data, &w).iter().map(|z| -z * (-u).exp()).collect();
            let (gw, wg) = (times(&g, &w, shape), times(&w, &g, shape));
            for (i, gwg) in times(&gw, &g, shape).into_iter().enumerate() {
                w[i] += -eta * (gw[i] + wg[i]) + eta * eta * gwg;
            }
            distance(&product(next, SIZE), &w) / norm2(&w)
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
        let settings = format!(
            "seed={seed}; data={{matrices={{count=8, rows=3, columns=4, margin=0.3}}}}; \
             model={{matrix={{rows=3, factors=2, width=2}}}}; schedule=constant(rate={rate}); stop.steps=200"
        );
        let asymmetric = task(lab, "b-factored", &settings)?;
        let (plain, run) = trajectory(lab, &asymmetric, Moments::every(1))?;
        // factor1 is U (r×k), factor2 is Vᵀ (k×c); the lifted factor stacks U over V
        let stack = |params: &[f64]| -> Vec<f64> {
            let (u, vt) = params.split_at(r * k);
            let v = (0..c).flat_map(|j| (0..k).map(move |l| vt[l * c + j]));
            u.iter().copied().chain(v).collect()
        };
        // X̃ = (0 X; Xᵀ 0)/2 gives ⟨W̃, X̃⟩ = ⟨UVᵀ, X⟩
        let (size, dense) = (r + c, run.end.data.dense()?);
        let lift = |x: &[f64]| {
            let mut lifted = vec![0.0; size * size];
            for (i, j) in (0..r).flat_map(|i| (0..c).map(move |j| (i, j))) {
                lifted[i * size + r + j] = 0.5 * x[i * c + j];
                lifted[(r + j) * size + i] = 0.5 * x[i * c + j];
            }
            lifted
        };
        let (inputs, labels) = ((0..dense.rows).map(|n| lift(dense.row(n))).collect(), values(&run.end.data).to_vec());
        let points = Points { inputs, labels: Some(labels), values: None, shape: Some(vec![size, size]) };
        let mut symmetric = asymmetric.clone();
        symmetric.recipe.data = DataSpec::Points(points);
        symmetric.recipe.model = ModelSpec::Matrix { rows: size, factors: 1, width: Some(k), symmetric: true };
        symmetric.recipe.initialiser = Initialiser::Given { values: stack(&plain[0]) };
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

/// `margin` per nuclear norm and `stationarity` ‖W − ZW‖/‖W‖ of W = UUᵀ.
fn optimality() -> Columns {
    Columns::new(["margin", "stationarity"], |bound| {
        let data = bound.data.clone();
        Ok(Box::new(move |seen, out| {
            let w = product(seen.point.params, SIZE);
            out.push(least_margin(&data, &w) / trace(&w, SIZE));
            out.push(kkt(&data, &w).unwrap_or(f64::NAN));
        }))
    })
}

fn nuclear_margin(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let tasks = tasks(lab, "b-factored", &format!("seed=0..{}", lab.choose(3, 5) - 1))?;
    let named = tasks.into_iter().map(|task| (format!("seed {}", task.label.seed), task)).collect();
    let mut sketch = Sketch::new("nuclear-margin", "Theorem 7: margin per nuclear norm", "log(1/L)", "1 − margin/γ*")
        .logarithmic(true, true);
    for run in lab.all_series(named, Moments::every(20), |_| vec![measures::basics(), optimality()])? {
        // the positive semidefinite matrix of unit trace with the largest margin
        let (seed, data) = (&run.what, &run.end.data);
        let judge = max_margin(&MarginProblem::linear(data, NormSpec::Nuclear)?.semidefinite()?)?;
        // where ln 1/L has grown by 30 %
        let mut level = 10.0;
        let mut rows = run.rows(["u", "margin", "stationarity"]);
        rows.retain(|[u, ..]| {
            let kept = *u >= level;
            level = if kept { u * 1.3 } else { level };
            kept
        });
        let gap = 1.0 - run.last("margin") / judge.margin;
        outcome.at_most(format!("{seed}: 1 − margin/γ* at log(1/L) = {:.0}", run.last("u")), gap, 0.05);
        outcome.at_least(format!("{seed}: the same is not negative"), gap, -1e-9).by_theory();
        let path: Vec<[f64; 2]> = rows.iter().map(|row| [row[0], (1.0 - row[1] / judge.margin).max(1e-16)]).collect();
        let mut shrinks = |what: String, [early, late]: [f64; 2]| {
            outcome.push(what, "shrinks", format!("{early:.2e}, then {late:.2e}"), late < early).by_theory();
        };
        let (middle, last) = (rows.len() / 2, rows.len() - 1);
        shrinks(format!("{seed}: half way (in log u) and at the end"), [path[middle][1], path[last][1]]);
        shrinks(format!("{seed}: ‖W − ZW‖/‖W‖, Z = −∇L/λ_max"), [rows[middle][2], rows[last][2]]);
        // the dual certificate: I − Σ αₙyₙXₙ ⪰ 0 with α = dual/γ*
        let mut slack = Matrix::identity(SIZE).data;
        for (n, y) in values(data).iter().enumerate() {
            data.inputs.add_row(n, -judge.dual[n] * y / judge.margin, &mut slack);
        }
        let least = eigenvalues(&slack, SIZE)?.into_iter().fold(f64::INFINITY, smaller);
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
fn kkt(data: &Dataset, w: &[f64]) -> Result<f64, ClaimError> {
    let mut z = pull(data, w);
    let largest = eigenvalues(&z, SIZE)?.into_iter().fold(f64::NEG_INFINITY, larger);
    z.iter_mut().for_each(|x| *x /= largest);
    let rest: Vec<f64> = times(&z, w, [SIZE; 3]).iter().zip(w).map(|(zw, w)| w - zw).collect();
    Ok(norm2(&rest) / norm2(w))
}

fn sensing(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, scales) = (Outcome::default(), [1.0, 0.1, 0.01, 0.001]);
    let task = |scale: f64| task(lab, "b-sensing", &format!("initialiser=normal(deviation={scale})"));
    let ends = lab.finish_all(&scales.into_iter().map(task).collect::<Result<Vec<_>, _>>()?)?;
    let data = &ends[0].data;
    let smallest = smallest_solution(data, NormSpec::Nuclear, &ParamLayout::new([("w", SIZE, SIZE)])?)?.objective;
    let mut excess = Vec::new();
    for (scale, end) in scales.iter().zip(&ends) {
        let w = product(&end.params, SIZE);
        let misses = values(data).iter().enumerate().map(|(n, y)| (data.inputs.row_dot(n, &w) - y).abs());
        outcome.largest(format!("U(0) of size {scale}: largest residual"), misses, 1e-8);
        excess.push(trace(&w, SIZE) / smallest - 1.0);
    }
    let words: Vec<String> = excess.iter().map(|excess| format!("{excess:.2e}")).collect();
    let falls = excess.windows(2).all(|pair| pair[1] < pair[0]);
    let what = format!("nuclear norm over the smallest one ({smallest:.6}) − 1, U(0) of size 1, 0.1, 0.01, 0.001");
    outcome.push(what, "falls as U(0) shrinks", words.join(", "), falls);
    outcome.at_least("the same at size 1: the start is not forgotten", excess[0], 0.01);
    outcome.at_most("the same at size 0.001", excess[3], 0.01);
    // and on the step size, from one start
    let limit = |rate: f64| -> Result<Vec<f64>, ClaimError> {
        let settings = format!("schedule=constant(rate={rate}); initialiser=normal(deviation=0.5)");
        Ok(product(&end(lab, "b-sensing", &settings)?.params, SIZE))
    };
    let apart = distance(&limit(0.002)?, &limit(0.0005)?);
    outcome.at_least("distance of the limits at η = 0.002 and 0.0005, U(0) of size 0.5", apart, 1e-6);
    Ok(outcome)
}

fn disguises(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    // UVᵀ
    for seed in 0..lab.choose(2, 5) {
        let matrices = "data={matrices={count=8, rows=5, columns=4, margin=0.3}}; model={matrix={rows=5, factors=2}}";
        let end = end(lab, "b-factored", &format!("seed={seed}; {matrices}"))?;
        let judge = max_margin(&MarginProblem::linear(&end.data, NormSpec::Nuclear)?)?;
        let (u, v) = end.params.split_at(5 * 4);
        let w = times(u, v, [5, 4, 4]);
        let size = NormSpec::Nuclear.build(&ParamLayout::new([("w", 5, 4)])?)?.value(&w);
        let gap = 1.0 - least_margin(&end.data, &w) / size / judge.margin;
        outcome.at_most(format!("UVᵀ, seed {seed}: 1 − margin/γ* per nuclear norm"), gap, 0.05);
    }
    // deep linear networks: the end-to-end weights are the scores of the unit vectors
    for (depth, widths) in [(2, "[6]"), (3, "[6, 6]")] {
        let miss = |log10_loss: u32| -> Result<f64, ClaimError> {
            let settings = format!("model.widths={widths}; stop.log10_loss=-{log10_loss}");
            let end = end(lab, "b-deep", &settings)?;
            let judge = largest_margin(&end.data, &ModelSpec::Linear, &NormSpec::L2)?;
            let d = end.data.dimension();
            let units = Dataset::new("units", Matrix::identity(d), Targets::Binary(vec![1.0; d]), vec![d])?;
            let mut objective = lab.objective(&end.task, &units)?;
            objective.forward(&end.params);
            Ok(angle(objective.margins(), &judge.direction))
        };
        let (early, late) = (miss(434)?, miss(4343)?);
        let what = format!("linear network of depth {depth}: angle to the largest ℓ2 margin at log(1/L) = 10³ and 10⁴");
        let measured = format!("{early:.4}, then {late:.4}");
        outcome.push(what, "falls to at most 0.05", measured, late < early && late <= 0.05);
    }
    for seed in 1..=lab.choose(2, 5) {
        let start = "initialiser={given={values=[1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]}}";
        let end = end(lab, "b-deep", &format!("model=diagonal; {start}; data.seed={seed}"))?;
        let (u, v) = end.params.split_at(5);
        let w: Vec<f64> = u.iter().zip(v).map(|(u, v)| u * v).collect();
        let judge = largest_margin(&end.data, &ModelSpec::Linear, &NormSpec::L1)?;
        let gap = 1.0 - least_margin(&end.data, &w) / sum_abs(&w) / judge.margin;
        outcome.at_most(format!("u⊙v, data {seed}: 1 − margin/γ* per ℓ1 norm"), gap, 0.02);
    }
    Ok(outcome)
}
