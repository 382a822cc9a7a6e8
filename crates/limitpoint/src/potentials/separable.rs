//! Potentials that are a sum of one scalar function over the entries.

use super::blocks::Trainable;
use super::power::{power_norm, streaming_log_sum_exp};
use super::{Conjugate, Entries, Horizon, HorizonBounds, MirrorMap, PotentialError, root};
use crate::numeric::{CompensatedSum, integrate};
use crate::params::ParamLayout;

/// Where a scalar potential is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Domain {
    /// Every finite number.
    Real,
    /// Every finite number above 0.
    Positive,
}

/// Where a scalar function r is defined, and what it becomes far from 0.
pub trait ScalarHorizon {
    /// The asymptotic degree α of q.
    fn degree(&self) -> f64;
    /// c = lim α q(t)/|t|^α as |t| → ∞.
    fn horizon_coefficient(&self) -> f64;

    /// Where r is defined.
    fn domain(&self) -> Domain {
        Domain::Real
    }

    /// Constants with φ ≤ gauge ≤ c φ + a on `count` entries, where known.
    fn horizon_bounds(&self, _count: usize) -> Option<HorizonBounds> {
        None
    }
}

/// A strictly convex function r of one variable; [`Separable`] makes R(θ) = Σ r(θᵢ) of it.
///
/// Write q(t) = t r′(t) − r(t), which is Q(∇R) entry by entry. The required methods are the mathematics; the provided
/// ones can be overridden where a closed form is more accurate.
///
/// ```
/// use limitpoint::params::ParamLayout;
/// use limitpoint::potentials::{Conjugate, Horizon, ScalarHorizon, ScalarPotential, Separable};
///
/// struct Quartic; // r(t) = t⁴/4
/// impl ScalarPotential for Quartic {
///     fn key(&self) -> &'static str { "quartic" }
///     fn value(&self, t: f64) -> f64 { t.powi(4) / 4.0 }
///     fn slope(&self, t: f64) -> f64 { t.powi(3) }
///     fn inverse_slope(&self, z: f64) -> f64 { z.cbrt() }
///     fn curvature(&self, t: f64) -> f64 { 3.0 * t * t }
///     fn conjugate(&self, t: f64) -> f64 { 0.75 * t.powi(4) }
/// }
/// impl ScalarHorizon for Quartic {
///     fn degree(&self) -> f64 { 4.0 }
///     fn horizon_coefficient(&self) -> f64 { 3.0 }
/// }
/// let mut potential = Separable::new(Quartic, &ParamLayout::vector(2));
/// assert_eq!(potential.conjugate_at(&[2.0, 0.0]), 12.0);
/// assert!((potential.horizon(&[2.0, 0.0]) - 48f64.sqrt().sqrt()).abs() < 1e-15);
/// ```
pub trait ScalarPotential: ScalarHorizon + Send {
    /// The name used in files and messages.
    fn key(&self) -> &'static str;
    /// r(t).
    fn value(&self, t: f64) -> f64;
    /// r′(t).
    fn slope(&self, t: f64) -> f64;
    /// The t with r′(t) = z.
    fn inverse_slope(&self, z: f64) -> f64;
    /// r″(t).
    fn curvature(&self, t: f64) -> f64;
    /// q(t) = t r′(t) − r(t), without cancellation.
    fn conjugate(&self, t: f64) -> f64;

    /// ln q(t).
    fn log_conjugate(&self, t: f64) -> f64 {
        self.conjugate(t).ln()
    }

    /// α q(t) − t² r″(t), the slack of the curvature condition.
    fn slack(&self, t: f64) -> f64 {
        self.degree() * self.conjugate(t) - t * t * self.curvature(t)
    }

    /// Distance from t to the nearest (complex) point where r″ is not analytic; a lower bound such as 0 is allowed.
    fn analytic_radius(&self, _t: f64) -> f64 {
        0.0
    }

    /// D(a, b) = r(a) − r(b) − r′(b)(a − b).
    ///
    /// ```text
    /// |a − b| ≤ radius/2:  (a − b)² ∫₀¹ (1 − s) r″(b + s(a − b)) ds     every term positive; 16-point rule
    /// otherwise:           a (r′(a) − r′(b)) − (q(a) − q(b))            the same number, by the definition of q
    /// ```
    fn bregman(&self, a: f64, b: f64) -> f64 {
        if a == b {
            return 0.0;
        }
        let gap = a - b;
        if gap.abs() <= 0.5 * self.analytic_radius(b) {
            return gap * (gap * integrate(0.0, 1.0, |s| (1.0 - s) * self.curvature(b + s * gap)));
        }
        let product = if a == 0.0 { 0.0 } else { a * (self.slope(a) - self.slope(b)) };
        let divergence = product - (self.conjugate(a) - self.conjugate(b));
        let overflow = divergence.is_nan() && a.is_finite() && b.is_finite();
        if overflow { f64::INFINITY } else { divergence.max(0.0) }
    }
}

/// R(θ) = Σ r(θᵢ) over the trainable entries.
///
/// Sums are compensated, so that differences of conjugates (the balance law) keep their digits.
pub struct Separable<P> {
    scalar: P,
    place: Trainable,
    degrees: Vec<f64>,
}

impl<P: ScalarPotential> Separable<P> {
    /// The sum of `scalar` over the trainable entries of a layout.
    pub fn new(scalar: P, layout: &ParamLayout) -> Self {
        let place = Trainable::of(layout);
        Self { degrees: vec![scalar.degree(); place.blocks.len()], scalar, place }
    }

    /// The scalar function.
    pub fn scalar(&self) -> &P {
        &self.scalar
    }

    fn horizon_of(&self, values: impl Iterator<Item = f64> + Clone) -> f64 {
        let degree = self.scalar.degree();
        root(self.scalar.horizon_coefficient(), degree) * power_norm(values, degree)
    }
}

/// A compensated sum that answers ∞, not NaN, when terms overflow.
fn total(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let mut sum = CompensatedSum::default();
    terms.clone().for_each(|x| sum.add(x));
    if sum.value().is_finite() { sum.value() } else { terms.sum() }
}

impl<P: ScalarPotential> MirrorMap for Separable<P> {
    fn value(&mut self, theta: &[f64]) -> f64 {
        total(self.place.entries(theta).map(|t| self.scalar.value(t)))
    }

    fn mirror_map(&mut self, theta: &[f64], out: &mut [f64]) {
        self.place.map(theta, out, |t| self.scalar.slope(t));
    }

    fn inverse_mirror_map(&mut self, dual: &[f64], out: &mut [f64]) {
        self.place.map(dual, out, |z| self.scalar.inverse_slope(z));
    }

    fn hessian_action(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]) {
        self.place.map2(theta, v, out, |t, x| if x == 0.0 { 0.0 } else { self.scalar.curvature(t) * x });
    }

    fn inverse_hessian_action(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]) {
        self.place.map2(theta, v, out, |t, x| if x == 0.0 { 0.0 } else { x / self.scalar.curvature(t) });
    }

    fn check_domain(&self, theta: &[f64]) -> Result<(), PotentialError> {
        check_length(theta, &self.place)?;
        let (requirement, remedy, admits): (_, _, fn(f64) -> bool) = match self.scalar.domain() {
            Domain::Real => ("finite weights", "look for the step that produced it", f64::is_finite),
            Domain::Positive => (
                "positive finite weights",
                "start from positive weights, or use 'hyperbolic' for weights of both signs",
                |t| t.is_finite() && t > 0.0,
            ),
        };
        match self.place.first_failing(theta, admits) {
            None => Ok(()),
            Some((block, index, value)) => Err(PotentialError::OutsideDomain {
                potential: self.scalar.key(),
                block: block.name.clone(),
                index,
                value,
                requirement,
                remedy,
            }),
        }
    }

    fn bregman_divergence(&mut self, a: &[f64], b: &[f64]) -> f64 {
        let pairs = self.place.entries(a).zip(self.place.entries(b));
        total(pairs.map(|(x, y)| self.scalar.bregman(x, y)))
    }
}

impl<P: ScalarPotential> Conjugate for Separable<P> {
    fn conjugate_at(&mut self, theta: &[f64]) -> f64 {
        total(self.place.entries(theta).map(|t| self.scalar.conjugate(t)))
    }

    fn log_conjugate_at(&mut self, theta: &[f64]) -> f64 {
        streaming_log_sum_exp(self.place.entries(theta).map(|t| self.scalar.log_conjugate(t)))
    }

    fn conjugate_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        out.clear();
        for block in &self.place.blocks {
            out.push(total(theta[block.range()].iter().map(|&t| self.scalar.conjugate(t))));
        }
    }

    fn conjugate_of_entries(&mut self, block: usize, theta: &[f64], entries: Entries) -> Option<f64> {
        let slice = &theta[self.place.blocks.get(block)?.range()];
        let mut sum = CompensatedSum::default();
        for index in entries.indices() {
            sum.add(self.scalar.conjugate(*slice.get(index)?));
        }
        Some(sum.value())
    }
}

impl<P: ScalarPotential> Horizon for Separable<P> {
    fn degree(&self) -> f64 {
        self.scalar.degree()
    }

    fn degrees_by_block(&self) -> &[f64] {
        &self.degrees
    }

    fn horizon(&mut self, theta: &[f64]) -> f64 {
        self.horizon_of(self.place.entries(theta))
    }

    fn horizons_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        out.clear();
        for block in &self.place.blocks {
            out.push(self.horizon_of(theta[block.range()].iter().copied()));
        }
    }

    fn curvature_slack(&mut self, theta: &[f64]) -> f64 {
        total(self.place.entries(theta).map(|t| self.scalar.slack(t)))
    }

    fn horizon_bounds(&self) -> Option<HorizonBounds> {
        self.scalar.horizon_bounds(self.place.count)
    }
}

/// Refuses a vector of the wrong length.
pub(super) fn check_length(theta: &[f64], place: &Trainable) -> Result<(), PotentialError> {
    if theta.len() == place.length {
        Ok(())
    } else {
        Err(crate::params::ParamsError::Length { found: theta.len(), expected: place.length }.into())
    }
}
