//! Another node as seen from here: its file, mapped read-only.
//!
//! The futex word of its token answers "alive?" in one load and is a hint; before anything
//! irreversible `is_gone` asks the file lock as well, on the very inode that is mapped.
#![allow(unsafe_code)]

use std::os::fd::OwnedFd;
use std::path::Path;

use super::layout;
use crate::layout::{FileHeader, FileKind, PAGE};
use crate::os::deaths::Deaths;
use crate::os::file::{self, Access, Expect};
use crate::os::map::Mapping;
use crate::os::{filelock, robust};
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::{Error, ErrorKind, Result};

/// A node's ordinal in its domain: handed out once, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub(crate) u64);

impl NodeId {
    /// The ordinal as a number, 1 or more.
    pub fn get(self) -> u64 {
        self.0
    }

    /// The id with this ordinal, for instance from a command line.
    pub fn from_raw(ordinal: u64) -> Self {
        Self(ordinal)
    }
}

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A peer's node file.
#[derive(Debug)]
pub(crate) struct Peer {
    id: NodeId,
    map: Mapping,
    fd: OwnedFd,
    word_offset: usize,
    ports_offset: usize,
    /// 1 once its death is confirmed.
    gone: AtomicU32,
    /// 1 once the kernel tells `Deaths` of its death.
    watched: AtomicU32,
}

impl Peer {
    /// Maps and checks `nodes/<id>`.
    pub(crate) fn open(nodes: &Path, id: NodeId, access: &Access) -> Result<Self> {
        let path = nodes.join(id.0.to_string());
        let expect =
            Expect { writable: false, min_len: PAGE as u64, owner: access.owner_required() };
        let (fd, len) = file::open_checked(&path, expect)?;
        let ports_offset = layout::ports_offset(id.0);
        // Room for all ports it may ever have: pages beyond the end appear when the file grows.
        let map = Mapping::map_peer_beyond(
            &fd,
            layout::file_bytes(ports_offset, layout::PORTS_MAX),
            &path,
        )?;
        let header = FileHeader::read(&map, FileKind::Node, len)?;
        let word_offset = map.atomic_u32(layout::TOKEN_WORD)?.load(Relaxed) as usize;
        let in_token = (layout::TOKEN..layout::TOKEN + robust::TOKEN_BYTES).contains(&word_offset);
        let in_strict =
            (layout::STRICT..layout::STRICT + layout::STRICT_BYTES).contains(&word_offset);
        let ports = map.atomic_u32(layout::PORTS)?.load(Relaxed) as usize;
        if header.node != id.0
            || !(in_token || in_strict)
            || word_offset % 4 != 0
            || ports != ports_offset
        {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "opening node file",
                path.display().to_string(),
                "end the process that made it and run 'outlive clean'",
            ));
        }
        Ok(Self {
            id,
            map,
            fd,
            word_offset,
            ports_offset,
            gone: AtomicU32::new(0),
            watched: AtomicU32::new(0),
        })
    }

    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    pub(crate) fn map(&self) -> &Mapping {
        &self.map
    }

    /// The futex word of its token, to sleep on.
    #[inline]
    pub(crate) fn token(&self) -> &AtomicU32 {
        // SAFETY: `open` checked that the offset is aligned and inside the first page, which is
        // mapped for the life of `self`.
        unsafe { &*self.map.base().add(self.word_offset).cast::<AtomicU32>() }
    }

    /// Alive by its word, and not known to be gone: two relaxed loads. `false` is a hint only.
    #[inline]
    pub(crate) fn looks_alive(&self) -> bool {
        robust::is_alive_word(self.token().load(Relaxed)) && self.gone.load(Relaxed) == 0
    }

    /// Alive: by the word, else for certain by the file lock. A word that says alive is believed,
    /// so whoever waits asks `is_gone` at the end of each long sleep.
    #[inline]
    pub(crate) fn is_alive(&self) -> bool {
        self.looks_alive() || !self.is_gone()
    }

    /// Dead for certain: its file lock is free, whatever the word says (the kernel may have been
    /// unable to mark it). Once dead, dead for ever.
    #[cold]
    pub(crate) fn is_gone(&self) -> bool {
        if self.gone.load(Acquire) == 1 {
            return true;
        }
        let gone = self.is_unlocked();
        if gone {
            self.gone.store(1, Release);
        }
        gone
    }

    /// Dead for certain by its file lock alone: the word may say alive for ever where the kernel
    /// could not walk the dead thread's list. A lock that cannot be asked about is held.
    #[cold]
    pub(crate) fn is_unlocked(&self) -> bool {
        if fault("death.by_word_alone") {
            return !robust::is_alive_word(self.token().load(Relaxed));
        }
        if fault("death.by_pid") {
            let pid = self.map.atomic_u32(layout::PID).map_or(0, |word| word.load(Relaxed));
            return !Path::new(&format!("/proc/{pid}")).exists();
        }
        filelock::is_locked(&self.fd).is_ok_and(|held| !held)
    }

    /// From here on its death is news of the process's `deaths`; look at it after this.
    pub(crate) fn tell_death_to(&self, deaths: &Deaths) {
        if self.watched.load(Relaxed) == 0 && deaths.watch(self.map.path()) {
            self.watched.store(1, Relaxed);
        }
    }

    /// The peer's block of subscriber port `port`.
    pub(crate) fn port(&self, port: u64) -> Result<PortView<'_>> {
        let block = port as usize % layout::PORTS_MAX;
        PortView::new(&self.map, self.ports_offset + block * layout::PORT_BYTES)
    }

    /// As `port`, for a port that a file name claims: its block lies inside the peer's file. A look
    /// beyond the end would put a page of zeros there for good.
    pub(crate) fn claimed_port(&self, port: u64) -> Option<PortView<'_>> {
        let exists = (port as usize % layout::PORTS_MAX) < self.port_blocks();
        if exists { self.port(port).ok() } else { None }
    }

    /// Port blocks its file has room for right now.
    pub(crate) fn port_blocks(&self) -> usize {
        let bytes = file::len_of(&self.fd, self.map.path()).unwrap_or(0) as usize;
        (bytes.saturating_sub(self.ports_offset) / layout::PORT_BYTES).min(layout::PORTS_MAX)
    }

    pub(crate) fn describe(&self) -> Result<(u32, u64, String)> {
        let pid = self.map.atomic_u32(layout::PID)?.load(Relaxed);
        let started = self.map.atomic_u64(layout::STARTED)?.load(Relaxed);
        let len = self.map.atomic_u64(layout::NAME_LEN)?.load(Relaxed) as usize;
        let len = len.min(crate::name::NAME_BYTES_MAX);
        let name: Vec<u8> = (0..len)
            .map_while(|i| {
                let word = self.map.atomic_u64(layout::NAME + i / 8 * 8).ok()?.load(Relaxed);
                Some((word >> (i % 8 * 8)) as u8)
            })
            .collect();
        Ok((pid, started, String::from_utf8_lossy(&name).into_owned()))
    }
}

/// Whether node `id` is dead for certain: its file is gone or the file's lock is free.
pub(crate) fn node_is_gone(nodes: &Path, id: NodeId) -> Result<bool> {
    let expect = Expect { writable: false, min_len: 0, owner: None };
    match file::open_checked(&nodes.join(id.0.to_string()), expect) {
        Ok((fd, _)) => Ok(!filelock::is_locked(&fd)?),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(true),
        Err(e) => Err(e),
    }
}

/// Bytes of one subscriber port; written by its node only.
pub(crate) mod port {
    use crate::layout::CACHE_LINE;
    /// Port id, 0 while the block is free. Stored last on opening.
    pub(crate) const ID: usize = 0;
    /// Topic bell epoch of the last look at the topic's directory.
    pub(crate) const SEEN: usize = 8;
    /// Most samples this subscriber holds at once.
    pub(crate) const BORROWS: usize = 16;
    /// 1: publishers wait for this subscriber before they overwrite what it has not read.
    pub(crate) const RELIABLE: usize = 24;
    /// 0 awake, 1 asleep on words, 2 | doorbell << 2 asleep on a doorbell, 3 waits for a
    /// descriptor.
    pub(crate) const WAITING: usize = CACHE_LINE;
    /// Who waits for a descriptor: the number of its socket, and the generation.
    pub(crate) const SOCKET: usize = WAITING + 8;
    pub(crate) const GENERATION: usize = WAITING + 16;
    pub(crate) const HAZARDS: usize = 2 * CACHE_LINE;
    pub(crate) const HAZARDS_MAX: usize = 64;
    pub(crate) const SOURCES: usize = HAZARDS + HAZARDS_MAX * 8;
    /// One attached publisher: node, port, cursor, changes.
    pub(crate) const SOURCE_BYTES: usize = 32;
    pub(crate) const SOURCES_MAX: usize = 96;
    const _: () = assert!(SOURCES + SOURCES_MAX * SOURCE_BYTES <= crate::layout::PAGE);
}

/// One subscriber port block, own or a peer's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortView<'a> {
    base: *const u8,
    _map: std::marker::PhantomData<&'a Mapping>,
}

// SAFETY: a view is a shared borrow of a `Mapping`, which is `Sync`; all access is atomic.
unsafe impl Send for PortView<'_> {}
// SAFETY: as above.
unsafe impl Sync for PortView<'_> {}

impl<'a> PortView<'a> {
    pub(crate) fn new(map: &'a Mapping, offset: usize) -> Result<Self> {
        let base = map.bytes(offset, layout::PORT_BYTES)?;
        // Everything below is reached at 8-aligned offsets from here.
        map.atomic_u64(offset)?;
        Ok(Self { base, _map: std::marker::PhantomData })
    }

    /// As `new`, for an offset that `new` has accepted in this mapping before.
    #[inline]
    pub(crate) fn checked(map: &'a Mapping, offset: usize) -> Self {
        debug_assert!(Self::new(map, offset).is_ok());
        Self { base: map.base().wrapping_add(offset), _map: std::marker::PhantomData }
    }

    #[inline]
    fn u64_at(self, offset: usize) -> &'a AtomicU64 {
        debug_assert!(offset % 8 == 0 && offset + 8 <= layout::PORT_BYTES);
        // SAFETY: `new` checked PORT_BYTES from `base`, 8-aligned; callers pass offsets within
        // (asserted above); the mapping outlives 'a.
        unsafe { &*self.base.add(offset).cast::<AtomicU64>() }
    }

    pub(crate) fn id(self) -> &'a AtomicU64 {
        self.u64_at(port::ID)
    }

    pub(crate) fn seen(self) -> &'a AtomicU64 {
        self.u64_at(port::SEEN)
    }

    pub(crate) fn borrows(self) -> &'a AtomicU64 {
        self.u64_at(port::BORROWS)
    }

    pub(crate) fn reliable(self) -> &'a AtomicU64 {
        self.u64_at(port::RELIABLE)
    }

    #[inline]
    pub(crate) fn waiting(self) -> &'a AtomicU32 {
        // SAFETY: as in `u64_at`; 4-aligned.
        unsafe { &*self.base.add(port::WAITING).cast::<AtomicU32>() }
    }

    pub(crate) fn socket(self) -> &'a AtomicU64 {
        self.u64_at(port::SOCKET)
    }

    pub(crate) fn generation(self) -> &'a AtomicU64 {
        self.u64_at(port::GENERATION)
    }

    /// The hazard words in use: at most `HAZARDS_MAX`, whatever the block claims.
    #[inline]
    pub(crate) fn hazards(self) -> &'a [AtomicU64] {
        let claimed = self.borrows().load(Relaxed) as usize;
        let unchecked = fault("hazard.count_unchecked");
        let n = if unchecked { claimed } else { claimed.min(port::HAZARDS_MAX) };
        // SAFETY: as in `u64_at`; HAZARDS_MAX words lie inside the block (asserted in `port`).
        unsafe { std::slice::from_raw_parts(self.base.add(port::HAZARDS).cast(), n) }
    }

    /// Node, port, cursor and changes of source `slot`.
    #[inline]
    pub(crate) fn source(self, slot: usize) -> [&'a AtomicU64; 4] {
        debug_assert!(slot < port::SOURCES_MAX);
        let at = port::SOURCES + slot * port::SOURCE_BYTES;
        [self.u64_at(at), self.u64_at(at + 8), self.u64_at(at + 16), self.u64_at(at + 24)]
    }
}
