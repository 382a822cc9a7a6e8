//! Small networks for the tests of this module.

use crate::data::Targets;
use crate::engine::{Compute, Forward, Tangents, cpu};
use crate::linalg::Matrix;
use crate::models::{Activation, ModelSpec};

/// Numbers in (−1, 1) that look random, the same in every run.
pub(super) fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

pub(super) fn matrix(rows: usize, cols: usize, seed: u64) -> Matrix {
    let mut next = numbers(seed);
    Matrix { rows, cols, data: (0..rows * cols).map(|_| next()).collect() }
}

/// A network, targets that its scores at θ satisfy, and θ.
pub(super) struct Net {
    pub model: Box<dyn Tangents>,
    pub targets: Targets,
    pub theta: Vec<f64>,
}

/// A random network; examples are labelled by its own scores, so every margin is positive.
pub(super) fn net(widths: &[usize], activation: Activation, inputs: &Matrix, outputs: usize, seed: u64) -> Net {
    let mut model = cpu::bind(&ModelSpec::network(widths, activation), inputs, outputs, Compute::default()).unwrap();
    let mut next = numbers(seed);
    let theta: Vec<f64> = (0..model.layout().len()).map(|_| next()).collect();
    let targets = label(&mut *model, &theta);
    Net { model, targets, theta }
}

/// The labels that make every margin positive.
pub(super) fn label(model: &mut dyn Tangents, theta: &[f64]) -> Targets {
    let outputs = model.outputs();
    let scores = model.scores(theta).to_vec();
    if outputs == 1 {
        return Targets::Binary(scores.iter().map(|s| if *s >= 0.0 { 1.0 } else { -1.0 }).collect());
    }
    let best = |s: &[f64]| (0..outputs).max_by(|a, b| s[*a].total_cmp(&s[*b])).unwrap();
    Targets::Classes { labels: scores.chunks_exact(outputs).map(best).collect(), count: outputs }
}

/// x = (4, ±3) with labels ±1 and two neurons w = (3, ±4), a = ±5, each on the kink of the other example.
///
/// A KKT point in ℓ2: with e = 7/25 of the right slope on both kinks, λ = 1/24 and h the gradients,
/// λ a (x₁ − e x₂) = (5/24)(72/25, 96/25) = (3/5, 4/5) · 1 for w₁ and λ ⟨w₁, x₁⟩ = 1 for a₁, both θ/5.
pub(super) fn kinked() -> Net {
    let inputs = Matrix::from_rows(&[&[4.0, 3.0], &[4.0, -3.0]]);
    let model = cpu::bind(&ModelSpec::relu(&[2]), &inputs, 1, Compute::default()).unwrap();
    Net { model, targets: Targets::Binary(vec![1.0, -1.0]), theta: vec![3.0, 4.0, 3.0, -4.0, 5.0, -5.0] }
}
