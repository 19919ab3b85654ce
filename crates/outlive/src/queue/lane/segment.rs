//! One segment of a lane: a file with a ring of records, the producer's own or as its consumer
//! sees it.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use super::layout::{CAPACITY_BYTES_MAX, CAPACITY_BYTES_MIN, lane};
use super::record::Ring;
use crate::domain::header::{FileHeader, FileKind};
use crate::domain::path::DomainPath;
use crate::os::fs::file;
use crate::os::fs::file::{Draft, Expect};
use crate::os::fs::map::Mapping;
use crate::os::sleep::futex;
use crate::queue::lane::ProducerId;
use crate::sync::AtomicU32;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::{Error, ErrorKind, Result};

/// Segments up to this size are brought into memory when they are made.
const PREFAULT_BYTES_MAX: u64 = 1 << 20;

pub(crate) fn segment_path(dir: &Path, id: ProducerId, segment: u32) -> PathBuf {
    dir.join(format!("lane.{}.{}.{segment}", id.node, id.port))
}

/// A mapped segment.
#[derive(Debug)]
pub(crate) struct Segment {
    /// The ring in `map`, and its size in bytes less 1.
    data: NonNull<u8>,
    mask: u64,
    map: Mapping,
}

// SAFETY: `data` points into `map`, which is `Send`; all access is atomic or the caller's to order.
unsafe impl Send for Segment {}

impl Segment {
    /// Makes segment `segment` of the lane `id`, empty.
    ///
    /// # Errors
    /// `NoSpace` on a full RAM disk.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link. Segment 0 is the lane; a later one is nobody's until
    /// the one before it names it, and goes with the lane.
    pub(crate) fn create(
        dir: &Path,
        id: ProducerId,
        segment: u32,
        capacity: u64,
        mode: u32,
    ) -> Result<Self> {
        debug_assert!(capacity.is_power_of_two());
        let bytes = lane::DATA + capacity as usize;
        let path = segment_path(dir, id, segment);
        let draft = Draft::new(dir, bytes as u64, mode)?;
        let map = draft.map_reserve(bytes, &path)?;
        let (total_bytes, node) = (bytes as u64, id.node.get());
        FileHeader { kind: FileKind::Lane, total_bytes, node, port: id.port }.write(&map)?;
        map.atomic_u32(lane::STATE)?.store(lane::STATE_OPEN, Relaxed);
        map.atomic_u64(lane::SEGMENT)?.store(segment.into(), Relaxed);
        map.atomic_u64(lane::CAPACITY)?.store(capacity, Relaxed);
        if capacity <= PREFAULT_BYTES_MAX {
            map.prefault();
        }
        draft.link(&path)?;
        Self::new(map, capacity)
    }

    /// Maps and checks segment `segment` of the lane `id`, read-only.
    ///
    /// # Errors
    /// `NotFound`; `Corrupt` when it is not what its name says.
    pub(crate) fn open(
        dir: &Path,
        id: ProducerId,
        segment: u32,
        domain: &DomainPath,
    ) -> Result<Self> {
        let path = segment_path(dir, id, segment);
        let owner = domain.access.owner_required();
        let min_len = lane::DATA as u64 + CAPACITY_BYTES_MIN;
        let expect = Expect { writable: false, min_len, owner };
        let (fd, file_bytes) = file::open_checked(&path, expect)?;
        let map = Mapping::map_peer(&fd, file_bytes as usize, &path)?;
        let header = FileHeader::read(&map, FileKind::Lane, file_bytes)?;
        let capacity = map.atomic_u64(lane::CAPACITY)?.load(Relaxed);
        let good = header.node == id.node.get()
            && header.port == id.port
            && map.atomic_u64(lane::SEGMENT)?.load(Relaxed) == u64::from(segment)
            && capacity.is_power_of_two()
            && (CAPACITY_BYTES_MIN..=CAPACITY_BYTES_MAX).contains(&capacity)
            && lane::DATA as u64 + capacity <= file_bytes;
        if !good {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "opening",
                path.display().to_string(),
                "its header does not match its name: restart its producer",
            ));
        }
        Self::new(map, capacity)
    }

    fn new(map: Mapping, capacity: u64) -> Result<Self> {
        let data = map.bytes(lane::DATA, capacity as usize)?;
        let data = NonNull::new(data.cast_mut()).unwrap_or(NonNull::dangling());
        Ok(Self { data, mask: capacity - 1, map })
    }

    #[inline(always)]
    pub(crate) fn ring(&self) -> Ring<'_> {
        // SAFETY: `new` checked that the ring lies in the mapping; it is 8-aligned and its size a
        // power of two. Only atomics touch headers, and payloads are not read as words.
        unsafe { Ring::new(self.data.cast(), self.mask as usize / 8) }
    }

    /// The bytes at `offset` of the ring.
    #[inline(always)]
    pub(crate) fn at(&self, offset: u64) -> *mut u8 {
        // SAFETY: masked by the ring's size, a power of two, which lies in the mapping.
        unsafe { self.data.as_ptr().add((offset & self.mask) as usize) }
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.mask + 1
    }

    /// The producer's waiting flag.
    #[inline]
    pub(crate) fn waiting(&self) -> &AtomicU32 {
        // SAFETY: inside the first page, 4-aligned.
        unsafe { &*self.map.base().add(lane::WAITING).cast::<AtomicU32>() }
    }

    /// The futex half of the header at `offset`: it changes with the commit there.
    pub(crate) fn header_half(&self, offset: u64) -> &AtomicU32 {
        futex::low_half(self.ring().header(offset))
    }

    fn state(&self) -> &AtomicU32 {
        // SAFETY: inside the first page, 4-aligned.
        unsafe { &*self.map.base().add(lane::STATE).cast::<AtomicU32>() }
    }

    /// Producer: no more messages come.
    ///
    /// # Crash safety
    /// **Strict.** One store; without it the lane ends with its node.
    pub(crate) fn close(&self) {
        // ORDERING(LANE_CLOSED): pairs with `is_closed`; everything was committed before it.
        self.state().store(lane::STATE_CLOSED, Release);
    }

    pub(crate) fn is_closed(&self) -> bool {
        // ORDERING(LANE_CLOSED): pairs with `close`; then what was committed is visible.
        self.state().load(Acquire) == lane::STATE_CLOSED
    }

    pub(crate) fn is_poisoned(&self) -> bool {
        self.map.is_poisoned()
    }
}
