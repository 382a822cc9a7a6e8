//! Conic programs in standard form.
//!
//! ```text
//! primal   min ⟨c, x⟩  subject to  s = g + Gx ∈ K
//! dual     max −⟨g, z⟩  subject to  Gᵀz = c, z ∈ K*          optimal if also ⟨s, z⟩ = 0
//! ```
//!
//! K is a product of the cones of [`Cone`]. Every row of s is written as an [`Affine`] function of the columns x.

use std::ops::Range;

use crate::linalg::{Matrix, Scalar, Table};

/// A row counts as dense if it has more than one in so many columns.
const MANY: usize = 4;

/// constant + Σ coefficient · x[column].
#[derive(Debug, Clone, Default)]
pub(super) struct Affine {
    pub constant: f64,
    pub terms: Vec<(usize, f64)>,
}

impl Affine {
    /// The same number for every x.
    pub fn constant(constant: f64) -> Self {
        Self { constant, terms: Vec::new() }
    }

    /// coefficient · x[column].
    pub fn term(column: usize, coefficient: f64) -> Self {
        Self { constant: 0.0, terms: vec![(column, coefficient)] }
    }

    /// The function plus coefficient · x[column].
    pub fn plus(mut self, column: usize, coefficient: f64) -> Self {
        self.terms.push((column, coefficient));
        self
    }

    /// The function times a number.
    pub fn scaled(&self, factor: f64) -> Self {
        let terms = self.terms.iter().map(|(column, x)| (*column, factor * x)).collect();
        Self { constant: factor * self.constant, terms }
    }

    /// Its value at x.
    pub fn at<T: Scalar>(&self, x: &[T]) -> T {
        T::from(self.constant) + self.change(x)
    }

    /// How it changes with x.
    pub fn change<T: Scalar>(&self, dx: &[T]) -> T {
        let terms = self.terms.iter().map(|(column, coefficient)| dx[*column].times(*coefficient));
        terms.fold(T::default(), |sum, term| sum + term)
    }
}

/// A cone that rows of a program lie in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Cone {
    /// {0}; its dual is everything.
    Zero,
    /// s ≥ 0.
    Nonnegative,
    /// (t, x) with ‖x‖₂ ≤ t.
    SecondOrder,
    /// (t, x) with ‖x‖_p ≤ t, for 1 < p < ∞.
    Power(f64),
    /// The upper triangle of a positive semidefinite matrix of that size, column by column, off-diagonal entries times
    /// √2 (so that the inner product of triangles is that of matrices).
    Semidefinite(usize),
}

/// A conic program.
#[derive(Debug, Clone, Default)]
pub(super) struct Program {
    /// c, one entry for every column.
    pub objective: Vec<f64>,
    /// s = g + Gx.
    pub rows: Vec<Affine>,
    /// Which rows lie in which cone; they cover all rows in order.
    pub sections: Vec<(Cone, Range<usize>)>,
}

/// A primal and a dual point of a program.
#[derive(Debug, Clone)]
pub(super) struct Point<T = f64> {
    /// x.
    pub x: Vec<T>,
    /// z, one entry for every row.
    pub z: Vec<T>,
}

/// What is needed to find the multipliers of columns that were substituted.
#[derive(Debug, Clone, Default)]
pub(super) struct Substitution {
    count: usize,
    /// Row, column and coefficient of every use.
    uses: Vec<(usize, usize, f64)>,
}

impl Substitution {
    /// The multipliers of column = function.
    pub fn multipliers<T: Scalar>(&self, z: &[T]) -> Vec<T> {
        let mut out = vec![T::default(); self.count];
        self.uses.iter().for_each(|(row, column, x)| out[*column] -= z[*row].times(*x));
        out
    }
}

impl Program {
    /// Number of columns.
    pub fn width(&self) -> usize {
        self.objective.len()
    }

    /// Adds columns that the objective does not see.
    pub fn columns(&mut self, count: usize) -> Range<usize> {
        let first = self.objective.len();
        self.objective.resize(first + count, 0.0);
        first..first + count
    }

    /// Adds rows that lie in a cone.
    pub fn require(&mut self, cone: Cone, rows: impl IntoIterator<Item = Affine>) {
        let first = self.rows.len();
        self.rows.extend(rows);
        let end = self.rows.len();
        match self.sections.last_mut() {
            _ if end == first => {}
            Some((last, old)) if *last == cone && matches!(cone, Cone::Zero | Cone::Nonnegative) => old.end = end,
            _ => self.sections.push((cone, first..end)),
        }
    }

    /// Replaces columns by affine functions of the other columns and takes them out.
    ///
    /// Had each column been kept with a row that sets it equal to its function, stationarity in the column would make
    /// that row's weight −Σ weight · coefficient over the rows that use the column; the answer can compute it.
    pub fn substitute(&mut self, columns: Range<usize>, functions: &[Affine]) -> Substitution {
        let (first, count) = (columns.start, columns.len());
        let place = |column: usize| if column < first { column } else { column - count };
        let mut uses = Vec::new();
        let mut sums = vec![0.0; self.width()];
        for (i, row) in self.rows.iter_mut().enumerate() {
            let mut touched = Vec::new();
            let mut add = |column: usize, x: f64| {
                if sums[column] == 0.0 {
                    touched.push(column);
                }
                sums[column] += x;
            };
            for (column, x) in std::mem::take(&mut row.terms) {
                if columns.contains(&column) {
                    let function = &functions[column - first];
                    uses.push((i, column - first, x));
                    row.constant += x * function.constant;
                    function.terms.iter().for_each(|(at, y)| add(place(*at), x * y));
                } else {
                    add(place(column), x);
                }
            }
            touched.sort_unstable();
            touched.dedup();
            row.terms = touched.into_iter().map(|column| (column, std::mem::take(&mut sums[column]))).collect();
        }
        self.objective.drain(columns);
        Substitution { count, uses }
    }

    /// out += Gᵀw over some rows.
    pub fn pull<T: Scalar>(&self, rows: Range<usize>, w: &[T], out: &mut [T]) {
        for (row, w) in self.rows[rows].iter().zip(w).filter(|(_, w)| **w != T::default()) {
            row.terms.iter().for_each(|(column, x)| out[*column] += w.times(*x));
        }
    }

    /// matrix += Σ weight · row rowᵀ over single rows, those with many terms as one product.
    pub fn add_gram<T: Scalar>(&self, weighted: &[(usize, T)], matrix: &mut Table<T>) {
        let n = self.width();
        let many = |row: usize| self.rows[row].terms.len() * MANY > n;
        let (dense, sparse): (Vec<_>, Vec<_>) =
            weighted.iter().copied().partition(|(row, weight)| many(*row) && *weight >= T::default());
        for (row, weight) in sparse {
            let terms = &self.rows[row].terms;
            for (i, a) in terms {
                let factor = weight.times(*a);
                terms.iter().for_each(|(j, b)| matrix[(*i, *j)] += factor.times(*b));
            }
        }
        if dense.is_empty() {
            return;
        }
        let mut rows = Matrix::zeros(dense.len(), n);
        for (i, (row, _)) in dense.iter().enumerate() {
            self.rows[*row].terms.iter().for_each(|(column, x)| rows[(i, *column)] += x);
        }
        let weights: Vec<T> = dense.into_iter().map(|(_, weight)| weight).collect();
        T::add_gram(&mut matrix.data, &rows, &weights);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_substituted_column_disappears_and_its_multiplier_is_found() {
        // rows: 2a + b − 1, a with columns (t, a, b); then a := 3 + 4t
        let mut program = Program::default();
        assert_eq!(program.columns(3), 0..3);
        let rows = [Affine::constant(-1.0).plus(1, 2.0).plus(2, 1.0), Affine::term(1, 1.0)];
        program.require(Cone::Nonnegative, rows);
        let substitution = program.substitute(1..2, &[Affine::constant(3.0).plus(0, 4.0)]);
        assert_eq!(program.width(), 2);
        let at: Vec<f64> = program.rows.iter().map(|row| row.at(&[10.0, 7.0])).collect();
        assert_eq!(at, [2.0 * 43.0 + 7.0 - 1.0, 43.0]);
        assert_eq!(substitution.multipliers(&[5.0, 100.0]), [-110.0]);
    }

    #[test]
    fn sparse_and_dense_rows_add_the_same_products() {
        let mut program = Program::default();
        program.columns(9);
        let long = (0..9).fold(Affine::default(), |row, j| row.plus(j, j as f64 - 3.5));
        program.require(Cone::Nonnegative, [Affine::term(2, 3.0).plus(5, -1.0), long]);
        let mut matrix = Matrix::zeros(9, 9);
        program.add_gram(&[(0, 2.0), (1, 0.5)], &mut matrix);
        for ((i, j), expected) in [((2, 5), 2.0 * -3.0 + 0.5 * -1.5 * 1.5), ((0, 8), 0.5 * -3.5 * 4.5)] {
            assert!((matrix[(i, j)] - expected).abs() < 1e-14 && (matrix[(j, i)] - expected).abs() < 1e-14);
        }
    }
}
