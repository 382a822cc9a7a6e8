//! Newton's system of the cell problem, neuron by neuron.
//!
//! After the eliminations of [`super::scaling`] a Newton step solves
//!
//! ```text
//! H_j Δu_j − B_jᵀ Δλ = ρ_j                                H_j = diagonal + Σ_i curvature_ij x_i x_iᵀ,  B_j = slope_ij x_i
//! Σ_j B_j Δu_j + D Δλ (− ΔT) = r       (Σ Δλ = r_T)       D_i = slack_i/λ_i + Σ_j κ²/stiffness
//! ```
//!
//! so Δλ comes from S = D + Σ_j B_j H_j⁻¹ B_jᵀ, which is positive definite and as large as there are margins.

use super::cell::{CellProgram, Iterate, Residual};
use super::scaling::Scaling;
use super::shallow::Ball;
use crate::linalg::{Cholesky, add_scaled, dot, matmul_tn, norm2};

/// Pivots of S, relative to its diagonal, below which rounding is all there is.
const PIVOT: f64 = 1e-15;

/// Pivots of a block, relative to its diagonal, below which it is factored from its rows.
const LOST: f64 = 1e-4;

/// Factors of the blocks and of S.
pub(super) struct Factor {
    /// Lower triangles of the blocks' Cholesky factors.
    blocks: Vec<f64>,
    /// L_j⁻¹ B_jᵀ, neuron by neuron: (neurons · features) × examples.
    half: Vec<f64>,
    /// S^{−1/2} of the diagonal, and the factor of S scaled by it.
    scale: Vec<f64>,
    margins: std::cell::RefCell<Cholesky>,
    /// S⁻¹ 1, for the level of ℓ∞.
    ones: Vec<f64>,
}

/// Factors a symmetric positive definite matrix in place (lower triangle of the rows); false if a pivot is no more than
/// what rounding leaves of its row.
fn cholesky(a: &mut [f64], d: usize) -> bool {
    for i in 0..d {
        let diagonal = a[i * d + i];
        for j in 0..=i {
            let (head, row) = a.split_at_mut(i * d);
            let other = if j < i { &head[j * d..j * d + j] } else { &[][..] };
            let sum = if j < i { dot(&row[..j], other) } else { dot(&row[..i], &row[..i]) };
            if j < i {
                row[j] = (row[j] - sum) / head[j * d + j];
            } else {
                let pivot = row[i] - sum;
                if pivot.is_nan() || pivot <= LOST * diagonal {
                    return false;
                }
                row[i] = pivot.sqrt();
            }
        }
    }
    true
}

/// The same factor of Σ weight · row rowᵀ + diagonal, from the rows: large ones are rotated in first, so that small
/// ones keep what they say about directions that no large one has.
///
/// The sum itself forgets it: next to a curvature of 10⁹ a diagonal of 10⁻⁹ is rounding. (Cox and Higham 1998,
/// "Stability of Householder QR factorization for weighted least squares problems", for rows in falling order.)
fn rotate(out: &mut [f64], rows: &[f64], weights: &[f64], diagonal: &[f64]) -> bool {
    let d = diagonal.len();
    let curved = rows.chunks_exact(d).zip(weights).filter(|(_, weight)| **weight > 0.0);
    let scaled = |(row, weight): (&[f64], &f64)| row.iter().map(|x| x * weight.sqrt()).collect::<Vec<f64>>();
    let mut all: Vec<Vec<f64>> = curved.map(scaled).collect();
    for (a, value) in diagonal.iter().enumerate() {
        let mut row = vec![0.0; d];
        row[a] = value.sqrt();
        all.push(row);
    }
    let mut order: Vec<(f64, usize)> = all.iter().enumerate().map(|(k, row)| (norm2(row), k)).collect();
    order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    // row c of Lᵀ against entry c of the row
    let mut upper: Vec<f64> = vec![0.0; d * d];
    for (_, k) in order {
        let row = &mut all[k];
        for c in 0..d {
            let own = &mut upper[c * d + c..(c + 1) * d];
            if row[c] == 0.0 {
                continue;
            }
            let length = own[0].hypot(row[c]);
            let (cosine, sine) = (own[0] / length, row[c] / length);
            for (a, b) in own.iter_mut().zip(&mut row[c..]) {
                (*a, *b) = (cosine * *a + sine * *b, cosine * *b - sine * *a);
            }
        }
    }
    (0..d * d).for_each(|k| out[k] = upper[k % d * d + k / d]);
    (0..d).all(|c| upper[c * d + c].is_finite() && upper[c * d + c] > 0.0)
}

/// x ← L⁻¹ x.
fn forward(l: &[f64], x: &mut [f64]) {
    let d = x.len();
    for i in 0..d {
        x[i] = (x[i] - dot(&l[i * d..i * d + i], &x[..i])) / l[i * d + i];
    }
}

/// x ← L⁻ᵀ x.
fn backward(l: &[f64], x: &mut [f64]) {
    let d = x.len();
    for i in (0..d).rev() {
        x[i] /= l[i * d + i];
        let value = x[i];
        (0..i).for_each(|k| x[k] -= l[i * d + k] * value);
    }
}

/// x ← x − 2 v ⟨v, x⟩; nothing for an empty v.
fn reflect(v: &[f64], x: &mut [f64]) {
    if !v.is_empty() {
        let along = dot(v, x);
        add_scaled(x, -2.0 * along, v);
    }
}

impl Scaling {
    fn reflection_of(&self, j: usize, d: usize) -> &[f64] {
        if self.reflection.is_empty() { &[] } else { &self.reflection[j * d..(j + 1) * d] }
    }
}

impl Factor {
    /// Nothing if rounding has made a matrix indefinite.
    pub fn new(program: &CellProgram, x: &Iterate, scaling: &Scaling) -> Option<Self> {
        let (n, d, m) = program.sizes();
        let mut blocks = vec![0.0; m * d * d];
        let mut half = vec![0.0; m * d * n];
        let mut turned = vec![0.0; n * d];
        for j in 0..m {
            let v = scaling.reflection_of(j, d);
            turned.copy_from_slice(&program.inputs.data);
            turned.chunks_exact_mut(d).for_each(|row| reflect(v, row));
            let block = &mut blocks[j * d * d..(j + 1) * d * d];
            for (i, row) in turned.chunks_exact(d).enumerate() {
                let h = scaling.curvature[i * m + j];
                if h > 0.0 {
                    (0..d).for_each(|a| add_scaled(&mut block[a * d..=a * d + a], h * row[a], &row[..=a]));
                }
            }
            (0..d).for_each(|a| block[a * d + a] += scaling.diagonal[j * d + a]);
            if !cholesky(block, d) {
                let weights: Vec<f64> = (0..n).map(|i| scaling.curvature[i * m + j]).collect();
                if !rotate(block, &turned, &weights, &scaling.diagonal[j * d..(j + 1) * d]) {
                    return None;
                }
            }
            let mut column = vec![0.0; d];
            for (i, row) in turned.chunks_exact(d).enumerate() {
                let k = i * m + j;
                let slope = program.slopes[k] - program.jumps[k] * scaling.share[k];
                column.iter_mut().zip(row).for_each(|(to, x)| *to = slope * x);
                forward(block, &mut column);
                column.iter().enumerate().for_each(|(a, value)| half[(j * d + a) * n + i] = *value);
            }
        }
        let mut gram = vec![0.0; n * n];
        matmul_tn(&mut gram, &half, &half, n, m * d, n);
        for i in 0..n {
            let kinks = (i * m..(i + 1) * m).map(|k| program.jumps[k].powi(2) / scaling.stiffness[k]).sum::<f64>();
            gram[i * n + i] += x.slack[i] / x.lambda[i] + kinks;
        }
        // on a unit diagonal, where a pivot lost to rounding shows: a margin that the others determine is left out
        let scale: Vec<f64> = (0..n).map(|i| gram[i * n + i].sqrt().recip()).collect();
        gram.iter_mut().enumerate().for_each(|(k, g)| *g *= scale[k / n] * scale[k % n]);
        let mut margins = Cholesky::new(n);
        margins.factor(&gram, PIVOT).ok()?;
        let mut factor = Self { blocks, half, scale, margins: std::cell::RefCell::new(margins), ones: Vec::new() };
        let mut ones = vec![1.0; n];
        factor.solve_margins(&mut ones);
        factor.ones = ones;
        Some(factor)
    }

    /// r ← S⁻¹ r.
    fn solve_margins(&self, r: &mut [f64]) {
        r.iter_mut().zip(&self.scale).for_each(|(r, s)| *r *= s);
        self.margins.borrow_mut().solve(r);
        r.iter_mut().zip(&self.scale).for_each(|(r, s)| *r *= s);
    }

    /// Δu and Δλ (and ΔT, where `level` is given) for right-hand sides ρ and r; Δu in the given basis.
    fn solve(&self, scaling: &Scaling, rho: &[f64], r: &[f64], level: Option<f64>) -> (Vec<f64>, Vec<f64>, f64) {
        let n = r.len();
        let d = self.blocks.len() / rho.len();
        let mut du = rho.to_vec();
        let mut dlambda = r.to_vec();
        for (j, x) in du.chunks_exact_mut(d).enumerate() {
            reflect(scaling.reflection_of(j, d), x);
            forward(&self.blocks[j * d * d..(j + 1) * d * d], x);
            x.iter().enumerate().for_each(|(a, x)| add_scaled(&mut dlambda, -x, &self.half[(j * d + a) * n..][..n]));
        }
        self.solve_margins(&mut dlambda);
        let mut dlevel = 0.0;
        if let Some(target) = level {
            dlevel = (target - dlambda.iter().sum::<f64>()) / self.ones.iter().sum::<f64>();
            add_scaled(&mut dlambda, dlevel, &self.ones);
        }
        for (j, x) in du.chunks_exact_mut(d).enumerate() {
            x.iter_mut().enumerate().for_each(|(a, x)| *x += dot(&self.half[(j * d + a) * n..][..n], &dlambda));
            backward(&self.blocks[j * d * d..(j + 1) * d * d], x);
            reflect(scaling.reflection_of(j, d), x);
        }
        (du, dlambda, dlevel)
    }
}

impl CellProgram<'_> {
    /// A Newton step towards complementarity products `centre`, with second-order terms of `predictor`.
    pub fn direction(
        &self,
        x: &Iterate,
        residual: &Residual,
        scaling: &Scaling,
        factor: &Factor,
        (centre, predictor): (f64, Option<&Iterate>),
    ) -> Iterate {
        let (n, d, m) = self.sizes();
        let kinked = |k: usize| self.jumps[k] > 0.0;
        // what each complementarity product should still change by
        let second = |a: fn(&Iterate) -> &Vec<f64>, b: fn(&Iterate) -> &Vec<f64>, k: usize| {
            predictor.map_or(0.0, |p| a(p)[k] * b(p)[k])
        };
        let target = |a: fn(&Iterate) -> &Vec<f64>, b: fn(&Iterate) -> &Vec<f64>, k: usize| {
            centre - a(x)[k] * b(x)[k] - second(a, b, k)
        };
        // Δt = base − κΔλ/stiffness + share·Δz,   Δy₁ = first + curvature·Δz + κ·share·Δλ
        let (mut base, mut first) = (vec![0.0; n * m], vec![0.0; n * m]);
        for k in (0..n * m).filter(|&k| kinked(k)) {
            let over = (target(|i| &i.over, |i| &i.y1, k) - x.y1[k] * residual.over[k]) / x.over[k];
            let zero = target(|i| &i.t, |i| &i.y0, k) / x.t[k];
            base[k] = (over + zero - residual.kink[k]) / scaling.stiffness[k];
            first[k] = over - x.y1[k] / x.over[k] * base[k];
        }
        let mut rho = self.gather(&first);
        let cone = self.cone_side(x, residual, scaling, (centre, predictor));
        rho.iter_mut().zip(&cone.rho).for_each(|(rho, c)| *rho = c - *rho);
        let slack = |i: usize| target(|i| &i.slack, |i| &i.lambda, i) / x.lambda[i] - residual.slack[i];
        let kinks = |i: usize| (i * m..(i + 1) * m).map(|k| self.jumps[k] * base[k]).sum::<f64>();
        let r: Vec<f64> = (0..n).map(|i| slack(i) + kinks(i)).collect();
        let level = (self.ball == Ball::Cube).then_some(residual.level);
        let (u, lambda, level) = factor.solve(scaling, &rho, &r, level);
        let z = self.preactivations(&u);
        let mut change = Iterate { u, lambda, level, ..Iterate::default() };
        for array in [&mut change.t, &mut change.over, &mut change.y0, &mut change.y1] {
            array.resize(n * m, 0.0);
        }
        change.slack = residual.slack.iter().map(|r| r - change.level).collect();
        for k in 0..n * m {
            let i = k / m;
            if kinked(k) {
                let (jump, dl) = (self.jumps[k], change.lambda[i]);
                change.t[k] = base[k] - jump * dl / scaling.stiffness[k] + scaling.share[k] * z[k];
                change.over[k] = change.t[k] - z[k] + residual.over[k];
                change.y1[k] = first[k] + scaling.curvature[k] * z[k] + jump * scaling.share[k] * dl;
                change.y0[k] = jump * dl - change.y1[k] + residual.kink[k];
            }
            change.slack[i] += self.slopes[k] * z[k] - self.jumps[k] * change.t[k];
        }
        self.finish_cone(x, residual, scaling, &cone, &mut change);
        debug_assert_eq!(change.u.len(), m * d);
        change
    }

    /// The part of ρ that belongs to the norm, with what is needed to recover the eliminated variables.
    fn cone_side(
        &self,
        x: &Iterate,
        residual: &Residual,
        scaling: &Scaling,
        (centre, predictor): (f64, Option<&Iterate>),
    ) -> ConeSide {
        let (_, d, m) = self.sizes();
        if self.ball == Ball::Round {
            let (mut apex, mut axis, mut rho) = (Vec::new(), Vec::new(), Vec::new());
            for j in 0..m {
                let range = j * d..(j + 1) * d;
                let (l0, l) = scaling.apply(j, false, x.apex[j], &x.dual[range.clone()]);
                // λ ∘ λ, and the product of the predictor's scaled changes
                let mut r0 = centre - (l0 * l0 + dot(&l, &l));
                let mut r: Vec<f64> = l.iter().map(|l| -2.0 * l0 * l).collect();
                if let Some(p) = predictor {
                    let (a0, a) = scaling.apply(j, true, p.reach[j], &p.u[range.clone()]);
                    let (b0, b) = scaling.apply(j, false, p.apex[j], &p.dual[range.clone()]);
                    r0 -= a0 * b0 + dot(&a, &b);
                    r.iter_mut().enumerate().for_each(|(k, r)| *r -= a0 * b[k] + b0 * a[k]);
                }
                let length = norm2(&l);
                let quotient = (l0 * r0 - dot(&l, &r)) / ((l0 - length) * (l0 + length));
                let rest: Vec<f64> = r.iter().zip(&l).map(|(r, l)| (r - quotient * l) / l0).collect();
                let (v0, v) = scaling.apply(j, true, quotient, &rest);
                // eliminating Δα from W⁻²(Δα, Δu) = v − Δζ
                let (w, w0) = (&scaling.axis[range.clone()], scaling.apex[j]);
                let factor = 2.0 * w0 / (2.0 * w0 * w0 - 1.0) * (v0 - residual.reach[j]);
                rho.extend((0..d).map(|k| v[k] + factor * w[k] - residual.u[j * d + k]));
                apex.push(v0);
                axis.extend(v);
            }
            return ConeSide { rho, apex, axis, upper: Vec::new(), lower: Vec::new(), reach: Vec::new() };
        }
        let second = |a: &[f64], b: &[f64], k: usize| if a.is_empty() { 0.0 } else { a[k] * b[k] };
        let none = Iterate::default();
        let p = predictor.unwrap_or(&none);
        let (mut upper, mut lower, mut reach, mut rho) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for k in 0..m * d {
            let up = centre
                - x.upper[k] * x.upper_dual[k]
                - second(&p.upper, &p.upper_dual, k)
                - x.upper_dual[k] * residual.upper[k];
            let down = centre
                - x.lower[k] * x.lower_dual[k]
                - second(&p.lower, &p.lower_dual, k)
                - x.lower_dual[k] * residual.lower[k];
            let (up, down) = (up / x.upper[k], down / x.lower[k]);
            let (pu, pl) = (x.upper_dual[k] / x.upper[k], x.lower_dual[k] / x.lower[k]);
            // Δβ = reach + (p₊ − p₋)/(p₊ + p₋) Δu; 0 for the cube
            let shift = if self.ball == Ball::Diamond { (up + down - residual.reach[k]) / (pu + pl) } else { 0.0 };
            rho.push((down - pl * shift) - (up - pu * shift) - residual.u[k]);
            upper.push(up);
            lower.push(down);
            reach.push(shift);
        }
        ConeSide { rho, upper, lower, reach, apex: Vec::new(), axis: Vec::new() }
    }

    /// Fills in the changes of the norm's variables and multipliers.
    fn finish_cone(&self, x: &Iterate, residual: &Residual, scaling: &Scaling, cone: &ConeSide, change: &mut Iterate) {
        let (_, d, m) = self.sizes();
        if self.ball == Ball::Round {
            for j in 0..m {
                let range = j * d..(j + 1) * d;
                let (w, w0) = (&scaling.axis[range.clone()], scaling.apex[j]);
                let eta2 = scaling.size[j] * scaling.size[j];
                let (m00, along) = ((2.0 * w0 * w0 - 1.0) / eta2, -2.0 * w0 / eta2 * dot(w, &change.u[range.clone()]));
                let reach = (cone.apex[j] - residual.reach[j] - along) / m00;
                let (h0, h) = scaling.hessian(j, reach, &change.u[range]);
                change.reach.push(reach);
                change.apex.push(cone.apex[j] - h0);
                change.dual.extend((0..d).map(|k| cone.axis[j * d + k] - h[k]));
            }
            return;
        }
        for k in 0..m * d {
            let (pu, pl) = (x.upper_dual[k] / x.upper[k], x.lower_dual[k] / x.lower[k]);
            let du = change.u[k];
            let reach = if self.ball == Ball::Diamond { cone.reach[k] + (pu - pl) / (pu + pl) * du } else { 0.0 };
            change.reach.push(reach);
            change.upper.push(reach - du + residual.upper[k]);
            change.lower.push(reach + du + residual.lower[k]);
            change.upper_dual.push(cone.upper[k] - pu * (reach - du));
            change.lower_dual.push(cone.lower[k] - pl * (reach + du));
        }
    }
}

/// Right-hand sides of the norm's equations.
struct ConeSide {
    rho: Vec<f64>,
    /// ℓ2: v in Δζ = v − W⁻²Δ(α, u).
    apex: Vec<f64>,
    axis: Vec<f64>,
    /// Otherwise: Δy₊ = upper − p₊(Δβ − Δu), Δy₋ = lower − p₋(Δβ + Δu), Δβ = reach + ….
    upper: Vec<f64>,
    lower: Vec<f64>,
    reach: Vec<f64>,
}
