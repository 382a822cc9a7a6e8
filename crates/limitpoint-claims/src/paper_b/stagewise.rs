//! Optimisation paths and regularisation paths.

use super::{angle, distance, larger, largest_margin, smallest_solution, task, trajectory, values};
use crate::{Claim, ClaimError, Lab, Moments, Outcome, Sketch};
use limitpoint::data::Dataset;
use limitpoint::linalg::{Matrix, sum_abs};
use limitpoint::norms::NormSpec;
use limitpoint::params::ParamLayout;
use limitpoint::reference::{LassoPath, constrained_loss, lasso_path};
use rayon::prelude::*;

pub(super) const CLAIMS: [Claim; 3] = [
    Claim {
        id: "B.cd",
        statement: "Coordinate descent with tiny steps follows the LASSO path to the smallest ℓ1 norm where that path is \
                    monotone, and can end at a larger norm where it is not",
        experiments: &["b-stagewise"],
        try_out: stagewise,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.regpath",
        statement: "The direction of argmin { L(w) : ‖w‖ ≤ c } tends to the largest margin of the norm as c grows",
        experiments: &["b-margins"],
        try_out: regularisation_path,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.path",
        statement: "At equal norms the optimisation path and the regularisation path differ, and meet in direction only \
                    in the limit; ℓ1 and ℓ2",
        experiments: &["b-margins"],
        try_out: two_paths,
        ..Claim::FORMULA
    },
];

/// A stagewise run beside the exact LASSO path of its data.
struct Pair {
    seed: u64,
    path: LassoPath,
    /// ‖w‖₁ and the weights at moments of the run.
    trail: Vec<(f64, Vec<f64>)>,
    /// ‖w‖₁ at the end over the smallest possible, minus 1.
    excess: f64,
}

/// The weights at moments far enough apart in size, with their sizes.
fn thinned(mut trail: Vec<(f64, Vec<f64>)>, far: impl Fn(f64, f64) -> bool) -> Vec<(f64, Vec<f64>)> {
    trail.dedup_by(|(size, _), (last, _)| !far(*size, *last));
    trail
}

fn pair(lab: &Lab, seed: u64) -> Result<Pair, ClaimError> {
    let task = task(lab, "b-stagewise", &format!("data.seed={seed}"))?;
    let (weights, run) = trajectory(lab, &task, Moments::every(10))?;
    let trail = weights.into_iter().map(|w| (sum_abs(&w), w)).collect();
    let data = &run.end.data;
    // the path of ½‖Xw − y‖² + λ‖w‖₁ is that of ‖Xw − y‖² + 2λ‖w‖₁
    let path = lasso_path(&*data.dense()?, values(data))?;
    let smallest = smallest_solution(data, NormSpec::L1, &ParamLayout::vector(data.dimension()))?.objective;
    let excess = sum_abs(&run.end.params) / smallest - 1.0;
    Ok(Pair { seed, path, trail: thinned(trail, |size, last| size > last + 0.01), excess })
}

fn stagewise(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let pairs: Vec<Pair> =
        (1..=lab.choose(12u64, 60)).into_par_iter().map(|seed| pair(lab, seed)).collect::<Result<_, _>>()?;
    let violations = pairs.iter().map(|pair| pair.path.stationarity());
    let what = "violation of the LASSO path's optimality conditions, over all knots and data";
    outcome.at_most(what, violations.fold(0.0, larger), 1e-10);
    let (monotone, others): (Vec<&Pair>, Vec<&Pair>) = pairs.iter().partition(|pair| pair.path.is_monotone());
    outcome.at_least("data sets with a monotone path", monotone.len() as f64, 1.0);
    outcome.at_least("data sets with a path that is not", others.len() as f64, 1.0);
    let worst = monotone.iter().map(|pair| pair.excess).fold(0.0, larger);
    outcome.at_most("monotone paths: ‖w‖₁ of the limit over the smallest − 1, largest", worst, 1e-4);
    let off = |pair: &&Pair| {
        let miss = |(norm, w): &(f64, Vec<f64>)| distance(w, &pair.path.at_norm(*norm));
        pair.trail.iter().map(miss).fold(0.0, larger)
    };
    let apart = monotone.iter().map(off).fold(0.0, larger);
    outcome.at_most("monotone paths: distance of descent and LASSO at equal norm, largest", apart, 1e-2);
    let furthest = others.iter().max_by(|a, b| a.excess.total_cmp(&b.excess));
    let larger = furthest.map_or(f64::NAN, |pair| pair.excess);
    outcome.at_least("paths that are not monotone: the same excess, largest", larger, 1e-3);
    for pair in [monotone.first().copied(), furthest.copied()].into_iter().flatten() {
        outcome.sketch(sketch(pair));
    }
    Ok(outcome)
}

/// Weights against the ℓ1 norm, of descent and of the LASSO.
fn sketch(pair: &Pair) -> Sketch {
    let kind = if pair.path.is_monotone() { "monotone" } else { "not monotone" };
    let name = format!("lasso-{}", kind.replace(' ', "-"));
    let title = format!("Stagewise descent and LASSO path, {kind} (data {})", pair.seed);
    let mut sketch = Sketch::new(&name, &title, "‖w‖₁", "weights");
    for j in 0..pair.trail.first().map_or(0, |(_, w)| w.len()) {
        let lasso = pair.path.knots.iter().map(|knot| [knot.norm, knot.weights[j]]).collect();
        sketch = sketch.reference(if j == 0 { "LASSO path" } else { "" }, lasso);
        let descent = pair.trail.iter().map(|(norm, w)| [*norm, w[j]]).collect();
        sketch = sketch.curve(format!("w{}", j + 1), descent);
    }
    sketch
}

/// yₙxₙ as rows, and the layout of the weights.
fn problem(data: &Dataset) -> Result<(Matrix, ParamLayout), ClaimError> {
    let mut rows = data.dense()?.into_owned();
    for (n, y) in values(data).iter().enumerate() {
        rows.row_mut(n).iter_mut().for_each(|x| *x *= y);
    }
    Ok((rows, ParamLayout::vector(data.dimension())))
}

fn regularisation_path(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for seed in 1..=lab.choose(2, 5) {
        let task = task(lab, "b-margins", &format!("data.seed={seed}; optimiser=gradient"))?;
        let data = lab.data(&task)?.train;
        let (rows, layout) = problem(&data)?;
        for norm in [NormSpec::L1, NormSpec::Lp { p: 1.5 }, NormSpec::L2] {
            let judge = largest_margin(&data, &task.recipe.model, &norm)?;
            let at = |level: f64| constrained_loss(&rows, &norm, &layout, level / judge.margin);
            let found = [5.0, 50.0, 500.0, 5000.0].into_iter().map(at).collect::<Result<Vec<_>, _>>()?;
            let gap = found.iter().map(|found| found.relative_gap()).fold(0.0, larger);
            outcome.at_most(format!("data {seed}, {norm}: duality gap of ŵ(c), largest over c"), gap, 1e-8);
            let turns: Vec<f64> = found.iter().map(|found| angle(&found.weights, &judge.direction)).collect();
            let words: Vec<String> = turns.iter().map(|turn| format!("{turn:.1e}")).collect();
            let falls = turns[1..].windows(2).all(|pair| pair[1] <= pair[0].max(1e-7));
            let what = format!("data {seed}, {norm}: angle to the largest margin at γ*c = 5, 50, 500, 5000");
            let holds = falls && turns[3] <= 1e-3;
            let check = outcome.push(what, "falls from 50 on, to at most 1e-3", words.join(", "), holds);
            check.catalogue_asks("1e-3 at γ*c = 50");
        }
    }
    outcome.note(
        "Margins of support vectors differ by O(1) where dual weights do, so that the angle falls like 1/(γ*c): it is below \
         1e-3 at γ*c = 50 only where the weights are equal by symmetry, as in ℓ2 on these data.",
    );
    Ok(outcome)
}

fn two_paths(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut sketch =
        Sketch::new("two-paths", "Optimisation and regularisation path", "norm of w", "angle between them")
            .logarithmic(true, true);
    for (optimiser, norm) in [("gradient", NormSpec::L2), ("coordinate", NormSpec::L1)] {
        let course = "schedule=flow-resolved(resolution=0.01); stop.log10_loss=-400; data.seed=3";
        let task = task(lab, "b-margins", &format!("optimiser={optimiser}; {course}"))?;
        let (weights, run) = trajectory(lab, &task, Moments::every(1))?;
        let (rows, layout) = problem(&run.end.data)?;
        let mut worker = norm.build(&layout)?;
        let sized = weights.into_iter().map(|w| (worker.value(&w), w)).filter(|(size, _)| *size > 0.05);
        let (mut curve, mut widest) = (Vec::new(), 0.0f64);
        for (size, w) in thinned(sized.collect(), |size, last| size > 1.35 * last) {
            let turn = angle(&w, &constrained_loss(&rows, &norm, &layout, size)?.weights);
            widest = larger(widest, turn);
            curve.push([size, turn.max(1e-9)]);
        }
        let name = format!("{optimiser} descent, {norm}");
        outcome.at_least(format!("{name}: widest angle between w(t) and ŵ(‖w(t)‖)"), widest, 1e-3);
        let [size, last] = curve[curve.len() - 1];
        outcome.at_most(format!("the same at ‖w‖ = {size:.0}, relative to the widest"), last / widest, 0.2);
        sketch = sketch.curve(name, curve);
    }
    outcome.sketch(sketch);
    Ok(outcome)
}
