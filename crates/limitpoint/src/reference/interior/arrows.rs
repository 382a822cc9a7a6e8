//! The block of the multipliers in the reduced equations: a diagonal, with an arrow for every row that has kinks.

use super::Structure;
use crate::linalg::{Matrix, add_scaled};

/// S = BᵀDB of the multipliers.
pub(super) struct Arrows<'a> {
    structure: &'a Structure<'a>,
    /// D of x ≥ 0.
    pub bound: Vec<f64>,
    /// D of p_i − e_k ≥ 0.
    pub cap: Vec<f64>,
    /// The pivot of every p_i after its kinks are eliminated.
    pivot: Vec<f64>,
}

impl<'a> Arrows<'a> {
    pub(super) fn new(structure: &'a Structure<'a>) -> Self {
        let (n, kinks) = (structure.len(), structure.parents.len());
        Self { structure, bound: vec![1.0; n], cap: vec![1.0; kinks], pivot: vec![1.0; structure.rows] }
    }

    /// Prepares the inverse after `bound` and `cap` have changed.
    pub(super) fn update(&mut self) {
        let rows = self.structure.rows;
        self.pivot.copy_from_slice(&self.bound[..rows]);
        for (k, &row) in self.structure.parents.iter().enumerate() {
            let (d, cap) = (self.bound[rows + k], self.cap[k]);
            self.pivot[row] += cap * d / (d + cap);
        }
    }

    /// x ← S⁻¹x.
    pub(super) fn solve(&self, x: &mut [f64]) {
        let rows = self.structure.rows;
        for (k, &row) in self.structure.parents.iter().enumerate() {
            let (d, cap) = (self.bound[rows + k], self.cap[k]);
            x[row] += cap / (d + cap) * x[rows + k];
        }
        x[..rows].iter_mut().zip(&self.pivot).for_each(|(x, pivot)| *x /= pivot);
        for (k, &row) in self.structure.parents.iter().enumerate() {
            let (d, cap) = (self.bound[rows + k], self.cap[k]);
            x[rows + k] = (x[rows + k] + cap * x[row]) / (d + cap);
        }
        let first = rows + self.structure.parents.len();
        x[first..].iter_mut().zip(&self.bound[first..]).for_each(|(x, d)| *x /= d);
    }

    /// out = S x.
    pub(super) fn apply(&self, x: &[f64], out: &mut [f64]) {
        let rows = self.structure.rows;
        out.iter_mut().zip(x.iter().zip(&self.bound)).for_each(|(out, (x, d))| *out = x * d);
        for (k, &row) in self.structure.parents.iter().enumerate() {
            let flow = self.cap[k] * (x[row] - x[rows + k]);
            out[row] += flow;
            out[rows + k] -= flow;
        }
    }

    /// S added to a square matrix.
    pub(super) fn add_to(&self, a: &mut [f64]) {
        let (rows, n) = (self.structure.rows, self.structure.len());
        (0..n).for_each(|j| a[j * n + j] += self.bound[j]);
        for (k, &row) in self.structure.parents.iter().enumerate() {
            let (e, cap) = (rows + k, self.cap[k]);
            a[row * n + row] += cap;
            a[e * n + e] += cap;
            a[row * n + e] -= cap;
            a[e * n + row] -= cap;
        }
    }

    /// Σ over rows of S⁻¹1_p.
    pub(super) fn total_inverse(&self) -> f64 {
        self.pivot.iter().map(|pivot| pivot.recip()).sum()
    }

    /// Rows G with Mᵀ(S⁻¹ − S⁻¹11ᵀS⁻¹/1ᵀS⁻¹1)M = GᵀG.
    pub(super) fn centred_rows(&self, m: &Matrix, out: &mut Matrix) {
        let rows = self.structure.rows;
        out.data.copy_from_slice(&m.data);
        for (k, &row) in self.structure.parents.iter().enumerate() {
            let (d, cap) = (self.bound[rows + k], self.cap[k]);
            add_scaled(out.row_mut(row), cap / (d + cap), m.row(rows + k));
            let factor = (d + cap).sqrt().recip();
            out.row_mut(rows + k).iter_mut().for_each(|x| *x *= factor);
        }
        let (mut mean, total) = (vec![0.0; m.cols], self.total_inverse());
        (0..rows).for_each(|i| add_scaled(&mut mean, (self.pivot[i] * total).recip(), out.row(i)));
        for i in 0..rows {
            let factor = self.pivot[i].sqrt().recip();
            out.row_mut(i).iter_mut().zip(&mean).for_each(|(x, mean)| *x = factor * (*x - mean));
        }
        for j in rows + self.structure.parents.len()..m.rows {
            let factor = self.bound[j].sqrt().recip();
            out.row_mut(j).iter_mut().for_each(|x| *x *= factor);
        }
    }
}
