//! Errors of the core as exceptions: one class per kind, in `outlive._errors`.

use outlive::{Error, ErrorKind};
use pyo3::conversion::FromPyObjectOwned;
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// What calls of the core answer.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception of the error's kind.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> OrRaise<T> for outlive::Result<T> {
    #[inline]
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|e| raise(&e))
    }
}

/// The exception of an error.
#[cold]
pub(crate) fn raise(e: &Error) -> PyErr {
    let name = format!("{:?}", e.kind());
    let made = Python::attach(|py| -> PyResult<PyErr> {
        let classes = py.import("outlive._errors")?;
        let class = match classes.getattr(name.as_str()) {
            Ok(class) => class,
            Err(_) => classes.getattr("Error")?,
        };
        let class = class.cast_into::<PyType>().map_err(PyErr::from)?;
        let facts = PyDict::new(py);
        facts.set_item("object", e.object())?;
        facts.set_item("remedy", e.remedy())?;
        let exception = class.call((e.to_string(),), Some(&facts))?;
        Ok(PyErr::from_value(exception))
    });
    made.unwrap_or_else(|e| e)
}

/// An error that arises here.
#[cold]
pub(crate) fn fail(kind: ErrorKind, what: &str, object: &str, remedy: &str) -> PyErr {
    raise(&Error::new(kind, what, object, remedy))
}

/// A whole number from Python: how many of something, or how many bytes.
pub(crate) fn count<'py, T>(it: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: FromPyObjectOwned<'py, Error = PyErr>,
{
    it.extract().map_err(|e: PyErr| match e.is_instance_of::<PyOverflowError>(it.py()) {
        true => fail(
            ErrorKind::InvalidArgument,
            "taking",
            &format!("the number {it}"),
            "it is out of range: use a whole number from 0 to 2**64 - 1",
        ),
        false => e,
    })
}

/// The same where none was given.
pub(crate) fn some_count<'py, T>(it: &Bound<'py, PyAny>) -> PyResult<Option<T>>
where
    T: FromPyObjectOwned<'py, Error = PyErr>,
{
    if it.is_none() { Ok(None) } else { count(it).map(Some) }
}

/// Seconds from Python, where they are given.
pub(crate) fn some_seconds(it: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let seconds: Option<f64> = it.extract()?;
    match seconds.is_some_and(f64::is_nan) {
        true => Err(fail(ErrorKind::InvalidArgument, "taking", "the time nan", "give seconds")),
        false => Ok(seconds),
    }
}
