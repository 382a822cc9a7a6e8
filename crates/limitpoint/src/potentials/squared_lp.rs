//! Half the squared ℓ_p norm, 1 < p ≤ 2.

use super::blocks::Trainable;
use super::power::{Power, power_norm};
use super::power_smoothed::PowerSmoothed;
use super::quadratic::check_finite;
use super::{Conjugate, Entries, Horizon, HorizonBounds, MirrorMap, PotentialError, ScalarPotential};
use crate::linalg::{max_abs, sign};
use crate::params::ParamLayout;

/// R(w) = ½‖w‖_p² over all trainable entries together, 1 < p ≤ 2.
///
/// With q = p/(p−1), s = sgn(w)|w|^{p−1}:
///
/// ```text
/// ∇R = ‖w‖_p^{2−p} s,   ∇R* = the same with q,   Q(∇R(w)) = ½‖w‖_p²,   α = 2,   φ = gauge = ‖w‖_p,   slack 0
/// H  = (2−p)‖w‖_p^{2−2p} s sᵀ + (p−1)‖w‖_p^{2−p} diag(|w|^{p−2})
/// H⁻¹v = (‖w‖_p^{p−2} |w|^{2−p} v − (2−p)‖w‖_p^{−2} ⟨w, v⟩ w)/(p−1)          (Sherman–Morrison)
/// D(a, b) = ½(A − B)² + A B Σᵢ d(aᵢ/A, bᵢ/B),   A = ‖a‖_p, B = ‖b‖_p, d the divergence of |t|^p/p
/// ```
///
/// Every power is taken of |wᵢ|/max|w|, so that nothing overflows; H does not depend on the scale of w. For p < 2:
/// where wᵢ = 0 the diagonal of H is infinite, its action is infinite unless vᵢ = 0, and the inverse action is 0; at
/// w = 0 H does not exist and both actions are NaN. The divergence is a sum of positive terms: the last line holds
/// because Σ|aᵢ/A|^p = Σ|bᵢ/B|^p = 1. R couples all entries; shares by block are ½‖w‖_p^{2−p}‖w_b‖_p^p. Use
/// [`super::Layers`] for one such potential per block. Paper B, theorem 1 (B.thm1).
///
/// ```
/// use limitpoint::{params::ParamLayout, potentials::PotentialSpec};
/// let mut potential = PotentialSpec::SquaredLp { p: 1.5 }.build(&ParamLayout::vector(2))?;
/// let (theta, mut dual) = ([4.0, 0.0], [0.0; 2]);
/// potential.mirror_map(&theta, &mut dual);
/// assert!((dual[0] - 4.0).abs() < 1e-15 && dual[1] == 0.0);
/// assert!((potential.conjugate_at(&theta) - 8.0).abs() < 1e-14);
/// # Ok::<(), limitpoint::potentials::PotentialError>(())
/// ```
pub struct SquaredLp {
    p: f64,
    place: Trainable,
    degrees: Vec<f64>,
    entry: PowerSmoothed,
    /// w/max|w| over the trainable entries.
    scaled: Vec<f64>,
    work: Vec<f64>,
}

impl SquaredLp {
    /// Checks 1 < p ≤ 2.
    pub fn new(p: f64, layout: &ParamLayout) -> Result<Self, PotentialError> {
        if !(p > 1.0 && p <= 2.0) {
            return Err(PotentialError::Setting {
                potential: "squared-lp",
                parameter: "p",
                value: p,
                range: "above 1 and at most 2",
                remedy: "take p close to 1 for an l1-like geometry, or 'smoothed' for p above 2",
            });
        }
        let place = Trainable::of(layout);
        let (scaled, work) = (vec![0.0; place.count], vec![0.0; place.count]);
        Ok(Self { p, degrees: vec![2.0; place.blocks.len()], entry: PowerSmoothed::new(p, 0.0)?, place, scaled, work })
    }

    /// Fills `scaled` with w/M and returns M = max |w| and N = ‖w/M‖_p (0 for w = 0).
    fn scale(&mut self, theta: &[f64], p: f64) -> (f64, f64) {
        self.place.gather(theta, &mut self.scaled);
        let largest = max_abs(&self.scaled);
        if largest == 0.0 || !largest.is_finite() {
            return (largest, 0.0);
        }
        self.scaled.iter_mut().for_each(|x| *x /= largest);
        (largest, power_norm(self.scaled.iter().copied(), p))
    }

    /// out = ‖w‖_p^{2−p} sgn(w)|w|^{p−1}, the mirror map for exponent p and its inverse for exponent q.
    fn dual_vector(&mut self, theta: &[f64], p: f64, out: &mut [f64]) {
        let (largest, norm) = self.scale(theta, p);
        if norm == 0.0 {
            return self.place.map(theta, out, |x| x);
        }
        let (power, factor) = (Power::new(p - 1.0), largest * norm.powf(2.0 - p));
        self.scaled.iter_mut().for_each(|x| *x = factor * power.of(x.abs()) * sign(*x));
        self.place.scatter(&self.scaled, out);
    }

    /// Where ∇²R is not the identity and defined, fills `scaled` with w/M and `work` with v and returns N; writes what
    /// ∇²R v is otherwise.
    fn curved(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]) -> Option<f64> {
        let (_, norm) = self.scale(theta, self.p);
        if self.p == 2.0 {
            self.place.map(v, out, |x| x);
        } else if norm == 0.0 {
            self.place.map(v, out, |_| f64::NAN);
        } else {
            self.place.gather(v, &mut self.work);
            return Some(norm);
        }
        None
    }

    fn norm(&self, theta: &[f64]) -> f64 {
        power_norm(self.place.entries(theta), self.p)
    }
}

impl MirrorMap for SquaredLp {
    fn value(&mut self, theta: &[f64]) -> f64 {
        let norm = self.norm(theta);
        0.5 * norm * norm
    }

    fn mirror_map(&mut self, theta: &[f64], out: &mut [f64]) {
        self.dual_vector(theta, self.p, out);
    }

    fn inverse_mirror_map(&mut self, dual: &[f64], out: &mut [f64]) {
        self.dual_vector(dual, self.p / (self.p - 1.0), out);
    }

    fn hessian_action(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]) {
        let p = self.p;
        let Some(norm) = self.curved(theta, v, out) else { return };
        let power = Power::new(p - 1.0);
        let tilt: f64 = self.scaled.iter().zip(&self.work).map(|(a, x)| sign(*a) * power.of(a.abs()) * x).sum();
        let (along, across) = ((2.0 - p) * norm.powf(2.0 - 2.0 * p) * tilt, (p - 1.0) * norm.powf(2.0 - p));
        for (x, &a) in self.work.iter_mut().zip(&self.scaled) {
            let diagonal = if *x == 0.0 { 0.0 } else { across * a.abs().powf(p - 2.0) * *x };
            *x = along * sign(a) * power.of(a.abs()) + diagonal;
        }
        self.place.scatter(&self.work, out);
    }

    fn inverse_hessian_action(&mut self, theta: &[f64], v: &[f64], out: &mut [f64]) {
        let p = self.p;
        let Some(norm) = self.curved(theta, v, out) else { return };
        let along = (2.0 - p) * crate::linalg::dot(&self.scaled, &self.work) / (norm * norm);
        let across = norm.powf(p - 2.0);
        for (x, &a) in self.work.iter_mut().zip(&self.scaled) {
            *x = (across * a.abs().powf(2.0 - p) * *x - along * a) / (p - 1.0);
        }
        self.place.scatter(&self.work, out);
    }

    fn check_domain(&self, theta: &[f64]) -> Result<(), PotentialError> {
        check_finite("squared-lp", theta, &self.place)
    }

    fn bregman_divergence(&mut self, a: &[f64], b: &[f64]) -> f64 {
        let (left, right) = (self.norm(a), self.norm(b));
        let radial = 0.5 * (left - right) * (left - right);
        if left == 0.0 || right == 0.0 {
            return radial;
        }
        let pairs = self.place.entries(a).zip(self.place.entries(b));
        radial + left * right * pairs.map(|(x, y)| self.entry.bregman(x / left, y / right)).sum::<f64>()
    }
}

impl Conjugate for SquaredLp {
    fn conjugate_at(&mut self, theta: &[f64]) -> f64 {
        self.value(theta)
    }

    fn log_conjugate_at(&mut self, theta: &[f64]) -> f64 {
        2.0 * self.norm(theta).ln() - std::f64::consts::LN_2
    }

    fn conjugate_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        let norm = self.norm(theta);
        out.clear();
        for block in &self.place.blocks {
            let share = power_norm(theta[block.range()].iter().copied(), self.p) / norm;
            out.push(if norm == 0.0 { 0.0 } else { 0.5 * norm * norm * share.powf(self.p) });
        }
    }

    fn conjugate_of_entries(&mut self, _block: usize, _theta: &[f64], _entries: Entries) -> Option<f64> {
        None
    }

    fn is_block_separable(&self) -> bool {
        self.p == 2.0 || self.place.blocks.len() <= 1
    }
}

impl Horizon for SquaredLp {
    fn degree(&self) -> f64 {
        2.0
    }

    fn degrees_by_block(&self) -> &[f64] {
        &self.degrees
    }

    fn horizon(&mut self, theta: &[f64]) -> f64 {
        self.norm(theta)
    }

    fn horizons_by_block(&mut self, theta: &[f64], out: &mut Vec<f64>) {
        out.clear();
        for block in &self.place.blocks {
            out.push(power_norm(theta[block.range()].iter().copied(), self.p));
        }
    }

    fn gauge(&mut self, theta: &[f64]) -> f64 {
        self.norm(theta)
    }

    fn curvature_slack(&mut self, _theta: &[f64]) -> f64 {
        0.0
    }

    fn horizon_bounds(&self) -> Option<HorizonBounds> {
        Some(HorizonBounds { factor: 1.0, offset: 0.0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_behave_as_documented() {
        let mut potential = SquaredLp::new(1.5, &ParamLayout::vector(2)).unwrap();
        let mut out = [0.0; 2];
        potential.hessian_action(&[4.0, 0.0], &[1.0, 0.0], &mut out);
        assert!((out[0] - 1.0).abs() < 1e-15 && out[1] == 0.0); // ½w² along the axis
        potential.hessian_action(&[4.0, 0.0], &[0.0, 1.0], &mut out);
        assert_eq!(out[1], f64::INFINITY);
        potential.inverse_hessian_action(&[4.0, 0.0], &[1.0, 1.0], &mut out);
        assert!((out[0] - 1.0).abs() < 1e-14 && out[1] == 0.0);
        potential.inverse_hessian_action(&[0.0, 0.0], &[1.0, 1.0], &mut out);
        assert!(out.iter().all(|x| x.is_nan()));
        potential.mirror_map(&[0.0, 0.0], &mut out);
        assert_eq!(out, [0.0, 0.0]);
    }

    #[test]
    fn p_out_of_range_is_refused() {
        for p in [1.0, 2.1, f64::NAN] {
            assert!(SquaredLp::new(p, &ParamLayout::vector(2)).is_err());
        }
    }
}
