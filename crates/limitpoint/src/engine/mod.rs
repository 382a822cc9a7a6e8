//! Engines: what computes scores and gradients.
//!
//! ```text
//! Engine::bind(architecture, inputs) ─► Evaluator ── forward(θ) ─► Pass ─┬─ pull_back(cotangent) ─► gradient
//!                                                                        └─ step(cotangent, update) ─► θ⁺
//! ```
//!
//! An [`Engine`] binds an [`Architecture`] to inputs; the [`Evaluator`] it gives evaluates all examples at once. A
//! forward pass is a [`Pass`]: it has the scores, and it is used up by pulling cotangents back or by stepping, because
//! both write over what the pass kept. Parameters stay on the host or wherever the engine keeps its copy of them; their
//! [`crate::params::Version`] says whether the copy is still theirs. [`Tangents`] and [`Kinks`] are for those who look
//! closer: certificates, diagnostics, minimum-norm descent.
//!
//! | engine | computes |
//! |---|---|
//! | [`cpu`] | all models of the library, in `f64` or `f32` |
//! | [`oracle`] | any model, by two functions that somebody else wrote |
//! | `limitpoint-cuda` | dense and convolutional models on a card: another crate, found by [`Device`] |

mod compute;
pub mod cpu;
mod device;
mod input_map;
pub mod oracle;
mod tangents;

pub use compute::{Compute, Precision};
pub use device::{Device, Maker, offer_cuda};
pub use input_map::InputMap;
pub use tangents::{Kink, KinkColumn, Kinks, Tangents};

use crate::data::Inputs;
use crate::models::{Architecture, DegreeGroup, Homogeneity, ModelError};
use crate::params::{At, ParamLayout, Parameters, Update};

/// Something that can compute models.
pub trait Engine {
    /// Binds the inputs (examples × features), which are shared; refuses what it cannot compute.
    fn bind(&self, architecture: &Architecture, inputs: &Inputs) -> Result<Box<dyn Evaluator>, ModelError>;

    /// The model at settled parameters, as a function of its inputs, in single precision.
    fn map(&self, architecture: &Architecture, params: &[f64]) -> Result<Box<dyn InputMap<f32>>, ModelError>;
}

/// What is known of a model that is bound to inputs, and its last scores.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// Names, roles and shapes of the parameters.
    pub layout: ParamLayout,
    /// How scores grow with the trained parameters; nothing for a model that is not homogeneous.
    pub homogeneity: Option<Homogeneity>,
    /// Trained layers with their degrees, without the biases that break homogeneity.
    pub layers: Vec<DegreeGroup>,
    /// Scores of an example.
    pub outputs: usize,
    /// Examples in use.
    pub examples: usize,
    /// Φ_c(xₙ; θ) at `n · outputs + c`, of the last forward pass.
    pub scores: Vec<f64>,
    /// What kept the engine from computing, where something did; scores and gradients are NaN from then on.
    pub failure: Option<String>,
    /// Whether the engine steps by metrics that parameters carry, [`Update::Metric`].
    pub knows_metrics: bool,
}

impl Bound {
    /// An architecture on this many examples, without scores yet.
    pub fn new(architecture: &Architecture, examples: usize) -> Self {
        let mut bound = Self {
            layout: architecture.layout().clone(),
            homogeneity: architecture.homogeneity(),
            layers: architecture.layer_degrees(),
            outputs: architecture.outputs(),
            examples: 0,
            scores: Vec::new(),
            failure: None,
            knows_metrics: false,
        };
        bound.resize(examples);
        bound
    }

    /// Makes room for the scores of this many examples.
    pub fn resize(&mut self, examples: usize) {
        self.examples = examples;
        self.scores.resize(examples * self.outputs, 0.0);
    }
}

/// A model bound to inputs: scores, and their vector–Jacobian product.
///
/// These methods are what an engine writes. Whoever uses one calls [`Forward::forward`] and goes on with the [`Pass`].
pub trait Evaluator: Send {
    /// What is known of the model, and the scores of the last [`Evaluator::score`].
    fn bound(&self) -> &Bound;

    /// Restricts the model to these rows of its inputs, or returns to all of them.
    fn select(&mut self, rows: Option<&[usize]>);

    /// Computes the scores of the examples in use.
    fn score(&mut self, at: At<'_>);

    /// gradient = Σₙ꜀ cotangent[n, c] ∇_θ Φ_c(xₙ; θ) at the parameters last scored, once; zero on frozen blocks.
    fn pull_back(&mut self, at: At<'_>, cotangent: &[f64], gradient: &mut [f64]);

    /// A step with that gradient, which need not be written down: the bits of [`Evaluator::pull_back`] followed by
    /// [`Update::make`]. Answers whether an entry of the gradient was not zero; of selected rows it may say so without
    /// looking, for a batch whose gradient vanishes ends nothing. `scratch` is as long as the parameters; what is in it
    /// afterwards is undefined.
    fn step(&mut self, params: &mut Parameters, cotangent: &[f64], update: Update, scratch: &mut [f64]) -> bool {
        self.pull_back(At::from(&*params), cotangent, scratch);
        update.make(params.write(), scratch);
        scratch.iter().any(|g| *g != 0.0)
    }

    /// The same model for those who look closer, if the engine can.
    fn tangents(&mut self) -> Option<&mut dyn Tangents> {
        None
    }
}

/// A forward pass: the scores at some parameters, and what it takes to pull them back.
///
/// ```
/// use limitpoint::engine::{Compute, Forward, cpu};
/// use limitpoint::linalg::Matrix;
/// use limitpoint::models::ModelSpec;
/// let mut model = cpu::bind(&ModelSpec::Linear, &Matrix::from_rows(&[&[1.0, 2.0]]), 1, Compute::default())?;
/// let theta = [3.0, 4.0];
/// let pass = model.forward(&theta);
/// assert_eq!(pass.scores(), [11.0]);
/// let mut gradient = [0.0; 2];
/// pass.pull_back(&theta, &[10.0], &mut gradient); // and the pass is gone
/// assert_eq!(gradient, [10.0, 20.0]);
/// # Ok::<(), limitpoint::models::ModelError>(())
/// ```
#[must_use = "a pass has scores, and can be pulled back or stepped with"]
pub struct Pass<'a, E: Evaluator + ?Sized> {
    evaluator: &'a mut E,
}

impl<'a, E: Evaluator + ?Sized> Pass<'a, E> {
    /// The scores, examples × outputs.
    pub fn scores(&self) -> &[f64] {
        &self.evaluator.bound().scores
    }

    /// The scores, where nothing more is wanted of the pass.
    pub fn into_scores(self) -> &'a [f64] {
        &self.evaluator.bound().scores
    }

    /// Σₙ꜀ cotangent[n, c] ∇_θ Φ_c(xₙ; θ) at the parameters of the pass, which are given once more.
    pub fn pull_back<'p>(self, params: impl Into<At<'p>>, cotangent: &[f64], gradient: &mut [f64]) {
        self.evaluator.pull_back(params.into(), cotangent, gradient);
    }

    /// A step of the parameters of the pass; see [`Evaluator::step`].
    pub fn step(self, params: &mut Parameters, cotangent: &[f64], update: Update, scratch: &mut [f64]) -> bool {
        self.evaluator.step(params, cotangent, update, scratch)
    }
}

/// How evaluators are used.
pub trait Forward: Evaluator {
    /// Evaluates all examples in use.
    fn forward<'p>(&mut self, params: impl Into<At<'p>>) -> Pass<'_, Self> {
        self.score(params.into());
        Pass { evaluator: self }
    }

    /// The pass that was made last and not used up. Whoever asks knows that it was made at the parameters he goes on
    /// with, and that nobody has used it since.
    fn resume(&mut self) -> Pass<'_, Self> {
        Pass { evaluator: self }
    }

    /// The scores at some parameters.
    fn scores<'p>(&mut self, params: impl Into<At<'p>>) -> &[f64] {
        self.forward(params).into_scores()
    }

    /// Names, roles and shapes of the parameters.
    fn layout(&self) -> &ParamLayout {
        &self.bound().layout
    }

    /// How scores grow with the trained parameters.
    fn homogeneity(&self) -> Option<&Homogeneity> {
        self.bound().homogeneity.as_ref()
    }

    /// Scores of an example.
    fn outputs(&self) -> usize {
        self.bound().outputs
    }

    /// Examples in use.
    fn examples(&self) -> usize {
        self.bound().examples
    }
}

impl<E: Evaluator + ?Sized> Forward for E {}
