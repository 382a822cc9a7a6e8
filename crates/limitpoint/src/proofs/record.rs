//! A proof as plain values: what is needed to check it, and nothing that must be believed.

use serde::{Deserialize, Serialize};

use super::dense::DenseNetwork;
use super::network::Side;
use super::sphere::SphereCover;
use crate::norms::NormSpec;

/// The box that holds a KKT point, and the equations it is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Proof {
    /// Active examples, from 0; of identical ones the first.
    pub active: Vec<usize>,
    /// The neurons and their equations.
    pub equations: Equations,
    /// The middle of the box, one number per unknown.
    pub midpoint: Vec<f64>,
    /// Its half widths.
    pub radius: Vec<f64>,
    /// An approximate inverse of the Jacobian at the middle, row by row.
    pub inverse: Vec<f64>,
    /// What is known about other directions a neuron could have, in ℓ2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sphere: Option<SphereCover>,
}

/// The neurons at the KKT point, by norm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Equations {
    /// Unknowns λ, μ, b; see `system_l2`.
    L2(Vec<RoundBundle>),
    /// Unknowns λ, μ, |a|, w; see `system_l1`.
    L1(Vec<DiamondBundle>),
    /// Unknowns λ, μ, corrections of w, margin; see `system_linf`.
    Linf(CubeNetwork),
    /// Unknowns θ, λ, slopes, turns; see `dense`. In ℓ2.
    Dense(DenseNetwork),
}

/// Neurons that share a direction, in ℓ2.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundBundle {
    /// The sign of a: 1 or −1.
    pub sign: i8,
    /// For every active example `+` (on), `-` (off) or `0` (kink).
    pub sides: String,
    /// Hidden units.
    pub units: Vec<usize>,
    /// How the mass is shared among them, in any scale.
    pub shares: Vec<f64>,
    /// An earlier bundle with the same sign and opposite sides, whose direction is −1 times this one because Σ λ_i y_i x_i = 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opposite: Option<usize>,
    /// The mass, where it is no unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mass: Option<f64>,
}

/// Equal neurons, in ℓ1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiamondBundle {
    /// The sign of a: 1 or −1.
    pub sign: i8,
    /// For every active example `+`, `-` or `0`.
    pub sides: String,
    /// Hidden units.
    pub units: Vec<usize>,
    /// For every input the sign of its weight: `+`, `-` or `0`.
    pub support: String,
}

/// All neurons that are not 0, in ℓ∞, for ‖θ‖ = 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CubeNetwork {
    /// The neurons.
    pub neurons: Vec<CubeNeuron>,
    /// (class, input) of the corrections that are unknowns.
    pub corrected: Vec<(usize, usize)>,
}

/// A neuron, in ℓ∞.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CubeNeuron {
    /// The hidden unit.
    pub unit: usize,
    /// Neurons of one class have the same sides; none if it is off on all active examples.
    pub class: Option<usize>,
    /// For every active example `+`, `-` or `0`.
    pub sides: String,
    /// a; 1 or −1 unless it is off on all active examples.
    pub outer: f64,
    /// w before its correction; 1 and −1 are exact.
    pub inner: Vec<f64>,
}

impl Equations {
    /// The norm.
    pub fn norm(&self) -> NormSpec {
        match self {
            Self::L2(_) | Self::Dense(_) => NormSpec::L2,
            Self::L1(_) => NormSpec::L1,
            Self::Linf(_) => NormSpec::Linf,
        }
    }
}

/// Sides as letters.
pub(super) fn letters(sides: &[Side]) -> String {
    let letter = |side: &Side| match side {
        Side::On => '+',
        Side::Off => '-',
        Side::Kink => '0',
    };
    sides.iter().map(letter).collect()
}

/// Letters as sides, if they are `count` of `+`, `-` and `0`.
pub(super) fn sides(letters: &str, count: usize) -> Option<Vec<Side>> {
    let side = |letter: char| match letter {
        '+' => Some(Side::On),
        '-' => Some(Side::Off),
        '0' => Some(Side::Kink),
        _ => None,
    };
    let sides: Vec<Side> = letters.chars().map(side).collect::<Option<_>>()?;
    (sides.len() == count).then_some(sides)
}
