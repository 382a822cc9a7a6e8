//! Newton's method on the dual of an interpolation problem.

use super::equations::Equations;
use crate::linalg::{Cholesky, add_scaled, dot, matmul_nt, max_abs, norm2};
use crate::potentials::MirrorPotential;

const ITERATIONS: usize = 200;
const FLATTER: f64 = 0.5;

pub(super) struct Newton<'a> {
    pub potential: &'a mut dyn MirrorPotential,
    pub equations: &'a Equations,
    pub dual_start: &'a [f64],
}

#[derive(Clone)]
pub(super) struct Point {
    pub nu: Vec<f64>,
    pub dual: Vec<f64>,
    pub weights: Vec<f64>,
    pub excess: Vec<f64>,
}

pub(super) struct Outcome {
    pub point: Point,
    pub iterations: usize,
    pub error: f64,
}

impl Newton<'_> {
    pub fn at(&mut self, nu: Vec<f64>) -> Point {
        let mut dual = self.equations.pull_back(&nu);
        add_scaled(&mut dual, 1.0, self.dual_start);
        let mut weights = vec![0.0; dual.len()];
        self.potential.inverse_mirror_map(&dual, &mut weights);
        let excess = self.equations.excess(&weights);
        Point { nu, dual, weights, excess }
    }

    fn value(&mut self, point: &Point) -> f64 {
        self.potential.conjugate_at(&point.weights) - dot(&point.nu, &self.equations.values)
    }

    fn error(&self, point: &Point) -> f64 {
        let scale = norm2(&self.equations.values) + norm2(&point.weights);
        let e = norm2(&point.excess);
        if e == 0.0 { 0.0 } else { e / scale }
    }

    pub fn solve(&mut self, start: Point, trace: bool) -> Outcome {
        let mut point = start;
        let mut best = f64::INFINITY;
        let mut stalled = 0;
        for iteration in 0..ITERATIONS {
            let error = self.error(&point);
            if trace { println!("  it {iteration} err {error:.2e} value {:.12e} |nu| {:.2e}", self.value(&point), norm2(&point.nu)); }
            if error < 4.0 * f64::EPSILON { return Outcome { point, iterations: iteration, error }; }
            stalled = if error < 0.5 * best { 0 } else { stalled + 1 };
            best = best.min(error);
            if stalled >= 3 && best < 1e-12 { return Outcome { point, iterations: iteration, error }; }
            let Some(step) = self.direction(&point) else { return Outcome { point, iterations: iteration, error } };
            let (length, evals) = self.search(&point, &step);
            if trace { println!("     t {length:.3e} evals {evals}"); }
            let mut nu = point.nu.clone();
            add_scaled(&mut nu, length, &step);
            point = self.at(nu);
        }
        let error = self.error(&point);
        Outcome { point, iterations: ITERATIONS, error }
    }

    fn direction(&mut self, point: &Point) -> Option<Vec<f64>> {
        let (r, d) = (self.equations.rank(), point.weights.len());
        let mut images = vec![0.0; r * d];
        for k in 0..r {
            self.potential.inverse_hessian_action(&point.weights, self.equations.rows.row(k), &mut images[k * d..(k + 1) * d]);
        }
        let mut s = vec![0.0; r * r];
        matmul_nt(&mut s, &self.equations.rows.data, &images, r, d, r);
        let scale: Vec<f64> = (0..r).map(|k| s[k * r + k].sqrt()).collect();
        if scale.iter().any(|x| !x.is_finite() || *x == 0.0) { return None; }
        for i in 0..r { for j in 0..r { s[i * r + j] /= scale[i] * scale[j]; } }
        let mut cholesky = Cholesky::new(r);
        let mut jitter = 0.0;
        while cholesky.factor(&s, 0.0).is_err() {
            let next = if jitter == 0.0 { 1e-15 } else { jitter * 10.0 };
            for k in 0..r { s[k * r + k] += next - jitter; }
            jitter = next;
            if jitter > 1e3 { return None; }
        }
        let mut step: Vec<f64> = point.excess.iter().zip(&scale).map(|(f, s)| -f / s).collect();
        cholesky.solve(&mut step);
        step.iter_mut().zip(&scale).for_each(|(x, s)| *x /= s);
        step.iter().all(|x| x.is_finite()).then_some(step)
    }

    fn search(&mut self, point: &Point, step: &[f64]) -> (f64, usize) {
        let path = self.equations.pull_back(step);
        let along = dot(step, &self.equations.values);
        let mut dual = point.dual.clone();
        let mut weights = point.weights.clone();
        let mut evals = 0;
        let mut slope = |t: f64| {
            evals += 1;
            dual.copy_from_slice(&point.dual);
            add_scaled(&mut dual, t, &path);
            self.potential.inverse_mirror_map(&dual, &mut weights);
            let s = dot(&path, &weights) - along;
            if s.is_finite() { s } else { f64::INFINITY }
        };
        let start = dot(step, &point.excess);
        let goal = FLATTER * start.abs();
        let (mut low, mut high, mut t) = (0.0, f64::INFINITY, 1.0);
        for _ in 0..200 {
            let s = slope(t);
            if s.abs() <= goal { break; }
            if s < 0.0 { low = t } else { high = t }
            t = if high.is_infinite() { 2.0 * t } else if low == 0.0 { 0.5 * high } else { 0.5 * (low + high) };
        }
        let _ = max_abs(&[0.0]);
        (t, evals)
    }
}

impl Newton<'_> {
    pub fn residuals(&mut self, w: &[f64], nu: &[f64], direct: &[f64]) -> (Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>) {
        let p = self.at(nu.to_vec());
        let mut weights = p.weights.clone();
        for i in 0..w.len() { if direct[i] > 0.0 { weights[i] = w[i]; } }
        let mut slope = vec![0.0; w.len()];
        self.potential.mirror_map(&weights, &mut slope);
        let mismatch: Vec<f64> = (0..w.len()).map(|i| if direct[i] > 0.0 { p.dual[i] - slope[i] } else { 0.0 }).collect();
        let missing: Vec<f64> = self.equations.excess(&weights).iter().map(|x| -x).collect();
        (weights, p.dual, mismatch, missing)
    }
    pub fn mixed(&mut self, w: Vec<f64>, nu: Vec<f64>, direct: &[f64], trace: bool) -> (usize, f64, f64) {
        let (r, d) = (self.equations.rank(), w.len());
        let (mut w, mut nu) = (w, nu);
        let mut last = (0, 0.0, 0.0);
        let mut best = f64::INFINITY; let mut stalled = 0;
        for iteration in 0..100 {
            let (weights, dual, mismatch, missing) = self.residuals(&w, &nu, direct);
            w = weights;
            let (sp, sd) = (norm2(&w) + norm2(&self.equations.values), norm2(&dual));
            let (ep, ed) = (norm2(&missing) / sp, norm2(&mismatch) / sd);
            last = (iteration, ep, ed);
            if trace { println!("  mixed {iteration} {ep:.2e} {ed:.2e}"); }
            let e = ep.max(ed);
            stalled = if e < 0.5 * best { 0 } else { stalled + 1 };
            best = best.min(e);
            if e < 1e-15 || (stalled > 2 && best < 1e-13) { break; }
            let big = max_abs(&w);
            let nudged: Vec<f64> = w.iter().zip(direct).map(|(x, dd)| if x.abs() < *dd * big { (*dd * big).copysign(*x) } else { *x }).collect();
            let mut images = vec![0.0; r * d];
            for k in 0..r { self.potential.inverse_hessian_action(&nudged, self.equations.rows.row(k), &mut images[k * d..(k + 1) * d]); }
            let mut s = vec![0.0; r * r];
            matmul_nt(&mut s, &self.equations.rows.data, &images, r, d, r);
            let scale: Vec<f64> = (0..r).map(|k| s[k * r + k].sqrt()).collect();
            for i in 0..r { for j in 0..r { s[i * r + j] /= scale[i] * scale[j]; } }
            let mut cholesky = Cholesky::new(r);
            let mut jitter = 0.0;
            while cholesky.factor(&s, 0.0).is_err() {
                let next = if jitter == 0.0 { 1e-15 } else { jitter * 10.0 };
                for k in 0..r { s[k * r + k] += next - jitter; }
                jitter = next; if jitter > 1e3 { return last; }
            }
            let mut step: Vec<f64> = (0..r).map(|k| (missing[k] - dot(&images[k * d..(k + 1) * d], &mismatch)) / scale[k]).collect();
            cholesky.solve(&mut step);
            step.iter_mut().zip(&scale).for_each(|(x, s)| *x /= s);
            let mut rhs = self.equations.pull_back(&step);
            add_scaled(&mut rhs, 1.0, &mismatch);
            let mut dw = vec![0.0; d];
            self.potential.inverse_hessian_action(&nudged, &rhs, &mut dw);
            let m0 = ep + ed;
            let mut t = 1.0;
            loop {
                let mut w1 = w.clone(); add_scaled(&mut w1, t, &dw);
                let mut nu1 = nu.clone(); add_scaled(&mut nu1, t, &step);
                let (w2, _, a, b) = self.residuals(&w1, &nu1, direct);
                let m = norm2(&b) / sp + norm2(&a) / sd;
                if m < (1.0 - 0.1 * t) * m0 || t < 1e-4 { w = w2; nu = nu1; break; }
                t *= 0.5;
            }
            if trace { println!("    t {t} jitter {jitter:.1e}"); }
        }
        last
    }
}
