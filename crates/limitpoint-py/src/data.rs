//! Arrays as data sets.
//!
//! A dense array in C order lends its numbers: nothing is copied on its way in, and the array lives as long as anybody
//! looks at them. A lent array is sealed, so that a run whose data were changed behind its back says so.

use std::sync::Arc;

use limitpoint::data::{Dataset, Inputs, Targets};
use limitpoint::linalg::{SharedMatrix, SparseMatrix};
use numpy::{PyArray2, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::convert::{Error, refuse};

/// Labelled examples, checked once and shared by all that is done with them.
#[pyclass(frozen, module = "limitpoint._core")]
pub struct Data {
    /// The examples.
    pub inner: Arc<Dataset>,
    /// Over the numbers that an array lends.
    pub seal: Option<u64>,
}

/// An array of NumPy that lends its numbers.
struct Lender {
    /// Keeps them alive.
    _array: Py<PyArray2<f64>>,
    start: *const f64,
    count: usize,
}

// SAFETY: the pointer is only read through, and the array it points into is released by whoever drops it last, which `Py` may be
// by any thread.
unsafe impl Send for Lender {}
// SAFETY: as above.
unsafe impl Sync for Lender {}

impl AsRef<[f64]> for Lender {
    fn as_ref(&self) -> &[f64] {
        // SAFETY: `start` and `count` are a slice of an array that is alive and in C order, and NumPy moves no array that
        // somebody refers to; numbers that are changed in place are other numbers, and the seal tells.
        unsafe { std::slice::from_raw_parts(self.start, self.count) }
    }
}

/// A number that changes with the numbers.
fn seal(data: &Dataset) -> Option<u64> {
    let Inputs::Dense(inputs) = &data.inputs else { return None };
    let mix = |sum: u64, x: &f64| (sum.rotate_left(5) ^ x.to_bits()).wrapping_mul(0x517c_c1b7_2722_0a95);
    Some(inputs.entries().iter().fold(0, mix))
}

/// Refuses data whose lent numbers are not what they were when they were sealed.
pub fn unchanged(data: &Dataset, sealed: Option<u64>) -> PyResult<()> {
    match sealed {
        Some(_) if seal(data) != sealed => Err(Error::new_err(
            "the array of the data was changed in place after it was handed over, and it was not copied; hand over \
             X.copy() where X changes later",
        )),
        _ => Ok(()),
    }
}

#[pymethods]
impl Data {
    /// Examples as the rows of a matrix in C order, which is not copied. `kind` of the targets is binary (−1, +1), classes (0, 1, …) or values.
    /// Data that are used once, before anybody else sees the array, need no seal.
    #[staticmethod]
    #[pyo3(signature = (inputs, targets, kind, shape, name, sealed=true))]
    fn dense(
        inputs: PyReadonlyArray2<'_, f64>,
        targets: PyReadonlyArray1<'_, f64>,
        kind: &str,
        shape: Vec<usize>,
        name: &str,
        sealed: bool,
    ) -> PyResult<Self> {
        let [rows, cols] = [inputs.as_array().nrows(), inputs.as_array().ncols()];
        let entries = inputs.as_slice()?;
        let (start, count) = (entries.as_ptr(), entries.len());
        let lender = Lender { _array: (*inputs).clone().unbind(), start, count };
        let matrix = SharedMatrix::lent(rows, cols, Arc::new(lender)).map_err(refuse)?;
        let data = Self::of(matrix.into(), &targets, kind, shape, name)?;
        Ok(Self { seal: if sealed { seal(&data.inner) } else { None }, ..data })
    }

    /// Examples as compressed sparse rows: starts of the rows, columns in increasing order, values.
    #[staticmethod]
    #[pyo3(signature = (columns, starts, indices, values, targets, kind, name))]
    fn sparse(
        columns: usize,
        starts: PyReadonlyArray1<'_, i64>,
        indices: PyReadonlyArray1<'_, i64>,
        values: PyReadonlyArray1<'_, f64>,
        targets: PyReadonlyArray1<'_, f64>,
        kind: &str,
        name: &str,
    ) -> PyResult<Self> {
        let place = |index: &i64| Error::new_err(format!("{index} is no row or column of a sparse matrix"));
        let starts = starts.as_slice()?.iter().map(|i| usize::try_from(*i).map_err(|_| place(i)));
        let indices = indices.as_slice()?.iter().map(|i| u32::try_from(*i).map_err(|_| place(i)));
        let (starts, indices) = (starts.collect::<PyResult<_>>()?, indices.collect::<PyResult<_>>()?);
        let matrix = SparseMatrix::from_parts(columns, starts, indices, values.as_slice()?.to_vec()).map_err(refuse)?;
        Self::of(matrix.into(), &targets, kind, vec![columns], name)
    }

    /// Number of examples.
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Number of inputs of an example.
    #[getter]
    fn dimension(&self) -> usize {
        self.inner.dimension()
    }

    /// binary, class or real.
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.targets.kind()
    }
}

impl Data {
    fn of(
        inputs: Inputs,
        targets: &PyReadonlyArray1<'_, f64>,
        kind: &str,
        shape: Vec<usize>,
        name: &str,
    ) -> PyResult<Self> {
        let targets = targets.as_slice()?;
        let targets = match kind {
            "binary" => Targets::Binary(targets.to_vec()),
            "values" => Targets::Values(targets.to_vec()),
            "classes" => {
                let whole = |y: &f64| match *y {
                    y if y >= 0.0 && y.fract() == 0.0 && y < 4_294_967_296.0 => Ok(y as usize),
                    y => Err(Error::new_err(format!("{y} is no class; classes are 0, 1, 2, …"))),
                };
                let labels = targets.iter().map(whole).collect::<PyResult<Vec<usize>>>()?;
                let count = labels.iter().max().map_or(0, |most| most + 1).max(2);
                Targets::Classes { labels, count }
            }
            other => return Err(Error::new_err(format!("targets are binary, classes or values, not {other}"))),
        };
        let data = Dataset::new(name, inputs, targets, shape).map_err(refuse)?;
        Ok(Self { inner: Arc::new(data), seal: None })
    }
}
