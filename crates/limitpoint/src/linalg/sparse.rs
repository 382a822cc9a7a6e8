//! Matrices with few entries that are not zero.

use std::ops::Range;

use super::{LinalgError, Matrix};

/// A matrix in compressed rows: only what is not zero is stored, row after row, by increasing column.
///
/// ```text
/// row i = { (columns[k], values[k]) : starts[i] ≤ k < starts[i + 1] }
/// ```
///
/// A stored entry takes 12 bytes, a row 8, a column nothing. Zeros are never stored, so that equal matrices compare
/// equal. There are at most 2³² − 1 rows and columns.
///
/// ```
/// use limitpoint::linalg::SparseMatrix;
/// let a = SparseMatrix::from_triplets(2, 4, &[(1, 3, 5.0), (0, 2, -1.0), (1, 0, 2.0)])?;
/// assert_eq!(a.row(1), (&[0, 3][..], &[2.0, 5.0][..]));
/// assert_eq!(a.transpose().row(3), (&[1][..], &[5.0][..]));
/// assert_eq!(a.row_dot(1, &[1.0, 1.0, 1.0, 10.0]), 52.0);
/// # Ok::<(), limitpoint::linalg::LinalgError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SparseMatrix {
    rows: usize,
    cols: usize,
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
}

impl SparseMatrix {
    /// From compressed rows; checks that the starts increase and that columns increase along every row. Zeros are
    /// dropped.
    pub fn from_parts(
        cols: usize,
        starts: Vec<usize>,
        columns: Vec<u32>,
        values: Vec<f64>,
    ) -> Result<Self, LinalgError> {
        if columns.len() != values.len() {
            let (what, found) = ("the list of columns of a sparse matrix", columns.len());
            return Err(LinalgError::Shape { what, found, expected: values.len() });
        }
        let ordered = starts.first() == Some(&0) && starts.windows(2).all(|pair| pair[0] <= pair[1]);
        if !ordered || starts.last() != Some(&values.len()) {
            let (what, found) = ("the last row of a sparse matrix", starts.last().copied().unwrap_or(0));
            return Err(LinalgError::Shape { what, found, expected: values.len() });
        }
        check_side(cols)?;
        check_side(starts.len() - 1)?;
        let mut matrix = Self { rows: starts.len() - 1, cols, starts, columns, values };
        for row in 0..matrix.rows {
            let columns = matrix.row(row).0;
            let beyond = columns.iter().find(|&&column| column as usize >= cols);
            let again = columns.windows(2).find(|pair| pair[0] >= pair[1]).map(|pair| &pair[1]);
            if let Some(&column) = beyond.or(again) {
                return Err(LinalgError::SparseEntry { row, column: column as usize, rows: matrix.rows, cols });
            }
        }
        matrix.drop_zeros();
        Ok(matrix)
    }

    /// From entries (row, column, value) in any order, each place at most once.
    pub fn from_triplets(rows: usize, cols: usize, entries: &[(usize, usize, f64)]) -> Result<Self, LinalgError> {
        check_side(rows)?;
        check_side(cols)?;
        if let Some(&(row, column, _)) = entries.iter().find(|(row, column, _)| *row >= rows || *column >= cols) {
            return Err(LinalgError::SparseEntry { row, column, rows, cols });
        }
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&k| (entries[k].0, entries[k].1));
        let mut starts = vec![0; rows + 1];
        entries.iter().for_each(|entry| starts[entry.0 + 1] += 1);
        (0..rows).for_each(|i| starts[i + 1] += starts[i]);
        let columns = order.iter().map(|&k| entries[k].1 as u32).collect();
        Self::from_parts(cols, starts, columns, order.iter().map(|&k| entries[k].2).collect())
    }

    /// What is not zero in a dense matrix.
    pub fn from_dense(dense: &Matrix) -> Result<Self, LinalgError> {
        check_side(dense.rows)?;
        check_side(dense.cols)?;
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..dense.rows {
            for (j, &value) in dense.row(i).iter().enumerate().filter(|(_, value)| **value != 0.0) {
                columns.push(j as u32);
                values.push(value);
            }
            starts.push(values.len());
        }
        Ok(Self { rows: dense.rows, cols: dense.cols, starts, columns, values })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of stored entries.
    pub fn stored(&self) -> usize {
        self.values.len()
    }

    /// Where each row starts, and where the last one ends.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The columns of all stored entries, row after row.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// The values of all stored entries, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Columns and values of row `i`.
    pub fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let range = self.starts[i]..self.starts[i + 1];
        (&self.columns[range.clone()], &self.values[range])
    }

    /// The entry in row `i` and column `j`.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        let (columns, values) = self.row(i);
        columns.binary_search_by(|column| (*column as usize).cmp(&j)).map_or(0.0, |at| values[at])
    }

    /// Replaces every stored value of row `i` by `change(value)`; one that becomes 0 stays stored.
    pub fn map_row(&mut self, i: usize, change: impl Fn(f64) -> f64) {
        self.values[self.starts[i]..self.starts[i + 1]].iter_mut().for_each(|x| *x = change(*x));
    }

    /// ⟨row i, v⟩, summed in four fixed lanes.
    #[inline]
    pub fn row_dot(&self, i: usize, v: &[f64]) -> f64 {
        let (columns, values) = self.row(i);
        let (wide_columns, rest_columns) = columns.as_chunks::<4>();
        let (wide_values, rest_values) = values.as_chunks::<4>();
        let mut lanes = [0.0; 4];
        for (j, x) in wide_columns.iter().zip(wide_values) {
            for lane in 0..4 {
                lanes[lane] += x[lane] * v[j[lane] as usize];
            }
        }
        let tail: f64 = rest_columns.iter().zip(rest_values).map(|(&j, x)| x * v[j as usize]).sum();
        (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) + tail
    }

    /// out ← out + factor · row i.
    #[inline]
    pub fn add_row(&self, i: usize, factor: f64, out: &mut [f64]) {
        let (columns, values) = self.row(i);
        columns.iter().zip(values).for_each(|(&j, x)| out[j as usize] += factor * x);
    }

    /// ⟨row i, row j⟩, by merging the two.
    pub fn rows_dot(&self, i: usize, j: usize) -> f64 {
        let ((left, a), (right, b)) = (self.row(i), self.row(j));
        let (mut k, mut l, mut sum) = (0, 0, 0.0);
        while k < left.len() && l < right.len() {
            match left[k].cmp(&right[l]) {
                std::cmp::Ordering::Less => k += 1,
                std::cmp::Ordering::Greater => l += 1,
                std::cmp::Ordering::Equal => {
                    sum += a[k] * b[l];
                    (k, l) = (k + 1, l + 1);
                }
            }
        }
        sum
    }

    /// The transposed copy, by counting; its rows are the columns of this matrix.
    pub fn transpose(&self) -> Self {
        let mut starts = vec![0; self.cols + 1];
        self.columns.iter().for_each(|&j| starts[j as usize + 1] += 1);
        (0..self.cols).for_each(|j| starts[j + 1] += starts[j]);
        let mut next = starts.clone();
        let (mut columns, mut values) = (vec![0; self.stored()], vec![0.0; self.stored()]);
        for i in 0..self.rows {
            let (own, entries) = self.row(i);
            for (&j, &value) in own.iter().zip(entries) {
                let place = &mut next[j as usize];
                (columns[*place], values[*place]) = (i as u32, value);
                *place += 1;
            }
        }
        Self { rows: self.cols, cols: self.rows, starts, columns, values }
    }

    /// The rows at `indices`, in that order.
    pub fn select(&self, indices: &[usize]) -> Self {
        let stored = indices.iter().map(|&i| self.starts[i + 1] - self.starts[i]).sum();
        let (mut starts, mut columns, mut values) =
            (Vec::with_capacity(indices.len() + 1), Vec::with_capacity(stored), Vec::with_capacity(stored));
        starts.push(0);
        for &i in indices {
            let (own, entries) = self.row(i);
            columns.extend_from_slice(own);
            values.extend_from_slice(entries);
            starts.push(values.len());
        }
        Self { rows: indices.len(), cols: self.cols, starts, columns, values }
    }

    /// The dense copy.
    pub fn to_dense(&self) -> Matrix {
        let mut dense = Matrix::zeros(self.rows, self.cols);
        (0..self.rows).for_each(|i| self.add_row(i, 1.0, dense.row_mut(i)));
        dense
    }

    /// The rows that `part` of `parts` takes, so that all parts hold about as many rows and entries together.
    pub fn share(&self, part: usize, parts: usize) -> Range<usize> {
        let border = |part: usize| {
            let target = (self.stored() + self.rows) * part / parts;
            let (mut low, mut high) = (0, self.rows);
            while low < high {
                let middle = low.midpoint(high);
                if self.starts[middle] + middle < target { low = middle + 1 } else { high = middle }
            }
            low
        };
        border(part)..border(part + 1)
    }

    fn drop_zeros(&mut self) {
        if self.values.iter().all(|value| *value != 0.0) {
            return;
        }
        let mut kept = 0;
        for i in 0..self.rows {
            let range = self.starts[i]..self.starts[i + 1];
            self.starts[i] = kept;
            for k in range {
                if self.values[k] != 0.0 {
                    (self.columns[kept], self.values[kept]) = (self.columns[k], self.values[k]);
                    kept += 1;
                }
            }
        }
        self.starts[self.rows] = kept;
        self.columns.truncate(kept);
        self.values.truncate(kept);
    }
}

/// Indices have 32 bits.
fn check_side(length: usize) -> Result<(), LinalgError> {
    if u32::try_from(length).is_err() {
        let what = "a row or column of a sparse matrix";
        return Err(LinalgError::Shape { what, found: length, expected: u32::MAX as usize });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::linalg::{dot, matmul_nt};

    /// Small matrices of which about two thirds are zero.
    fn mostly_zero() -> impl Strategy<Value = Matrix> {
        (1_usize..9, 1_usize..12).prop_flat_map(|(rows, cols)| {
            proptest::collection::vec(prop_oneof![2 => Just(0.0), 1 => -9.0..9.0_f64], rows * cols)
                .prop_map(move |data| Matrix { rows, cols, data })
        })
    }

    proptest! {
        #[test]
        fn everything_agrees_with_the_dense_matrix(dense in mostly_zero(), shift in 0_usize..7) {
            let sparse = SparseMatrix::from_dense(&dense).unwrap();
            prop_assert_eq!(&sparse.to_dense(), &dense);
            prop_assert_eq!(sparse.transpose().to_dense(), dense.transpose());
            prop_assert_eq!(&sparse.transpose().transpose(), &sparse);
            let mut entries: Vec<(usize, usize, f64)> = (0..dense.rows * dense.cols)
                .map(|k| (k / dense.cols, k % dense.cols, dense.data[k]))
                .collect();
            entries.rotate_left(shift.min(dense.data.len()));
            prop_assert_eq!(&SparseMatrix::from_triplets(dense.rows, dense.cols, &entries).unwrap(), &sparse);
            let v: Vec<f64> = (0..dense.cols).map(|j| 0.3 * j as f64 - 1.0).collect();
            let mut gram = vec![0.0; dense.rows * dense.rows];
            matmul_nt(&mut gram, &dense.data, &dense.data, dense.rows, dense.cols, dense.rows);
            for i in 0..dense.rows {
                prop_assert!((sparse.row_dot(i, &v) - dot(dense.row(i), &v)).abs() < 1e-12);
                let mut sum = v.clone();
                sparse.add_row(i, -2.0, &mut sum);
                for j in 0..dense.cols {
                    prop_assert_eq!(sum[j], v[j] - 2.0 * dense[(i, j)]);
                    prop_assert_eq!(sparse.get(i, j), dense[(i, j)]);
                }
                for j in 0..dense.rows {
                    prop_assert!((sparse.rows_dot(i, j) - gram[i * dense.rows + j]).abs() < 1e-11);
                }
            }
            let indices: Vec<usize> = (0..2 * dense.rows).map(|i| (i + shift) % dense.rows).collect();
            let chosen = sparse.select(&indices);
            for (n, &i) in indices.iter().enumerate() {
                prop_assert_eq!(chosen.row(n), sparse.row(i));
            }
        }

        #[test]
        fn shares_cover_the_rows_once_and_evenly(dense in mostly_zero(), parts in 1_usize..5) {
            let sparse = SparseMatrix::from_dense(&dense).unwrap();
            let shares: Vec<Range<usize>> = (0..parts).map(|part| sparse.share(part, parts)).collect();
            prop_assert_eq!(shares.iter().cloned().flatten().collect::<Vec<_>>(), (0..dense.rows).collect::<Vec<_>>());
            let work = |range: &Range<usize>| sparse.starts[range.end] - sparse.starts[range.start] + range.len();
            let even = (sparse.stored() + dense.rows) / parts;
            prop_assert!(shares.iter().all(|range| work(range) <= even + dense.cols + 2));
        }
    }

    #[test]
    fn damaged_parts_are_refused_with_their_place() {
        let parts = |cols, starts: &[usize], columns: &[u32], values: &[f64]| {
            SparseMatrix::from_parts(cols, starts.to_vec(), columns.to_vec(), values.to_vec())
        };
        assert!(parts(3, &[0, 2, 3], &[0, 2, 1], &[1.0; 3]).is_ok());
        for (starts, columns) in [
            (&[0, 2, 3][..], &[0, 3, 1][..]), // no fourth column
            (&[0, 2, 3], &[2, 0, 1]),         // falling
            (&[0, 2, 3], &[1, 1, 1]),         // twice the same
        ] {
            let error = parts(3, starts, columns, &[1.0; 3]).unwrap_err();
            assert!(matches!(error, LinalgError::SparseEntry { row: 0, rows: 2, cols: 3, .. }), "{error}");
        }
        for (starts, columns) in [(&[][..], &[0, 1, 2][..]), (&[1, 3], &[0, 1, 2]), (&[0, 2], &[0, 1, 2])] {
            assert!(matches!(parts(3, starts, columns, &[1.0; 3]), Err(LinalgError::Shape { .. })));
        }
        assert!(parts(3, &[0, 3, 2, 3], &[0, 1, 2], &[1.0; 3]).is_err());
        assert!(parts(3, &[0, 2], &[0, 1], &[1.0; 3]).is_err());
        assert!(parts(1 << 32, &[0], &[], &[]).is_err());
        let error = SparseMatrix::from_triplets(2, 2, &[(2, 0, 1.0)]).unwrap_err().to_string();
        assert!(error.contains("(2, 0)") && error.contains("2x2"), "{error}");
        assert!(SparseMatrix::from_triplets(2, 2, &[(1, 1, 1.0), (1, 1, 2.0)]).is_err());
    }

    #[test]
    fn zeros_are_not_stored() {
        let a = SparseMatrix::from_parts(3, vec![0, 2, 2, 4], vec![0, 1, 0, 2], vec![0.0, 1.0, 2.0, -0.0]).unwrap();
        assert_eq!((a.starts(), a.columns(), a.values()), (&[0, 1, 1, 2][..], &[1, 0][..], &[1.0, 2.0][..]));
    }
}
