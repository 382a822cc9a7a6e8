//! JSON as Python objects, errors as exceptions.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3::{IntoPyObjectExt, create_exception};
use serde::Serialize;
use serde_json::Value;

create_exception!(
    limitpoint,
    Error,
    PyValueError,
    "What limitpoint refuses, with the value, the place and the remedy."
);
create_exception!(limitpoint, Damaged, Error, "A file of a run or a certificate is damaged or was tampered with.");

/// An error of the library, with all its causes, as a Python exception.
pub fn refuse(error: impl Into<anyhow::Error>) -> PyErr {
    let error = error.into();
    let mut message = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !message.contains(&cause) {
            message += &format!("; caused by: {cause}");
        }
    }
    match error.chain().any(limitpoint::experiments::is_damage) {
        true => Damaged::new_err(message),
        false => Error::new_err(message),
    }
}

/// A value of the library as Python's own dictionaries, lists and numbers; what is no number is None.
pub fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    convert(py, &serde_json::to_value(value).map_err(refuse)?)
}

fn convert<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(truth) => truth.into_bound_py_any(py),
        Value::String(text) => text.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(whole), _, _) => whole.into_bound_py_any(py),
            (None, Some(whole), _) => whole.into_bound_py_any(py),
            (None, None, real) => real.into_bound_py_any(py),
        },
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(convert(py, item)?)?;
            }
            Ok(list.into_any())
        }
        Value::Object(entries) => {
            let dict = PyDict::new(py);
            for (key, item) in entries {
                dict.set_item(key, convert(py, item)?)?;
            }
            Ok(dict.into_any())
        }
    }
}
