//! Settings before a run: step size η and smoothing λ of mirror descent, from the shape of a network and its start.
//!
//! Two wishes decide them, and they are independent. The first step should be as long as gradient descent's, which is a
//! matter of the curvature at the start; and the margin of the horizon should be reached before the run ends, which is
//! a matter of λ against the number of parameters.
//!
//! ```text
//! mirror-μP            η E[1/r″(θ₀)] = 1                                                      C section J.4
//! margin-reachable     gauge ≫ a, where φ ≤ gauge ≤ c φ + a; λ = 1/n² or 1/(pn) make a ≤ 1    C Lemma 4.10
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `trained_layers` | layers with their sizes and spreads |
//! | `family` | the potentials there is advice for |
//! | `reach` | how large the gauge and the time must be for the horizon to show |
//! | `mirror` | the recipes of table 10 as numbers for one network |

mod family;
mod mirror;
mod reach;
mod trained_layers;

pub use family::MirrorFamily;
pub use mirror::{LayerAdvice, LimitMargin, MirrorAdvice, Purpose, RecipeAdvice, advise_mirror};
pub use reach::{Reach, margin_bound};
pub use trained_layers::{LayerShape, TrainedLayers};

/// Why there is no advice.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AdviceError {
    /// A number out of range.
    #[error("{what} is {value}, but must be {range}; {remedy}")]
    Setting {
        /// What the number sets.
        what: String,
        /// The number.
        value: f64,
        /// What is allowed.
        range: &'static str,
        /// What to do instead.
        remedy: &'static str,
    },
    /// As many deviations as layers are needed, or one.
    #[error(
        "{found} deviations were given for {layers} layers; give one for each layer, from the input on, or one for all"
    )]
    Deviations {
        /// Deviations given.
        found: usize,
        /// Trained layers.
        layers: usize,
    },
    /// A start without a spread.
    #[error("the start '{start}' has no spread to take expectations over; give the deviation of the weights instead")]
    NoSpread {
        /// Name of the initialiser.
        start: &'static str,
    },
    /// A model whose margins are no homogeneous function.
    #[error("the model is not homogeneous in its weights ({why}); advice about margins needs a degree, so remove it")]
    NotHomogeneous {
        /// What makes it so.
        why: &'static str,
    },
    /// The model was refused.
    #[error(transparent)]
    Model(Box<crate::models::ModelError>),
    /// A family without advice.
    #[error("'{text}' is no family of potentials with advice; write euclidean, hyperbolic or smoothed:P with P > 2")]
    Family {
        /// What was given.
        text: String,
    },
}
