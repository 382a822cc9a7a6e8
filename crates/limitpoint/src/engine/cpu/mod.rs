//! The CPU engine: every model of the library, on a team of threads.
//!
//! | architecture | inputs | evaluator |
//! |---|---|---|
//! | dense layers with activations between them | dense | [`DenseNetwork`], which chooses its ways in `dense/plan.rs` |
//! | one dense layer | sparse | [`SparseLinear`] |
//! | convolutions and pools too | dense | [`ImageNetwork`] |
//! | a diagonal product | dense | [`DiagonalNetwork`] |
//! | a product of matrices | dense | [`MatrixModel`] |
//! | a Mexican hat | dense | [`MexicanHat`] |
//!
//! [`LayeredMap`] is another view of such models: at settled weights, as a function of the inputs.

mod dense;
mod diagonal;
mod image;
mod layered_image;
mod layered_map;
mod matrix;
mod mexican_hat;
mod sparse_linear;

#[cfg(test)]
mod step_tests;
#[cfg(test)]
mod tests;

pub use dense::DenseNetwork;
pub use diagonal::DiagonalNetwork;
pub use image::{ImageMap, ImageNetwork, image_maps};
pub use layered_map::LayeredMap;
pub use matrix::MatrixModel;
pub use mexican_hat::MexicanHat;
pub use sparse_linear::SparseLinear;

use super::{Bound, Compute, Engine, Evaluator, InputMap, Precision, Tangents};
use crate::data::{Dataset, Inputs};
use crate::linalg::SharedMatrix;
use crate::models::{Architecture, Layer, Layered, ModelError, ModelSpec, Shape};
use crate::params::ParamLayout;

/// The engine with its threads and its precision.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cpu(pub Compute);

impl Cpu {
    /// Binds an architecture to inputs, all that can be asked of it included.
    pub fn tangents(&self, architecture: &Architecture, inputs: &Inputs) -> Result<Box<dyn Tangents>, ModelError> {
        let (rows, cols) = (inputs.rows(), inputs.cols());
        architecture.footprint(rows).require()?;
        if rows == 0 || cols == 0 {
            return Err(ModelError::EmptyInputs { rows, cols });
        }
        let expected = architecture.input_shape().len();
        if cols != expected {
            return Err(ModelError::InputSize { expected, found: cols });
        }
        let inputs = match (inputs, architecture.layers()) {
            (Inputs::Dense(inputs), _) => inputs,
            (Inputs::Sparse(inputs), [Layer::Dense { bias: false, .. }]) => {
                return Ok(Box::new(SparseLinear::new(architecture, inputs, self.0.threads)));
            }
            (Inputs::Sparse(_), _) => return Err(ModelError::SparseInputs { rows, cols }),
        };
        Ok(match architecture.layers() {
            [Layer::Diagonal { factors }] => Box::new(DiagonalNetwork::new(architecture, inputs, *factors)),
            [Layer::MatrixProduct { symmetric, .. }] => Box::new(MatrixModel::new(architecture, inputs, *symmetric)),
            [Layer::MexicanHat { degree, exponent }] => {
                Box::new(MexicanHat::new(architecture, inputs, *degree, *exponent))
            }
            layers if layers.iter().any(Layer::is_of_images) => match self.0.precision {
                Precision::F64 => Box::new(ImageNetwork::<f64>::new(architecture, inputs, self.0.threads)?),
                Precision::F32 => Box::new(ImageNetwork::<f32>::new(architecture, inputs, self.0.threads)?),
            },
            _ => match self.0.precision {
                Precision::F64 => Box::new(DenseNetwork::<f64>::new(architecture, inputs, self.0.threads)?),
                Precision::F32 => Box::new(DenseNetwork::<f32>::new(architecture, inputs, self.0.threads)?),
            },
        })
    }
}

impl Engine for Cpu {
    fn bind(&self, architecture: &Architecture, inputs: &Inputs) -> Result<Box<dyn Evaluator>, ModelError> {
        Ok(self.tangents(architecture, inputs)?)
    }

    fn map(&self, architecture: &Architecture, params: &[f64]) -> Result<Box<dyn InputMap<f32>>, ModelError> {
        Ok(Box::new(LayeredMap::new(&Layered::of(architecture, params)?)))
    }
}

/// Binds a model of this many outputs to inputs: a matrix (examples × features), or the inputs of a dataset.
pub fn bind(
    spec: &ModelSpec,
    inputs: impl Into<Inputs>,
    outputs: usize,
    compute: Compute,
) -> Result<Box<dyn Tangents>, ModelError> {
    let inputs = inputs.into();
    // no inputs are said to be none before anything is said about their model
    if inputs.rows() == 0 || inputs.cols() == 0 {
        return Err(ModelError::EmptyInputs { rows: inputs.rows(), cols: inputs.cols() });
    }
    Cpu(compute).tangents(&spec.architecture(&Shape::vector(inputs.cols()), outputs)?, &inputs)
}

/// Binds a model to the inputs of a dataset, with the outputs its targets need.
pub fn bind_to(spec: &ModelSpec, data: &Dataset, compute: Compute) -> Result<Box<dyn Tangents>, ModelError> {
    Cpu(compute).tangents(&spec.architecture_on(data)?, &data.inputs)
}

/// Zeros for what is frozen in a gradient.
fn clear_frozen(layout: &ParamLayout, gradient: &mut [f64]) {
    assert_eq!(gradient.len(), layout.len(), "a gradient is as long as the parameters");
    layout.blocks().iter().filter(|block| block.frozen).for_each(|block| gradient[block.range()].fill(0.0));
}

/// The rows of its inputs that a model looks at.
struct Chosen {
    inputs: SharedMatrix,
    rows: Vec<usize>,
}

impl Chosen {
    /// All of them.
    fn all(inputs: &SharedMatrix) -> Self {
        Self { inputs: inputs.clone(), rows: (0..inputs.rows()).collect() }
    }

    /// These rows, or all.
    fn select(&mut self, rows: Option<&[usize]>, bound: &mut Bound) {
        self.rows.clear();
        match rows {
            Some(rows) => self.rows.extend_from_slice(rows),
            None => self.rows.extend(0..self.inputs.rows()),
        }
        bound.resize(self.rows.len());
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    /// Example `n` of those in use.
    fn row(&self, n: usize) -> &[f64] {
        self.inputs.row(self.rows[n])
    }

    fn iter(&self) -> impl Iterator<Item = &[f64]> {
        self.rows.iter().map(|&row| self.inputs.row(row))
    }

    /// One score for every example.
    fn score(&self, bound: &mut Bound, score: impl Fn(&[f64]) -> f64) {
        bound.scores.iter_mut().zip(self.iter()).for_each(|(to, x)| *to = score(x));
    }

    /// out = Σ cₙxₙ.
    fn combine(&self, cotangent: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        self.iter().zip(cotangent).for_each(|(x, c)| crate::linalg::add_scaled(out, *c, x));
    }
}
