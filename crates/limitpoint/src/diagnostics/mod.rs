//! What can be read off a point: margins, alignment, KKT measures, balance, sparsity.
//!
//! Everything here is a function of a [`Point`]: parameters with the margins, example weights and gradient the objective
//! found there. How the point was reached is not known. [`Probe`] gathers the functions a run wants into one row of named
//! numbers.
//!
//! | file | quantity | claims id |
//! |---|---|---|
//! | `margin` | q_min/‖θ‖^L, its smoothed form, and by the product of layer norms | Mg.hard, Mg.soft, Mg.multi |
//! | `mirror_margin` | the same with the gauge (αQ)^{1/α} of a potential, and β in its metric | Mg.Q, Mg.Qsoft, C.beta |
//! | `kkt` | alignment, Fenchel–Young gap, slack, ℓ2 residual | Ct.align, Ct.FY, Ct.slack, Ct.res2 |
//! | `bracket` | two-sided bound on a linear model's maximal margin | Ct.bracket |
//! | `balance` | conserved differences between layers and between neurons | Ct.bal |
//! | `shape` | histograms, sparsity, active neurons, support set, direction change | C.fig2, C.fig8 |

mod balance;
mod bracket;
mod kkt;
mod margin;
mod mirror_margin;
mod point;
mod probe;
mod shape;

pub use balance::{Balance, neuron_balance};
pub use bracket::{MarginBracket, feature_bound, margin_bracket};
pub use kkt::{KktMeasure, alignment, kkt_measure, stationarity_residual};
pub use margin::{MarginPair, layer_product, normalised_margins};
pub use mirror_margin::{MirrorMeasure, mirror_measure};
pub use point::Point;
pub use probe::{DiagnosticsError, Probe, ProbeSpec, ProbeState};
pub use shape::{Histogram, active_neurons, angle, histogram, participation, small_fraction, support_count};
