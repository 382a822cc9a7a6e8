//! A forward pass at one input, with bounds on what rounding did to it.

use super::rounding::{UNDERFLOW, UNIT, gamma};
use super::victim::Label;
use crate::models::{Activation, Layered, Map, PoolMap, Pooling};

/// Rounding of one activation, in units: a power of up to sixteen, and a product.
pub(super) const ACTIVATION_UNITS: f64 = 64.0 * UNIT;

/// What every map gives, the scores last, each number with a bound on its error.
#[derive(Debug, Clone)]
pub(super) struct Centre {
    pub values: Vec<Vec<f64>>,
    pub error: Vec<Vec<f64>>,
}

impl Centre {
    /// ```text
    /// |ẑ − z| ≤ |W| e + γₙ (|W||â| + |b|),        e′ = max |σ′| e + rounding of σ,        e′ = max e over a window
    /// ```
    ///
    /// where e bounds |â − a|; slopes of a convex σ are largest at an end of [ẑ − e, ẑ + e]. Underflow comes on top.
    pub fn new(model: &Layered, x: &[f64]) -> Self {
        let (mut values, mut errors): (Vec<Vec<f64>>, Vec<Vec<f64>>) = (Vec::new(), Vec::new());
        let exact = vec![0.0; x.len()];
        for map in &model.maps {
            let (a, e) = (values.last().map_or(x, Vec::as_slice), errors.last().unwrap_or(&exact));
            let next = map.apply(a);
            let error = match map {
                Map::Affine(affine) => {
                    let slack = gamma(affine.terms() + 4);
                    let reach: Vec<f64> = a.iter().zip(e).map(|(a, e)| slack * a.abs() + e * (1.0 + slack)).collect();
                    let products = affine.absolute_product(&reach);
                    let one = |(i, products): (usize, f64)| {
                        (products + slack * affine.bias_at(i).abs()) * (1.0 + 2.0 * slack) + UNDERFLOW
                    };
                    products.into_iter().enumerate().map(one).collect()
                }
                Map::Activation(activation) => a.iter().zip(e).map(|(z, e)| activated(*activation, *z, *e)).collect(),
                Map::Pool(pool) => pooled(pool, a, e),
            };
            values.push(next);
            errors.push(error);
        }
        Self { values, error: errors }
    }

    /// Numbers that the margins against each other class are provably not below.
    pub fn margins(&self, label: Label) -> Vec<(usize, f64)> {
        let (Some(scores), Some(errors)) = (self.values.last(), self.error.last()) else { return Vec::new() };
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

/// The largest of a window is off by no more than the largest error in it, a mean by the mean of them and its rounding.
fn pooled(pool: &PoolMap, a: &[f64], error: &[f64]) -> Vec<f64> {
    let (members, slack) = (pool.members(), gamma(pool.size() + 4));
    let one = |members: &[u32]| {
        let each = members.iter().map(|member| (a[*member as usize].abs(), error[*member as usize]));
        match pool.pooling {
            // a NaN must not pass for small
            Pooling::Max => each.fold(0.0, |most, (_, e)| if e > most || e.is_nan() { e } else { most }),
            Pooling::Average => {
                let sum: f64 = each.map(|(a, e)| slack * a + e * (1.0 + slack)).sum();
                sum / members.len() as f64 * (1.0 + 2.0 * slack) + UNDERFLOW
            }
        }
    };
    members.chunks_exact(pool.size()).map(one).collect()
}

/// Σ |wᵢ| vᵢ.
pub(super) fn absolute_dot(w: &[f64], v: &[f64]) -> f64 {
    w.iter().zip(v).map(|(w, v)| w.abs() * v).sum()
}
