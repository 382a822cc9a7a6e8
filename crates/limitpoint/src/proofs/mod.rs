//! The judge proves networks: that an *exact* KKT point of the margin problem exists next to polished weights, and of which
//! kind it is.
//!
//! A network of two layers with ReLU or leaky ReLU, in ℓ1, ℓ2 or ℓ∞; any other dense homogeneous network in ℓ2. The proof is a box in a space of few unknowns that
//! an interval form of Newton's method maps into itself, together with inequalities that hold all over the box; it is
//! a theorem about the doubles of the data, checked by code that did not make it.
//!
//! | file | holds |
//! |---|---|
//! | `network` | the network, its active examples, the sides its neurons are on |
//! | `bundles` | neurons that share their direction, antipodal pairs |
//! | `system`, `number` | equations that can be evaluated in doubles, balls and intervals |
//! | `system_l2`, `system_l1`, `system_linf` | the equations of a KKT point |
//! | `dense` | the same for dense networks of any depth, powers of ReLU, several classes, frozen layers |
//! | `double_double` | balls of 106 bits, for residuals |
//! | `krawczyk` | Newton's method and the box that is mapped into itself |
//! | `sphere` | a bound on all other directions a neuron could have |
//! | `kind` | strict local, global, or no maximum |
//! | `ascend` | the first push off a point that is no maximum |
//! | `prove` | from weights to a proof |
//! | `record`, `document` | the proof as plain values, and as a file |
//! | `verify` | checking it, from data alone and with other code |

mod ascend;
mod bundles;
mod dense;
mod document;
mod double_double;
mod kind;
mod krawczyk;
mod linear;
mod network;
mod number;
mod prove;
mod record;
mod refusal;
mod sphere;
mod system;
mod system_l1;
mod system_l2;
mod system_linf;
mod verify;

#[cfg(test)]
mod tests;

pub use ascend::{ascent, pushed};
pub use dense::{DenseNetwork, Turn};
pub use document::{NearbyWeights, PROOF_FORMAT, PROOF_VERSION, ProofDocument, statement};
pub use kind::{Ascent, PointKind};
pub use prove::{Attempt, Proven, prove};
pub use record::{CubeNetwork, CubeNeuron, DiamondBundle, Equations, Proof, RoundBundle};
pub use refusal::{Check, ProofError, Refusal};
pub use sphere::{Leaf, SphereCover, Witness};
pub use verify::{EnclosedNetwork, Findings, verify};
