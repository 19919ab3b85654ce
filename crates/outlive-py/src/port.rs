//! What only one thread may use at a time, and waiting that lets signals through.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use outlive::ErrorKind;
use pyo3::prelude::*;

use crate::error::{OrRaise, fail};

/// Longest wait between two looks for signals.
const SLICE_NS: u64 = 100_000_000;

/// A port of the core, or nothing once it is closed.
#[derive(Debug)]
pub(crate) struct Port<T>(Mutex<Option<T>>);

/// A port that this thread has.
pub(crate) struct Held<'a, T>(MutexGuard<'a, Option<T>>);

impl<T> Port<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self(Mutex::new(Some(inner)))
    }

    /// Never waits: another thread may hold it while it waits for a message.
    #[inline]
    pub(crate) fn hold(&self) -> PyResult<Held<'_, T>> {
        let guard = match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => {
                let remedy = "another thread is in a call on it: give each thread its own";
                return Err(fail(ErrorKind::WouldBlock, "using", "this object", remedy));
            }
        };
        if guard.is_none() {
            return Err(fail(ErrorKind::InvalidArgument, "using", "this object", "it is closed"));
        }
        Ok(Held(guard))
    }

    /// Takes it away.
    pub(crate) fn close(&self) -> PyResult<()> {
        self.close_unless(|_| false)
    }

    /// Takes it away, unless `in_use` keeps it for later.
    pub(crate) fn close_unless(&self, in_use: impl FnOnce(&mut T) -> bool) -> PyResult<()> {
        let mut guard = match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(e)) => e.into_inner(),
            Err(TryLockError::WouldBlock) => return self.hold().map(drop),
        };
        if !guard.as_mut().is_some_and(in_use) {
            drop(guard.take());
        }
        Ok(())
    }

    /// Waits until it is free. Only where whoever has it neither waits nor needs the interpreter.
    pub(crate) fn hold_soon(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl<T> std::ops::Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &*self.0 {
            Some(inner) => inner,
            None => unreachable!("checked by hold"),
        }
    }
}

impl<T> std::ops::DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        match &mut *self.0 {
            Some(inner) => inner,
            None => unreachable!("checked by hold"),
        }
    }
}

/// Seconds from Python as a time span; a negative one is none.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}

/// Seconds from Python as an instant; `None` is for ever, nothing or less is not at all.
pub(crate) fn deadline(timeout: Option<f64>) -> u64 {
    match timeout {
        None => u64::MAX,
        Some(s) if s <= 0.0 || s.is_nan() => 0,
        Some(s) => {
            let wait = u64::try_from(seconds(s).as_nanos()).unwrap_or(u64::MAX);
            outlive::now_ns().saturating_add(wait)
        }
    }
}

/// Calls `look` without the interpreter's lock until it finds something or the deadline passes, in
/// slices between which signals are handled. `look` gets the end of its slice.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    deadline_ns: u64,
    mut look: impl FnMut(u64) -> outlive::Result<Option<T>> + Send,
) -> PyResult<Option<T>> {
    loop {
        let slice = outlive::now_ns().saturating_add(SLICE_NS).min(deadline_ns);
        let found = py.detach(|| look(slice)).or_raise()?;
        if found.is_some() || outlive::now_ns() >= deadline_ns {
            return Ok(found);
        }
        py.check_signals()?;
    }
}

/// As `wait`, for a call that says `Timeout` at the end of its slice. Its own words at the end.
pub(crate) fn wait_in_slices<T: Send>(
    py: Python<'_>,
    deadline_ns: u64,
    mut call: impl FnMut(u64) -> outlive::Result<T> + Send,
) -> PyResult<T> {
    loop {
        let slice = outlive::now_ns().saturating_add(SLICE_NS).min(deadline_ns);
        match py.detach(|| call(slice)) {
            Err(e) if e.kind() == ErrorKind::Timeout && slice < deadline_ns => {
                py.check_signals()?
            }
            done => return done.or_raise(),
        }
    }
}

/// As `wait`, for what takes a time span and says whether it came.
pub(crate) fn wait_until_true(
    py: Python<'_>,
    timeout: Option<f64>,
    mut came: impl FnMut(Duration) -> outlive::Result<bool> + Send,
) -> PyResult<bool> {
    let found = wait(py, deadline(timeout), |slice| {
        let left = slice.saturating_sub(outlive::now_ns()).max(1);
        Ok(came(Duration::from_nanos(left))?.then_some(()))
    })?;
    Ok(found.is_some())
}
