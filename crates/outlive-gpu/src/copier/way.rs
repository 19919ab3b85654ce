//! What every way to copy answers.

use std::fmt;

use super::job::Job;
use crate::Result;
use crate::handle::Stream;

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Started {
    /// All bytes are there.
    Done,
    /// They are when the stream has done what is on it now.
    OnStream,
}

/// A way to copy.
///
/// # Safety
/// `start` returns `Done` only once all bytes are there, and touches nothing but the job's bytes.
pub unsafe trait Copier: fmt::Debug + Send + Sync {
    /// For tables and messages.
    fn name(&self) -> &'static str;

    /// Whether it can do this job, on this machine.
    fn can(&self, job: &Job) -> bool;

    /// Begins the copy, on `stream` if it is one for a device.
    ///
    /// # Safety
    /// Both places are valid for the job's rows, do not overlap, and stay so until the copy is
    /// done; nobody else touches the bytes written until then. `can(job)`. The device's context
    /// is current if one of the places is on a device.
    ///
    /// # Errors
    /// The copier's own. Bytes may have been written then; it writes none after.
    unsafe fn start(&self, job: &Job, stream: Stream) -> Result<Started>;
}
