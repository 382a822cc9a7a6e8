//! Symmetric indefinite systems with their inertia, by the factorisation of Bunch and Kaufman.
//!
//! ```text
//! P A Pᵀ = L D Lᵀ,   L unit lower triangular, D of blocks 1 × 1 and 2 × 2
//! ```
//!
//! Bunch and Kaufman 1977, "Some stable methods for calculating inertia and solving symmetric linear systems",
//! algorithm A.

use crate::linalg::{add_scaled, dot};

/// A factored symmetric matrix.
#[derive(Debug, Clone, Default)]
pub(super) struct Symmetric {
    size: usize,
    /// L below the diagonal, row by row.
    lower: Vec<f64>,
    /// Diagonal of D, and its entry below the diagonal (0 where a block ends).
    diagonal: Vec<f64>,
    below: Vec<f64>,
    /// Row of A that became row k.
    order: Vec<usize>,
}

/// (1 + √17)/8, which bounds the growth of entries best.
const ALPHA: f64 = 0.640_388_203_202_208_4;

impl Symmetric {
    /// Factors A, of which the lower triangle is read; nothing if it is singular to the last bit or not finite.
    pub fn factor(mut a: Vec<f64>, size: usize) -> Option<Self> {
        let n = size;
        let at = |i: usize, j: usize| if i >= j { i * n + j } else { j * n + i };
        let mut order: Vec<usize> = (0..n).collect();
        let (mut diagonal, mut below) = (vec![0.0; n], vec![0.0; n]);
        let mut k = 0;
        while k < n {
            let own = a[k * n + k].abs();
            let (far, most) = largest((k + 1..n).map(|i| (i, a[i * n + k].abs())));
            if !(own + most > 0.0 && (own + most).is_finite()) {
                return None;
            }
            let (pivot, step) = if own >= ALPHA * most {
                (k, 1)
            } else {
                let (_, row) = largest((k..n).filter(|j| *j != far).map(|j| (j, a[at(far, j)].abs())));
                if own * row >= ALPHA * most * most {
                    (k, 1)
                } else if a[far * n + far].abs() >= ALPHA * row {
                    (far, 1)
                } else {
                    (far, 2)
                }
            };
            swap(&mut a, n, k, k + step - 1, pivot);
            order.swap(k + step - 1, pivot);
            if step == 1 {
                let d = a[k * n + k];
                let column: Vec<f64> = (k + 1..n).map(|i| a[i * n + k] / d).collect();
                for i in k + 1..n {
                    let factor = -a[i * n + k];
                    add_scaled(&mut a[i * n + k + 1..=i * n + i], factor, &column[..i - k]);
                    a[i * n + k] = column[i - k - 1];
                }
                diagonal[k] = d;
            } else {
                let (d1, d2, c) = (a[k * n + k], a[(k + 1) * n + k + 1], a[(k + 1) * n + k]);
                let determinant = d1 * d2 - c * c;
                let old: [Vec<f64>; 2] = [0, 1].map(|s| (k + 2..n).map(|i| a[i * n + k + s]).collect());
                let solve = |x: f64, y: f64| ((d2 * x - c * y) / determinant, (d1 * y - c * x) / determinant);
                let new: Vec<(f64, f64)> = old[0].iter().zip(&old[1]).map(|(x, y)| solve(*x, *y)).collect();
                for i in k + 2..n {
                    let (first, second) = new[i - k - 2];
                    let row = &mut a[i * n + k + 2..=i * n + i];
                    add_scaled(row, -first, &old[0][..i - k - 1]);
                    add_scaled(row, -second, &old[1][..i - k - 1]);
                    (a[i * n + k], a[i * n + k + 1]) = (first, second);
                }
                (diagonal[k], diagonal[k + 1], below[k]) = (d1, d2, c);
                a[(k + 1) * n + k] = 0.0;
            }
            k += step;
        }
        Some(Self { size, lower: a, diagonal, below, order })
    }

    /// How many eigenvalues are positive.
    pub fn positive(&self) -> usize {
        let (mut count, mut k) = (0, 0);
        while k < self.size {
            if self.below[k] == 0.0 {
                count += usize::from(self.diagonal[k] > 0.0);
                k += 1;
            } else {
                let determinant = self.diagonal[k] * self.diagonal[k + 1] - self.below[k] * self.below[k];
                count += if determinant < 0.0 { 1 } else { 2 * usize::from(self.diagonal[k] > 0.0) };
                k += 2;
            }
        }
        count
    }

    /// x ← A⁻¹ x.
    pub fn solve(&self, x: &mut [f64]) {
        let n = self.size;
        let mut y: Vec<f64> = self.order.iter().map(|&i| x[i]).collect();
        for i in 0..n {
            y[i] -= dot(&self.lower[i * n..i * n + i], &y[..i]);
        }
        let mut k = 0;
        while k < n {
            if self.below[k] == 0.0 {
                y[k] /= self.diagonal[k];
                k += 1;
            } else {
                let (d1, d2, c) = (self.diagonal[k], self.diagonal[k + 1], self.below[k]);
                let determinant = d1 * d2 - c * c;
                (y[k], y[k + 1]) = ((d2 * y[k] - c * y[k + 1]) / determinant, (d1 * y[k + 1] - c * y[k]) / determinant);
                k += 2;
            }
        }
        for i in (0..n).rev() {
            let value = y[i];
            add_scaled(&mut y[..i], -value, &self.lower[i * n..i * n + i]);
        }
        self.order.iter().zip(&y).for_each(|(&i, y)| x[i] = *y);
    }
}

fn largest(entries: impl Iterator<Item = (usize, f64)>) -> (usize, f64) {
    entries.fold((0, 0.0), |best, entry| if entry.1 > best.1 || entry.1.is_nan() { entry } else { best })
}

/// Exchanges rows and columns p and q ≥ p of the part from column k on, and rows p and q of L before it.
fn swap(a: &mut [f64], n: usize, k: usize, p: usize, q: usize) {
    if p == q {
        return;
    }
    // all columns before p in both rows: L where finished, the rest of the trailing part
    debug_assert!(k <= p && p < q);
    for j in 0..p {
        a.swap(p * n + j, q * n + j);
    }
    for j in p + 1..q {
        a.swap(j * n + p, q * n + j);
    }
    for i in q + 1..n {
        a.swap(i * n + p, i * n + q);
    }
    a.swap(p * n + p, q * n + q);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linalg::Eigen;
    use crate::numeric::Streams;

    #[test]
    fn indefinite_systems_are_solved_and_their_inertia_is_that_of_the_eigenvalues() {
        let mut stream = Streams::new(3).stream("symmetric");
        for size in [1, 2, 3, 5, 8, 21, 60] {
            let mut a = vec![0.0; size * size];
            for i in 0..size {
                for j in 0..=i {
                    a[i * size + j] = stream.normal() * if i == j { 0.05 } else { 1.0 };
                    a[j * size + i] = a[i * size + j];
                }
            }
            let mut eigen = Eigen::new(size);
            eigen.factor(&a).unwrap();
            let factor = Symmetric::factor(a.clone(), size).unwrap();
            assert_eq!(factor.positive(), eigen.values().iter().filter(|v| **v > 0.0).count(), "size {size}");
            let expected: Vec<f64> = (0..size).map(|i| (i % 5) as f64 - 1.5).collect();
            let mut x: Vec<f64> = (0..size).map(|i| dot(&a[i * size..(i + 1) * size], &expected)).collect();
            factor.solve(&mut x);
            assert!(x.iter().zip(&expected).all(|(x, e)| (x - e).abs() < 1e-9), "size {size}: {x:?}");
        }
    }

    #[test]
    fn a_singular_matrix_is_refused_and_a_zero_diagonal_is_not() {
        assert!(Symmetric::factor(vec![0.0; 4], 2).is_none());
        assert!(Symmetric::factor(vec![f64::NAN; 4], 2).is_none());
        let factor = Symmetric::factor(vec![0.0, 2.0, 2.0, 0.0], 2).unwrap();
        let mut x = [4.0, 6.0];
        factor.solve(&mut x);
        assert_eq!((x, factor.positive()), ([3.0, 2.0], 1));
    }
}
