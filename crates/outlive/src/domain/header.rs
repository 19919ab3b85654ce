//! The 64 bytes every file begins with. `docs/internals/SHM_LAYOUT.md` is the specification.

use crate::os::fs::map::Mapping;
use crate::sync::Ordering::Relaxed;
use crate::{Error, ErrorKind, Result};

#[cfg(target_endian = "big")]
compile_error!("the futex half of a 64-bit word is its low half: little endian only");

/// Version of the byte layout; another version's object is refused.
pub const LAYOUT_VERSION: u32 = 1;

pub(crate) const CACHE_LINE: usize = 64;
pub(crate) const HEADER_BYTES: usize = 64;

const MAGIC: u64 = u64::from_le_bytes(*b"OUTLIVE\0");
const ENDIAN: u32 = 0x0102_0304;

const OFF_MAGIC: usize = 0;
const OFF_LAYOUT: usize = 8;
const OFF_ENDIAN: usize = 12;
const OFF_KIND: usize = 16;
const OFF_TOTAL: usize = 24;
const OFF_NODE: usize = 32;
const OFF_PORT: usize = 40;

/// What a file is; part of its header, so that one file can never be taken for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum FileKind {
    DomainId = 1,
    Node = 2,
    Bells = 3,
    Meta = 4,
    Bell = 5,
    Ring = 6,
    Data = 7,
    Subscriber = 8,
    QueueMeta = 9,
    Consumer = 10,
    Lane = 11,
    Threads = 16,
    Lock = 17,
    Realtime = 18,
}

/// The checked header of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileHeader {
    pub(crate) kind: FileKind,
    pub(crate) total_bytes: u64,
    pub(crate) node: u64,
    pub(crate) port: u64,
}

impl FileHeader {
    /// Writes the header of a file that nobody else can see yet.
    pub(crate) fn write(self, map: &Mapping) -> Result<()> {
        map.atomic_u32(OFF_LAYOUT)?.store(LAYOUT_VERSION, Relaxed);
        map.atomic_u32(OFF_ENDIAN)?.store(ENDIAN, Relaxed);
        map.atomic_u32(OFF_KIND)?.store(self.kind as u32, Relaxed);
        map.atomic_u64(OFF_TOTAL)?.store(self.total_bytes, Relaxed);
        map.atomic_u64(OFF_NODE)?.store(self.node, Relaxed);
        map.atomic_u64(OFF_PORT)?.store(self.port, Relaxed);
        map.atomic_u64(OFF_MAGIC)?.store(MAGIC, Relaxed);
        Ok(())
    }

    /// The layout version of `map`, of whatever version it is.
    pub(crate) fn layout_of(map: &Mapping) -> Result<u32> {
        Ok(map.atomic_u32(OFF_LAYOUT)?.load(Relaxed))
    }

    /// Reads and checks the header of `map`, whose file is `file_bytes` long.
    pub(crate) fn read(map: &Mapping, kind: FileKind, file_bytes: u64) -> Result<Self> {
        let bad = |kind, why: String| Error::new(kind, "opening", map.name(), why);
        let corrupt = |why: &str| {
            bad(ErrorKind::Corrupt, format!("{why}: stop its members and run 'outlive clean'"))
        };
        let u32_at = |offset| Ok::<_, Error>(map.atomic_u32(offset)?.load(Relaxed));
        let u64_at = |offset| Ok::<_, Error>(map.atomic_u64(offset)?.load(Relaxed));
        if u64_at(OFF_MAGIC)? != MAGIC {
            return Err(corrupt("not a file of outlive"));
        }
        let (layout, endian) = (u32_at(OFF_LAYOUT)?, u32_at(OFF_ENDIAN)?);
        if layout != LAYOUT_VERSION || endian != ENDIAN {
            return Err(bad(
                ErrorKind::VersionMismatch,
                format!(
                    "layout {layout}, byte order {endian:#x}, where this build has \
                     {LAYOUT_VERSION}, {ENDIAN:#x}: use one version of outlive for all members \
                     of a topic, or stop them and run 'outlive clean'"
                ),
            ));
        }
        if u32_at(OFF_KIND)? != kind as u32 {
            return Err(corrupt("a file of another kind"));
        }
        let total_bytes = u64_at(OFF_TOTAL)?;
        if total_bytes < HEADER_BYTES as u64 || total_bytes > file_bytes {
            return Err(corrupt("truncated"));
        }
        Ok(Self { kind, total_bytes, node: u64_at(OFF_NODE)?, port: u64_at(OFF_PORT)? })
    }
}

/// Rounds `value` up to a multiple of `to`, a power of two.
pub(crate) const fn round_up(value: usize, to: usize) -> usize {
    (value + to - 1) & !(to - 1)
}

/// `id`: random identity of the domain and the next node ordinal, changed under the domain lock.
pub(crate) mod id {
    use super::HEADER_BYTES;
    pub(crate) const RANDOM_LOW: usize = HEADER_BYTES;
    pub(crate) const RANDOM_HIGH: usize = HEADER_BYTES + 8;
    pub(crate) const NEXT_NODE: usize = HEADER_BYTES + 16;
    /// Next thread ordinal, counted from 0; handed out by compare-and-swap, without the lock.
    pub(crate) const NEXT_THREAD: usize = HEADER_BYTES + 24;
    pub(crate) const BYTES: usize = 128;
}

const _: () = assert!(id::NEXT_THREAD + 8 <= id::BYTES);
