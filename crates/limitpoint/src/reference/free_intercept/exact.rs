//! The answer on the examples that carry it: where all their margins are equal.
//!
//! ```text
//! y(⟨x, w⟩ + b) = 1,    w = Σ α y x,    Σ α y = 0          over the support
//! ```
//!
//! One Cholesky factor of the products of the support solves these equations to a few digits; residuals of w itself,
//! summed with compensation, bring the others. Examples that depend on earlier ones are left out by the factor and get
//! no weight.

use super::soft::Soft;
use super::{Examples, combine};
use crate::intervals::long_dot;
use crate::linalg::{Cholesky, add_scaled};
use crate::numeric::compensated_dot;

/// Pivots below this share of the largest entry belong to examples that depend on earlier ones.
const DEPENDENT: f64 = 1e-14;
/// Most corrections.
const ROUNDS: usize = 8;
/// How far below 1 a margin may be.
const SHORT: f64 = 1e-10;

/// What equal margins on a support lead to.
pub(super) struct OnSupport {
    pub support: Vec<usize>,
    pub weights: Vec<f64>,
    pub intercept: f64,
    pub multipliers: Vec<f64>,
}

/// Solves the equations on a support; nothing if the corrections do not settle.
pub(super) fn on_support(soft: &mut Soft, support: &[usize]) -> Option<OnSupport> {
    let examples = soft.examples;
    let signs: Vec<f64> = support.iter().map(|&i| examples.signs[i]).collect();
    // at most one more example than there are inputs is independent; many more are no support yet
    if !signs.contains(&1.0) || !signs.contains(&-1.0) || support.len() > 2 * (examples.columns + 1) {
        return None;
    }
    soft.steps += 1;
    let mut products = soft.products(support);
    let largest = (0..support.len()).map(|i| products[i * (support.len() + 1)]).fold(0.0, f64::max);
    // all examples together are centred at 0, which leaves y without a product; where yᵀα is known, so is what this adds
    let lift = largest / support.len() as f64;
    products.iter_mut().enumerate().for_each(|(at, product)| {
        *product += lift * signs[at / support.len()] * signs[at % support.len()];
    });
    let mut factor = Cholesky::new(support.len());
    factor.factor(&products, DEPENDENT * largest).ok()?;
    let mut across = signs.clone();
    factor.solve(&mut across);
    let through = compensated_dot(&signs, &across);
    let (mut w, mut b, mut alpha) = (vec![0.0; examples.columns], 0.0, vec![0.0; support.len()]);
    let mut worst = f64::INFINITY;
    for _ in 0..ROUNDS {
        let residuals: Vec<f64> =
            support.iter().map(|&i| 1.0 - examples.signs[i] * (long_dot(examples.row(i), &w) + b)).collect();
        let size = residuals.iter().fold(0.0, |most: f64, r| most.max(r.abs()));
        if size >= 0.5 * worst {
            break;
        }
        worst = size;
        // (δα, δb) with K δα + y δb = r and yᵀδα = −yᵀα; centred products make b the level of centred examples
        let mut change = residuals;
        factor.solve(&mut change);
        let balance = compensated_dot(&signs, &alpha);
        let level = (compensated_dot(&signs, &change) + balance) / through;
        add_scaled(&mut change, -level, &across);
        let step = combine(examples, support, &change);
        b += level - lift * balance - long_dot(&soft.centre, &step);
        add_scaled(&mut w, 1.0, &step);
        add_scaled(&mut alpha, 1.0, &change);
    }
    let finite = b.is_finite() && w.iter().chain(&alpha).all(|x| x.is_finite());
    (finite && worst < SHORT).then(|| OnSupport {
        support: support.to_vec(),
        weights: w,
        intercept: b,
        multipliers: alpha,
    })
}

impl OnSupport {
    /// Examples of the support with negative weight, and examples outside whose margin is too small; both in order.
    pub(super) fn wrong(&self, examples: Examples) -> (Vec<usize>, Vec<usize>) {
        let heaviest = self.multipliers.iter().fold(0.0, |most: f64, a| most.max(a.abs()));
        let light = self.support.iter().zip(&self.multipliers).filter(|(_, a)| **a < -1e-12 * heaviest);
        let negative = light.map(|(&i, _)| i).collect();
        let margins = examples.margins(&self.weights, self.intercept);
        let short = |i: &usize| margins[*i] < 1.0 - SHORT && self.support.binary_search(i).is_err();
        (negative, (0..margins.len()).filter(short).collect())
    }
}
