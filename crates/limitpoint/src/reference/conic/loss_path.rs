//! The soft-min margin inside a norm ball, by following its central path.
//!
//! ```text
//! min F(v) + μφ(y),      F(v) = κ⁻¹ ln Σ exp(−κ⟨h_n, v⟩),      ∇F = −Σ r_n h_n,  ∇²F = κ Σ r_n (h_n − h̄)(h_n − h̄)ᵀ
//! ```
//!
//! φ is the barrier of the ball ([`barrier`](super::barrier)), y are v and the columns the ball adds, r the soft-min
//! weights and h̄ = Σ r_n h_n. The minimiser at μ has a duality gap of at most μ times the degree of φ (Nesterov and
//! Nemirovskii 1994, chapter 3; Boyd and Vandenberghe, Convex Optimization, section 11.2), so μ is lowered until the
//! gap is small. While μ > 1/κ the temperature is μ instead of 1/κ: then both terms are barriers of the same weight,
//! and the cold problem is never met from far away.
//!
//! Each reduction of μ starts with a step along the tangent of the path, in which both μ and the temperature are
//! linear, and ends with Newton's method. A Newton step is halved until it is inside and the slope along it, which
//! convexity makes grow, has not passed half its first size on the other side: a test that needs no differences of
//! nearly equal values.

use super::super::ReferenceError;
use super::ball::Part;
use super::barrier::Barrier;
use crate::linalg::{Cholesky, Matrix, add_scaled, dot, matmul_tn};
use crate::norms::NormSpec;
use crate::params::ParamLayout;

/// μ is multiplied by this.
const REDUCTION: f64 = 0.2;
/// Smallest μ: below, the slacks are rounding.
const SMALLEST: f64 = 1e-15;
/// Most Newton steps for one μ.
const STEPS: usize = 40;
/// Squared Newton decrement, relative to μ, at which the point counts as central.
const CENTRAL: f64 = 1e-4;
/// Shortest step that is tried.
const SHORTEST: f64 = 1e-9;

/// The path of rows h_n of size about 1 in the ball, at inverse temperature κ.
struct LossPath<'a> {
    rows: &'a Matrix,
    barrier: Barrier,
    /// v and the columns of the ball.
    y: Vec<f64>,
    iterations: usize,
}

/// The soft-min weights exp(−κ m_n)/Σ of margins m.
fn softmin(margins: &[f64], kappa: f64) -> Vec<f64> {
    let lowest = margins.iter().copied().fold(f64::INFINITY, f64::min);
    let mut weights: Vec<f64> = margins.iter().map(|m| (-kappa * (m - lowest)).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter_mut().for_each(|r| *r /= total);
    weights
}

impl<'a> LossPath<'a> {
    /// Starts at v = 0; `rows` are in the trainable entries alone.
    fn new(rows: &'a Matrix, ball: &Part) -> Self {
        let barrier = Barrier::new(ball, rows.cols);
        Self { rows, y: barrier.start.clone(), barrier, iterations: 0 }
    }

    /// Follows the path to κ and μ → 0. Shows v at every μ to `enough`, which says when it is good enough. Returns the
    /// number of linear systems solved.
    fn follow(mut self, kappa: f64, enough: &mut dyn FnMut(&[f64]) -> bool) -> usize {
        let mut mu = 1.0;
        let mut present = kappa.min(1.0);
        loop {
            let central = self.centre(present, mu);
            if (present >= kappa && enough(&self.y[..self.rows.cols])) || central.is_none() || mu < SMALLEST {
                return self.iterations;
            }
            let (next, colder) = (REDUCTION * mu, kappa.min((REDUCTION * mu).recip()));
            if self.predict((present, mu), (colder, next)).is_none() {
                return self.iterations;
            }
            (present, mu) = (colder, next);
        }
    }

    fn margins(&self, y: &[f64]) -> Vec<f64> {
        (0..self.rows.rows).map(|n| dot(self.rows.row(n), &y[..self.rows.cols])).collect()
    }

    /// Σ w_n h_n, on all columns.
    fn pull(&self, w: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.y.len()];
        w.iter().enumerate().for_each(|(n, w)| add_scaled(&mut out[..self.rows.cols], *w, self.rows.row(n)));
        out
    }

    /// ∇(F + μφ) at y, if it is inside.
    fn gradient(&self, y: &[f64], kappa: f64, mu: f64) -> Option<Vec<f64>> {
        let values = self.barrier.values(y)?;
        let mut out = self.pull(&softmin(&self.margins(y), kappa));
        out.iter_mut().for_each(|x| *x = -*x);
        self.barrier.add_gradient(&values, mu, &mut out);
        Some(out)
    }

    /// −∇²(F + μφ)⁻¹ g.
    fn solve(&mut self, g: &[f64], kappa: f64, mu: f64) -> Option<Vec<f64>> {
        self.iterations += 1;
        let (d, n) = (self.rows.cols, self.y.len());
        let r = softmin(&self.margins(&self.y), kappa);
        let mean = self.pull(&r);
        let mut centred = self.rows.clone();
        for (i, r) in r.iter().enumerate() {
            let root = (kappa * r).sqrt();
            centred.row_mut(i).iter_mut().zip(&mean).for_each(|(x, mean)| *x = root * (*x - mean));
        }
        let mut block = vec![0.0; d * d];
        matmul_tn(&mut block, &centred.data, &centred.data, d, self.rows.rows, d);
        let mut matrix = Matrix::zeros(n, n);
        self.barrier.add_curvature(&self.barrier.values(&self.y)?, mu, &mut matrix);
        (0..d).for_each(|i| add_scaled(&mut matrix.row_mut(i)[..d], 1.0, &block[i * d..(i + 1) * d]));
        // columns in units of their own curvature
        let units: Vec<f64> = (0..n).map(|i| matrix[(i, i)].sqrt().recip()).collect();
        for i in 0..n {
            matrix.row_mut(i).iter_mut().zip(&units).for_each(|(x, unit)| *x *= unit * units[i]);
        }
        let mut cholesky = Cholesky::new(n);
        cholesky.factor(&matrix.data, f64::EPSILON * f64::EPSILON).ok()?;
        let mut step: Vec<f64> = g.iter().zip(&units).map(|(g, unit)| -g * unit).collect();
        cholesky.solve(&mut step);
        step.iter_mut().zip(&units).for_each(|(x, unit)| *x *= unit);
        step.iter().all(|x| x.is_finite()).then_some(step)
    }

    /// A step along the tangent from (κ, μ) to (κ', μ'), as far as it stays inside.
    fn predict(&mut self, (kappa, mu): (f64, f64), (next, lower): (f64, f64)) -> Option<()> {
        // ∇F changes by Σ r_n (m_n − m̄) h_n for every unit of κ; linear in 1/κ that is κ²(1/κ − 1/κ')
        let margins = self.margins(&self.y);
        let r = softmin(&margins, kappa);
        let mean = dot(&r, &margins);
        let change: Vec<f64> = r.iter().zip(&margins).map(|(r, m)| r * (m - mean)).collect();
        let mut g = self.gradient(&self.y, kappa, lower)?;
        add_scaled(&mut g, kappa * (1.0 - kappa / next), &self.pull(&change));
        let step = self.solve(&g, kappa, mu)?;
        let mut length = 1.0;
        while length > SHORTEST {
            let mut at = self.y.clone();
            add_scaled(&mut at, length, &step);
            if self.barrier.values(&at).is_some() {
                // not all the way to a boundary that only the tangent is near to
                add_scaled(&mut self.y, if length < 1.0 { 0.9 * length } else { 1.0 }, &step);
                return Some(());
            }
            length *= 0.7;
        }
        Some(())
    }

    /// Newton's method for one μ; `None` if it cannot go on.
    fn centre(&mut self, kappa: f64, mu: f64) -> Option<()> {
        for _ in 0..STEPS {
            let g = self.gradient(&self.y, kappa, mu)?;
            let step = self.solve(&g, kappa, mu)?;
            let slope = dot(&g, &step);
            if -slope <= CENTRAL * mu {
                return Some(());
            }
            let mut length = 1.0;
            loop {
                let mut at = self.y.clone();
                add_scaled(&mut at, length, &step);
                let there = self.gradient(&at, kappa, mu).map(|g| dot(&g, &step));
                if there.is_some_and(|there| there <= -0.5 * slope) {
                    self.y = at;
                    break;
                }
                length *= 0.5;
                if length < SHORTEST {
                    return None;
                }
            }
        }
        Some(())
    }
}

/// Follows the path of a norm on a layout; see [`LossPath::follow`]. `rows` are in the trainable entries alone, the
/// largest of dual norm 1.
pub(in super::super) fn minimise_loss(
    rows: &Matrix,
    norm: &NormSpec,
    layout: &ParamLayout,
    kappa: f64,
    enough: &mut dyn FnMut(&[f64]) -> bool,
) -> Result<usize, ReferenceError> {
    Ok(LossPath::new(rows, &Part::of(norm, layout)?).follow(kappa, enough))
}
