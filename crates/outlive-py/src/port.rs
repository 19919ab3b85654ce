//! What only one thread may use at a time, and waiting that lets signals through.

use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use outlive::ErrorKind;
use pyo3::prelude::*;

use crate::error::fail;

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
        match self.0.try_lock() {
            Ok(mut guard) => drop(guard.take()),
            Err(TryLockError::Poisoned(e)) => drop(e.into_inner().take()),
            Err(TryLockError::WouldBlock) => drop(self.hold()?),
        }
        Ok(())
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

/// Seconds from Python as an instant; `None` is for ever, nothing or less is not at all.
pub(crate) fn deadline(timeout: Option<f64>) -> u64 {
    match timeout {
        None => u64::MAX,
        Some(s) if s <= 0.0 || s.is_nan() => 0,
        Some(s) => {
            let wait = Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
            outlive::now_ns().saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
        }
    }
}

/// How long it is to a deadline.
pub(crate) fn remaining(deadline_ns: u64) -> Duration {
    Duration::from_nanos(deadline_ns.saturating_sub(outlive::now_ns()))
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
        let found = py.detach(|| look(slice)).map_err(|e| crate::error::raise(&e))?;
        if found.is_some() || outlive::now_ns() >= deadline_ns {
            return Ok(found);
        }
        py.check_signals()?;
    }
}
