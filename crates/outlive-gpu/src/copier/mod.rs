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
mod job;
mod way;

use std::ops::RangeInclusive;
use std::sync::Arc;

pub use device::DeviceCopier;
pub use host::{NonTemporal, Plain, RepMovsb, Threads};
pub use job::{HostRow, Job, Place};
pub use way::{Copier, Started};

use crate::driver::Api;
use crate::handle::Stream;
use crate::{Error, ErrorKind, Result};

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
