//! Losses with a finite root: gradient methods and mirror descent go to the nearest solution.

use super::{apart, distance, larger, nearest_solution, trajectory, values};
use crate::{Claim, ClaimError, Columns, Lab, Moments, Outcome};
use limitpoint::linalg::{Matrix, add_scaled, dot, norm2};
use limitpoint::losses::{LossFamily, LossSpec};
use limitpoint::numeric::Streams;
use limitpoint::optimisers::{Constraint, MomentumSpace, OptimiserSpec};
use limitpoint::params::ParamLayout;
use limitpoint::potentials::{PotentialSpec, QuadraticWeights};
use limitpoint::reference::{InterpolationTarget, interpolate, stack_equations};

pub(super) const CLAIMS: [Claim; 6] = [
    Claim {
        id: "B.prop1",
        covers: &["B.prop2"],
        statement: "Losses are of two families: a unique finite root, or strictly decreasing to an infimum 0 that is \
                    not attained",
        try_out: families,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.gd2.1",
        covers: &["B.eq2", "B.eq3"],
        statement: "Gradient descent converges to the solution nearest to its start, for any loss with a finite root, \
                    any step size and mini-batch; from 0 with momentum too",
        experiments: &["b-nearest"],
        try_out: gradient_methods,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.thm1",
        statement: "Mirror descent converges to the solution that minimises the Bregman divergence to its start, for \
                    any step sizes and mini-batches",
        experiments: &["b-bregman", "b-sensing"],
        try_out: mirror_descent,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.affine",
        statement: "On an affine set Gw = h, such as the simplex, mirror descent converges to the nearest point of both \
                    sets; with single examples too",
        experiments: &["b-simplex"],
        try_out: affine,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.quadmom",
        statement: "For quadratic potentials momentum in the primal and in the dual are the same iteration",
        experiments: &["b-bregman"],
        try_out: quadratic_momentum,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.quadnorm",
        statement: "Steepest descent in a quadratic norm converges to the solution nearest to its start in that norm, \
                    for any stable step size",
        experiments: &["b-bregman"],
        try_out: quadratic_norm,
        ..Claim::FORMULA
    },
];

fn families(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for spec in LossSpec::examples().into_iter().filter(|spec| !spec.is_multiclass()) {
        let loss = spec.build()?;
        match spec.family() {
            LossFamily::Regression => {
                let at = |r: f64| loss.log_loss(&[r], 1);
                let grid = (-60..=60).map(|i| 10f64.powf(f64::from(i) / 20.0));
                let only = grid.flat_map(|r| [r, -r]).all(|r| at(r) > f64::NEG_INFINITY);
                let root = at(0.0) == f64::NEG_INFINITY;
                let words = format!("ln ℓ(0) = {}, finite elsewhere: {only}", at(0.0));
                outcome.event(spec.to_string(), "zero at residual 0 only", words, root && only);
            }
            LossFamily::Margin => {
                // powers of the margin are flat at 0 and to its left; their property begins at 0
                let from = if loss.log_loss(&[-1.0], 1) <= loss.log_loss(&[0.0], 1) { 1 } else { -400 };
                let grid: Vec<f64> = (from..4000).map(|i| f64::from(i) / 20.0).collect();
                let falls = grid.windows(2).all(|q| loss.log_loss(&[q[1]], 1) < loss.log_loss(&[q[0]], 1));
                let end = loss.log_loss(&[1e4], 1);
                let words = format!("strictly decreasing: {falls}, ln ℓ(10⁴) = {end:.1}");
                outcome.push(spec.to_string(), "decreasing to 0, positive everywhere", words, falls && end.is_finite());
            }
        }
    }
    Ok(outcome)
}

/// v without its components along orthonormal vectors.
fn remove(basis: &[Vec<f64>], v: &mut [f64]) {
    for unit in basis {
        let along = dot(unit, v);
        add_scaled(v, -along, unit);
    }
}

/// An orthonormal basis of the span of the examples (Gram–Schmidt, twice for safety).
fn span(inputs: &Matrix) -> Vec<Vec<f64>> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for n in 0..inputs.rows {
        let mut unit = inputs.row(n).to_vec();
        for _ in 0..2 {
            remove(&basis, &mut unit);
        }
        let size = norm2(&unit);
        unit.iter_mut().for_each(|x| *x /= size);
        basis.push(unit);
    }
    basis
}

/// How far v is outside the span.
fn outside(basis: &[Vec<f64>], v: &[f64]) -> f64 {
    let mut rest = v.to_vec();
    for _ in 0..2 {
        remove(basis, &mut rest);
    }
    norm2(&rest)
}

fn gradient_methods(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut start = vec![0.0; 12];
    Streams::new(4).stream("start").fill_normal(&mut start);
    let given = format!("initialiser={{given={{values={start:?}}}}}");
    let single = "batching={mini={size=1}}".to_owned();
    let pairs = "batching={mini={size=2}}".to_owned();
    let plain = "optimiser=gradient".to_owned();
    let cases: [(&str, Vec<String>); 6] = [
        ("gradient descent from a random start", vec![plain.clone(), given.clone()]),
        ("with half the step", vec![plain.clone(), given.clone(), "schedule=constant(rate=0.005)".into()]),
        ("with single examples", vec![plain.clone(), given.clone(), single]),
        ("with mini-batches of two", vec![plain, given, pairs]),
        ("heavy ball from 0", vec!["optimiser=heavy-ball".into()]),
        ("Nesterov from 0", vec!["optimiser=nesterov".into()]),
    ];
    for loss in ["squared", "huber(delta=0.5)", "truncated-squared(threshold=30)"] {
        for (name, overrides) in &cases {
            let mut overrides = overrides.clone();
            overrides.push(format!("loss={loss}"));
            let task = lab.tasks("b-nearest", &overrides)?.remove(0);
            let leaves = Columns::new(["outside"], |bound| {
                let (basis, start) = (span(&*bound.data.dense()?), bound.start.to_vec());
                Ok(Box::new(move |seen, out| {
                    let moved: Vec<f64> = seen.point.params.iter().zip(&start).map(|(w, s)| w - s).collect();
                    out.push(outside(&basis, &moved));
                }))
            });
            let run = lab.series(&task, Moments::every(50), vec![leaves])?;
            let judge = nearest_solution(&run.end, &PotentialSpec::Euclidean)?;
            let words = format!("{name}, {loss}: distance to w₀ + Xᵀ(XXᵀ)⁻¹(y − Xw₀)");
            outcome.at_most(words, distance(&run.end.params, &judge.weights), 1e-8);
            let what = format!("{name}, {loss}: w − w₀ outside the span of the examples");
            outcome.at_most(what, run.most("outside"), 1e-12).by_theory();
        }
    }
    Ok(outcome)
}

fn mirror_descent(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let schedules = ["constant(rate=0.02)", "constant(rate=0.007)", "polynomial(rate=0.02, power=0.1)"];
    for schedule in schedules {
        for run in lab.run("b-bregman", &[format!("schedule={schedule}")])? {
            compare_with_judge(&mut outcome, &run, schedule)?;
        }
    }
    for run in lab.run("b-bregman", &["batching={mini={size=1}}", "schedule=constant(rate=0.02)"])? {
        compare_with_judge(&mut outcome, &run, "single examples")?;
    }
    spectral_entropy(lab, &mut outcome)?;
    outcome.note(
        "The paper asks for strong convexity; the entropy has none on its whole domain, and an invertible link suffices.",
    );
    Ok(outcome)
}

/// Three equations for a symmetric 3×3 matrix, from the identity, in the entropy of eigenvalues.
fn spectral_entropy(lab: &Lab, outcome: &mut Outcome) -> Result<(), ClaimError> {
    let layout = ParamLayout::new([("weight", 3, 3)])?;
    for rate in [0.03, 0.01] {
        let overrides = [
            "optimiser={mirror={potential=\"spectral-entropy\"}}".to_owned(),
            "model={matrix={rows=3}}".to_owned(),
            "data={matrices={count=3, rows=3, rank=3, symmetric=true, task=\"values\", seed=1}}".to_owned(),
            format!("initialiser={{given={{values={:?}}}}}", Matrix::identity(3).data),
            format!("schedule=constant(rate={rate})"),
        ];
        let run = lab.run("b-sensing", &overrides)?.remove(0);
        let target = InterpolationTarget::Potential(PotentialSpec::SpectralEntropy);
        let judge = interpolate(&*run.data.dense()?, values(&run.data), &target, &layout, Some(&run.start))?;
        let miss = distance(&run.params, &judge.weights);
        outcome.at_most(
            format!("spectral entropy, η = {rate}: distance to argmin D(W, I) over ⟨Xₙ, W⟩ = yₙ"),
            miss,
            1e-8,
        );
    }
    Ok(())
}

fn compare_with_judge(outcome: &mut Outcome, run: &crate::Finished, how: &str) -> Result<(), ClaimError> {
    let name = &run.task.label.optimiser;
    let Some(OptimiserSpec::Mirror { potential, .. }) = run.task.recipe.optimisers.get(name) else { return Ok(()) };
    let judge = nearest_solution(run, potential)?;
    let miss = distance(&run.params, &judge.weights);
    outcome
        .at_most(format!("{name}, {how}: distance to argmin D(w, w₀) over Xw = y"), miss, 1e-8)
        .catalogue_asks("1e-6");
    Ok(())
}

fn affine(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for batching in ["full", "{mini={size=1}}"] {
        for run in lab.run("b-simplex", &[format!("batching={batching}")])? {
            let name = &run.task.label.optimiser;
            let Some(OptimiserSpec::ConstrainedMirror { potential, constraint }) = run.task.recipe.optimisers.get(name)
            else {
                continue;
            };
            let (g, h) = match constraint {
                Constraint::Simplex => (Matrix::from_rows(&[&[1.0; 5]]), vec![1.0]),
                Constraint::Affine { rows, values } => {
                    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
                    (Matrix::from_rows(&rows), values.clone())
                }
            };
            let (x, y) = stack_equations((&*run.data.dense()?, values(&run.data)), (&g, &h))?;
            let target = InterpolationTarget::Potential(potential.clone());
            let judge = interpolate(&x, &y, &target, &ParamLayout::vector(5), Some(&run.start))?;
            let miss = distance(&run.params, &judge.weights);
            outcome
                .at_most(format!("{name}, batches {batching}: distance to the judge's point"), miss, 1e-8)
                .catalogue_asks("1e-6");
            let off = (0..g.rows).map(|i| (dot(g.row(i), &run.params) - h[i]).abs()).fold(0.0, larger);
            outcome.at_most(format!("{name}, batches {batching}: |Gw − h|"), off, 1e-12).by_theory();
        }
    }
    Ok(outcome)
}

/// A random positive definite matrix as rows.
fn random_matrix(size: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut stream = Streams::new(seed).stream("metric");
    let mut root = vec![0.0; size * size];
    stream.fill_normal(&mut root);
    let entry = |i: usize, j: usize| {
        let product: f64 = (0..size).map(|k| root[i * size + k] * root[j * size + k]).sum();
        product / size as f64 + if i == j { 1.0 } else { 0.0 }
    };
    (0..size).map(|i| (0..size).map(|j| if i < j { entry(j, i) } else { entry(i, j) }).collect()).collect()
}

fn quadratic_momentum(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for seed in 0..lab.choose(4, 20) {
        let mut stream = Streams::new(seed).stream("momentum");
        let (beta, gamma) = (0.9 * stream.uniform_in(0.0, 1.0), stream.uniform_in(0.0, 1.0));
        let potential = PotentialSpec::Quadratic(QuadraticWeights::Matrix(random_matrix(8, seed)));
        let mut trails = Vec::new();
        for space in [MomentumSpace::Dual, MomentumSpace::Primal] {
            let overrides = ["optimiser=gradient", "schedule=constant(rate=0.003)", "stop={steps=500}"];
            let mut task = lab.tasks("b-bregman", &overrides)?.remove(0);
            let spec = OptimiserSpec::Mirror { potential: potential.clone(), space, beta, gamma };
            task.recipe.optimisers.values_mut().for_each(|optimiser| *optimiser = spec.clone());
            trails.push(trajectory(lab, &task, Moments::every(1))?.0);
        }
        let what = format!("random D, β = {beta:.2}, γ = {gamma:.2}: largest difference in 500 steps");
        outcome.at_most(what, apart(&trails[0], &trails[1]), 1e-12).by_theory();
    }
    Ok(outcome)
}

fn quadratic_norm(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let diagonal = [0.5, 1.0, 2.0, 3.0, 0.7, 1.5, 1.0, 2.5];
    let potential = PotentialSpec::Quadratic(QuadraticWeights::Diagonal(diagonal.to_vec()));
    for rate in [0.001, 0.004, 0.012] {
        let optimiser = format!("optimiser={{steepest={{norm={{quadratic={{diagonal={diagonal:?}}}}}}}}}");
        let run = lab.run("b-bregman", &[optimiser, format!("schedule=constant(rate={rate})")])?.remove(0);
        let judge = nearest_solution(&run, &potential)?;
        let miss = distance(&run.params, &judge.weights);
        outcome.at_most(format!("η = {rate}: distance to argmin ‖w − w₀‖_D over Xw = y"), miss, 1e-8);
    }
    Ok(outcome)
}
