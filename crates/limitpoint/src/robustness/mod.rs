//! How far an input must be moved before a trained model changes its answer.
//!
//! The ℓ2 robustness of an example is R(x) = inf {‖x′ − x‖₂ : q(x′) ≤ 0, x′ in the box}; 0 if the answer is wrong
//! already. It is bracketed: attacks show inputs with another answer, which are upper bounds, and bounds on how fast
//! the model can change are lower ones.
//!
//! ```text
//! certified(x) ≤ R(x) ≤ min over attacks of ‖x′ − x‖₂
//! ```
//!
//! The lower bound is a theorem about the weights, with all rounding taken off, and is found without a look at the
//! attacks. The upper one is checked in double precision: that x′ is wrong, and how far it is, are rounded numbers and
//! not proven in exact arithmetic.
//!
//! | file | holds |
//! |---|---|
//! | `victim.rs` | model, examples and box; what an attack found, checked in double precision |
//! | `spec.rs` | attacks as files and the command line write them |
//! | `carlini_wagner.rs`, `deep_fool.rs`, `projected.rs` | the attacks, in single precision |
//! | `crowd.rs`, `squash.rs` | examples side by side on several threads; the box as the image of all numbers |
//! | `lipschitz.rs`, `operator.rs` | margin / global Lipschitz constant; norms of convolutions as operators on images |
//! | `local.rs`, `lines.rs` | linear bounds in a ball, through activations and pools |
//! | `centre.rs`, `rounding.rs` | values at the example with their errors; outward slack for rounding |
//! | `profile.rs` | brackets of all examples, robust accuracy, quartiles |
//!
//! The judge shares no code with the accused: nothing here knows an optimiser. D section J.2.

mod carlini_wagner;
mod centre;
mod crowd;
mod deep_fool;
mod lines;
mod lipschitz;
mod local;
mod operator;
mod profile;
mod projected;
mod rounding;
mod spec;
mod squash;
mod victim;

#[cfg(test)]
mod tests;

pub use lipschitz::spectral_bound;
pub use operator::operator_bound;
pub use profile::{Bracket, Profile, Quartiles, RobustAccuracy, profile};
pub use spec::AttackSpec;
pub use victim::{Label, Victim};

use carlini_wagner::CarliniWagner;
use deep_fool::DeepFool;
use projected::Projected;

impl AttackSpec {
    /// The nearest wrong inputs that the attack finds, as distances checked in double precision; nothing where it finds
    /// none. The same bits for any number of threads.
    pub fn distances(
        &self,
        victim: &Victim,
        examples: &[usize],
        threads: usize,
    ) -> Result<Vec<Option<f64>>, RobustnessError> {
        self.check()?;
        match *self {
            Self::CarliniWagner { search_steps, steps, rate, confidence, initial_constant, abort_early } => {
                let attack = CarliniWagner { search_steps, steps, rate, confidence, initial_constant, abort_early };
                crowd::attack(&attack, victim, examples, threads)
            }
            Self::DeepFool { steps, candidates, overshoot } => {
                crowd::attack(&DeepFool { steps, candidates, overshoot }, victim, examples, threads)
            }
            Self::Projected { search_steps, steps, rate } => {
                crowd::attack(&Projected { search_steps, steps, rate }, victim, examples, threads)
            }
        }
    }
}

/// Why robustness cannot be measured.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RobustnessError {
    /// A setting of an attack out of range.
    #[error("{what} of {attack} is {value}, but must be {range}")]
    OutOfRange {
        /// Key of the attack.
        attack: &'static str,
        /// The setting.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What is allowed.
        range: &'static str,
    },
    /// A text that names no attack.
    #[error(
        "'{text}' is no attack: {why}; write carlini-wagner, deep-fool or projected, with settings as in \
             carlini-wagner(steps=1000)"
    )]
    Unreadable {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// Targets without classes.
    #[error("the targets of {name} are real numbers; robustness is about answers that can be wrong: use classes")]
    Regression {
        /// Name of the data.
        name: String,
    },
    /// A box without an inside.
    #[error("inputs cannot live in [{lowest}, {highest}]; the box needs finite walls, the lower one first")]
    Box {
        /// Lower wall.
        lowest: f64,
        /// Upper wall.
        highest: f64,
    },
    /// An input outside of the box.
    #[error("example {example} has an input {value} outside of the box [{lowest}, {highest}]; widen the box")]
    OutsideBox {
        /// The example, from 0.
        example: usize,
        /// The input.
        value: f64,
        /// Lower wall.
        lowest: f64,
        /// Upper wall.
        highest: f64,
    },
    /// A model for other data.
    #[error(
        "the model takes {} inputs and gives {} scores, but the data have {} and need {}; use the data it was trained on",
        model.0, model.1, data.0, data.1
    )]
    Shapes {
        /// Inputs and scores of the model.
        model: (usize, usize),
        /// Inputs and scores of the data.
        data: (usize, usize),
    },
    /// A score that is no number, or too large for single precision.
    #[error("the margin of example {example} is {margin}, which attacks cannot work with; scale the weights down")]
    Margin {
        /// The example, from 0.
        example: usize,
        /// Its margin.
        margin: f64,
    },
    /// The device that computes the model failed.
    #[error("the device that computes the model failed: {0}; nothing is known of any example")]
    Device(String),
    /// A thread that did not come back.
    #[error("a thread of an attack panicked; this is a bug, please report it")]
    Worker,
    /// Sparse inputs.
    #[error(transparent)]
    NeedsDense(#[from] crate::data::NeedsDense),
    /// A decomposition failed.
    #[error(transparent)]
    Linalg(#[from] crate::linalg::LinalgError),
    /// The model was refused.
    #[error(transparent)]
    Model(#[from] crate::models::ModelError),
}
