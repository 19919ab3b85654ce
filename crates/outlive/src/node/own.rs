//! The nodes of this process, and a word for each that its own threads sleep on.
//!
//! # Theory of operation
//! At a death the kernel wakes *one* of those who sleep on the token; that one wakes the others. A
//! thread asleep on a token of its own process dies with it and may take that wake along: others
//! would learn of the death at the end of their slice. Such a thread need not hear of it. So it
//! sleeps on a word of this process, which changes when the node leaves in order.

use std::collections::HashMap;
use std::sync::Arc;

use crate::os::process::fork::per_process::PerProcess;
use crate::os::sleep::futex;
use crate::sync::Ordering::Release;
use crate::sync::{AtomicU32, fault};

/// 1 once the node has left.
pub(super) type Left = Arc<AtomicU32>;

/// Device and inode of a node's file.
type File = (u64, u64);

/// In a forked child there are none: its parent's nodes end without it.
static NODES: PerProcess<HashMap<File, Left>> = PerProcess::new();

/// A node of this process, from before others can see it.
#[derive(Debug)]
pub(super) struct OwnNode {
    file: File,
    left: Left,
}

impl OwnNode {
    pub(super) fn enter(file: File) -> Self {
        let left = Left::default();
        NODES.get().lock().unwrap_or_else(|e| e.into_inner()).insert(file, Arc::clone(&left));
        Self { file, left }
    }

    /// Its token has been closed. Before the file is: its number may be another's then.
    pub(super) fn leave(&self) {
        NODES.get().lock().unwrap_or_else(|e| e.into_inner()).remove(&self.file);
        // ORDERING(NODE_LEFT): pairs with `Peer::end`; carries the closed token.
        self.left.store(1, Release);
        if !fault("own.leaves_unheard") {
            futex::wake(&self.left, i32::MAX);
        }
    }
}

/// The word of the node that has that file, if it is of this process.
pub(super) fn find(file: File) -> Option<Left> {
    NODES.get().lock().unwrap_or_else(|e| e.into_inner()).get(&file).map(Arc::clone)
}
