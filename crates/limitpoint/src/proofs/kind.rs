//! What kind of point a KKT point is.
//!
//! In ℓ2, with u_j = |a_j|w_j, the problem is min Σ‖u_j‖ subject to Σ_j σ_j y_i φ(⟨u_j, x_i⟩) ≥ 1. Let the Jacobian of the
//! equations be regular, so that the multipliers of the point are unique (others would give the same v_c, and a vector that the
//! Jacobian maps to 0), and let αλ < μ < λ at all kinks.
//!
//! * A kink with y_i σ_c = −1 makes the constraint concave. If all kinks are so, the problem is convex near the point: it
//!   is a **local maximum** of the margin among networks without further neurons, and a strict one, up to splitting and
//!   scale, if no masses are free: a regular Jacobian means that the margins determine them.
//! * At a kink with y_i σ_c = +1 the point is **no local maximum**: in the cell where the neuron is on, the sign condition
//!   ⟨u, x_i⟩ ≥ 0 would need the multiplier μ − λ < 0.
//! * Let h(u) = Σ_i λ_i y_i φ(⟨u, x_i⟩). If |h| ≤ 1 on the unit sphere the point is a **global maximum over all widths**: any
//!   feasible network has ½‖θ‖² ≥ Σ_j |a_j|‖w_j‖ ≥ Σ_j a_j h(w_j) = Σ_i λ_i y_i f(x_i) ≥ Σ_i λ_i. If |h| ≤ H, no network has more
//!   than H times its margin.
//! * If |h(u)| > 1 somewhere and a hidden unit is 0, it is **no local maximum**: that unit, turned to u, raises the margin; in
//!   the convex problem with that neuron the unique λ violates its condition |h(u)| ≤ 1.

use serde::{Deserialize, Serialize};

/// The kind of a KKT point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is", deny_unknown_fields)]
pub enum PointKind {
    /// No network of any width has a larger margin.
    GlobalMaximum {
        /// Whether nearby networks have smaller margins, up to splitting and scale.
        strict: bool,
    },
    /// No nearby network has a larger margin.
    LocalMaximum {
        /// Whether they have smaller ones, up to splitting and scale.
        strict: bool,
        /// Its margin is at least this share of the largest one over all widths; 0 if nothing is known.
        share: f64,
        /// Whether a wider network is proven to have a larger margin.
        beaten: bool,
    },
    /// Networks as near as one likes have larger margins.
    NotLocalMaximum {
        /// How to raise the margin.
        ascent: Ascent,
        /// Its margin is at least this share of the largest one over all widths; 0 if nothing is known.
        share: f64,
    },
    /// A KKT point; more is not known.
    Undecided {
        /// Its margin is at least this share of the largest one over all widths; 0 if nothing is known.
        share: f64,
    },
}

/// A way to raise the margin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "by", deny_unknown_fields)]
pub enum Ascent {
    /// Give weight to a hidden unit that is 0.
    Reviving {
        /// The unit.
        neuron: usize,
        /// The sign of its a.
        sign: i8,
        /// The direction of its w, of any length.
        direction: Vec<f64>,
        /// ½‖θ‖² falls at least this fast with the mass |a|‖w‖ it is given, at margin 1.
        gain: f64,
    },
    /// Move a neuron off a kink, to the side where it is on.
    LeavingKink {
        /// The hidden unit.
        neuron: usize,
        /// The example.
        example: usize,
    },
}

impl std::fmt::Display for PointKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let known = |f: &mut std::fmt::Formatter<'_>, share: f64| {
            if share > 0.0 { write!(f, ", at least {} % of the global maximum", percent(share)) } else { Ok(()) }
        };
        match self {
            Self::GlobalMaximum { strict: true } => {
                f.write_str("the global maximum over all widths, strict up to splitting and scale")
            }
            Self::GlobalMaximum { strict: false } => f.write_str("a global maximum over all widths"),
            Self::LocalMaximum { strict, share, beaten } => {
                f.write_str(if *strict {
                    "a strict local maximum, up to splitting and scale"
                } else {
                    "a local maximum"
                })?;
                if *beaten {
                    f.write_str(", not the global one")?;
                }
                known(f, *share)
            }
            Self::NotLocalMaximum { ascent: Ascent::Reviving { neuron, sign, gain, .. }, share } => {
                let sign = if *sign > 0 { "positive" } else { "negative" };
                write!(
                    f,
                    "not a local maximum: neuron {neuron}, now 0, raises the margin with a {sign} weight (gain {gain:.3})"
                )?;
                known(f, *share)
            }
            Self::NotLocalMaximum { ascent: Ascent::LeavingKink { neuron, example }, share } => {
                write!(
                    f,
                    "not a local maximum: neuron {neuron} raises the margin by leaving the kink of example {example}"
                )?;
                known(f, *share)
            }
            Self::Undecided { share } => {
                f.write_str("of undecided kind")?;
                known(f, *share)
            }
        }
    }
}

/// A share in per cent, rounded down to three digits after the point.
fn percent(share: f64) -> String {
    format!("{:.3}", (share * 1e5).floor() / 1e3)
}
