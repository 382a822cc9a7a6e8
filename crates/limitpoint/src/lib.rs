//! limitpoint tells you where an optimiser goes.
//!
//! ```
//! use limitpoint::prelude::*;
//!
//! let data = Digits { classes: Some([0, 1]), count: Some(50), ..Default::default() }.load(&Streams::new(0))?.train;
//! let run = Training::new(&data, ModelSpec::relu(&[32]))?
//!     .optimiser("sign")?
//!     .until_log10_loss(-100.0)
//!     .run()?;
//! println!("{} {}", run.margin("linf")?, run.certify("linf")?);
//! # assert!(run.margin("linf")? > 0.0 && run.log10_loss() <= -100.0);
//! # Ok::<(), limitpoint::Error>(())
//! ```
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
//! | [`memory`] | how much memory there is, asked before it is taken |
//! | [`linalg`] | matrices, products, singular values, polar factor, the fused kernels and the thread team |
//! | [`params`] | the flat parameter vector and its named matrix blocks |
//! | [`data`] | data sets, generators, embedded digits, loaders |
//! | [`norms`] | geometries: value, dual, steepest direction, projections |
//! | [`intervals`] | numbers, norms and singular values with proven bounds |
//! | [`potentials`] | mirror maps, their inverses and Hessians, horizon functions |
//! | [`losses`] | margins → ln L and example weights |
//! | [`models`] | what models are, without data: layers, layout, homogeneity, bounds |
//! | [`engine`] | what computes them: scores and their vector–Jacobian product, on the CPU or by somebody's functions |
//! | [`objective`] | model + data + loss as one oracle |
//! | [`schedules`] | step-size rules, from step count and log loss |
//! | [`optimisers`] | discrete steps with explicit state |
//! | [`flows`] | continuous time with error control |
//! | [`diagnostics`] | margins, KKT measures, balance, shape: functions of a point |
//! | [`observers`] | snapshots, recording, stop rules |
//! | [`mod@reference`] | the judge's solvers: exact margins and limit points, with their proofs |
//! | [`robustness`] | how far inputs must move to change an answer: attacks, and bounds with proof |
//! | [`certificates`] | claim + evidence → verdict: KKT and tangent certificates, polishing, files |
//! | [`proofs`] | networks proven: exact KKT points, strict and global maxima |
//! | [`driver`] | the loop: step, snapshot, observe, stop |
//! | [`advice`] | step size and smoothing of mirror descent, from the shape of a network and its start |
//! | [`training`] | the one way to train in memory: described, run, judged |
//! | [`experiments`] | whole training problems put together from specifications |
//! | [`mod@fingerprint`] | which geometry an optimiser maximises, read off a battery of probes |
//! | [`report`] | finished records as a page for people and figures for papers |

pub mod catalogue;
pub mod error;
pub mod memory;
pub mod numeric;

pub mod linalg;
pub mod params;

pub mod data;
pub mod intervals;
pub mod losses;
pub mod norms;
pub mod potentials;

pub mod engine;
pub mod models;
pub mod objective;
pub mod schedules;

pub mod flows;
pub mod optimisers;

pub mod reference;
pub mod robustness;

pub mod advice;
pub mod certificates;
pub mod diagnostics;
pub mod driver;
pub mod experiments;
pub mod observers;
pub mod proofs;
pub mod training;

pub mod fingerprint;

pub mod report;

pub mod prelude;

pub use error::{Error, Result};

/// The program in the crate's README is run with the other examples of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
