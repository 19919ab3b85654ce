//! What a ring file says of itself, for counters and for decisions about removing it.

use std::os::fd::OwnedFd;
use std::path::Path;

use super::entry::{PublisherId, ring_path};
use crate::Result;
use crate::domain::header::{FileHeader, FileKind};
use crate::domain::path::DomainPath;
use crate::os::fs::file;
use crate::os::fs::file::Expect;
use crate::os::fs::map::Mapping;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::topic::ring::layout;
use crate::topic::ring::layout::ring;

/// The `seq` of a ring's first entry lies before it.
const FIRST_SEQ_END: usize = ring::ENTRIES + 8;

/// The fixed part of a ring file.
pub(crate) struct RingHeader {
    pub(crate) map: Mapping,
    pub(crate) file_bytes: u64,
}

impl RingHeader {
    pub(crate) fn open(dir: &Path, id: PublisherId, domain: &DomainPath) -> Result<Self> {
        let path = ring_path(dir, id);
        let owner = domain.access.owner_required();
        let expect = Expect { writable: false, min_len: FIRST_SEQ_END as u64, owner };
        let (fd, file_bytes): (OwnedFd, u64) = file::open_checked(&path, expect)?;
        let map = Mapping::map_peer(&fd, FIRST_SEQ_END, &path)?;
        FileHeader::read(&map, FileKind::Ring, file_bytes)?;
        Ok(Self { map, file_bytes })
    }

    pub(crate) fn u64_at(&self, offset: usize) -> u64 {
        self.map.atomic_u64(offset).map_or(0, |w| w.load(Relaxed))
    }

    /// Messages published, 1 too few where the publisher died before it had counted the last; but
    /// never 0 where there is one.
    pub(super) fn messages(&self) -> u64 {
        let first = self.u64_at(ring::ENTRIES);
        self.u64_at(ring::HEAD).max(u64::from(first != 0 && first % 2 == 0))
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.map.atomic_u32(ring::STATE).is_ok_and(|w| w.load(Acquire) == ring::STATE_CLOSED)
    }

    /// Messages that late joiners may find in it.
    pub(super) fn history(&self) -> u64 {
        let keeps = self.u64_at(ring::VOLATILE) != 1;
        if keeps { self.messages().min(self.depth()) } else { 0 }
    }

    /// Messages it holds; 0 if it claims what none may have.
    pub(super) fn depth(&self) -> u64 {
        let depth = self.u64_at(ring::DEPTH);
        if layout::is_depth(depth) { depth } else { 0 }
    }

    pub(super) fn birth(&self) -> u64 {
        birth(self.u64_at(ring::BORN))
    }
}

/// Where a ring comes among those of its topic by age, from the epoch that announced it: each
/// has another, and later ones have larger ones. Not announced yet: the youngest.
pub(crate) fn birth(born: u64) -> u64 {
    born.wrapping_sub(1)
}
