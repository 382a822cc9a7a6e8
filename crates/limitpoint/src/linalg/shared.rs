//! Matrices that several hold and nobody changes.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{LinalgError, Matrix};

/// Who owns the numbers of a [`SharedMatrix`] that are not its own; they stay where they are, and what they are, as long
/// as it lives.
pub type Lender = Arc<dyn AsRef<[f64]> + Send + Sync>;

/// A row-major matrix of doubles whose copies share their numbers: its own, or numbers in memory that somebody else owns.
///
/// ```
/// use std::sync::Arc;
/// use limitpoint::linalg::{Matrix, SharedMatrix};
/// let lender = Arc::new(vec![1.0, 2.0, 3.0, 4.0]); // or an array of another program
/// let lent = SharedMatrix::lent(2, 2, lender.clone())?;
/// assert_eq!(lent.entries().as_ptr(), lender.as_ptr());
/// assert_eq!(lent, SharedMatrix::from(Matrix::from_rows(&[&[1.0, 2.0], &[3.0, 4.0]])));
/// let mut own = lent.clone();
/// own.change(|matrix| matrix.data[0] = 7.0); // it has numbers of its own from here on
/// assert_eq!((own.row(0), lent.row(0)), (&[7.0, 2.0][..], &[1.0, 2.0][..]));
/// assert_eq!(lent.part(1..2).entries().as_ptr(), &raw const lender[2]);
/// assert!(SharedMatrix::lent(2, 3, lender).is_err());
/// # Ok::<(), limitpoint::linalg::LinalgError>(())
/// ```
#[derive(Clone)]
pub struct SharedMatrix {
    rows: usize,
    cols: usize,
    entries: Entries,
}

#[derive(Clone)]
enum Entries {
    Own(Arc<Matrix>),
    Lent(Lender),
}

impl SharedMatrix {
    /// Numbers of somebody else, row by row.
    pub fn lent(rows: usize, cols: usize, lender: Lender) -> Result<Self, LinalgError> {
        let found = (*lender).as_ref().len();
        match rows.checked_mul(cols) {
            Some(expected) if expected == found => Ok(Self { rows, cols, entries: Entries::Lent(lender) }),
            expected => Err(LinalgError::Shape {
                what: "the lent numbers of a matrix",
                found,
                expected: expected.unwrap_or(usize::MAX),
            }),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All entries, row by row.
    pub fn entries(&self) -> &[f64] {
        match &self.entries {
            Entries::Own(matrix) => &matrix.data,
            Entries::Lent(lender) => (**lender).as_ref(),
        }
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.entries()[i * self.cols..(i + 1) * self.cols]
    }

    /// Some of its rows, which must exist; no number is copied.
    pub fn part(&self, rows: Range<usize>) -> Self {
        let (count, entries) = (rows.len(), rows.start * self.cols..rows.end * self.cols);
        let lender = Arc::new(Part { whole: self.clone(), entries });
        Self { rows: count, cols: self.cols, entries: Entries::Lent(lender) }
    }

    /// As a matrix; numbers that are lent are copied.
    pub fn matrix(&self) -> Cow<'_, Matrix> {
        match &self.entries {
            Entries::Own(matrix) => Cow::Borrowed(matrix),
            Entries::Lent(_) => Cow::Owned(Matrix { rows: self.rows, cols: self.cols, data: self.entries().to_vec() }),
        }
    }

    /// Changes the numbers: of a copy, unless they are its own and no other has them.
    pub fn change(&mut self, work: impl FnOnce(&mut Matrix)) {
        if matches!(self.entries, Entries::Lent(_)) {
            *self = self.matrix().into_owned().into();
        }
        let Entries::Own(own) = &mut self.entries else { return };
        work(Arc::make_mut(own));
        (self.rows, self.cols) = (own.rows, own.cols);
    }
}

/// Some entries of a matrix, as a lender.
struct Part {
    whole: SharedMatrix,
    entries: Range<usize>,
}

impl AsRef<[f64]> for Part {
    fn as_ref(&self) -> &[f64] {
        &self.whole.entries()[self.entries.clone()]
    }
}

impl From<Matrix> for SharedMatrix {
    fn from(matrix: Matrix) -> Self {
        Self { rows: matrix.rows, cols: matrix.cols, entries: Entries::Own(Arc::new(matrix)) }
    }
}

impl std::ops::Index<(usize, usize)> for SharedMatrix {
    type Output = f64;
    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.entries()[i * self.cols + j]
    }
}

impl PartialEq for SharedMatrix {
    fn eq(&self, other: &Self) -> bool {
        (self.rows, self.cols) == (other.rows, other.cols) && self.entries() == other.entries()
    }
}

impl fmt::Debug for SharedMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedMatrix {} x {} {:?}", self.rows, self.cols, self.entries())
    }
}
