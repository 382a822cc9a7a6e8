//! Models of limitpoint on one NVIDIA card.
//!
//! [`offer`] makes the card known to the process; whoever then asks for [`limitpoint::engine::Device::Cuda`] gets the engine of this crate, a
//! [`Cuda`], or an error that says what is missing: driver, NVRTC, cuBLAS, a card. Nothing of CUDA is linked.
//!
//! ```text
//! host                                       card
//! rows of the batch      ──────────────────► gather, columns, products, curves, pools
//! scores, margins, loss  ◄────────────────── scores
//! cotangents, η·L as ln  ──────────────────► products back, gradient, θ + c·g in 64 bits
//! ```
//!
//! | question | answer |
//! |---|---|
//! | which models | dense layers, convolutions, pools, activations, factors, on dense inputs |
//! | which optimisers | all but `minimum_norm=true`; gradient, sign and metric steps are made on the card, others on the host with the card's gradient |
//! | which numbers | `f64`, or `f32` in all products; parameters are kept in 64 bits and moved in 64 bits |
//! | the loss | margins, ln L, steps and stop rules are the library's own, in 64 bits on the host |
//! | the same bits | yes, for the same card, driver and cuBLAS: every sum has one order, plans depend on shapes only |
//! | the CPU's bits | no: products sum in another order; a run may move between devices and differs in rounding from there on |
//!
//! | file | holds |
//! |---|---|
//! | `plan` | what an architecture asks of a card, told without one |
//! | `card` | the card, its libraries, and how its kernels are started |
//! | `code` | the code of the kernels (`kernels.cu`), compiled for the card |
//! | `error` | what can be wrong with it |
//! | `memory` | buffers on the card, and parameters that stay there |
//! | `products` | matrix products, by cuBLAS or by `tensor` |
//! | `tensor` | products in 32 bits, and convolutions without columns (`tensor.cu`, `tiles.cu`) |
//! | `buffers` | room for the numbers of a pass |
//! | `passes` | the way up and the way down |
//! | `recorder` | work that is recorded and started as a whole |
//! | `network` | the evaluator |
//! | `map` | a model at settled parameters as a function of its inputs, for attacks |

mod buffers;
mod card;
mod code;
mod error;
mod map;
mod memory;
mod network;
mod passes;
mod plan;
mod products;
mod recorder;
mod tensor;

use limitpoint::data::Inputs;
use limitpoint::engine::{Compute, Engine, Evaluator, InputMap, Precision, offer_cuda};
use limitpoint::models::{Architecture, ModelError};

pub use card::{Report, report};
pub use error::CardError;

use card::{Card, Number};
use map::Map;
use network::Network;
use plan::Plan;

/// Makes the card known to this process. Nothing is loaded before somebody asks for it.
///
/// ```
/// use limitpoint::engine::{Compute, Device};
/// limitpoint_cuda::offer();
/// let compute = Compute { device: Device::Cuda, ..Compute::default() };
/// // an engine where there is a card, or words that say what is missing
/// if let Err(error) = compute.engine() {
///     assert!(error.to_string().contains("'cuda' cannot be used"), "{error}");
/// }
/// ```
pub fn offer() {
    offer_cuda(|compute| Ok(Box::new(Cuda::find(compute)?)));
}

/// The engine of the first card.
#[derive(Debug, Clone, Copy)]
pub struct Cuda {
    number: Number,
}

impl Cuda {
    /// Looks for a card and for the libraries, and refuses with what is missing.
    pub fn find(compute: Compute) -> Result<Self, ModelError> {
        card::require().map_err(refuse)?;
        let number = if compute.precision == Precision::F32 { Number::F32 } else { Number::F64 };
        Ok(Self { number })
    }
}

/// An error of the card as one of the model that was to be bound to it.
fn refuse(error: CardError) -> ModelError {
    let remedy = error.remedy().to_owned();
    ModelError::Device { device: "cuda", problem: error.to_string(), remedy }
}

impl Engine for Cuda {
    fn bind(&self, architecture: &Architecture, inputs: &Inputs) -> Result<Box<dyn Evaluator>, ModelError> {
        let (rows, cols) = (inputs.rows(), inputs.cols());
        let Inputs::Dense(inputs) = inputs else { return Err(ModelError::SparseInputs { rows, cols }) };
        if rows == 0 || cols == 0 {
            return Err(ModelError::EmptyInputs { rows, cols });
        }
        let expected = architecture.input_shape().len();
        if cols != expected {
            return Err(ModelError::InputSize { expected, found: cols });
        }
        let plan = Plan::of(architecture)?;
        let card = Card::open(self.number).map_err(refuse)?;
        Ok(Box::new(Network::new(architecture, plan, inputs, card).map_err(refuse)?))
    }

    fn map(&self, architecture: &Architecture, params: &[f64]) -> Result<Box<dyn InputMap<f32>>, ModelError> {
        architecture.layout().check(params)?;
        Ok(Box::new(Map::new(Plan::of(architecture)?, params).map_err(refuse)?))
    }
}
