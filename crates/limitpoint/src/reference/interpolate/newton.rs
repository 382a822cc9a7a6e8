//! Newton's method for an interpolation problem: on the dual, and on both variables where the dual is not smooth.
//!
//! ```text
//! w(ν) = ∇R*(z₀ + Bᵀν),     minimise the convex  φ(ν) = R*(z₀ + Bᵀν) − ⟨ν, c⟩,     ∇φ = B w(ν) − c,   ∇²φ = B H⁻¹ Bᵀ
//! ```
//!
//! A dual step is Newton's with a line search for a minimum: φ′ along a ray is increasing, and the length is right as
//! soon as |φ′| has halved, found by doubling and bisection from length 1. That keeps exponentials from overflowing and
//! steep powers from crawling, for any convex R*.
//!
//! Where R is flat at 0 (|t|^p with p > 2), the gradient of R* is steep without bound there, and weights near 0 spoil
//! the step. Such entries keep weights of their own, tied to ν only by the equations of the limit ("direct" entries):
//!
//! ```text
//! ∇R(w) = z₀ + Bᵀν,   Bw = c:      (B H⁻¹ Bᵀ) δν = (c − Bw) − B H⁻¹ m,   δw = H⁻¹(Bᵀδν + m),   m = z₀ + Bᵀν − ∇R(w)
//! ```
//!
//! Here the step is halved until both residuals together fall. H is taken a little inside, where it exists
//! (`Pieces::inside`); the limit does not depend on that.

use super::equations::Equations;
use super::pieces::Pieces;
use crate::linalg::{Cholesky, add_scaled, dot, matmul_nt, norm2};
use crate::potentials::MirrorPotential;

/// Steps of either method at most.
const ITERATIONS: usize = 200;
/// Steps of the dual method before direct entries get weights of their own.
const DUAL_PATIENCE: usize = 40;
/// The error from which on they get them at once.
const CLOSE: f64 = 1e-3;
/// A line search ends when the slope has fallen to this part.
const FLATTER: f64 = 0.5;
/// An error relative to the weights that cannot be told from rounding.
const ROUNDING: f64 = 4.0 * f64::EPSILON;
/// An error that is accepted once it falls no further.
pub(super) const ACCEPTED: f64 = 1e-11;

/// A problem to be solved.
pub(super) struct Newton<'a> {
    pub potential: &'a mut dyn MirrorPotential,
    pub equations: &'a Equations,
    /// z₀.
    pub dual_start: &'a [f64],
    /// What the potential is like on each block.
    pub pieces: &'a Pieces,
}

/// Multipliers with the weights they belong to.
#[derive(Debug, Clone)]
pub(super) struct Point {
    /// ν.
    pub nu: Vec<f64>,
    /// z₀ + Bᵀν.
    pub dual: Vec<f64>,
    /// w.
    pub weights: Vec<f64>,
    /// c − Bw.
    pub missing: Vec<f64>,
    /// z₀ + Bᵀν − ∇R(w) on direct entries with weights of their own.
    pub mismatch: Vec<f64>,
    /// The larger of ‖c − Bw‖/(‖c‖ + ‖w‖) and ‖mismatch‖/(‖z₀ + Bᵀν‖ + ‖z₀‖); NaN if a weight overflowed.
    pub error: f64,
}

/// Where a method ended.
pub(super) struct Outcome {
    pub point: Point,
    pub iterations: usize,
}

impl Newton<'_> {
    /// Solves from multipliers; `give_up` is asked about every point and ends the search by answering true.
    pub fn solve(&mut self, nu: Vec<f64>, weights: &[f64], mut give_up: impl FnMut(&Point) -> bool) -> Outcome {
        if !self.pieces.has_direct() {
            return self.dual(nu, ITERATIONS, &mut give_up);
        }
        if self.pieces.all_direct() {
            let both = self.both(weights, nu.clone());
            if both.point.error <= ACCEPTED {
                return both;
            }
        }
        let mut iterations = 0;
        let mut begin = nu;
        for (patience, close) in [(DUAL_PATIENCE, CLOSE), (ITERATIONS, ROUNDING)] {
            let dual = self.dual(begin, patience, &mut |point| point.error <= close || give_up(point));
            let both = self.both(&dual.point.weights, dual.point.nu.clone());
            iterations += dual.iterations + both.iterations;
            let best = if both.point.error < dual.point.error { both.point } else { dual.point.clone() };
            if best.error <= ACCEPTED || give_up(&dual.point) {
                return Outcome { point: best, iterations };
            }
            begin = dual.point.nu;
        }
        Outcome { point: self.at(begin), iterations }
    }

    /// The point of multipliers, with the weights ∇R*(z₀ + Bᵀν).
    pub fn at(&mut self, nu: Vec<f64>) -> Point {
        let mut dual = self.equations.pull_back(&nu);
        add_scaled(&mut dual, 1.0, self.dual_start);
        let mut weights = vec![0.0; dual.len()];
        self.potential.inverse_mirror_map(&dual, &mut weights);
        let mismatch = vec![0.0; dual.len()];
        self.measured(Point { nu, dual, weights, missing: Vec::new(), mismatch, error: f64::NAN })
    }

    /// φ at a point, up to R*(z₀).
    pub fn value(&mut self, point: &Point) -> f64 {
        self.potential.conjugate_at(&point.weights) - dot(&point.nu, &self.equations.values)
    }

    /// The error that rounding of z₀ + Bᵀν makes, generously but at most 1e-6; above [`ACCEPTED`] where they cancel.
    pub fn noise(&mut self, point: &Point) -> f64 {
        let size: Vec<f64> = point.dual.iter().zip(self.dual_start).map(|(z, s)| z.abs() + s.abs()).collect();
        let mut change = vec![0.0; size.len()];
        self.potential.inverse_hessian_action(&self.pieces.inside(&point.weights), &size, &mut change);
        let noise = 16.0 * f64::EPSILON * norm2(&change);
        (noise / (norm2(&self.equations.values) + norm2(&point.weights))).min(1e-6)
    }

    /// One step taken in the weights as well as in the multipliers, which differ by rounding from each other's image.
    pub fn last_step(&mut self, point: &Point) -> Option<Point> {
        let mut next = self.measured(point.clone());
        next.mismatch.fill(0.0);
        let (step, change) = self.step(&next)?;
        add_scaled(&mut next.nu, 1.0, &step);
        add_scaled(&mut next.weights, 1.0, &change);
        Some(self.measured(next))
    }

    /// The point of multipliers where direct entries have the given weights.
    fn at_both(&mut self, weights: &[f64], nu: Vec<f64>) -> Point {
        let mut point = self.at(nu);
        self.pieces.direct().for_each(|range| point.weights[range.clone()].copy_from_slice(&weights[range]));
        let mut image = vec![0.0; weights.len()];
        self.potential.mirror_map(&point.weights, &mut image);
        for i in self.pieces.direct().flatten() {
            point.mismatch[i] = point.dual[i] - image[i];
        }
        self.measured(point)
    }

    fn measured(&self, mut point: Point) -> Point {
        point.missing = self.equations.missing(&point.weights);
        let relative = |size: f64, scale: f64| if size == 0.0 { 0.0 } else { size / scale };
        let scale = norm2(&self.equations.values) + norm2(&point.weights);
        let (primal, dual) = (relative(norm2(&point.missing), scale), norm2(&point.mismatch));
        let dual = relative(dual, norm2(&point.dual) + norm2(self.dual_start));
        point.error = if primal.is_nan() || dual.is_nan() { f64::NAN } else { primal.max(dual) };
        point
    }

    /// Newton's method on φ.
    fn dual(&mut self, nu: Vec<f64>, most: usize, give_up: &mut dyn FnMut(&Point) -> bool) -> Outcome {
        let mut point = self.at(nu);
        let mut progress = Progress::default();
        for iterations in 0..most {
            if progress.is_over(point.error, || self.noise(&point)) || give_up(&point) {
                return Outcome { point, iterations };
            }
            let Some((step, _)) = self.step(&point) else { return Outcome { point, iterations } };
            let length = self.search(&point, &step);
            let mut nu = point.nu.clone();
            add_scaled(&mut nu, length, &step);
            point = self.at(nu);
        }
        Outcome { point, iterations: most }
    }

    /// Newton's method on multipliers and direct weights.
    fn both(&mut self, weights: &[f64], nu: Vec<f64>) -> Outcome {
        let mut point = self.at_both(weights, nu);
        let mut progress = Progress::default();
        for iterations in 0..ITERATIONS {
            if progress.is_over(point.error, || self.noise(&point)) {
                return Outcome { point, iterations };
            }
            let Some((step, change)) = self.step(&point) else { return Outcome { point, iterations } };
            let scale = norm2(&self.equations.values) + norm2(&point.weights);
            let dual_scale = norm2(&point.dual) + norm2(self.dual_start);
            let size = |point: &Point| norm2(&point.missing) / scale + norm2(&point.mismatch) / dual_scale;
            let (before, mut length) = (size(&point), 1.0);
            point = loop {
                let (mut weights, mut nu) = (point.weights.clone(), point.nu.clone());
                add_scaled(&mut weights, length, &change);
                add_scaled(&mut nu, length, &step);
                let next = self.at_both(&weights, nu);
                if size(&next) < (1.0 - 0.1 * length) * before || length < 1e-4 {
                    break next;
                }
                length *= 0.5;
            };
        }
        Outcome { point, iterations: ITERATIONS }
    }

    /// δν and δw; nothing if H or a product overflows.
    pub fn step(&mut self, point: &Point) -> Option<(Vec<f64>, Vec<f64>)> {
        let (rank, d) = (self.equations.rank(), point.weights.len());
        let place = self.pieces.inside(&point.weights);
        let mut images = vec![0.0; rank * d];
        for (k, image) in images.chunks_exact_mut(d).enumerate() {
            self.potential.inverse_hessian_action(&place, self.equations.rows.row(k), image);
        }
        let mut matrix = vec![0.0; rank * rank];
        matmul_nt(&mut matrix, &self.equations.rows.data, &images, rank, d, rank);
        let rest = point.missing.iter().zip(images.chunks_exact(d)).map(|(c, image)| c - dot(image, &point.mismatch));
        let step = solve(matrix, rest.collect())?;
        let mut slope = self.equations.pull_back(&step);
        add_scaled(&mut slope, 1.0, &point.mismatch);
        let mut change = vec![0.0; d];
        self.potential.inverse_hessian_action(&place, &slope, &mut change);
        change.iter().all(|x| x.is_finite()).then_some((step, change))
    }

    /// A length at which φ′ along the step has halved.
    pub fn search(&mut self, point: &Point, step: &[f64]) -> f64 {
        let path = self.equations.pull_back(step);
        let along = dot(step, &self.equations.values);
        let (mut dual, mut weights) = (point.dual.clone(), point.weights.clone());
        let mut slope = |length: f64| {
            dual.copy_from_slice(&point.dual);
            add_scaled(&mut dual, length, &path);
            self.potential.inverse_mirror_map(&dual, &mut weights);
            let slope = dot(&path, &weights) - along;
            if slope.is_nan() { f64::INFINITY } else { slope }
        };
        let goal = FLATTER * dot(step, &point.missing).abs();
        let (mut low, mut high, mut length) = (0.0, f64::INFINITY, 1.0);
        for _ in 0..ITERATIONS {
            let found = slope(length);
            if found.abs() <= goal {
                break;
            }
            *(if found < 0.0 { &mut low } else { &mut high }) = length;
            length = if high.is_infinite() { 2.0 * length } else { 0.5 * (low + high) };
        }
        length
    }
}

/// Whether a method still gets better.
#[derive(Default)]
struct Progress {
    best: Option<f64>,
    idle: usize,
}

impl Progress {
    /// True at rounding, and when an acceptable error has not halved in three steps.
    fn is_over(&mut self, error: f64, noise: impl FnOnce() -> f64) -> bool {
        let halved = self.best.is_none_or(|best| error < 0.5 * best);
        self.idle = if halved { 0 } else { self.idle + 1 };
        self.best = Some(self.best.map_or(error, |best| best.min(error)));
        error <= ROUNDING || (self.idle >= 3 && (error <= ACCEPTED || error <= noise()))
    }
}

/// S⁻¹v for a symmetric positive semidefinite matrix, scaled to a unit diagonal; a multiple of the identity is added as
/// far as rounding makes it necessary. Nothing if S is not finite.
fn solve(mut matrix: Vec<f64>, mut v: Vec<f64>) -> Option<Vec<f64>> {
    let size = v.len();
    let largest = (0..size).map(|k| matrix[k * size + k]).fold(0.0, f64::max);
    if !largest.is_finite() || largest == 0.0 {
        return None;
    }
    let scale: Vec<f64> = (0..size).map(|k| matrix[k * size + k].max(f64::MIN_POSITIVE).sqrt()).collect();
    for (i, row) in matrix.chunks_exact_mut(size).enumerate() {
        row.iter_mut().zip(&scale).for_each(|(x, s)| *x /= s * scale[i]);
    }
    let mut cholesky = Cholesky::new(size);
    for added in [0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-10, 1e-8, 1e-4, 1.0] {
        let mut shifted = matrix.clone();
        shifted.iter_mut().step_by(size + 1).for_each(|x| *x += added);
        if cholesky.factor(&shifted, 0.0).is_ok() {
            v.iter_mut().zip(&scale).for_each(|(x, s)| *x /= s);
            cholesky.solve(&mut v);
            v.iter_mut().zip(&scale).for_each(|(x, s)| *x /= s);
            return v.iter().all(|x| x.is_finite()).then_some(v);
        }
    }
    None
}
