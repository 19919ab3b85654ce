//! Words of a channel or a board: on the heap, in a file of ours, or in a peer's.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use crate::layout::HEADER_BYTES;
use crate::node::{Node, Watch};
use crate::os::file;
use crate::os::map::Mapping;
use crate::sync::AtomicU64;

/// A cache line.
#[repr(C, align(64))]
#[derive(Debug, Default)]
struct Line([AtomicU64; 8]);

/// Words with one writer. Derefs to all of them; only the owner may store.
#[derive(Debug)]
pub(crate) struct Words {
    memory: Memory,
    count: usize,
}

#[derive(Debug)]
enum Memory {
    Heap(Box<[Line]>),
    Own { map: Mapping, path: PathBuf, node: Node },
    Peer { map: Mapping, watch: Watch },
}

impl Words {
    pub(crate) fn heap(count: usize) -> Arc<Self> {
        let lines = (0..count.div_ceil(8)).map(|_| Line::default()).collect();
        Arc::new(Self { memory: Memory::Heap(lines), count })
    }

    /// A file of ours; it goes when this is dropped. The map holds `count` words after the header.
    pub(super) fn own(map: Mapping, path: PathBuf, node: Node, count: usize) -> Arc<Self> {
        assert!(map.len() >= HEADER_BYTES + 8 * count);
        Arc::new(Self { memory: Memory::Own { map, path, node }, count })
    }

    /// A peer's file, read-only.
    pub(super) fn peer(map: Mapping, watch: Watch, count: usize) -> Arc<Self> {
        assert!(map.len() >= HEADER_BYTES + 8 * count);
        Arc::new(Self { memory: Memory::Peer { map, watch }, count })
    }

    /// Whether its owner looks alive: one load; on the heap it is this process.
    #[inline]
    pub(crate) fn seems_alive(&self) -> bool {
        match &self.memory {
            Memory::Peer { watch, .. } => watch.seems_alive(),
            _ => true,
        }
    }

    /// Brings all pages in.
    pub(crate) fn prefault(&self) {
        match &self.memory {
            Memory::Heap(_) => {}
            Memory::Own { map, .. } | Memory::Peer { map, .. } => map.prefault(),
        }
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        let base = match &self.memory {
            Memory::Heap(lines) => lines.as_ptr().cast::<AtomicU64>(),
            Memory::Own { map, .. } | Memory::Peer { map, .. } => {
                map.base().wrapping_add(HEADER_BYTES).cast()
            }
        };
        // SAFETY: `count` words lie there, 8-aligned (a Line; a page plus the header): `heap`
        // rounded up, `own` and `peer` checked the length. They live as long as `self`; all access
        // is atomic, and only owners store.
        unsafe { std::slice::from_raw_parts(base, self.count) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        if let Memory::Own { path, node, .. } = &self.memory
            && node.is_own_process()
        {
            // Dying here: the file of a dead node, which any join or `clean` removes.
            let _ = file::unlink(path);
        }
    }
}
