//! Coordinate descent as boosting.

use super::{distance, larger, largest_margin, least_margin, values};
use crate::claims::{Claim, ClaimError, Lab, Outcome, Sketch};
use crate::linalg::{Matrix, sum_abs};
use crate::norms::NormSpec;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "B.adaboost",
        covers: &[],
        statement: "AdaBoost over explicit weak learners is coordinate descent on the exponential loss with exact line \
                    search",
        experiments: &["b-boosting"],
        try_out: same_iterates,
    },
    Claim {
        id: "B.linesearch",
        covers: &[],
        statement: "Coordinate descent with small steps (ε-boosting) reaches the largest ℓ1 margin; with exact line search \
                    it can cycle and stay below (Rudin, Daubechies and Schapire 2004)",
        experiments: &["b-boosting"],
        try_out: cycling,
    },
];

/// AdaBoost as a textbook writes it: weights of the examples, the weak learner with the largest edge, its vote; from an
/// ensemble that may have voted before.
fn ada_boost(votes: &Matrix, labels: &[f64], start: &[f64], rounds: usize) -> Vec<Vec<f64>> {
    let (examples, learners) = (votes.rows, votes.cols);
    let margin = |n: usize| -> f64 { labels[n] * (0..learners).map(|j| votes[(n, j)] * start[j]).sum::<f64>() };
    let mut weights: Vec<f64> = (0..examples).map(|n| (-margin(n)).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    let mut ensemble = start.to_vec();
    let mut history = Vec::new();
    for _ in 0..rounds {
        let right = |j: usize| -> f64 { (0..examples).map(|n| weights[n] * labels[n] * votes[(n, j)]).sum() };
        let edges: Vec<f64> = (0..learners).map(right).collect();
        let mut best = 0;
        for j in 1..learners {
            if edges[j].abs() > edges[best].abs() {
                best = j;
            }
        }
        // weak learners may be negated
        let error = 0.5 * (1.0 - edges[best].abs());
        let vote = 0.5 * ((1.0 - error) / error).ln() * edges[best].signum();
        ensemble[best] += vote;
        (0..examples).for_each(|n| weights[n] *= (-vote * labels[n] * votes[(n, best)]).exp());
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= total);
        history.push(ensemble.clone());
    }
    history
}

fn same_iterates(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let rounds = lab.choose(200, 1000);
    // votes ±1 of random learners; a random first ensemble breaks ties whose order rounding would decide
    for seed in 1..=lab.choose(5, 20) {
        let overrides = [
            "optimiser=ada-boost",
            "initialiser=normal(deviation=0.2)",
            &format!("seed={seed}"),
            &format!("data={{gaussians={{count=31, dimension=9, seed={seed}}}}}"),
        ];
        let mut task = lab.tasks("b-boosting", &overrides)?.remove(0);
        let data = lab.data(&task)?.train;
        let mut votes = data.dense()?.into_owned();
        votes.data.iter_mut().for_each(|x| *x = if *x >= 0.0 { 1.0 } else { -1.0 });
        let inputs = (0..data.len()).map(|n| votes.row(n).to_vec()).collect();
        let labels = values(&data).to_vec();
        let points = crate::data::Points { inputs, labels: Some(labels.clone()), values: None, shape: None };
        task.recipe.data = crate::data::DataSpec::Points(points);
        let mut process = lab.start(&task)?;
        let textbook = ada_boost(&votes, &labels, process.params(), rounds);
        let mut worst = 0.0f64;
        for expected in &textbook {
            process.advance()?;
            worst = larger(worst, distance(process.params(), expected) / (1.0 + sum_abs(expected)));
        }
        outcome.at_most(
            format!("31 examples, 9 learners, data {seed}: largest difference in {rounds} rounds"),
            worst,
            1e-10,
        );
    }
    Ok(outcome)
}

fn cycling(lab: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let rounds = lab.choose(200_000u64, 2_000_000);
    let mut sketch = Sketch::new("boosting", "AdaBoost cycles below the largest ℓ1 margin", "rounds", "ℓ1 margin")
        .logarithmic(true, false)
        .window([1.0, rounds as f64], [-0.1, 0.42]);
    let mut optimum = f64::NAN;
    for task in lab.tasks("b-boosting", &[format!("stop.steps={rounds}")])? {
        let data = lab.data(&task)?.train;
        let judge = largest_margin(&data, &task.recipe.model, &NormSpec::L1)?;
        optimum = judge.margin;
        let mut path = Vec::new();
        let mut next = 1.0f64;
        let mut wanted = Vec::new();
        while next <= rounds as f64 {
            wanted.push(next as u64);
            next = (next * 1.08).max(next + 1.0);
        }
        let run = lab.watch(
            &task,
            |step| wanted.binary_search(&step).is_ok(),
            |snapshot| {
                let size = sum_abs(snapshot.point.params);
                if size > 0.0 {
                    path.push([snapshot.step.max(1) as f64, snapshot.point.smallest_margin() / size]);
                }
            },
        )?;
        let gap = 1.0 - least_margin(&run.data, &run.params) / sum_abs(&run.params) / judge.margin;
        let name = task.label.optimiser.as_str();
        if name == "line-search" {
            let words = format!("AdaBoost after {rounds} rounds: 1 − margin/γ*, γ* = {:.6}", judge.margin);
            outcome.at_least(words, gap, 0.01);
        } else {
            outcome.at_most(format!("{name} after {rounds} rounds: 1 − margin/γ*"), gap, 1e-2);
        }
        sketch = sketch.curve(name, path);
    }
    let exact = vec![[1.0, optimum], [rounds as f64, optimum]];
    outcome.sketch(sketch.reference("largest ℓ1 margin", exact));
    Ok(outcome)
}
