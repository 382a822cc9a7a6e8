//! Small dense matrices: elimination, factors, and symmetric matrices as scaled triangles.
//!
//! A scaled triangle is the upper triangle column by column, off-diagonal entries times √2, so that the inner product
//! of two triangles is that of the matrices.

use std::f64::consts::SQRT_2;

use crate::linalg::{Scalar, Table};

/// Columns that are eliminated together.
const PANEL: usize = 48;

/// Solves a linear system by elimination with row exchanges; the right-hand side becomes the solution. `None` if a
/// pivot is 0 or the solution is not finite.
///
/// Columns are eliminated in panels, so that nearly all arithmetic is one matrix product a panel (Golub and Van Loan,
/// Matrix Computations, chapter 3).
pub(in super::super) fn eliminate<T: Scalar>(matrix: &mut Table<T>, right: &mut [T]) -> Option<()> {
    let n = matrix.rows;
    for first in (0..n).step_by(PANEL) {
        let end = (first + PANEL).min(n);
        for k in first..end {
            let size = |i: usize| matrix[(i, k)].size();
            let best = (k..n).fold(k, |best, i| if size(i) > size(best) { i } else { best });
            let pivot = matrix[(best, k)];
            if pivot == T::default() || !pivot.is_finite() {
                return None;
            }
            if best != k {
                let (above, below) = matrix.data.split_at_mut(best * n);
                above[k * n..(k + 1) * n].swap_with_slice(&mut below[..n]);
                right.swap(k, best);
            }
            let (above, below) = matrix.data.split_at_mut((k + 1) * n);
            let top = &above[k * n + k + 1..k * n + end];
            for row in below.chunks_exact_mut(n) {
                row[k] = row[k] / pivot;
                let factor = -row[k];
                T::add_scaled(&mut row[k + 1..end], factor, top);
            }
        }
        for i in first..end {
            let (above, below) = matrix.data.split_at_mut(i * n);
            for k in first..i {
                let factor = -below[k];
                T::add_scaled(&mut below[end..n], factor, &above[k * n + end..(k + 1) * n]);
            }
        }
        let rest = n - end;
        let left: Vec<T> = (end..n).flat_map(|i| matrix.row(i)[first..end].iter().copied()).collect();
        let top: Vec<T> = (first..end).flat_map(|i| matrix.row(i)[end..].iter().copied()).collect();
        let mut product = vec![T::default(); rest * rest];
        T::matmul(&mut product, &left, &top, rest, end - first, rest);
        for (i, row) in (end..n).zip(product.chunks_exact(rest.max(1))) {
            T::add_scaled(&mut matrix.row_mut(i)[end..], T::from(-1.0), row);
        }
    }
    for i in 0..n {
        right[i] -= T::dot(&matrix.row(i)[..i], &right[..i]);
    }
    for i in (0..n).rev() {
        let known = T::dot(&matrix.row(i)[i + 1..], &right[i + 1..]);
        right[i] = (right[i] - known) / matrix[(i, i)];
    }
    right.iter().all(|x| x.is_finite()).then_some(())
}

/// L⁻¹ for A = L Lᵀ; `None` if A is not positive definite.
pub(super) fn inverse_factor<T: Scalar>(a: &Table<T>) -> Option<Table<T>> {
    let n = a.rows;
    let mut l = a.clone();
    for j in 0..n {
        let pivot = l[(j, j)] - T::dot(&l.row(j)[..j], &l.row(j)[..j]);
        if !pivot.is_finite() || pivot <= T::default() {
            return None;
        }
        let root = pivot.root();
        l[(j, j)] = root;
        for i in j + 1..n {
            let known = T::dot(&l.row(i)[..j], &l.row(j)[..j]);
            l[(i, j)] = (l[(i, j)] - known) / root;
        }
    }
    let mut out = Table::zeros(n, n);
    for i in 0..n {
        for k in 0..i {
            let (above, below) = out.data.split_at_mut(i * n);
            T::add_scaled(&mut below[..=k], -l[(i, k)], &above[k * n..=k * n + k]);
        }
        out[(i, i)] = T::from(1.0);
        let pivot = l[(i, i)];
        out.row_mut(i)[..=i].iter_mut().for_each(|x| *x = *x / pivot);
    }
    Some(out)
}

/// matrix += factor · v vᵀ.
pub(super) fn add_outer<T: Scalar>(matrix: &mut Table<T>, factor: T, v: &[T]) {
    for (i, x) in v.iter().enumerate().filter(|(_, x)| **x != T::default()) {
        T::add_scaled(matrix.row_mut(i), factor * *x, v);
    }
}

/// max|xᵢ|.
pub(super) fn largest<T: Scalar>(x: &[T]) -> T {
    x.iter().fold(T::default(), |most, x| if x.size() > most { x.size() } else { most })
}

/// ‖x‖_p without overflow.
pub(super) fn power_norm<T: Scalar>(x: &[T], p: f64) -> T {
    let largest = largest(x);
    if largest == T::default() || p == 2.0 {
        return T::norm2(x);
    }
    let sum = x.iter().fold(T::default(), |sum, x| sum + (x.size() / largest).power(p));
    largest * sum.power(p.recip())
}

/// t − ‖x‖_p and its slopes in (t, x).
pub(in super::super) fn power_slack<T: Scalar>(values: &[T], p: f64) -> (T, Vec<T>) {
    let size = power_norm(&values[1..], p);
    let slope = |x: &T| {
        let part = (x.size() / size).power(p - 1.0);
        if *x > T::default() { -part } else { part }
    };
    let slope = |x: &T| if size > T::default() { slope(x) } else { T::default() };
    let slopes = std::iter::once(T::from(1.0)).chain(values[1..].iter().map(slope)).collect();
    (values[0] - size, slopes)
}

/// ∇²‖x‖_p = (p − 1)/‖x‖ (diag(|xᵢ/‖x‖|^(p−2)) − g gᵀ) with g = ∇‖x‖_p: the factor, and the diagonal without it.
pub(in super::super) fn power_curvature<T: Scalar>(x: &[T], p: f64) -> (T, Vec<T>) {
    let size = power_norm(x, p);
    // for p < 2 the curvature at 0 is infinite; a large one keeps the entry where it is just as well
    let bend = |x: &T| {
        let part = x.size() / size;
        (if part.value() > 1e-8 { part } else { T::from(1e-8) }).power(p - 2.0)
    };
    let diagonal = if p == 2.0 { vec![T::from(1.0); x.len()] } else { x.iter().map(bend).collect() };
    (T::from(p - 1.0) / size, diagonal)
}

/// (i, j) of every entry of a triangle of that size.
pub(super) fn places(size: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..size).flat_map(|j| (0..=j).map(move |i| (i, j)))
}

/// Where entry (i, j), i ≤ j, of a triangle is.
pub(super) fn place(i: usize, j: usize) -> usize {
    j * (j + 1) / 2 + i
}

/// The symmetric matrix of a scaled triangle.
pub(super) fn square<T: Scalar>(triangle: &[T], size: usize) -> Table<T> {
    let half = T::from(0.5).root();
    let mut out = Table::zeros(size, size);
    for ((i, j), x) in places(size).zip(triangle) {
        let x = if i == j { *x } else { *x * half };
        out[(i, j)] = x;
        out[(j, i)] = x;
    }
    out
}

/// The scaled triangle of the symmetric part of a matrix.
pub(super) fn triangle<T: Scalar>(matrix: &Table<T>) -> Vec<T> {
    let half = T::from(0.5).root();
    let entry = |(i, j)| if i == j { matrix[(i, i)] } else { (matrix[(i, j)] + matrix[(j, i)]) * half };
    places(matrix.rows).map(entry).collect()
}

/// The scaled triangle of the symmetric part of factor · u vᵀ; of length 1 for orthonormal u, v and factor √2, and for
/// a unit u = v and factor 1.
pub(super) fn dyad(u: &[f64], v: &[f64], factor: f64) -> Vec<f64> {
    let entry = |(i, j): (usize, usize)| match i == j {
        true => factor * u[i] * v[i],
        false => factor * (u[i] * v[j] + u[j] * v[i]) * std::f64::consts::FRAC_1_SQRT_2,
    };
    places(u.len()).map(entry).collect()
}

/// The factor that makes [`dyad`] of two eigenvectors a unit triangle.
pub(super) fn unit_factor(same: bool) -> f64 {
    if same { 1.0 } else { SQRT_2 }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_1_SQRT_2;

    use super::*;
    use crate::linalg::{Matrix, dot, norm2};
    use crate::numeric::Streams;

    fn random(rows: usize, cols: usize) -> Matrix {
        let mut out = Matrix::zeros(rows, cols);
        Streams::new(11).stream("dense").fill_normal(&mut out.data);
        out
    }

    #[test]
    fn elimination_solves_systems_of_one_panel_and_of_several() {
        for n in [1, 5, PANEL, PANEL + 1, 3 * PANEL + 7] {
            let matrix = random(n, n);
            let expected: Vec<f64> = (0..n).map(|i| (i % 5) as f64 - 2.0).collect();
            let mut x: Vec<f64> = (0..n).map(|i| dot(matrix.row(i), &expected)).collect();
            eliminate(&mut matrix.clone(), &mut x).unwrap();
            assert!(x.iter().zip(&expected).all(|(x, e)| (x - e).abs() < 1e-9), "{n}");
        }
        assert_eq!(eliminate(&mut Matrix::from_rows(&[&[1.0, 1.0], &[1.0, 1.0]]), &mut [1.0, 2.0]), None);
    }

    #[test]
    fn the_inverse_factor_turns_the_matrix_into_the_identity() {
        let b = random(6, 6);
        let mut a = Matrix::identity(6);
        (0..6).for_each(|k| add_outer(&mut a, 1.0, b.row(k)));
        let inverse = inverse_factor(&a).unwrap();
        for i in 0..6 {
            for j in 0..6 {
                let image: f64 = (0..6).map(|k| inverse[(i, k)] * dot(a.row(k), inverse.row(j))).sum();
                assert!((image - f64::from(u8::from(i == j))).abs() < 1e-12);
            }
        }
        a[(5, 5)] = -1.0;
        assert_eq!(inverse_factor(&a), None);
    }

    #[test]
    fn triangles_keep_inner_products() {
        let (a, b) = (random(4, 4), random(4, 5));
        let (u, v) = (&b.row(0)[..4], &b.row(1)[..4]);
        let symmetric = triangle(&a);
        assert!(triangle(&square(&symmetric, 4)).iter().zip(&symmetric).all(|(a, b)| (a - b).abs() < 1e-15));
        assert_eq!(symmetric[place(1, 2)], (a[(1, 2)] + a[(2, 1)]) * FRAC_1_SQRT_2);
        let direct: f64 = (0..4).map(|i| u[i] * dot(square(&symmetric, 4).row(i), v)).sum();
        assert!((dot(&dyad(u, v, 1.0), &symmetric) - direct).abs() < 1e-13);
        let first = [1.0, 0.0, 0.0, 0.0];
        assert!((norm2(&dyad(&first, &[0.0, 1.0, 0.0, 0.0], unit_factor(false))) - 1.0).abs() < 1e-15);
        assert!((norm2(&dyad(&first, &first, unit_factor(true))) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn slopes_and_curvature_of_a_power_norm_are_its_differences() {
        let (x, p, step) = ([0.3, -1.2, 0.7], 3.0, 1e-5);
        let at = |x: &[f64]| power_slack(&[0.0, x[0], x[1], x[2]], p);
        let (factor, diagonal) = power_curvature(&x, p);
        let slopes = at(&x).1;
        for i in 0..3 {
            let (mut more, mut less) = (x, x);
            more[i] += step;
            less[i] -= step;
            let (more, less) = (at(&more), at(&less));
            assert!(((more.0 - less.0) / (2.0 * step) - slopes[i + 1]).abs() < 1e-8);
            for j in 0..3 {
                let bend = if i == j { diagonal[i] } else { 0.0 };
                let expected = -factor * (bend - slopes[i + 1] * slopes[j + 1]);
                assert!(((more.1[j + 1] - less.1[j + 1]) / (2.0 * step) - expected).abs() < 1e-7);
            }
        }
    }
}
