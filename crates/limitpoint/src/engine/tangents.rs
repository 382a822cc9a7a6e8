//! Looking closer at a model: gradients example by example, and the kinks of its activations.

use super::{Evaluator, Forward};
use crate::linalg::{Matrix, dot};
use crate::memory::bytes;

/// Per-example gradients of a model, in doubles.
///
/// Known to certificates, diagnostics and coordinate descent; a model that is only trained needs none of it. All of it
/// undoes the last forward pass.
pub trait Tangents: Evaluator {
    /// ∇_θ Φ_c(xₙ; θ) for every example, as rows.
    fn per_example_gradients(&mut self, params: &[f64], output: usize) -> Matrix;

    /// ⟨∇Φ_c(xₙ), ∇Φ_d(xₘ)⟩ for all pairs, at row n·outputs + c and column m·outputs + d.
    fn gradient_gram(&mut self, params: &[f64]) -> Matrix {
        let outputs = self.outputs();
        let gradients: Vec<Matrix> = (0..outputs).map(|c| self.per_example_gradients(params, c)).collect();
        let size = self.examples() * outputs;
        let mut gram = Matrix::zeros(size, size);
        for i in 0..size {
            for j in 0..=i {
                let (a, b) = (gradients[i % outputs].row(i / outputs), gradients[j % outputs].row(j / outputs));
                gram[(i, j)] = dot(a, b);
                gram[(j, i)] = gram[(i, j)];
            }
        }
        gram
    }

    /// Bytes that [`Tangents::gradient_gram`] takes, its answer included.
    fn gram_bytes(&self) -> u128 {
        let size = self.bound().examples.saturating_mul(self.bound().outputs);
        bytes(&[size, self.bound().layout.len().saturating_add(size)], 8)
    }

    /// Writes the scores after `params[entry]` is changed by `change`, given that `params` were the last scored. Models
    /// in which one parameter touches little do better than to score everything anew.
    fn scores_after(&mut self, params: &[f64], entry: usize, change: f64, out: &mut [f64]) {
        let mut moved = params.to_vec();
        moved[entry] += change;
        out.copy_from_slice(self.scores(&moved));
        self.score(params.into());
    }

    /// Whether [`Tangents::kinks`] knows all kinks there are; an engine that asks somebody else for gradients does not.
    fn knows_kinks(&self) -> bool {
        true
    }

    /// The model's kinks, if it can have any.
    fn kinks(&mut self) -> Option<&mut dyn Kinks> {
        None
    }
}

/// A preactivation that sits on a kink of its activation, or a pixel that is tied with the largest of its window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kink {
    /// Hidden layer, from 0. In networks of images a stage: every layer with an activation is one, and a max-pool over m
    /// pixels has m − 1 before it. The gradient is affine in the slopes of any one of them.
    pub layer: usize,
    /// Unit in the layer, or number of its output.
    pub unit: usize,
    /// Example of the current batch.
    pub example: usize,
    /// Slopes on the left and the right; for a tie, no share and all of what later pixels of the window left.
    pub slopes: (f64, f64),
}

/// A change of the gradient, as runs of (first entry, values).
pub type KinkColumn = Vec<(usize, Vec<f64>)>;

/// The places where a model is not smooth, and its Clarke subgradients there.
pub trait Kinks: Tangents {
    /// Kinks that a step of Euclidean length `radius` in one unit's weights can reach, |z| ≤ radius · ‖a‖₂ with a the
    /// unit's input. Evaluates the scores at `params`.
    fn near(&mut self, params: &[f64], radius: f64) -> Vec<Kink>;

    /// For each kink, how the gradient of ⟨cotangent, scores⟩ changes when its slope goes from left to right, as runs
    /// of (first entry, values). Exact for one hidden layer; in deeper networks each kink is moved alone.
    fn columns(&mut self, params: &[f64], cotangent: &[f64], kinks: &[Kink]) -> Vec<KinkColumn>;

    /// From now on uses slope (1 − e)·left + e·right at these kinks; an empty list returns to the left slopes.
    fn weigh(&mut self, kinks: &[(Kink, f64)]);

    /// min |z| over all preactivations that have a kink: how far the point is from where the model is not smooth.
    /// Nothing if none has. Evaluates the scores at `params`.
    fn nearest(&mut self, params: &[f64]) -> Option<f64>;
}

/// [`Kinks`] of any model, which smooth ones have none of.
impl dyn Tangents + '_ {
    /// See [`Kinks::near`].
    pub fn kinks_near(&mut self, params: &[f64], radius: f64) -> Vec<Kink> {
        self.kinks().map_or_else(Vec::new, |kinks| kinks.near(params, radius))
    }

    /// See [`Kinks::columns`].
    pub fn kink_columns(&mut self, params: &[f64], cotangent: &[f64], at: &[Kink]) -> Vec<KinkColumn> {
        self.kinks().map_or_else(Vec::new, |kinks| kinks.columns(params, cotangent, at))
    }

    /// See [`Kinks::weigh`].
    pub fn weigh_kinks(&mut self, at: &[(Kink, f64)]) {
        if let Some(kinks) = self.kinks() {
            kinks.weigh(at);
        }
    }

    /// See [`Kinks::nearest`]; nothing for smooth models.
    pub fn smallest_preactivation(&mut self, params: &[f64]) -> Option<f64> {
        self.kinks().and_then(|kinks| kinks.nearest(params))
    }
}
