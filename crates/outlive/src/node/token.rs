//! The node's own liveness token, and the map of its file.
//!
//! # Theory of operation
//! A thread that does nothing else holds the token (`os::holder`): the kernel marks its word when
//! the process ends, and at no other time. Whichever thread opened the node, and whether that one
//! still lives, matters to nobody.

#![allow(unsafe_code)]

use std::sync::Arc;

use super::layout;
use crate::os::death::holder::{HOLDER_BYTES, Holder};
use crate::os::fs::map::Mapping;
use crate::os::process::fork;
use crate::sync::Mutex;
use crate::{Error, ErrorKind, Result};

/// The token of this process's node; ports and samples keep its map beyond the node's life.
#[derive(Debug)]
pub(crate) struct Token {
    /// Before `map`, which it uses. `None` once the node has left.
    holder: Mutex<Option<Holder>>,
    map: Mapping,
}

impl Token {
    /// Has the token of a node file held that nobody else can see yet.
    ///
    /// # Errors
    /// Those of [`Holder::spawn`]: each node needs a thread.
    pub(crate) fn register(map: Mapping) -> Result<Arc<Self>> {
        let page = map.bytes(layout::TOKEN, HOLDER_BYTES)?;
        // SAFETY: zeroed bytes of our own writable mapping, which `holder` does not outlive.
        let holder = unsafe { Holder::spawn(page.cast_mut())? };
        Ok(Arc::new(Self { holder: Mutex::new(Some(holder)), map }))
    }

    pub(crate) fn map(&self) -> &Mapping {
        &self.map
    }

    /// Ends the token for good: the node leaves in order. Not in a forked child.
    ///
    /// # Crash safety
    /// **Strict.** As the drop of [`Holder`].
    pub(crate) fn close(&self) {
        drop(self.holder.lock().unwrap_or_else(|e| e.into_inner()).take());
    }
}

/// The error of every call on a handle that a forked child inherited.
#[cold]
pub(crate) fn forked_child() -> Error {
    // A child of a raw clone: from here on it keeps nobody alive.
    fork::install();
    Error::new(
        ErrorKind::ForkedChild,
        "using",
        "a node of the parent process",
        "after fork the child is not the node: open a node of its own",
    )
}
