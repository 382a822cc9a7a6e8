//! The independent part of a system of linear equations.

use crate::linalg::{LinalgError, Matrix, Svd, add_scaled, dot, norm2};
use crate::numeric::compensated_dot;
use crate::reference::ReferenceError;

/// How far, relative to the targets, equations may contradict each other before they count as inconsistent.
const CONTRADICTION: f64 = 1e-10;

/// Equations Aw = b and orthonormal rows B with values c that have the same solutions.
///
/// ```text
/// A = D Ā,  Ā = U Σ B (rank r),   D the lengths of the rows
/// Aw = b  ⟺  Bw = c = Σ⁻¹Uᵀ D⁻¹b   where b is attainable,   Bᵀν = Aᵀμ  for  μ = D⁻¹U Σ⁻¹ν
/// ```
///
/// The rows are scaled to length 1 first, so that the units of one equation do not decide whether another counts.
pub(super) struct Equations {
    /// A, n × d.
    pub matrix: Matrix,
    /// b.
    pub targets: Vec<f64>,
    /// B, r × d, orthonormal rows.
    pub rows: Matrix,
    /// c.
    pub values: Vec<f64>,
    /// The lengths D, 1 for a row of zeros.
    lengths: Vec<f64>,
    /// The columns of U Σ⁻¹, one after the other.
    left: Vec<Vec<f64>>,
}

impl Equations {
    /// Finds the rank and refuses contradictions.
    pub fn new(matrix: Matrix, targets: Vec<f64>) -> Result<Self, ReferenceError> {
        let (n, d) = (matrix.rows, matrix.cols);
        let lengths: Vec<f64> = (0..n).map(|i| norm2(matrix.row(i))).map(|l| if l > 0.0 { l } else { 1.0 }).collect();
        let mut scaled = matrix.clone();
        (0..n).for_each(|i| scaled.row_mut(i).iter_mut().for_each(|x| *x /= lengths[i]));
        let distances: Vec<f64> = targets.iter().zip(&lengths).map(|(b, l)| b / l).collect();
        let mut svd = Svd::new(n, d);
        svd.factor(&scaled.data)?;
        let floor = 4.0 * f64::EPSILON * n.max(d) as f64 * svd.values().first().unwrap_or(&0.0);
        let rank = svd.values().iter().filter(|s| **s > floor).count();
        let mut rest = distances.clone();
        (0..rank).for_each(|k| add_scaled(&mut rest, -dot(svd.left(k), &distances), svd.left(k)));
        if norm2(&rest) > CONTRADICTION * norm2(&distances) {
            let (residual, rank) = least_squares(&matrix, &targets)?;
            return Err(ReferenceError::Inconsistent { residual, equations: n, rank });
        }
        let mut rows = Matrix::zeros(rank, d);
        let zero: Vec<bool> = (0..d).map(|j| (0..n).all(|i| matrix[(i, j)] == 0.0)).collect();
        for k in 0..rank {
            for (j, x) in rows.row_mut(k).iter_mut().enumerate().filter(|(j, _)| !zero[*j]) {
                *x = svd.right(k)[j];
            }
        }
        let left = (0..rank).map(|k| svd.left(k).iter().map(|u| u / svd.values()[k]).collect()).collect();
        let mut equations = Self { matrix, targets, rows, values: Vec::new(), lengths, left };
        equations.values = equations.reduce(&equations.targets);
        Ok(equations)
    }

    /// The rank r.
    pub fn rank(&self) -> usize {
        self.rows.rows
    }

    /// Σ⁻¹Uᵀ D⁻¹ v, the values of B for right-hand sides v of A.
    fn reduce(&self, v: &[f64]) -> Vec<f64> {
        let scaled: Vec<f64> = v.iter().zip(&self.lengths).map(|(v, l)| v / l).collect();
        self.left.iter().map(|u| dot(u, &scaled)).collect()
    }

    /// μ with Aᵀμ = Bᵀν.
    pub fn multipliers(&self, nu: &[f64]) -> Vec<f64> {
        let mut mu = vec![0.0; self.lengths.len()];
        self.left.iter().zip(nu).for_each(|(u, n)| add_scaled(&mut mu, *n, u));
        mu.iter_mut().zip(&self.lengths).for_each(|(m, l)| *m /= l);
        mu
    }

    /// b − Aw, in twice the working precision.
    pub fn defect(&self, w: &[f64]) -> Vec<f64> {
        defect(&self.matrix, &self.targets, w)
    }

    /// Moves c so that Bw = c asks for what is still missing from Aw = b at w.
    pub fn correct(&mut self, w: &[f64]) {
        let missing = self.reduce(&self.defect(w));
        for (k, (c, m)) in self.values.iter_mut().zip(missing).enumerate() {
            *c = dot(self.rows.row(k), w) + m;
        }
    }

    /// ‖Aw − b‖₂/‖b‖₂; relative to ‖A‖‖w‖ where b = 0.
    pub fn residual(&self, w: &[f64]) -> f64 {
        relative_residual(&self.matrix, &self.targets, w)
    }

    /// The solution with the smallest ℓ2 norm, Bᵀc.
    pub fn shortest(&self) -> Vec<f64> {
        self.pull_back(&self.values)
    }

    /// Bᵀν.
    pub fn pull_back(&self, nu: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; self.rows.cols];
        nu.iter().enumerate().for_each(|(k, n)| add_scaled(&mut out, *n, self.rows.row(k)));
        out
    }

    /// c − Bw.
    pub fn missing(&self, w: &[f64]) -> Vec<f64> {
        (0..self.rank()).map(|k| self.values[k] - dot(self.rows.row(k), w)).collect()
    }
}

/// b − Aw, in twice the working precision.
fn defect(matrix: &Matrix, targets: &[f64], w: &[f64]) -> Vec<f64> {
    targets.iter().enumerate().map(|(i, b)| b - compensated_dot(matrix.row(i), w)).collect()
}

/// ‖Aw − b‖₂/‖b‖₂; relative to ‖A‖‖w‖ where b = 0.
pub(super) fn relative_residual(matrix: &Matrix, targets: &[f64], w: &[f64]) -> f64 {
    let size = norm2(targets);
    let scale = if size > 0.0 { size } else { norm2(&matrix.data) * norm2(w) };
    let residual = norm2(&defect(matrix, targets, w));
    if residual == 0.0 { 0.0 } else { residual / scale }
}

/// The relative residual of the least-squares solution, and the rank.
fn least_squares(matrix: &Matrix, targets: &[f64]) -> Result<(f64, usize), LinalgError> {
    let mut svd = Svd::new(matrix.rows, matrix.cols);
    svd.factor(&matrix.data)?;
    let mut rest = targets.to_vec();
    (0..svd.rank()).for_each(|k| add_scaled(&mut rest, -dot(svd.left(k), targets), svd.left(k)));
    Ok((norm2(&rest) / norm2(targets), svd.rank()))
}
