//! limitpoint tells you where an optimiser goes.
//!
//! Many solutions fit an overparameterised model's data; the geometry of the optimiser picks one of them.
//! This crate trains linear models and homogeneous networks in any geometry, down to losses such as
//! 10^−1000, and measures in which norm the margin grew. It reads as one arrow:
//!
//! ```text
//! data ─► model ─► loss ─► objective ─► optimiser | flow ─► observer
//! (xᵢ,yᵢ) margins  ln L,   ln L and      steps in a          read-only
//!         qᵢ(θ)    weights ∇L, scaled    geometry            snapshots
//!                                  ▲
//!                norms | potentials┘
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`numeric`] | logarithms of tiny numbers, [`numeric::LogScaled`], compensated sums, random streams |
//! | [`linalg`] | matrices, products, singular values, polar factor, the fused kernels and the thread team |
//! | [`params`] | the flat parameter vector and its named matrix blocks |
//! | [`potentials`] | mirror potentials, their maps, conjugates and horizons, and the horizon calculator |

pub mod catalogue;
pub mod error;
pub mod numeric;

pub mod linalg;
pub mod params;
pub mod potentials;

pub use error::{Error, Result};
