//! A port that waits by itself: as the only member of a wait, or behind a descriptor of its own.

use std::os::fd::BorrowedFd;

use super::WaitSet;
use super::member::Waitable;
use super::wake::bridge::Bridge;
use crate::node::Node;
use crate::os::time::deadline::Deadline;
use crate::sync::fault;
use crate::{Error, ErrorKind, Result};

/// What it needs for that; made when it is first asked for.
#[derive(Debug, Default)]
pub(crate) struct Alone {
    set: Option<WaitSet>,
    bridge: Option<Bridge>,
}

impl Alone {
    /// Puts `port` to sleep until there is something to do, at most until `deadline`; `of` finds
    /// this in it.
    ///
    /// # Crash safety
    /// **Strict.** As that of a wait set, of which the port is the only member.
    pub(crate) fn sleep<M: Waitable>(
        port: &mut M,
        of: fn(&mut M) -> &mut Self,
        deadline: Deadline,
    ) -> Result<()> {
        let mut set = of(port).set.take().unwrap_or_default();
        let slept = set.sleep(&mut [port], deadline);
        of(port).set = Some(set);
        slept
    }

    /// The descriptor of a port of `node`.
    ///
    /// # Errors
    /// `NoSpace`, or `Io` when the process is out of descriptors.
    pub(crate) fn fd(&mut self, node: &Node) -> Result<BorrowedFd<'_>> {
        let bridge = match self.bridge.take() {
            Some(bridge) => bridge,
            None => Bridge::of_one(node)?,
        };
        Ok(self.bridge.insert(bridge).fd())
    }

    #[inline]
    pub(crate) fn has_fd(&self) -> bool {
        self.bridge.is_some()
    }

    /// What the descriptor is made of, until it is given back.
    pub(crate) fn take_bridge(&mut self) -> Option<Bridge> {
        self.bridge.take()
    }

    pub(crate) fn give_back(&mut self, bridge: Bridge) {
        self.bridge = Some(bridge);
    }

    /// A call failed before it knew whether there is something: who waits for edges of the
    /// descriptor gets one, as nobody calls again for what has been called for.
    #[cold]
    pub(crate) fn failed(&mut self, why: &Error) {
        // In a forked child the news are its parent's.
        let is_ours = why.kind() != ErrorKind::ForkedChild;
        if let Some(bridge) = self.bridge.as_mut().filter(|_| is_ours)
            && !fault("fd.no_edge_after_error")
        {
            bridge.take();
            bridge.trip();
        }
    }

    /// While the waiting flag was lowered nobody called the descriptor.
    pub(crate) fn awake(&self) {
        if let Some(bridge) = &self.bridge {
            bridge.trip();
        }
    }
}
