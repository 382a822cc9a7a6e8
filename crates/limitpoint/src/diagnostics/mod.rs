//! What can be read off a point: margins, alignment, KKT measures, balance, sparsity.
//!
//! Everything here is a function of a [`Point`]: parameters with the margins, example weights and gradient the
//! objective found there. How the point was reached is not known. [`Instrument`] gathers the functions a run wants into one
//! row of named numbers. Only [`fit_rates`] and [`DirectionCourse`] look at several points, as plain arrays.
//!
//! | file | quantity | claims id |
//! |---|---|---|
//! | `margin` | q_min/‖θ‖^L, its smoothed form, and by the product of layer norms | Mg.hard, Mg.soft, Mg.multi |
//! | `mirror_margin` | the same with the gauge (αQ)^{1/α} of a potential, and β in its metric | Mg.Q, Mg.Qsoft, C.beta |
//! | `descent_margin` | the smoothed margin that no admissible step of descent lowers | Mg.hat |
//! | `kkt` | alignment, Fenchel–Young gap, slack, ℓ2 residual | Ct.align, Ct.FY, Ct.slack, Ct.res2 |
//! | `bracket` | two-sided bound on a linear model's maximal margin | Ct.bracket |
//! | `balance` | conserved differences between layers and between neurons | Ct.bal |
//! | `rates` | exponents of loss, norm and margin gap along a run, with intervals | D.thm4.3, C.thm4.6, Ct.rate |
//! | `line_fit` | the line they are read off, for points that are not independent | |
//! | `course` | whether the path of a direction comes to an end | D.thmI1 |
//! | `shape` | histograms, sparsity, active neurons, support set, direction change | C.fig2, C.fig8 |

mod balance;
mod bracket;
mod columns;
mod course;
mod descent_margin;
mod instrument;
mod kkt;
mod line_fit;
mod margin;
mod mirror_margin;
mod point;
mod rate_law;
mod rates;
mod shape;

pub use balance::{Balance, neuron_balance};
pub use bracket::{MarginBracket, feature_bound, margin_bracket, sparse_feature_bound};
pub use columns::{COLUMNS, ColumnMeaning};
pub use course::DirectionCourse;
pub use descent_margin::DescentMargin;
pub use instrument::{DiagnosticsError, Instrument, InstrumentSpec, InstrumentState};
pub use kkt::{KktMeasure, alignment, kkt_measure, stationarity_residual};
pub use line_fit::{FEWEST_POINTS, LineFit, RateError, fit_line};
pub use margin::{MarginPair, layer_product, normalised_margins, soft_margin_growth};
pub use mirror_margin::{MirrorMeasure, mirror_measure};
pub use point::Point;
pub use rates::{
    Approach, FEWEST_LATE_POINTS, LocalSlope, RateBound, RateConstant, RateFit, RateLaw, RateReport, RateSeries,
    RateSettings, RateTheory, RateWindow, Spread, fit_rates,
};
pub use shape::{Histogram, active_neurons, angle, histogram, participation, small_fraction, support_count};
