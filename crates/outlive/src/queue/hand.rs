//! The row of messages that is being received, so that most calls look at nothing else.
//!
//! # Invariants
//! - Only the lane whose turn it is has its messages here; its `Head` learns of what was received
//!   when the row ends or is laid down.
//! - Laid down before a lane moves, goes, or is looked at.
//! - A forked child has none, and takes up none: the position is its parent's.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::head::Head;
use super::position::Place;
use super::reader::BURST;
use super::segment::Segment;
use crate::Result;
use crate::os::wiped::Wiped;
use crate::sync::AtomicU64;
use crate::sync::Ordering::Relaxed;

/// Messages of one record that lie one behind the other, ready to be received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InHand {
    pub(crate) ptr: *const u8,
    /// Bytes of each message, and how many there are.
    pub(crate) bytes: usize,
    pub(crate) count: u32,
}

/// What `Hand::take` came to.
pub(super) enum Taken {
    /// More are left.
    Some,
    /// More are left, and others have waited long enough.
    Pause,
    /// The last one; the row had so many.
    All(u32),
}

/// What is left of a row.
#[derive(Debug)]
pub(super) struct Hand {
    /// Messages that are left: the one word that changes from one to the next.
    left: Wiped,
    /// Messages of the row when it was taken up.
    row: u32,
    /// End of the row's last message.
    end: *const u8,
    /// What `progress` would say behind it, and where that is.
    last: u64,
    progress: NonNull<AtomicU64>,
    /// Bytes of each message.
    bytes: usize,
}

// SAFETY: nothing in it is bound to a thread; its owner, the reader, may be sent.
unsafe impl Send for Hand {}
// SAFETY: shared access reads its fields alone.
unsafe impl Sync for Hand {}

impl Hand {
    pub(super) fn empty() -> Result<Self> {
        let (end, progress) = (std::ptr::null(), NonNull::dangling());
        Ok(Self { left: Wiped::new()?, row: 0, end, last: 0, progress, bytes: 0 })
    }

    /// Takes up the messages that `head` has found.
    #[inline(always)]
    pub(super) fn take_up(&mut self, head: &Head, segment: &Segment, place: Place<'_>) -> InHand {
        let ptr = segment.at(head.item_at()).cast_const();
        let (bytes, count) = (head.item_bytes() as usize, head.items());
        (self.end, self.bytes) = (ptr.wrapping_add(count as usize * bytes), bytes);
        self.left.set(count.into());
        self.row = count;
        self.last = head.progress() + u64::from(count);
        self.progress = NonNull::from(place.progress());
        InHand { ptr, bytes, count }
    }

    /// The messages that are left; `None` for none. `known`: the bytes of each, where the type says
    /// so.
    #[inline(always)]
    pub(super) fn show(&self, known: Option<usize>) -> Option<InHand> {
        let (bytes, left) = (known.unwrap_or(self.bytes), self.left.get());
        debug_assert!(left == 0 || bytes == self.bytes);
        let ptr = self.end.wrapping_sub(left as usize * bytes);
        (left > 0).then_some(InHand { ptr, bytes, count: left as u32 })
    }

    /// `n` of them, of those that it showed, were received.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store, before the last one; then the caller's.
    #[inline(always)]
    pub(super) fn take(&mut self, n: u32) -> Taken {
        // A child that was forked with a message in hand has nothing left.
        let Some(left) = self.left.get().checked_sub(n.into()) else { return Taken::Some };
        self.left.set(left);
        // One branch for most: the end of the row is a multiple, too.
        if left % u64::from(BURST) != 0 {
            self.tell(left);
            return Taken::Some;
        }
        if left == 0 {
            return Taken::All(self.row);
        }
        self.tell(left);
        Taken::Pause
    }

    #[inline(always)]
    fn tell(&self, left: u64) {
        // SAFETY: with messages left, `take_up` set it to a word of the reader's table, which
        // outlives the row.
        unsafe { self.progress.as_ref() }.store(self.last - left, Relaxed);
    }

    /// Forgets what is left; returns how many were received of the row.
    pub(super) fn lay_down(&mut self) -> u32 {
        let left = self.left.get() as u32;
        self.left.set(0);
        if left == 0 { 0 } else { self.row - left }
    }
}
