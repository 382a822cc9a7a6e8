//! Coordinate descent as boosting.

use super::{distance, largest_margin, task, trajectory, values};
use crate::{Claim, ClaimError, Lab, Moments, Outcome, Sketch, measures};
use limitpoint::linalg::{Matrix, sum_abs};
use limitpoint::norms::NormSpec;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "B.adaboost",
        statement: "AdaBoost over explicit weak learners is coordinate descent on the exponential loss with exact line \
                    search",
        experiments: &["b-boosting"],
        try_out: same_iterates,
        ..Claim::FORMULA
    },
    Claim {
        id: "B.linesearch",
        statement: "Coordinate descent with small steps (ε-boosting) reaches the largest ℓ1 margin; with exact line search \
                    it can cycle and stay below (Rudin, Daubechies and Schapire 2004)",
        experiments: &["b-boosting"],
        try_out: cycling,
        ..Claim::FORMULA
    },
];

/// AdaBoost as a textbook writes it: weights of the examples, the weak learner with the largest edge, its vote; from an
/// ensemble that may have voted before.
fn ada_boost(votes: &Matrix, labels: &[f64], start: &[f64], rounds: usize) -> Vec<Vec<f64>> {
    let (examples, learners) = (votes.rows, votes.cols);
    let margin = |n: usize| -> f64 { labels[n] * (0..learners).map(|j| votes[(n, j)] * start[j]).sum::<f64>() };
    let mut weights: Vec<f64> = (0..examples).map(|n| (-margin(n)).exp()).collect();
    let mut ensemble = start.to_vec();
    let round = |_| {
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        let edge = |j: usize| -> f64 { (0..examples).map(|n| weights[n] * labels[n] * votes[(n, j)]).sum() };
        let edges: Vec<f64> = (0..learners).map(edge).collect();
        let best = (1..learners).fold(0, |best, j| if edges[j].abs() > edges[best].abs() { j } else { best });
        // weak learners may be negated
        let error = 0.5 * (1.0 - edges[best].abs());
        let vote = 0.5 * ((1.0 - error) / error).ln() * edges[best].signum();
        ensemble[best] += vote;
        (0..examples).for_each(|n| weights[n] *= (-vote * labels[n] * votes[(n, best)]).exp());
        ensemble.clone()
    };
    (0..rounds).map(round).collect()
}

fn same_iterates(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, rounds) = (Outcome::default(), lab.choose(200, 1000));
    // votes ±1 of random learners; a random first ensemble breaks ties whose order rounding would decide
    for seed in 1..=lab.choose(5, 20) {
        let draw = format!("data={{gaussians={{count=31, dimension=9, seed={seed}}}}}; seed={seed}");
        let settings = format!("optimiser=ada-boost; initialiser=normal(deviation=0.2); {draw}; stop.steps={rounds}");
        let mut task = task(lab, "b-boosting", &settings)?;
        let data = lab.data(&task)?.train;
        let mut votes = data.dense()?.into_owned();
        votes.data.iter_mut().for_each(|x| *x = if *x >= 0.0 { 1.0 } else { -1.0 });
        let inputs = (0..data.len()).map(|n| votes.row(n).to_vec()).collect();
        let labels = values(&data).to_vec();
        let points = limitpoint::data::Points { inputs, labels: Some(labels.clone()), values: None, shape: None };
        task.recipe.data = limitpoint::data::DataSpec::Points(points);
        let (trail, _) = trajectory(lab, &task, Moments::every(1))?;
        let textbook = ada_boost(&votes, &labels, &trail[0], rounds);
        let misses = trail[1..].iter().zip(&textbook).map(|(w, own)| distance(w, own) / (1.0 + sum_abs(own)));
        let what = format!("31 examples, 9 learners, data {seed}: largest difference in {rounds} rounds");
        outcome.largest(what, misses, 1e-10).by_theory();
    }
    Ok(outcome)
}

fn cycling(lab: &Lab) -> Result<Outcome, ClaimError> {
    let (mut outcome, rounds) = (Outcome::default(), lab.choose(200_000u64, 2_000_000));
    let mut sketch = Sketch::new("boosting", "AdaBoost cycles below the largest ℓ1 margin", "rounds", "ℓ1 margin")
        .logarithmic(true, false)
        .window([1.0, rounds as f64], [-0.1, 0.42]);
    let mut optimum = f64::NAN;
    for task in lab.tasks("b-boosting", &[format!("stop.steps={rounds}")])? {
        let columns = vec![measures::basics(), measures::margins(NormSpec::L1)];
        let run = lab.series(&task, Moments::per_decade(30), columns)?;
        optimum = largest_margin(&run.end.data, &task.recipe.model, &NormSpec::L1)?.margin;
        let gap = 1.0 - run.last("margin") / optimum;
        match run.optimiser() {
            "line-search" => {
                let what = format!("AdaBoost after {rounds} rounds: 1 − margin/γ*, γ* = {optimum:.6}");
                outcome.at_least(what, gap, 0.01)
            }
            name => outcome.at_most(format!("{name} after {rounds} rounds: 1 − margin/γ*"), gap, 1e-2),
        };
        let later = run.after_last("step", |step| step == 0.0);
        sketch = sketch.curve(run.optimiser(), later.curve("step", "margin", 1));
    }
    outcome.sketch(sketch.reference("largest ℓ1 margin", vec![[1.0, optimum], [rounds as f64, optimum]]));
    Ok(outcome)
}
