//! Arrays as data sets.
//!
//! The library owns the numbers it trains on, so that an array is copied once on its way in; everything that is done with
//! the data afterwards shares that copy.

use std::sync::Arc;

use limitpoint::data::{Dataset, Inputs, Targets};
use limitpoint::linalg::{Matrix, SparseMatrix};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use crate::convert::{Error, refuse};

/// Labelled examples, checked once and shared by all that is done with them.
#[pyclass(frozen, module = "limitpoint._core")]
pub struct Data {
    /// The examples.
    pub inner: Arc<Dataset>,
}

#[pymethods]
impl Data {
    /// Examples as the rows of a matrix in C order. `kind` of the targets is binary (−1, +1), classes (0, 1, …) or values.
    #[staticmethod]
    #[pyo3(signature = (inputs, targets, kind, shape, name))]
    fn dense(
        inputs: PyReadonlyArray2<'_, f64>,
        targets: PyReadonlyArray1<'_, f64>,
        kind: &str,
        shape: Vec<usize>,
        name: &str,
    ) -> PyResult<Self> {
        let [rows, cols] = [inputs.as_array().nrows(), inputs.as_array().ncols()];
        let entries = inputs.as_slice()?.to_vec();
        let matrix = Matrix::from_vec(rows, cols, entries).map_err(refuse)?;
        Self::of(matrix.into(), &targets, kind, shape, name)
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
        Ok(Self { inner: Arc::new(data) })
    }
}
