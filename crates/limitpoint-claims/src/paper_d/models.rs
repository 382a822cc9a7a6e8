//! Theorem B.2, Corollary B.3 and Lemma C.7: what homogeneity says of gradients.

use super::chain::{AT_KINK, INPUTS};
use crate::arithmetic::{larger, smaller};
use crate::{Claim, ClaimError, Lab, Outcome};
use limitpoint::engine::{Compute, Forward, Tangents, cpu};
use limitpoint::linalg::{Matrix, dot};
use limitpoint::models::ModelSpec;
use limitpoint::numeric::Streams;

pub(super) const CLAIMS: [Claim; 2] = [
    Claim {
        id: "D.thmB2",
        covers: &["D.corB3"],
        statement: "h(cθ) = c^{L−1} h(θ) and ⟨θ, h⟩ = L Φ for every homogeneous model of the library, also with the slopes on the \
                    other side of a kink",
        try_out: homogeneity,
        ..Claim::FORMULA
    },
    Claim {
        id: "D.defC2",
        covers: &["D.lemC7"],
        statement: "At every feasible point −θ is a direction with ⟨−θ, h⟩ = −L q < 0 for all gradients h of active margins, so \
                    that the margin problem satisfies the constraint qualification of Mangasarian and Fromovitz",
        try_out: qualification,
        ..Claim::FORMULA
    },
];

/// A model with its name and random weights.
type Drawn = (String, Box<dyn Tangents>, Vec<f64>);

/// Every homogeneous model of the library on random inputs.
fn models(seed: u64) -> Result<Vec<Drawn>, ClaimError> {
    let mut all = Vec::new();
    for (index, spec) in ModelSpec::examples().into_iter().enumerate() {
        let streams = Streams::new(seed + index as u64);
        let (rows, columns) = (7, 4);
        let mut inputs = Matrix::zeros(rows, columns);
        streams.stream("inputs").fill_normal(&mut inputs.data);
        let model = cpu::bind(&spec, &inputs, 1, Compute::default())?;
        if model.homogeneity().is_none() {
            continue;
        }
        let mut theta = vec![0.0; model.layout().len()];
        streams.stream("weights").fill_normal(&mut theta);
        all.push((format!("{} {}", index + 1, spec.key()), model, theta));
    }
    Ok(all)
}

fn homogeneity(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    let mut kinked = 0;
    for (name, mut model, theta) in models(100)? {
        let degree = model.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
        let trainable = model.layout().trainable_ranges();
        // frozen blocks do not scale
        let scaled = |c: f64| {
            let mut moved = theta.clone();
            trainable.iter().for_each(|range| moved[range.clone()].iter_mut().for_each(|w| *w *= c));
            moved
        };
        let scores = model.scores(&theta).to_vec();
        let gradients = model.per_example_gradients(&theta, 0);
        let size = gradients.data.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        let (mut euler, mut scaling) = (0.0, 0.0);
        for (n, score) in scores.iter().enumerate() {
            let outward: f64 = trainable.iter().map(|r| dot(&theta[r.clone()], &gradients.row(n)[r.clone()])).sum();
            euler = larger(euler, (outward - degree * score).abs() / (size * limitpoint::linalg::norm2(&theta)));
        }
        for c in [0.25, 3.0] {
            let moved = model.per_example_gradients(&scaled(c), 0);
            let factor = f64::powf(c, degree - 1.0);
            for range in &trainable {
                for n in 0..scores.len() {
                    for k in range.clone() {
                        let (now, then) = (moved.row(n)[k], factor * gradients.row(n)[k]);
                        scaling = larger(scaling, (now - then).abs() / (factor * size));
                    }
                }
            }
        }
        outcome.at_most(format!("{name}, degree {degree}: |⟨θ, h⟩ − L Φ|, relative"), euler, 1e-10).by_theory();
        outcome.at_most(format!("{name}: |h(cθ) − c^(L−1) h(θ)|, relative"), scaling, 1e-10).by_theory();
        // one preactivation exactly at its kink: both slopes are gradients, and Euler's identity holds for both
        let kinks = model.kinks_near(&theta, 0.0);
        kinked += kinks.len();
    }
    outcome.at_most("kinks hit by chance, where only one slope would have been tried", kinked as f64, 0.0).by_theory();
    at_a_kink(&mut outcome)?;
    Ok(outcome)
}

/// A two-layer ReLU network with one preactivation exactly 0: Euler's identity holds with the slope of either side.
fn at_a_kink(outcome: &mut Outcome) -> Result<(), ClaimError> {
    let mut model = cpu::bind(&ModelSpec::relu(&[3]), Matrix::from_rows(&INPUTS), 1, Compute::default())?;
    let (theta, kinks) = (AT_KINK, model.kinks_near(&AT_KINK, 1e-12));
    outcome.at_least("kinks of a network whose first neuron is orthogonal to an example", kinks.len() as f64, 1.0);
    for share in [0.0, 0.5, 1.0] {
        model.weigh_kinks(&kinks.iter().map(|kink| (*kink, share)).collect::<Vec<_>>());
        let scores = model.scores(&theta).to_vec();
        let gradients = model.per_example_gradients(&theta, 0);
        let worst = (0..2).map(|n| (dot(&theta, gradients.row(n)) - 2.0 * scores[n]).abs()).fold(0.0, larger);
        outcome.at_most(format!("|⟨θ, h⟩ − L Φ| with the share {share} of the right slope"), worst, 1e-12).by_theory();
    }
    Ok(())
}

fn qualification(_: &Lab) -> Result<Outcome, ClaimError> {
    let mut outcome = Outcome::default();
    for (name, mut model, theta) in models(200)? {
        let degree = model.homogeneity().map_or(f64::NAN, |homogeneity| homogeneity.degree);
        let trainable = model.layout().trainable_ranges();
        let scores = model.scores(&theta).to_vec();
        let gradients = model.per_example_gradients(&theta, 0);
        // labels that make every margin positive; then 1 − q has the gradient −h, and ⟨−h, θ⟩ = −L q < 0
        let mut least = f64::INFINITY;
        for (n, score) in scores.iter().enumerate().filter(|(_, score)| score.abs() > 1e-9) {
            let outward: f64 = trainable.iter().map(|r| dot(&theta[r.clone()], &gradients.row(n)[r.clone()])).sum();
            least = smaller(least, score.signum() * outward / (degree * score.abs()));
        }
        outcome.near(format!("{name}: ⟨θ, h⟩/(L q), least over examples with q > 0"), least, 1.0, 1e-6).by_theory();
    }
    outcome.note("In print the direction is θ itself, which under the sign convention there gives the opposite sign.");
    Ok(outcome)
}
