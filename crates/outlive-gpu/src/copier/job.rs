//! What is to be copied: rows of bytes between two places.

use crate::handle::DevicePtr;
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
