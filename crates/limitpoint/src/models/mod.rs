//! Models: scores, margins, and their vector–Jacobian product.
//!
//! A [`Model`] is bound to its inputs when it is built, gives one score per example and output, and pulls cotangents of
//! the scores back to a gradient. [`MarginMap`] turns scores and targets into the margins that losses see. Losses,
//! norms and optimisers are not known here.

mod activation;
mod dense;
mod diagonal;
mod footprint;
mod homogeneity;
mod initialiser;
mod input_map;
mod layered;
mod margins;
mod matrix;
mod mexican_hat;
mod sparse_linear;
mod spec;
mod sphere_bounds;
mod spread;

#[cfg(test)]
mod step_tests;
#[cfg(test)]
mod tests;

pub use activation::Activation;
pub use dense::{DenseNetwork, LayeredMap};
pub use diagonal::DiagonalNetwork;
pub use footprint::Footprint;
pub use homogeneity::{DegreeGroup, Homogeneity};
pub use initialiser::Initialiser;
pub use input_map::InputMap;
pub use layered::{Affine, Layered};
pub use margins::MarginMap;
pub use matrix::MatrixModel;
pub use mexican_hat::{HatShape, MexicanHat};
pub use sparse_linear::SparseLinear;
pub use spec::{Biases, Compute, ModelSpec, OutputScale, Precision};
pub use sphere_bounds::SphereBounds;
pub use spread::Spread;

use crate::linalg::Matrix;
use crate::params::{Move, ParamLayout, Stamped};

/// A preactivation that sits on a kink of its activation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kink {
    /// Hidden layer, from 0.
    pub layer: usize,
    /// Unit in the layer.
    pub unit: usize,
    /// Example of the current batch.
    pub example: usize,
    /// Slopes on the left and the right.
    pub slopes: (f64, f64),
}

/// A change of the gradient, as runs of (first entry, values).
pub type KinkColumn = Vec<(usize, Vec<f64>)>;

/// A parametrised function bound to a set of inputs.
///
/// `scores[n · outputs + c]` is Φ_c(xₙ; θ). A step calls [`Model::scores`] and then [`Model::pull_back`] at the same
/// parameters; `pull_back` may be called once per `scores`, because it reuses the buffers of the forward pass.
pub trait Model: Send {
    /// Names and shapes of the parameters.
    fn layout(&self) -> &ParamLayout;

    /// Scores per example.
    fn outputs(&self) -> usize;

    /// Examples in the current batch.
    fn examples(&self) -> usize;

    /// How scores grow when the trainable parameters are scaled; nothing for a model that is not homogeneous.
    fn homogeneity(&self) -> Option<&Homogeneity>;

    /// Restricts the model to these rows of its inputs, or returns to all of them.
    fn select(&mut self, rows: Option<&[usize]>);

    /// Computes all scores of the current batch, examples × outputs.
    fn scores(&mut self, params: &[f64]) -> &[f64];

    /// gradient = Σₙ꜀ cotangent[n, c] ∇_θ Φ_c(xₙ; θ) at the parameters last given to [`Model::scores`]; zero on frozen
    /// blocks.
    fn pull_back(&mut self, params: &[f64], cotangent: &[f64], gradient: &mut [f64]);

    /// A move of the parameters; a model with threads of its own shares the work out.
    fn make_move(&mut self, params: &mut [f64], plain: Move, gradient: &[f64]) {
        plain.make(params, gradient);
    }

    /// [`Model::scores`] of parameters that [`Model::descend`] may have moved last; a model that kept something of its
    /// own under their stamp uses it.
    fn scores_of(&mut self, params: &Stamped) -> &[f64] {
        self.scores(params)
    }

    /// A move with the gradient Σₙ꜀ cotangent[n, c] ∇_θ Φ_c(xₙ; θ) at the parameters last given to [`Model::scores`]:
    /// the same bits as [`Model::pull_back`] followed by [`Model::make_move`]. Answers whether an entry of the gradient
    /// was not zero. `scratch` is as long as the parameters; what is in it afterwards is undefined, since a model need
    /// not write the gradient down.
    fn descend(&mut self, params: &mut Stamped, cotangent: &[f64], plain: Move, scratch: &mut [f64]) -> bool {
        descend_in_two(self, params, cotangent, plain, scratch)
    }

    /// Writes the scores after `params[entry]` is changed by `change`, given that `params` were the last scored. Models
    /// in which one parameter touches little do better than to score everything anew.
    fn scores_after(&mut self, params: &[f64], entry: usize, change: f64, out: &mut [f64]) {
        score_anew(self, params, entry, change, out);
    }

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
                gram[(i, j)] = crate::linalg::dot(a, b);
                gram[(j, i)] = gram[(i, j)];
            }
        }
        gram
    }

    /// Kinks that a step of Euclidean length `radius` in one unit's weights can reach, |z| ≤ radius · ‖a‖₂ with a the
    /// unit's input; empty for smooth models. Evaluates the scores at `params`.
    fn kinks(&mut self, params: &[f64], radius: f64) -> Vec<Kink> {
        let _ = (params, radius);
        Vec::new()
    }

    /// For each kink, how the gradient of ⟨cotangent, scores⟩ changes when its slope goes from left to right, as runs
    /// of (first entry, values). Exact for one hidden layer; in deeper networks each kink is moved alone.
    fn kink_columns(&mut self, params: &[f64], cotangent: &[f64], kinks: &[Kink]) -> Vec<KinkColumn> {
        let _ = (params, cotangent, kinks);
        Vec::new()
    }

    /// From now on uses slope (1 − e)·left + e·right at these kinks; an empty list returns to the left slopes.
    fn weigh_kinks(&mut self, kinks: &[(Kink, f64)]) {
        let _ = kinks;
    }

    /// min |z| over all preactivations that have a kink: how far the point is from where the model is not smooth.
    /// Nothing for smooth models. Evaluates the scores at `params`.
    fn smallest_preactivation(&mut self, params: &[f64]) -> Option<f64> {
        let _ = params;
        None
    }
}

/// A step as a gradient and a move.
fn descend_in_two<M: Model + ?Sized>(
    model: &mut M,
    params: &mut Stamped,
    cotangent: &[f64],
    plain: Move,
    scratch: &mut [f64],
) -> bool {
    model.pull_back(params, cotangent, scratch);
    model.make_move(params, plain, scratch);
    scratch.iter().any(|g| *g != 0.0)
}

/// Scores everything after one parameter is changed, and again as it was.
fn score_anew<M: Model + ?Sized>(model: &mut M, params: &[f64], entry: usize, change: f64, out: &mut [f64]) {
    let mut moved = params.to_vec();
    moved[entry] += change;
    out.copy_from_slice(model.scores(&moved));
    model.scores(params);
}

/// Makes `chosen` the batch that [`Model::select`] asks for: these rows, or all `count`.
fn choose(chosen: &mut Vec<usize>, rows: Option<&[usize]>, count: usize) {
    chosen.clear();
    match rows {
        Some(rows) => chosen.extend_from_slice(rows),
        None => chosen.extend(0..count),
    }
}

/// What a model can refuse.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A width of zero.
    #[error("hidden layer {layer} has width 0; every width must be at least 1")]
    ZeroWidth {
        /// Hidden layer, from 1.
        layer: usize,
    },
    /// More parameters or hidden units than there is memory for.
    #[error(transparent)]
    TooLarge(#[from] crate::memory::TooLarge),
    /// An activation with impossible settings.
    #[error("{0}")]
    Activation(String),
    /// No examples or no features.
    #[error("the inputs are {rows}x{cols}; a model needs at least one example and one feature")]
    EmptyInputs {
        /// Examples.
        rows: usize,
        /// Features.
        cols: usize,
    },
    /// A number out of range.
    #[error("{what} is {value}, but must be {range}")]
    OutOfRange {
        /// What the number sets.
        what: &'static str,
        /// The number.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// A frozen layer that does not exist.
    #[error("layer {layer} cannot be frozen: the network has layers 1 to {layers}")]
    FrozenLayer {
        /// The layer asked for.
        layer: usize,
        /// Number of layers.
        layers: usize,
    },
    /// Everything is frozen.
    #[error("all layers are frozen; leave at least one to train")]
    AllFrozen,
    /// Rows that do not divide the inputs.
    #[error("examples of {entries} entries are no matrices with {rows} rows; rows must divide {entries}")]
    MatrixRows {
        /// Rows asked for.
        rows: usize,
        /// Entries of an example.
        entries: usize,
    },
    /// A symmetric model of matrices that are not square.
    #[error("a symmetric model W = UUᵀ needs square examples, but they are {rows}x{columns}; drop symmetric")]
    NotSquare {
        /// Rows.
        rows: usize,
        /// Columns.
        columns: usize,
    },
    /// Outputs that do not match the model.
    #[error("{model} has one output, but the targets need {outputs}; use a dense network")]
    Outputs {
        /// Name of the model.
        model: &'static str,
        /// Outputs asked for.
        outputs: usize,
    },
    /// A model that works on dense inputs only.
    #[error(
        "a {model} model needs dense inputs, but these are sparse, {rows}x{cols}; use the linear model or dense data"
    )]
    SparseInputs {
        /// Key of the model.
        model: &'static str,
        /// Examples.
        rows: usize,
        /// Features.
        cols: usize,
    },
    /// A layout could not be made.
    #[error(transparent)]
    Params(#[from] crate::params::ParamsError),
}
