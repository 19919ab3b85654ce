//! The row of messages that is being received, so that most calls look at nothing else.
//!
//! # Invariants
//! - Only the lane whose turn it is has its messages here; its `Head` learns of what was received
//!   when the row ends or is laid down.
//! - Laid down before a lane moves, goes, or is looked at.
//! - A forked child has none, and takes up none: the position is its parent's.
#![allow(unsafe_code)]

use std::ptr::NonNull;

use super::turn::BURST;
use crate::Result;
use crate::os::process::fork::wiped::Wiped;
use crate::queue::lane::head::Head;
use crate::queue::lane::position::Place;
use crate::queue::lane::record::Shape;
use crate::queue::lane::segment::Segment;
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

/// What `Hand::take_last` came to.
pub(in crate::queue) enum Taken {
    /// More are left.
    Some,
    /// More are left, and others have waited long enough: nothing is in hand any more, so many of
    /// the row were received.
    Pause(u32),
    /// The last one; the row had so many.
    All(u32),
}

/// What is left of a row.
#[derive(Debug)]
pub(in crate::queue) struct Hand {
    /// Messages that are left before others have their turn, below 0: the one word that changes
    /// from one message to the next.
    left: Wiped,
    /// Messages of the row behind those.
    behind: u32,
    /// Messages of the row when it was taken up.
    row: u32,
    /// End of the last message of `left`.
    end: *const u8,
    /// What `progress` would say there, and where that is.
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
    pub(in crate::queue) fn empty() -> Result<Self> {
        let (end, progress) = (std::ptr::null(), NonNull::dangling());
        Ok(Self { left: Wiped::new()?, behind: 0, row: 0, end, last: 0, progress, bytes: 0 })
    }

    /// Takes up the messages that `head` has found.
    #[inline(always)]
    pub(in crate::queue) fn take_up(
        &mut self,
        head: &Head,
        segment: &Segment,
        shape: &Shape,
        place: Place<'_>,
    ) {
        self.bytes = head.item_bytes() as usize;
        self.progress = NonNull::from(place.progress());
        self.row = head.items();
        let count = self.row.min(BURST);
        self.behind = self.row - count;
        self.show_next(segment.at(head.item_at(shape)), head.progress(), count);
    }

    /// As `take_up` of a row that is no longer than a burst, in the lane of the row before.
    #[inline(always)]
    pub(in crate::queue) fn take_up_next(&mut self, head: &Head, segment: &Segment, shape: &Shape) {
        debug_assert!(self.bytes as u64 == head.item_bytes() && self.behind == 0);
        self.row = head.items();
        self.show_next(segment.at(head.item_at(shape)), head.progress(), self.row);
    }

    /// The next `count` messages begin at `ptr`, and progress is `done` before them.
    #[inline(always)]
    fn show_next(&mut self, ptr: *const u8, done: u64, count: u32) {
        self.end = ptr.wrapping_add(count as usize * self.bytes);
        self.last = done + u64::from(count);
        self.left.set(u64::from(count).wrapping_neg());
    }

    /// The messages that are left; `None` for none. `known`: the bytes of each, where the type says
    /// so.
    #[inline(always)]
    pub(in crate::queue) fn show(&self, known: Option<usize>) -> Option<InHand> {
        let (bytes, left) = (known.unwrap_or(self.bytes), self.left.get() as i64);
        debug_assert!(left == 0 || bytes == self.bytes);
        let ptr = self.end.wrapping_offset(left as isize * bytes as isize);
        let count = (left.wrapping_neg() as u32).wrapping_add(self.behind);
        (left < 0).then_some(InHand { ptr, bytes, count })
    }

    /// `n` of them were received, if others that it showed are left then; else how many beyond
    /// those that it showed, for `take_last`.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store.
    #[inline(always)]
    pub(in crate::queue) fn take_some(&mut self, n: u32) -> Option<u32> {
        let left = self.left.get().wrapping_add(n.into());
        if (left as i64) >= 0 {
            return Some(left as u32);
        }
        self.left.set(left);
        self.tell(self.last.wrapping_add(left));
        None
    }

    /// All that it showed were received, and `over` of those behind them.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the caller's.
    #[inline]
    pub(in crate::queue) fn take_last(&mut self, over: u32) -> Taken {
        if self.behind > 0 {
            self.take_more(over)
        } else if over == 0 {
            self.left.set(0);
            Taken::All(self.row)
        } else {
            // A child that was forked with a message in hand had nothing left.
            Taken::Some
        }
    }

    /// As `take_last`, where there are some behind.
    #[cold]
    #[inline(never)]
    fn take_more(&mut self, over: u32) -> Taken {
        if self.left.get() == 0 {
            return Taken::Some; // as above
        }
        let behind = std::mem::take(&mut self.behind).saturating_sub(over);
        self.left.set(0);
        if behind == 0 {
            return Taken::All(self.row);
        }
        self.tell(self.last + u64::from(over));
        Taken::Pause(self.row - behind)
    }

    #[inline(always)]
    fn tell(&self, done: u64) {
        // SAFETY: with messages left, `take_up` set it to a word of the reader's table, which
        // outlives the row.
        unsafe { self.progress.as_ref() }.store(done, Relaxed);
    }

    /// Forgets what is left; returns how many were received of the row.
    pub(in crate::queue) fn lay_down(&mut self) -> u32 {
        let left = self.left.get().wrapping_neg() as u32;
        let behind = std::mem::take(&mut self.behind);
        self.left.set(0);
        if left == 0 { 0 } else { self.row - left - behind }
    }
}
