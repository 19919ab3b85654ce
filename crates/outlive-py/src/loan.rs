//! Writable slots in shared memory.

use std::sync::{Arc, Mutex};

use outlive::{ErrorKind, Loan as CoreLoan};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::codec::Codec;
use crate::error::{OrRaise, fail};
use crate::publisher::Shared;

/// A loan whose publisher `LentBy` keeps.
pub(crate) type Lent = CoreLoan<'static, [u8]>;

/// A loan of the core and the publisher that it refers to.
pub(crate) struct LentBy {
    pub(crate) loan: Option<Lent>,
    pub(crate) data: usize,
    pub(crate) size: usize,
    pub(crate) shared: Arc<Shared>,
}

// SAFETY: the loan is used and dropped behind the gate of `shared` only.
unsafe impl Send for LentBy {}

impl LentBy {
    /// `None`: it is gone, or its publisher is closed.
    fn publish(&mut self) -> Option<outlive::Result<u64>> {
        let loan = self.loan.take()?;
        self.shared.end_loan(loan, Lent::publish)
    }

    fn give_back(&mut self) {
        if let Some(loan) = self.loan.take() {
            self.shared.end_loan(loan, drop);
        }
    }
}

impl Drop for LentBy {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// A writable slot in shared memory, until it is published or dropped.
///
/// Do not keep arrays over it any longer: they become read-only, and their contents change when the
/// memory is used again.
#[pyclass(frozen, module = "outlive")]
pub(crate) struct Loan {
    codec: Py<Codec>,
    lent: Arc<Mutex<LentBy>>,
    /// Arrays that were handed out.
    views: Mutex<Vec<Py<PyAny>>>,
}

/// The base of its arrays. They do not refer to the loan, which refers to them: the garbage
/// collector does not look through arrays.
#[pyclass(frozen, module = "outlive._outlive")]
struct Memory {
    _lent: Arc<Mutex<LentBy>>,
}

impl Loan {
    pub(crate) fn new(codec: Py<Codec>, lent: LentBy) -> Self {
        Self { codec, lent: Arc::new(Mutex::new(lent)), views: Mutex::default() }
    }

    fn lent(&self) -> std::sync::MutexGuard<'_, LentBy> {
        self.lent.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// No more writing through arrays that were handed out.
    fn seal(&self, py: Python<'_>) {
        let mut views = self.views.lock().unwrap_or_else(|e| e.into_inner());
        for view in std::mem::take(&mut *views) {
            match view.bind(py).cast::<PyTuple>() {
                Ok(parts) => parts.iter().for_each(|part| end_writing(&part)),
                Err(_) => end_writing(view.bind(py)),
            }
        }
    }
}

pub(crate) fn end_writing(array: &Bound<'_, PyAny>) {
    let _ = array.getattr("flags").and_then(|flags| flags.setattr("writeable", false));
}

#[pymethods]
impl Loan {
    /// The slot as an array, of a ``Headed`` type as a tuple of header and elements; holds whatever
    /// was there before.
    #[getter]
    fn array<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let this = slf.get();
        let (data, size) = {
            let lent = this.lent();
            if lent.loan.is_none() {
                return Err(fail(ErrorKind::InvalidArgument, "using", "a loan", "it is gone"));
            }
            (std::ptr::with_exposed_provenance(lent.data), lent.size)
        };
        let base = Bound::new(slf.py(), Memory { _lent: Arc::clone(&this.lent) })?.into_any();
        // SAFETY: the array keeps the loan, and that the publisher's mapping; nobody else writes
        // there while it is lent.
        let array = unsafe { this.codec.get().view(slf.py(), data, size, true, base)? };
        let weak = array.clone().unbind();
        this.views.lock().unwrap_or_else(|e| e.into_inner()).push(weak);
        Ok(array)
    }

    /// Makes it visible to subscribers; returns its number.
    fn publish(&self, py: Python<'_>) -> PyResult<u64> {
        self.seal(py);
        let sent = py.detach(|| self.lent().publish());
        sent.ok_or_else(|| {
            let why = "it is gone, or its publisher is closed";
            fail(ErrorKind::InvalidArgument, "publishing", "a loan", why)
        })?
        .or_raise()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.codec)?;
        let Ok(views) = self.views.try_lock() else { return Ok(()) };
        views.iter().try_for_each(|view| visit.call(view))
    }

    /// Gives it back unpublished.
    fn drop(&self, py: Python<'_>) {
        self.seal(py);
        self.lent().give_back();
    }

    fn __enter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::array(slf)
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        exception: Option<Bound<'_, PyAny>>,
        _value: Option<Bound<'_, PyAny>>,
        _trace: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        if exception.is_some() {
            self.drop(py);
        } else if self.lent().loan.is_some() {
            self.publish(py)?;
        }
        Ok(())
    }
}
