//! The linear system of an interior-point step.
//!
//! ```text
//! Θ⁻¹ Δv − Mᵀ Δx + κ Δτ = −ρ          v: one entry a column of M (weights)
//! M Δv + S Δx − 1_p Δλ  =  r           x: one entry a row of M (multipliers)
//! 1_pᵀ Δx               =  m           λ: the level that all margins reach
//! κᵀ Δv − ω Δτ          =  q           τ: the dual norm; only for the cross polytope
//! ```
//!
//! Θ > 0 is diagonal. S = BᵀDB comes from x ≥ 0 and, for the kinks k of row i, from p_i − e_k ≥ 0: one arrow-shaped
//! block a row, inverted in closed form. Whichever of x and v is shorter is kept and the other eliminated together with
//! its border, which is what keeps the last digits: Θ and S⁻¹ grow like 1/μ on the active set, and eliminating them
//! first and the border afterwards would subtract numbers of size 1/μ to find one of size μ. With the border first,
//!
//! ```text
//! rows      S + Σ_j Θ_j (m_j − κ_j m̄)(m_j − κ_j m̄)ᵀ + ω m̄m̄ᵀ,  m̄ = MΘκ/(κᵀΘκ + ω)        (without τ: S + MΘMᵀ)
//! columns   Θ⁻¹ + Σ_i (h_i − h̄)(h_i − h̄)ᵀ/S_i + …,           h̄ the mean of the rows with weights 1/S_i
//! ```
//!
//! are sums of squares. What the border then fixes (1ᵀΔx, or κᵀΔv up to ω) may be a null direction of the sum, so a
//! multiple of its square is added and taken out again in the equation for the border. The matrix is scaled to a unit
//! diagonal before it is factored, so that the floor under its pivots is relative.

use super::Structure;
use super::arrows::Arrows;
use crate::linalg::{Cholesky, Matrix, add_scaled, dot, matmul_nt, matmul_tn};
use crate::reference::interior::{times, times_transposed};

/// Pivots of the scaled matrix below this are left out: their rows depend on earlier ones.
const FLOOR: f64 = 1e-15;

/// The diagonal and the border that the ball contributes.
#[derive(Default)]
pub(super) struct BallPart {
    /// Θ.
    pub theta: Vec<f64>,
    /// κ; empty without τ.
    pub kappa: Vec<f64>,
    /// ω ≥ 0.
    pub omega: f64,
}

/// A right-hand side, or a residual.
#[derive(Clone, Default)]
pub(super) struct RightHandSide {
    pub rho: Vec<f64>,
    pub r: Vec<f64>,
    pub m: f64,
    pub q: f64,
}

/// A solution; `v` is empty under a Gram matrix.
#[derive(Default)]
pub(super) struct Change {
    pub v: Vec<f64>,
    pub x: Vec<f64>,
    pub level: f64,
    pub tau: f64,
}

/// Which side is kept.
enum Side {
    /// The multipliers; `gram` is MΘMᵀ if Θ never changes.
    Rows { gram: Option<Matrix> },
    /// The weights.
    Columns,
}

/// The system, its factor and its buffers.
pub(super) struct Kkt<'a> {
    structure: &'a Structure<'a>,
    side: Side,
    pub ball: BallPart,
    matrix: Vec<f64>,
    scale: Vec<f64>,
    cholesky: Cholesky,
    wide: Matrix,
    /// The multiple of the border's square in the matrix.
    lift: f64,
    /// The solution for the border itself.
    border: Vec<f64>,
}

impl<'a> Kkt<'a> {
    /// `constant` says that Θ is the same in every step, so that MΘMᵀ is formed once.
    pub(super) fn new(structure: &'a Structure<'a>, theta: Vec<f64>, constant: bool) -> Self {
        let (n, columns) = (structure.len(), structure.columns());
        let rows = structure.gram.is_some() || n <= columns;
        let size = if rows { n } else { columns };
        let mut kkt = Self {
            structure,
            side: if rows { Side::Rows { gram: structure.gram.cloned() } } else { Side::Columns },
            ball: BallPart { theta, kappa: Vec::new(), omega: 0.0 },
            matrix: vec![0.0; size * size],
            scale: vec![1.0; size],
            cholesky: Cholesky::new(size),
            wide: if structure.gram.is_some() { Matrix::default() } else { Matrix::zeros(n, columns) },
            lift: 0.0,
            border: Vec::new(),
        };
        if rows && constant && structure.gram.is_none() {
            let mut gram = Matrix::zeros(n, n);
            kkt.weighted_gram(&mut gram.data);
            kkt.side = Side::Rows { gram: Some(gram) };
        }
        kkt
    }

    /// out = M(Θ − Θκκᵀ Θ/(κᵀΘκ + ω))Mᵀ as a sum of squares.
    fn weighted_gram(&mut self, out: &mut [f64]) {
        let (m, ball) = (self.structure.matrix(), &self.ball);
        let mean = self.mean_column();
        for i in 0..m.rows {
            let entries = self.wide.row_mut(i).iter_mut().zip(m.row(i)).zip(&ball.theta);
            match mean.get(i) {
                Some(mean) => entries.zip(&ball.kappa).for_each(|(((out, x), t), k)| *out = (x - k * mean) * t.sqrt()),
                None => entries.for_each(|((out, x), theta)| *out = x * theta.sqrt()),
            }
        }
        matmul_nt(out, &self.wide.data, &self.wide.data, m.rows, m.cols, m.rows);
        for (i, a) in mean.iter().enumerate() {
            add_scaled(&mut out[i * m.rows..(i + 1) * m.rows], ball.omega * a, &mean);
        }
    }

    /// m̄; empty without τ.
    fn mean_column(&self) -> Vec<f64> {
        if self.ball.kappa.is_empty() {
            return Vec::new();
        }
        let (weighted, total) = self.weighted_kappa();
        let mut mean = times(self.structure.matrix(), &weighted);
        mean.iter_mut().for_each(|x| *x /= total);
        mean
    }

    /// Θκ and κᵀΘκ + ω.
    fn weighted_kappa(&self) -> (Vec<f64>, f64) {
        let weighted: Vec<f64> = self.ball.kappa.iter().zip(&self.ball.theta).map(|(k, t)| k * t).collect();
        let total = dot(&weighted, &self.ball.kappa) + self.ball.omega;
        (weighted, total)
    }

    /// The Gram matrix MΘMᵀ, if it never changes.
    pub(super) fn gram(&self) -> Option<&Matrix> {
        match &self.side {
            Side::Rows { gram } => gram.as_ref(),
            Side::Columns => None,
        }
    }

    /// MΘMᵀx, from the rows where they are known: the Gram matrix has lost the digits of nearly opposite rows.
    pub(super) fn apply_gram(&self, x: &[f64]) -> Vec<f64> {
        match (self.structure.matrix, self.gram()) {
            (Some(m), _) => {
                let mut v = times_transposed(m, x);
                v.iter_mut().zip(&self.ball.theta).for_each(|(v, theta)| *v *= theta);
                times(m, &v)
            }
            (None, Some(gram)) => times(gram, x),
            (None, None) => unreachable!("a problem has rows or a Gram matrix"),
        }
    }

    /// Factors the system for the present Θ and S; false if it is not finite.
    pub(super) fn factor(&mut self, arrows: &Arrows) -> bool {
        let mut matrix = std::mem::take(&mut self.matrix);
        let size = self.scale.len();
        let mut border = vec![0.0; size];
        match &self.side {
            Side::Rows { gram } => {
                match gram {
                    Some(gram) => matrix.copy_from_slice(&gram.data),
                    None => self.weighted_gram(&mut matrix),
                }
                arrows.add_to(&mut matrix);
                border[..self.structure.rows].iter_mut().for_each(|x| *x = 1.0);
                self.lift = mean_diagonal(&matrix, size);
            }
            Side::Columns => {
                let m = self.structure.matrix();
                arrows.centred_rows(m, &mut self.wide);
                matmul_tn(&mut matrix, &self.wide.data, &self.wide.data, m.cols, m.rows, m.cols);
                self.ball.theta.iter().enumerate().for_each(|(j, theta)| matrix[j * size + j] += theta.recip());
                if self.ball.kappa.is_empty() {
                    self.lift = 0.0;
                } else {
                    border.copy_from_slice(&self.ball.kappa);
                    let square = dot(&border, &border) / size as f64;
                    self.lift = (mean_diagonal(&matrix, size) / square).min(0.5 / self.ball.omega);
                }
            }
        }
        for (row, b) in matrix.chunks_exact_mut(size).zip(&border).filter(|(_, b)| **b != 0.0) {
            add_scaled(row, self.lift * b, &border);
        }
        for j in 0..size {
            self.scale[j] = matrix[j * size + j].sqrt().recip();
        }
        let finite = self.scale.iter().all(|s| s.is_finite());
        for (i, row) in matrix.chunks_exact_mut(size).enumerate() {
            let factor = self.scale[i];
            row.iter_mut().zip(&self.scale).for_each(|(a, s)| *a *= factor * s);
        }
        self.matrix = matrix;
        if !finite || self.cholesky.factor(&self.matrix, FLOOR).is_err() {
            return false;
        }
        self.solve_scaled(&mut border);
        self.border = border;
        true
    }

    fn solve_scaled(&mut self, x: &mut [f64]) {
        x.iter_mut().zip(&self.scale).for_each(|(x, s)| *x *= s);
        self.cholesky.solve(x);
        x.iter_mut().zip(&self.scale).for_each(|(x, s)| *x *= s);
    }

    /// Solves the system, with one step of iterative refinement.
    pub(super) fn solve(&mut self, arrows: &Arrows, side: &RightHandSide) -> Change {
        let mut change = self.solve_once(arrows, side);
        let rest = self.residual(arrows, side, &change);
        let correction = self.solve_once(arrows, &rest);
        add_scaled(&mut change.v, 1.0, &correction.v);
        add_scaled(&mut change.x, 1.0, &correction.x);
        change.level += correction.level;
        change.tau += correction.tau;
        change
    }

    fn residual(&self, arrows: &Arrows, side: &RightHandSide, change: &Change) -> RightHandSide {
        let rows = self.structure.rows;
        let mut applied = vec![0.0; change.x.len()];
        arrows.apply(&change.x, &mut applied);
        let products = match self.gram() {
            Some(_) => self.apply_gram(&change.x),
            None => times(self.structure.matrix(), &change.v),
        };
        let mut rest = side.clone();
        rest.r.iter_mut().zip(applied.iter().zip(&products)).for_each(|(r, (a, b))| *r -= a + b);
        rest.r[..rows].iter_mut().for_each(|r| *r += change.level);
        rest.m -= change.x[..rows].iter().sum::<f64>();
        if self.gram().is_none() {
            let u = times_transposed(self.structure.matrix(), &change.x);
            let parts = rest.rho.iter_mut().zip(u.iter().zip(&change.v)).zip(&self.ball.theta);
            parts.for_each(|((rho, (u, v)), theta)| *rho += v / theta - u);
            if !self.ball.kappa.is_empty() {
                add_scaled(&mut rest.rho, change.tau, &self.ball.kappa);
                rest.q -= dot(&self.ball.kappa, &change.v) - self.ball.omega * change.tau;
            }
        }
        rest
    }

    fn solve_once(&mut self, arrows: &Arrows, side: &RightHandSide) -> Change {
        match self.side {
            Side::Rows { .. } => self.solve_rows(side),
            Side::Columns => self.solve_columns(arrows, side),
        }
    }

    /// (A + η11ᵀ)Δx − 1(Δλ + ηm) = r′ with 1ᵀΔx = m, then Δτ and Δv.
    fn solve_rows(&mut self, side: &RightHandSide) -> Change {
        let rows = self.structure.rows;
        let total = |x: &[f64]| x[..rows].iter().sum::<f64>();
        let mut x = side.r.clone();
        let (weighted, weight) = self.weighted_kappa();
        let plain = self.gram().is_some();
        let mut forced: Vec<f64> = side.rho.iter().zip(&self.ball.theta).map(|(rho, theta)| rho * theta).collect();
        if !plain {
            // MΘρ and, with τ eliminated, −MΘκ(κᵀΘρ + q)/(κᵀΘκ + ω)
            if !self.ball.kappa.is_empty() {
                add_scaled(&mut forced, -(dot(&weighted, &side.rho) + side.q) / weight, &weighted);
            }
            add_scaled(&mut x, 1.0, &times(self.structure.matrix(), &forced));
        }
        self.solve_scaled(&mut x);
        let shift = (side.m - total(&x)) / total(&self.border);
        add_scaled(&mut x, shift, &self.border);
        let level = shift - self.lift * side.m;
        if plain {
            return Change { v: Vec::new(), x, level, tau: 0.0 };
        }
        let mut v = times_transposed(self.structure.matrix(), &x);
        add_scaled(&mut v, -1.0, &side.rho);
        let tau = if self.ball.kappa.is_empty() { 0.0 } else { (dot(&weighted, &v) - side.q) / weight };
        if tau != 0.0 {
            add_scaled(&mut v, -tau, &self.ball.kappa);
        }
        v.iter_mut().zip(&self.ball.theta).for_each(|(v, theta)| *v *= theta);
        Change { v, x, level, tau }
    }

    /// (N + ηκκᵀ)Δv + κπ = r′ with π = Δτ − ηκᵀΔv and κᵀΔv − ωΔτ = q, then Δλ and Δx.
    fn solve_columns(&mut self, arrows: &Arrows, side: &RightHandSide) -> Change {
        let (m, rows) = (self.structure.matrix(), self.structure.rows);
        let total = |x: &[f64]| x[..rows].iter().sum::<f64>();
        let inverse = arrows.total_inverse();
        let mut x = side.r.clone();
        arrows.solve(&mut x);
        let start = (side.m - total(&x)) / inverse;
        x.copy_from_slice(&side.r);
        x[..rows].iter_mut().for_each(|x| *x += start);
        arrows.solve(&mut x);
        let mut v = times_transposed(m, &x);
        add_scaled(&mut v, -1.0, &side.rho);
        self.solve_scaled(&mut v);
        let mut tau = 0.0;
        if !self.ball.kappa.is_empty() {
            // with Δτ = (π + ηq)/(1 − ηω): κᵀ(v − π·border) − ωΔτ = q
            let (eta, omega) = (self.lift, self.ball.omega);
            let scale = 1.0 - eta * omega;
            let (along, square) = (dot(&self.ball.kappa, &v), dot(&self.ball.kappa, &self.border));
            let pi = (along - side.q - omega * eta * side.q / scale) / (square + omega / scale);
            tau = (pi + eta * side.q) / scale;
            add_scaled(&mut v, -pi, &self.border);
        }
        let products = times(m, &v);
        let rest: Vec<f64> = side.r.iter().zip(&products).map(|(r, a)| r - a).collect();
        x.copy_from_slice(&rest);
        arrows.solve(&mut x);
        let level = (side.m - total(&x)) / inverse;
        x.copy_from_slice(&rest);
        x[..rows].iter_mut().for_each(|x| *x += level);
        arrows.solve(&mut x);
        Change { v, x, level, tau }
    }
}

fn mean_diagonal(matrix: &[f64], size: usize) -> f64 {
    (0..size).map(|j| matrix[j * size + j]).sum::<f64>() / size as f64
}
