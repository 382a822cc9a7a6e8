//! The inputs of all examples, dense or sparse.

use std::borrow::Cow;
use std::sync::Arc;

use crate::linalg::{Matrix, SharedMatrix, SparseMatrix, add_scaled, dot};

/// The most entries a dense copy of sparse inputs may have (400 MB).
const LARGEST_COPY: usize = 50_000_000;

/// One example per row.
///
/// Copies share their numbers, and so do the models bound to them. Sparse inputs cost memory and time by the entries that
/// are not zero; dense ones may lie in memory that somebody else owns ([`SharedMatrix::lent`]).
///
/// ```
/// use limitpoint::data::Inputs;
/// use limitpoint::linalg::{Matrix, SparseMatrix};
/// let dense = Inputs::from(Matrix::from_rows(&[&[0.0, 3.0], &[1.0, 0.0]]));
/// let sparse = Inputs::from(SparseMatrix::from_triplets(2, 2, &[(0, 1, 3.0), (1, 0, 1.0)])?);
/// for inputs in [dense, sparse] {
///     assert_eq!((inputs.rows(), inputs.cols()), (2, 2));
///     assert_eq!(inputs.row_dot(0, &[5.0, 7.0]), 21.0);
/// }
/// # Ok::<(), limitpoint::linalg::LinalgError>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub enum Inputs {
    /// All entries.
    Dense(SharedMatrix),
    /// Entries that are not zero.
    Sparse(Arc<SparseMatrix>),
}

impl From<Matrix> for Inputs {
    fn from(inputs: Matrix) -> Self {
        Self::Dense(inputs.into())
    }
}

impl From<SharedMatrix> for Inputs {
    fn from(inputs: SharedMatrix) -> Self {
        Self::Dense(inputs)
    }
}

impl From<&Matrix> for Inputs {
    fn from(inputs: &Matrix) -> Self {
        inputs.clone().into()
    }
}

impl From<&Inputs> for Inputs {
    fn from(inputs: &Inputs) -> Self {
        inputs.clone()
    }
}

impl From<SparseMatrix> for Inputs {
    fn from(inputs: SparseMatrix) -> Self {
        Self::Sparse(Arc::new(inputs))
    }
}

impl Inputs {
    /// Number of examples.
    pub fn rows(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.rows(),
            Self::Sparse(matrix) => matrix.rows(),
        }
    }

    /// Number of inputs of an example.
    pub fn cols(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.cols(),
            Self::Sparse(matrix) => matrix.cols(),
        }
    }

    /// Number of entries in memory.
    pub fn stored(&self) -> usize {
        match self {
            Self::Dense(matrix) => matrix.entries().len(),
            Self::Sparse(matrix) => matrix.stored(),
        }
    }

    /// Whether only entries that are not zero are stored.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Self::Sparse(_))
    }

    /// ⟨xᵢ, v⟩.
    pub fn row_dot(&self, i: usize, v: &[f64]) -> f64 {
        match self {
            Self::Dense(matrix) => dot(matrix.row(i), v),
            Self::Sparse(matrix) => matrix.row_dot(i, v),
        }
    }

    /// out ← out + factor · xᵢ.
    pub fn add_row(&self, i: usize, factor: f64, out: &mut [f64]) {
        match self {
            Self::Dense(matrix) => add_scaled(out, factor, matrix.row(i)),
            Self::Sparse(matrix) => matrix.add_row(i, factor, out),
        }
    }

    /// The examples at `indices`, in that order.
    pub(super) fn select(&self, indices: &[usize]) -> Self {
        match self {
            Self::Dense(matrix) => {
                let mut data = Vec::with_capacity(indices.len() * matrix.cols());
                indices.iter().for_each(|&i| data.extend_from_slice(matrix.row(i)));
                Matrix { rows: indices.len(), cols: matrix.cols(), data }.into()
            }
            Self::Sparse(matrix) => matrix.select(indices).into(),
        }
    }

    /// Row, column and value of the first entry that is not finite.
    pub(super) fn first_not_finite(&self) -> Option<(usize, usize, f64)> {
        match self {
            Self::Dense(matrix) => {
                let at = matrix.entries().iter().position(|x| !x.is_finite())?;
                Some((at / matrix.cols(), at % matrix.cols(), matrix.entries()[at]))
            }
            Self::Sparse(matrix) => {
                let at = matrix.values().iter().position(|x| !x.is_finite())?;
                let row = matrix.starts().partition_point(|&start| start <= at) - 1;
                Some((row, matrix.columns()[at] as usize, matrix.values()[at]))
            }
        }
    }

    /// x ← change(i, x) for every input x of every example i, where `change` keeps 0.
    pub(super) fn map_rows(&mut self, change: impl Fn(usize, f64) -> f64) {
        match self {
            Self::Dense(matrix) => matrix.change(|matrix| {
                (0..matrix.rows).for_each(|i| matrix.row_mut(i).iter_mut().for_each(|x| *x = change(i, *x)));
            }),
            Self::Sparse(matrix) => {
                let matrix = Arc::make_mut(matrix);
                (0..matrix.rows()).for_each(|i| matrix.map_row(i, |x| change(i, x)));
            }
        }
    }
}

/// Sparse inputs where dense ones are needed and too large to be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name}: this needs dense inputs, but these are sparse, and {rows} x {columns} dense entries are more than \
     {LARGEST_COPY}; use fewer examples or features, or something that works on sparse inputs"
)]
pub struct NeedsDense {
    /// Which dataset.
    pub name: String,
    /// Number of examples.
    pub rows: usize,
    /// Number of inputs of an example.
    pub columns: usize,
}

impl super::Dataset {
    /// The inputs as a dense matrix: those there are, or a copy of lent ones, or of sparse ones of up to 5·10⁷ entries.
    ///
    /// ```
    /// use limitpoint::data::{Dataset, Targets};
    /// use limitpoint::linalg::SparseMatrix;
    /// let labels = || Targets::Binary(vec![1.0]);
    /// let small = Dataset::new("small", SparseMatrix::from_triplets(1, 3, &[(0, 1, 2.0)])?, labels(), vec![3])?;
    /// assert_eq!(small.dense()?.row(0), [0.0, 2.0, 0.0]);
    /// let (wide, d) = (SparseMatrix::from_triplets(1, 100_000_000, &[(0, 1, 2.0)])?, 100_000_000);
    /// assert!(Dataset::new("wide", wide, labels(), vec![d])?.dense().is_err());
    /// # Ok::<(), limitpoint::Error>(())
    /// ```
    pub fn dense(&self) -> Result<Cow<'_, Matrix>, NeedsDense> {
        match &self.inputs {
            Inputs::Dense(matrix) => Ok(matrix.matrix()),
            Inputs::Sparse(matrix) => {
                let (rows, columns) = (matrix.rows(), matrix.cols());
                if rows.checked_mul(columns).is_none_or(|entries| entries > LARGEST_COPY) {
                    return Err(NeedsDense { name: self.name.clone(), rows, columns });
                }
                Ok(Cow::Owned(matrix.to_dense()))
            }
        }
    }
}
