//! Words of a channel or a board: on the heap, in a file of ours, or in a peer's.
//!
//! | word | of the first line |
//! |------|---|
//! | 0    | serial: names this end, never another; node << 32 and a count |
//! | 1    | paired: serial of the other end that this one works with, or 0; bit 63: it has left |
//! | 2    | of a ring's writer: from which entry on that reader reads |
#![allow(unsafe_code)]

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use crate::domain::header::HEADER_BYTES;
use crate::node::{Node, Watch};
use crate::os::fs::file;
use crate::os::fs::map::Mapping;
use crate::os::process::fork::fork_generation;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64, fault};

/// A cache line.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Line([AtomicU64; 8]);

/// Words of the first line.
const SERIAL: usize = 0;
const PAIRED: usize = 1;
const START: usize = 2;
/// Bytes of the first line.
const LINE_BYTES: usize = size_of::<Line>();
/// Set in *paired* by an end that was dropped.
pub(in crate::rt) const LEFT: u64 = 1 << 63;

/// Bytes of a file that holds `count` words.
pub(in crate::rt) const fn file_bytes(count: usize) -> usize {
    HEADER_BYTES + LINE_BYTES + 8 * count
}

/// Words with one writer. Derefs to those after the first line; only the owner may store.
#[derive(Debug)]
pub(crate) struct Words {
    memory: Memory,
    count: usize,
    /// Which process made them: see `fork_generation`.
    generation: u32,
}

#[derive(Debug)]
enum Memory {
    Heap(Box<[Line]>),
    /// `ended`: its file was taken away, and the name may be another's by now.
    Own {
        map: Mapping,
        path: PathBuf,
        ended: AtomicU32,
        node: Node,
    },
    Peer {
        map: Mapping,
        watch: Watch,
    },
}

impl Words {
    fn new(memory: Memory, count: usize) -> Arc<Self> {
        Arc::new(Self { memory, count, generation: fork_generation() })
    }

    pub(crate) fn heap(count: usize) -> Arc<Self> {
        let lines = (0..1 + count.div_ceil(8)).map(|_| Line::default()).collect();
        Self::new(Memory::Heap(lines), count)
    }

    /// Two ends on the heap that name each other.
    pub(in crate::rt) fn heap_pair(first: usize, second: usize) -> (Arc<Self>, Arc<Self>) {
        let ends = (Self::heap(first), Self::heap(second));
        for (own, serial, other) in [(&ends.0, 1, 2), (&ends.1, 2, 1)] {
            own.line()[SERIAL].store(serial, Relaxed);
            own.paired().store(other, Relaxed);
        }
        ends
    }

    /// A file of ours; it goes when this is dropped. The map holds `file_bytes(count)`.
    pub(in crate::rt) fn own(map: Mapping, path: PathBuf, node: Node, count: usize) -> Arc<Self> {
        assert!(map.len() >= file_bytes(count));
        Self::new(Memory::Own { map, path, ended: AtomicU32::new(0), node }, count)
    }

    /// A peer's file, read-only.
    pub(in crate::rt) fn peer(map: Mapping, watch: Watch, count: usize) -> Arc<Self> {
        assert!(map.len() >= file_bytes(count));
        Self::new(Memory::Peer { map, watch }, count)
    }

    /// Whether this process may store: not a forked child in its parent's file. One load.
    #[inline]
    pub(in crate::rt) fn are_ours(&self) -> bool {
        self.generation == fork_generation() || matches!(self.memory, Memory::Heap(_))
    }

    /// Whether its owner looks alive and has not left: two loads; on the heap it is this process.
    #[inline]
    pub(crate) fn seems_alive(&self) -> bool {
        match &self.memory {
            Memory::Peer { watch, .. } => watch.seems_alive() && !self.has_left(),
            _ => !self.has_left(),
        }
    }

    /// Whether its owner is dead for certain, or has left. No system call while it looks alive.
    #[inline]
    pub(crate) fn is_dead(&self) -> bool {
        match &self.memory {
            Memory::Peer { watch, .. } if fault("lifeline.by_hint") => !watch.seems_alive(),
            Memory::Peer { watch, .. } => self.has_left() || !watch.is_alive(),
            _ => self.has_left(),
        }
    }

    /// Names this end, never another.
    #[inline]
    pub(in crate::rt) fn serial(&self) -> u64 {
        self.line()[SERIAL].load(Relaxed)
    }

    /// The other end that this one works with.
    #[inline]
    pub(in crate::rt) fn paired(&self) -> &AtomicU64 {
        &self.line()[PAIRED]
    }

    /// From which entry on the reader that *paired* names is to read.
    pub(in crate::rt) fn start(&self) -> &AtomicU64 {
        &self.line()[START]
    }

    /// Whether its owner has dropped it.
    #[inline]
    pub(in crate::rt) fn has_left(&self) -> bool {
        // ORDERING(RT_LEFT): pairs with `leave`; all that the end did comes before it.
        self.paired().load(Acquire) & LEFT != 0
    }

    /// Says that this end does nothing more; not in a forked child, whose parent still has it.
    ///
    /// # Crash safety
    /// **Strict.** One store.
    pub(in crate::rt) fn leave(&self) {
        let own = !matches!(self.memory, Memory::Peer { .. });
        if own && self.are_ours() && !fault("rt_pair.leaves_untold") {
            // ORDERING(RT_LEFT): pairs with `has_left`.
            self.paired().store(self.paired().load(Relaxed) | LEFT, Release);
        }
    }

    /// Leaves, and takes its file away, whoever still looks at it here; once.
    ///
    /// # Crash safety
    /// **Strict.** Dying in between: the file of a dead node, which any join or `clean` removes.
    pub(in crate::rt) fn end(&self) {
        self.leave();
        if let Memory::Own { path, ended, node, .. } = &self.memory
            && self.are_ours()
            && ended.swap(1, Relaxed) == 0
            && !node.is_replaced()
        {
            let _ = file::unlink(path);
        }
    }

    /// Brings all pages in.
    pub(crate) fn prefault(&self) {
        match &self.memory {
            Memory::Heap(_) => {}
            Memory::Own { map, .. } | Memory::Peer { map, .. } => map.prefault(),
        }
    }

    #[inline]
    fn base(&self) -> *const AtomicU64 {
        match &self.memory {
            Memory::Heap(lines) => lines.as_ptr().cast(),
            Memory::Own { map, .. } | Memory::Peer { map, .. } => {
                map.base().wrapping_add(HEADER_BYTES).cast()
            }
        }
    }

    #[inline]
    fn line(&self) -> &[AtomicU64; 8] {
        // SAFETY: the first line lies there, 8-aligned, in each kind of memory: see `deref`.
        unsafe { &*self.base().cast() }
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        let first = self.base().wrapping_byte_add(LINE_BYTES);
        // SAFETY: `count` words lie there, 8-aligned (a Line; a page plus header and line): `heap`
        // rounded up, `own` and `peer` checked the length. They live as long as `self`; all access
        // is atomic, and only owners store.
        unsafe { std::slice::from_raw_parts(first, self.count) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        self.end();
    }
}
