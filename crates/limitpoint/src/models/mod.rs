//! What models are: layers, shapes, parameters and laws, all without data.
//!
//! A [`ModelSpec`] is what files and the command line say; for examples of a given shape it resolves to an
//! [`Architecture`], from which layout, homogeneity, cost, size and bounds follow. Engines bind it to inputs.
//! [`MarginMap`] turns scores and targets into the margins that losses see. Losses, norms and optimisers are not known
//! here.

mod activation;
mod affine;
mod architecture;
mod convolution;
mod footprint;
pub mod hat;
mod homogeneity;
mod initialiser;
mod kernel_norms;
mod layer;
mod layer_list;
mod layered;
mod margins;
mod short_form;
mod spec;
mod sphere_bounds;
mod spread;

pub use activation::Activation;
pub use affine::Affine;
pub use architecture::Architecture;
pub use convolution::{Convolution, Padding, Pool, Pooling, Window};
pub use footprint::Footprint;
pub use hat::HatShape;
pub use homogeneity::{DegreeGroup, Homogeneity};
pub use initialiser::Initialiser;
pub use kernel_norms::KernelNorms;
pub use layer::{Layer, Shape};
pub use layer_list::{LayerList, LayerListError, ListedLayer};
pub use layered::{Layered, Map, PoolMap};
pub use margins::MarginMap;
pub use spec::{Biases, ModelSpec, OutputScale};
pub use sphere_bounds::SphereBounds;
pub use spread::Spread;

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
    #[error("this model needs dense inputs, but these are sparse, {rows}x{cols}; use the linear model or dense data")]
    SparseInputs {
        /// Examples.
        rows: usize,
        /// Features.
        cols: usize,
    },
    /// A layer of images that does not take what it gets.
    #[error("'{layer}' gets {shape}, which {problem}; change the layer or those before it")]
    Image {
        /// The layer.
        layer: String,
        /// The shape it gets.
        shape: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A device that cannot be computed on.
    #[error("the device '{device}' cannot be used: {problem}; {remedy}")]
    Device {
        /// Its name.
        device: &'static str,
        /// What is missing or broken.
        problem: String,
        /// What to do.
        remedy: String,
    },
    /// A word that names no device.
    #[error("there is no device '{text}'; there are cpu and cuda")]
    NoDevice {
        /// The word.
        text: String,
    },
    /// A layer that an engine cannot compute.
    #[error("{engine} cannot compute layer {layer}, {what}; {remedy}")]
    Unsupported {
        /// The engine.
        engine: &'static str,
        /// The layer, from 1.
        layer: usize,
        /// What it is.
        what: String,
        /// What to do.
        remedy: &'static str,
    },
    /// Inputs of another size than the model's.
    #[error("the model takes examples of {expected} numbers, but the inputs have {found}")]
    InputSize {
        /// Numbers of an example of the model.
        expected: usize,
        /// Numbers there are.
        found: usize,
    },
    /// A layout could not be made.
    #[error(transparent)]
    Params(#[from] crate::params::ParamsError),
}
