//! How bytes travel: one trait, several ways, the best one chosen by size; open to your own.
//!
//! # Examples
//! A copier of your own, in front of all others for small copies:
//! ```
//! use std::sync::Arc;
//! use outlive_gpu::copier::{Copier, Copiers, Job, Started};
//! use outlive_gpu::{Result, Stream};
//!
//! #[derive(Debug)]
//! struct Mine;
//!
//! // SAFETY: `start` never answers `Done` before all bytes are there.
//! unsafe impl Copier for Mine {
//!     fn name(&self) -> &'static str {
//!         "mine"
//!     }
//!     fn can(&self, job: &Job) -> bool {
//!         job.is_on_host()
//!     }
//!     unsafe fn start(&self, job: &Job, _stream: Stream) -> Result<Started> {
//!         for row in job.host_rows() {
//!             unsafe { std::ptr::copy_nonoverlapping(row.from, row.to, row.bytes) };
//!         }
//!         Ok(Started::Done)
//!     }
//! }
//!
//! let mut copiers = Copiers::host();
//! copiers.put_first(Arc::new(Mine), 0..=4096);
//! let (from, mut to) = ([7u8; 100], [0u8; 100]);
//! copiers.copy(&mut to, &from)?;
//! assert_eq!(from, to);
//! # Ok::<(), outlive_gpu::Error>(())
//! ```
#![allow(unsafe_code)]

mod device;
mod host;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

pub use device::DeviceCopier;
pub use host::{NonTemporal, Plain, RepMovsb, Threads};

use crate::driver::Api;
use crate::handle::{DevicePtr, Stream};
use crate::{Error, ErrorKind, Result};

/// Where rows of bytes begin, and how far apart they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Memory of the processor.
    Host {
        /// The first byte.
        ptr: *mut u8,
        /// From row to row, bytes; 0: the rows lie close together.
        pitch: usize,
    },
    /// Memory of a device.
    Device {
        /// The first byte.
        ptr: DevicePtr,
        /// From row to row, bytes; 0: the rows lie close together.
        pitch: usize,
    },
}

impl Place {
    /// Bytes on the host that lie close together.
    pub fn host(ptr: *mut u8) -> Self {
        Self::Host { ptr, pitch: 0 }
    }

    /// Bytes on the device that lie close together.
    pub fn device(ptr: DevicePtr) -> Self {
        Self::Device { ptr, pitch: 0 }
    }

    /// From row to row, bytes, for rows of `width` bytes.
    pub fn pitch(&self, width: usize) -> usize {
        match self {
            Self::Host { pitch: 0, .. } | Self::Device { pitch: 0, .. } => width,
            Self::Host { pitch, .. } | Self::Device { pitch, .. } => *pitch,
        }
    }

    fn is_host(&self) -> bool {
        matches!(self, Self::Host { .. })
    }

    /// `bytes` further on, of rows that lie as before.
    pub(crate) fn skip(&self, bytes: usize) -> Self {
        match *self {
            Self::Host { ptr, pitch } => Self::Host { ptr: ptr.wrapping_add(bytes), pitch },
            Self::Device { ptr, pitch } => Self::Device { ptr: ptr.offset(bytes), pitch },
        }
    }

    /// `bytes` further on, as a place of a single row.
    pub(crate) fn at(&self, bytes: usize) -> Self {
        match self {
            Self::Host { ptr, .. } => Self::host(ptr.wrapping_add(bytes)),
            Self::Device { ptr, .. } => Self::device(ptr.offset(bytes)),
        }
    }
}

/// One copy: `rows` rows of `width` bytes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Where the bytes go.
    pub to: Place,
    /// Where they come from; never written.
    pub from: Place,
    /// Bytes of a row.
    pub width: usize,
    /// Rows.
    pub rows: usize,
}

/// A row between two places of the host.
#[derive(Clone, Copy, Debug)]
pub struct HostRow {
    /// Where the bytes go.
    pub to: *mut u8,
    /// Where they come from.
    pub from: *const u8,
    /// How many.
    pub bytes: usize,
}

impl Job {
    /// `bytes` bytes in one piece.
    pub fn flat(to: Place, from: Place, bytes: usize) -> Self {
        Self { to, from, width: bytes, rows: 1 }
    }

    /// Bytes in all.
    pub fn bytes(&self) -> usize {
        self.width * self.rows
    }

    /// Whether the processor can do it.
    pub fn is_on_host(&self) -> bool {
        self.to.is_host() && self.from.is_host()
    }

    /// Its rows if both places are on the host, none otherwise; a single one when all lie close
    /// together.
    pub fn host_rows(&self) -> impl Iterator<Item = HostRow> + use<> {
        let (to_pitch, from_pitch) = (self.to.pitch(self.width), self.from.pitch(self.width));
        let flat = to_pitch == self.width && from_pitch == self.width;
        let (width, rows) = if flat { (self.bytes(), 1) } else { (self.width, self.rows) };
        let places = match (self.to, self.from) {
            (Place::Host { ptr: to, .. }, Place::Host { ptr: from, .. }) => Some((to, from)),
            _ => None,
        };
        places.into_iter().flat_map(move |(to, from)| {
            (0..rows).map(move |row| HostRow {
                to: to.wrapping_add(row * to_pitch),
                from: from.wrapping_add(row * from_pitch).cast_const(),
                bytes: width,
            })
        })
    }

    /// `InvalidArgument` when rows would overlap.
    pub(crate) fn check(&self) -> Result<()> {
        let fits = |place: &Place| place.pitch(self.width) >= self.width || self.rows <= 1;
        if fits(&self.to) && fits(&self.from) && self.width.checked_mul(self.rows).is_some() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::InvalidArgument,
            format!("copying {} rows of {} bytes", self.rows, self.width),
            "a pitch is from row to row, in bytes, so at least the width",
        ))
    }
}

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

/// Copiers, each for a range of sizes; the first that fits is taken.
#[derive(Clone, Debug)]
pub struct Copiers {
    entries: Vec<(Arc<dyn Copier>, RangeInclusive<usize>)>,
}

impl Copiers {
    /// For the host alone: `memcpy`, until another is measured to win (`examples/cpu_copies.rs`).
    pub fn host() -> Self {
        let mut copiers = Self { entries: Vec::new() };
        copiers.entries.push((Arc::new(Plain), 0..=usize::MAX));
        copiers
    }

    /// Those of this crate for a device and for the host.
    pub(crate) fn standard(api: Api) -> Self {
        let mut copiers = Self::host();
        copiers.put_first(Arc::new(DeviceCopier::new(api)), 0..=usize::MAX);
        copiers
    }

    /// Prefers `copier` to all others for jobs of `bytes` bytes that it can do.
    pub fn put_first(&mut self, copier: Arc<dyn Copier>, bytes: RangeInclusive<usize>) {
        self.entries.insert(0, (copier, bytes));
    }

    /// The copier for a job.
    ///
    /// # Errors
    /// `Unsupported` when none can do it.
    pub fn choose(&self, job: &Job) -> Result<&Arc<dyn Copier>> {
        let bytes = job.bytes();
        let fitting = self.entries.iter().find(|(c, range)| range.contains(&bytes) && c.can(job));
        fitting.map(|(copier, _)| copier).ok_or_else(|| {
            Error::new(ErrorKind::Unsupported, format!("choosing a copier for {job:?}"), "")
        })
    }

    /// Copies on the host; both have the same length.
    ///
    /// # Errors
    /// `InvalidArgument` when they have not; the copier's own.
    pub fn copy(&self, to: &mut [u8], from: &[u8]) -> Result<()> {
        if to.len() != from.len() {
            return Err(Error::new(
                ErrorKind::InvalidArgument,
                format!("copying {} bytes to {}", from.len(), to.len()),
                "",
            ));
        }
        let places = (Place::host(to.as_mut_ptr()), Place::host(from.as_ptr().cast_mut()));
        let job = Job::flat(places.0, places.1, to.len());
        // SAFETY: two slices of this length that cannot overlap; copies on the host are done when
        // `start` returns.
        unsafe { self.choose(&job)?.start(&job, Stream::DEFAULT) }.map(drop)
    }
}
