//! A forward pass at one input, with bounds on what rounding did to it.

use super::rounding::{UNDERFLOW, UNIT, gamma};
use super::victim::Label;
use crate::models::{Activation, Layered};

/// Rounding of one activation, in units: a power of up to sixteen, and a product.
pub(super) const ACTIVATION_UNITS: f64 = 64.0 * UNIT;

/// Preactivations of every layer, the scores last, each with a bound on its error.
#[derive(Debug, Clone)]
pub(super) struct Centre {
    pub z: Vec<Vec<f64>>,
    pub error: Vec<Vec<f64>>,
}

impl Centre {
    /// ```text
    /// |ẑ − z| ≤ |W| e + γₙ (|W||â| + |b|),        e′ = max |σ′| e + rounding of σ
    /// ```
    ///
    /// where e bounds |â − a|; slopes of a convex σ are largest at an end of [ẑ − e, ẑ + e]. Underflow comes on top.
    pub fn new(model: &Layered, x: &[f64]) -> Self {
        let (mut a, mut a_error) = (x.to_vec(), vec![0.0; x.len()]);
        let (mut zs, mut errors) = (Vec::new(), Vec::new());
        for layer in &model.layers {
            let z = layer.apply(&a);
            let slack = gamma(a.len() + 4);
            let reach: Vec<f64> = a.iter().zip(&a_error).map(|(a, e)| slack * a.abs() + e * (1.0 + slack)).collect();
            let error: Vec<f64> = (0..z.len())
                .map(|j| {
                    let bias = layer.bias.as_ref().map_or(0.0, |bias| bias[j].abs());
                    let products: f64 = layer.weight.row(j).iter().zip(&reach).map(|(w, r)| w.abs() * r).sum();
                    (products + slack * bias) * (1.0 + 2.0 * slack) + UNDERFLOW
                })
                .collect();
            a = z.iter().map(|z| model.activation.value(*z)).collect();
            a_error = z.iter().zip(&error).map(|(z, e)| activated(model.activation, *z, *e)).collect();
            zs.push(z);
            errors.push(error);
        }
        Self { z: zs, error: errors }
    }

    /// Numbers that the margins against each other class are provably not below.
    pub fn margins(&self, label: Label) -> Vec<(usize, f64)> {
        let (Some(scores), Some(errors)) = (self.z.last(), self.error.last()) else { return Vec::new() };
        match label {
            Label::Sign(y) => vec![(0, y * scores[0] - errors[0])],
            Label::Class(own) => {
                let lower = |j: usize| {
                    let gap = scores[own] - scores[j];
                    gap - (errors[own] + errors[j] + 2.0 * UNIT * gap.abs()) * (1.0 + 4.0 * UNIT)
                };
                (0..scores.len()).filter(|j| *j != own).map(|j| (j, lower(j))).collect()
            }
        }
    }

    /// About the most that rounding does to a margin here when it is computed in single precision: the errors of two
    /// scores, in units of singles.
    pub fn single_error(&self) -> f64 {
        let largest = self.error.last().map_or(0.0, |errors| errors.iter().copied().fold(0.0, f64::max));
        2.0 * largest * (f64::from(f32::EPSILON) / f64::EPSILON)
    }
}

fn activated(activation: Activation, z: f64, error: f64) -> f64 {
    let steepest = activation.slope(z - error).abs().max(activation.slope(z + error).abs());
    (steepest * error + activation.value(z).abs() * ACTIVATION_UNITS) * (1.0 + ACTIVATION_UNITS) + UNDERFLOW
}

/// Σ |wᵢ| vᵢ.
pub(super) fn absolute_dot(w: &[f64], v: &[f64]) -> f64 {
    w.iter().zip(v).map(|(w, v)| w.abs() * v).sum()
}
