//! Writable slots in shared memory.

use std::sync::{Arc, Mutex, MutexGuard};

use outlive::ErrorKind;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::codec::Codec;
use crate::error::fail;
use crate::sender::LentBy;

#[cold]
fn gone() -> PyErr {
    fail(ErrorKind::InvalidArgument, "using", "a loan", "it is gone")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

/// A writable slot in shared memory, until it is published or dropped.
///
/// Do not keep arrays over it any longer: they become read-only, and their contents change when the
/// memory is used again.
///
/// >>> publisher = outlive.Publisher(node, "/grid", np.float32, (100, 100))
/// >>> loan = publisher.loan()
/// >>> loan.array[:] = 0.5
/// >>> loan.publish()  # or loan.drop()
/// 0
#[pyclass(frozen, module = "outlive")]
pub(crate) struct Loan {
    codec: Py<Codec>,
    /// None once it is published or dropped.
    lent: Mutex<Option<Arc<Mutex<LentBy>>>>,
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
        let lent = Mutex::new(Some(Arc::new(Mutex::new(lent))));
        Self { codec, lent, views: Mutex::default() }
    }

    /// Not while an exception is made, which lets other threads run.
    fn lent(&self) -> MutexGuard<'_, Option<Arc<Mutex<LentBy>>>> {
        lock(&self.lent)
    }

    fn get(&self) -> PyResult<Arc<Mutex<LentBy>>> {
        let lent = self.lent().clone();
        lent.ok_or_else(gone)
    }

    /// No more writing through arrays that were handed out.
    fn seal(&self, py: Python<'_>) {
        let views = std::mem::take(&mut *lock(&self.views));
        for view in views {
            match view.bind(py).cast::<PyTuple>() {
                Ok(parts) => parts.iter().for_each(|part| end_writing(&part)),
                Err(_) => end_writing(view.bind(py)),
            }
        }
    }
}

/// At once, though there may be arrays over it still.
fn give_back(lent: &Mutex<LentBy>) {
    let (loan, shared) = {
        let mut lent = lock(lent);
        (lent.loan.take(), Arc::clone(&lent.shared))
    };
    if let Some(loan) = loan {
        shared.give_back(loan);
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
        let lent = this.get()?;
        let (data, size) = {
            let lent = lock(&lent);
            (std::ptr::with_exposed_provenance(lent.data), lent.size)
        };
        let base = Bound::new(slf.py(), Memory { _lent: lent })?.into_any();
        // SAFETY: the array keeps the loan, and that the publisher's mapping; nobody else writes
        // there while it is lent.
        let array = unsafe { this.codec.get().view(slf.py(), data, size, true, base)? };
        let weak = array.clone().unbind();
        lock(&this.views).push(weak);
        Ok(array)
    }

    /// Makes it visible to subscribers; returns its number.
    fn publish(&self, py: Python<'_>) -> PyResult<u64> {
        let shared = Arc::clone(&lock(&*self.get()?).shared);
        if shared.is_closing() {
            self.drop(py);
            let why = "its publisher is closed";
            return Err(fail(ErrorKind::InvalidArgument, "publishing", "a loan", why));
        }
        let held = shared.hold()?;
        self.seal(py);
        let lent = self.lent().take();
        let lent = lent.ok_or_else(gone)?;
        let sent = shared.send(py, held, |sender| lock(&lent).publish(sender));
        if sent.is_err() {
            give_back(&lent);
        }
        sent
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.codec)?;
        let Ok(views) = self.views.try_lock() else { return Ok(()) };
        views.iter().try_for_each(|view| visit.call(view))
    }

    /// Gives it back unpublished.
    fn drop(&self, py: Python<'_>) {
        self.seal(py);
        let lent = self.lent().take();
        if let Some(lent) = lent {
            give_back(&lent);
        }
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
        } else if self.lent().is_some() {
            self.publish(py)?;
        }
        Ok(())
    }
}
