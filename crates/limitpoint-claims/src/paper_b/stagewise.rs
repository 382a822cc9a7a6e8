//! Optimisation paths and regularisation paths.

use super::{angle, distance, larger, largest_margin, trajectory, values};
use crate::{Claim, ClaimError, Finished, Lab, Moments, Outcome, Sketch};
use limitpoint::linalg::{Matrix, sum_abs};
use limitpoint::norms::NormSpec;
use limitpoint::params::ParamLayout;
use limitpoint::reference::{InterpolationTarget, LassoPath, constrained_loss, interpolate, lasso_path};
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
    run: Finished,
    /// ‖w‖₁ and the weights at moments of the run.
    trail: Vec<(f64, Vec<f64>)>,
    /// ‖w‖₁ at the end over the smallest possible, minus 1.
    excess: f64,
}

/// The weights at moments far enough apart in size, with their sizes.
fn thinned(
    weights: Vec<Vec<f64>>,
    mut size: impl FnMut(&[f64]) -> f64,
    far: impl Fn(f64, f64) -> bool,
) -> Vec<(f64, Vec<f64>)> {
    let mut trail: Vec<(f64, Vec<f64>)> = Vec::new();
    for w in weights {
        let size = size(&w);
        if trail.last().is_none_or(|(last, _)| far(size, *last)) {
            trail.push((size, w));
        }
    }
    trail
}

fn pair(lab: &Lab, seed: u64) -> Result<Pair, ClaimError> {
    let task = lab.tasks("b-stagewise", &[format!("data.seed={seed}")])?.remove(0);
    let (weights, run) = trajectory(lab, &task, Moments::every(10))?;
    let (trail, run) = (thinned(weights, sum_abs, |size, last| size > last + 0.01), run.end);
    let inputs = run.data.dense()?;
    // the path of ½‖Xw − y‖² + λ‖w‖₁ is that of ‖Xw − y‖² + 2λ‖w‖₁
    let path = lasso_path(&inputs, values(&run.data))?;
    let target = InterpolationTarget::Norm(NormSpec::L1);
    let judge = interpolate(&inputs, values(&run.data), &target, &ParamLayout::vector(inputs.cols), None)?;
    let excess = sum_abs(&run.params) / judge.objective - 1.0;
    drop(inputs);
    Ok(Pair { seed, path, run, trail, excess })
}

fn stagewise(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let pairs: Vec<Pair> =
        (1..=lab.choose(12u64, 60)).into_par_iter().map(|seed| pair(lab, seed)).collect::<Result<_, _>>()?;
    let stationarity = pairs.iter().map(|pair| pair.path.stationarity()).fold(0.0, larger);
    outcome.at_most(
        "violation of the LASSO path's optimality conditions, over all knots and data",
        stationarity,
        1e-10,
    );
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
    for j in 0..pair.run.params.len() {
        let lasso = pair.path.knots.iter().map(|knot| [knot.norm, knot.weights[j]]).collect();
        sketch = sketch.reference(if j == 0 { "LASSO path" } else { "" }, lasso);
        let descent = pair.trail.iter().map(|(norm, w)| [*norm, w[j]]).collect();
        sketch = sketch.curve(format!("w{}", j + 1), descent);
    }
    sketch
}

/// yₙxₙ as rows.
fn rows(run_data: &limitpoint::data::Dataset) -> Result<Matrix, ClaimError> {
    let mut rows = run_data.dense()?.into_owned();
    for (n, y) in values(run_data).iter().enumerate() {
        rows.row_mut(n).iter_mut().for_each(|x| *x *= y);
    }
    Ok(rows)
}

fn regularisation_path(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for seed in 1..=lab.choose(2, 5) {
        let task = lab.tasks("b-margins", &[format!("data.seed={seed}"), "optimiser=gradient".into()])?.remove(0);
        let data = lab.data(&task)?.train;
        let (rows, layout) = (rows(&data)?, ParamLayout::vector(data.dimension()));
        for norm in [NormSpec::L1, NormSpec::Lp { p: 1.5 }, NormSpec::L2] {
            let judge = largest_margin(&data, &task.recipe.model, &norm)?;
            let (mut turns, mut gap) = (Vec::new(), 0.0f64);
            for level in [5.0, 50.0, 500.0, 5000.0] {
                let found = constrained_loss(&rows, &norm, &layout, level / judge.margin)?;
                gap = larger(gap, found.relative_gap());
                turns.push(angle(&found.weights, &judge.direction));
            }
            outcome.at_most(format!("data {seed}, {norm}: duality gap of ŵ(c), largest over c"), gap, 1e-8);
            let words: Vec<String> = turns.iter().map(|turn| format!("{turn:.1e}")).collect();
            let falls = turns[1..].windows(2).all(|pair| pair[1] <= pair[0].max(1e-7));
            let what = format!("data {seed}, {norm}: angle to the largest margin at γ*c = 5, 50, 500, 5000");
            let asked = "1e-3 at γ*c = 50";
            let holds = falls && turns[3] <= 1e-3;
            outcome.push(what, "falls from 50 on, to at most 1e-3", words.join(", "), holds).catalogue_asks(asked);
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
        let overrides = [
            format!("optimiser={optimiser}"),
            "schedule=flow-resolved(resolution=0.01)".to_owned(),
            "stop.log10_loss=-400".to_owned(),
            "data.seed=3".to_owned(),
        ];
        let task = lab.tasks("b-margins", &overrides)?.remove(0);
        let data = lab.data(&task)?.train;
        let (rows, layout) = (rows(&data)?, ParamLayout::vector(data.dimension()));
        let mut worker = norm.build(&layout)?;
        let (mut weights, _) = trajectory(lab, &task, Moments::every(1))?;
        weights.retain(|w| worker.value(w) > 0.05);
        let trail = thinned(weights, |w| worker.value(w), |size, last| size > 1.35 * last);
        let mut curve = Vec::new();
        let mut widest = 0.0f64;
        for (size, w) in &trail {
            let found = constrained_loss(&rows, &norm, &layout, *size)?;
            let turn = angle(w, &found.weights);
            widest = larger(widest, turn);
            curve.push([*size, turn.max(1e-9)]);
        }
        let last = curve[curve.len() - 1][1];
        let words = format!("{optimiser} descent, {norm}: widest angle between w(t) and ŵ(‖w(t)‖)");
        outcome.at_least(words, widest, 1e-3);
        outcome.at_most(
            format!("the same at ‖w‖ = {:.0}, relative to the widest", curve[curve.len() - 1][0]),
            last / widest,
            0.2,
        );
        sketch = sketch.curve(format!("{optimiser} descent, {norm}"), curve);
    }
    outcome.sketch(sketch);
    Ok(outcome)
}
