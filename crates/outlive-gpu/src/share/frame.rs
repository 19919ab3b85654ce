//! What a message of device memory is, and what is said of one that was refused.

use crate::{Error, ErrorKind};

/// Largest allocation that another process is believed to have, bytes.
pub(super) const ALLOCATION_BYTES_MAX: u64 = 1 << 40;

/// What a message says about device memory.
#[outlive::message("outlive_gpu/DeviceFrame")]
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceFrame {
    /// Node of the allocation's maker.
    pub(super) owner: u64,
    /// The maker's number for it.
    pub(super) serial: u64,
    /// Length of the allocation, bytes.
    pub(super) allocation_bytes: u64,
    /// Bytes that count, from its start.
    pub(super) bytes: u64,
    /// The device.
    pub(super) uuid: [u8; 16],
    /// Anything about the contents: width, height, element type.
    pub(super) tag: [u64; 8],
}

/// Device memory that was not given to a stream, and why.
#[derive(Debug)]
#[must_use = "it may hold what was refused"]
pub struct Refused<T> {
    /// The memory, if it was refused before anything was started: try again on another stream, or
    /// when the capture has ended. `None` if it is gone or stays reserved.
    pub back: Option<Box<T>>,
    /// Why.
    pub why: Error,
}

impl<T> From<Refused<T>> for Error {
    #[cold]
    fn from(refused: Refused<T>) -> Self {
        refused.why
    }
}

impl<T> From<Error> for Refused<T> {
    #[cold]
    fn from(why: Error) -> Self {
        Self { back: None, why }
    }
}

#[cold]
pub(super) fn shorter() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "reading a message of device memory",
        "it names more than there is: restart its publisher",
    )
}
