//! Reliable subscribers: the publisher waits until the slowest live one has read what the next
//! message would overwrite.
//!
//! # Theory of operation
//! A reliable subscriber's cursor, in its own node's file, is what the publisher waits for. While
//! it waits it raises `WANTS_ROOM` in its ring; a reliable subscriber that sees it wakes the
//! publisher whenever it shows its cursor, which is every quarter of the ring and when it has read
//! all. The dead do not count: their token ends the sleep. A stopped one is not dead and costs the
//! publisher its deadline.

use std::time::Duration;

use super::refused::{Published, Refused};
use super::writer::Writer;
use crate::crash_point;
use crate::node::NodeId;
use crate::os::process::sched;
use crate::os::time::clock;
use crate::sync::Ordering::{Acquire, Relaxed, SeqCst};
use crate::sync::fault;
use crate::topic::ring::layout::ring;
use crate::wait::{POLL_NS, SleepSet};

/// Most looks at the cursors before others are let run.
pub(in crate::topic) const SPINS: u32 = 50;
/// Then as many looks, each after the others on this core had their turn.
const YIELDS: u32 = 32;
/// Longest sleep between two looks; bounds what a lost wake can cost.
const SLICE_NS: u64 = 5 * POLL_NS;

/// Back-pressure: what a publisher waited for reliable subscribers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waited {
    /// Messages that had to wait, also those that were then not sent.
    pub messages: u64,
    /// In all.
    pub total: Duration,
}

impl Writer {
    /// Waits until message `next` overwrites nothing that a live reliable subscriber has yet to
    /// read.
    ///
    /// # Errors
    /// `Late`; `Behind` for one that may not wait. Nothing was published.
    ///
    /// # Crash safety
    /// **Strict.** Dying here leaves `WANTS_ROOM` raised in a dead ring: a needless wake.
    #[cold]
    pub(in crate::topic) fn make_room(&mut self, at_once: bool) -> Published<()> {
        if fault("reliable.not_waited") {
            return Ok(());
        }
        let at_once = at_once || self.reliable_timeout_ns() == 0;
        let spins = if at_once || sched::allowed_cpus() == 1 { 0 } else { self.room_spins };
        for i in 0..=spins {
            if self.look_for_room().is_none() {
                // Room at the first look says nothing about spinning.
                self.room_spins = if i > 0 { SPINS } else { self.room_spins };
                return Ok(());
            }
            std::hint::spin_loop();
        }
        if at_once {
            // Who waits looks at deaths each time round; here nobody else would.
            if !fault("reliable.dead_refuse") {
                self.forget_departed();
            }
            return match self.look_for_room() {
                Some(_) => Err(Refused::Behind),
                None => Ok(()),
            };
        }
        self.room_spins = (self.room_spins / 2).max(1);
        let start = clock::now_ns();
        let deadline = start.saturating_add(self.reliable_timeout_ns());
        let done = if self.let_others_run(deadline) { Ok(()) } else { self.await_room(deadline) };
        self.waited.messages += 1;
        self.waited.total += Duration::from_nanos(clock::now_ns().saturating_sub(start));
        done
    }

    /// `true`: there is room now. Whoever has to read may only need this core.
    fn let_others_run(&mut self, deadline: u64) -> bool {
        for _ in 0..YIELDS {
            sched::yield_now();
            if self.look_for_room().is_none() {
                return true;
            }
            if clock::now_ns() >= deadline {
                return false;
            }
        }
        false
    }

    /// Sleeps until there is room, at most until `deadline`.
    fn await_room(&mut self, deadline: u64) -> Published<()> {
        // ORDERING(WANTS_ROOM): pairs with `Source::show_cursor`; a request, as a waiting flag is.
        self.header_u32(ring::WANTS_ROOM).swap(1, SeqCst);
        crash_point!("writer.wants_room");
        let mut slice = crate::wait::wake::handshake::FIRST_SLICE_NS;
        let done = loop {
            self.forget_departed();
            let Some(slowest) = self.look_for_room() else { break Ok(()) };
            let now = clock::now_ns();
            if now >= deadline {
                break Err(Refused::Late);
            }
            self.sleep_for_room(slowest, deadline.min(now + slice));
            // The kernel may have been unable to mark its word: ask its file lock as well.
            let _ = self.admitted()[slowest].peer.proof_of_death();
            slice = SLICE_NS;
        };
        self.header_u32(ring::WANTS_ROOM).store(0, Relaxed);
        done
    }

    /// Sets the room by the slowest reliable subscriber, and names it if there is none.
    fn look_for_room(&mut self) -> Option<usize> {
        let (mut floor, mut all_read) = ((u64::MAX, 0), true);
        for i in 0..self.admitted().len() {
            if let Some(cursor) = self.reliable_cursor(i) {
                floor = floor.min((cursor, i));
                all_read &= self.admitted()[i].slot.is_some();
            }
        }
        let depth = self.depth();
        let room_until = floor.0.saturating_add(depth);
        // One that joins may begin further back, once it has said where: look at each message.
        let next_look = if all_read { u64::MAX } else { self.published() + 1 };
        self.set_room_until(room_until.min(next_look));
        (self.published() >= floor.0.saturating_add(depth)).then_some(floor.1)
    }

    fn sleep_for_room(&self, slowest: usize, until: u64) {
        let Some(word) = self.reliable_cursor_word(slowest) else {
            return clock_sleep(until);
        };
        let peer = &self.admitted()[slowest].peer;
        let (token, seen) = (peer.token(), peer.token().load(Acquire));
        let at = word.load(Acquire);
        if self.published() < at.saturating_add(self.depth()) || peer.death().is_some() {
            return;
        }
        let mut set = SleepSet::new(crate::os::sleep::futex::low_half(word), at as u32);
        set.token(token, seen);
        set.sleep(until);
    }

    /// The node of the reliable subscriber that is furthest behind.
    pub(super) fn slowest(&mut self) -> Option<NodeId> {
        let mut slowest = None;
        for i in 0..self.admitted().len() {
            if let Some(cursor) = self.reliable_cursor(i) {
                let this = (cursor, self.admitted()[i].peer.id());
                slowest = Some(slowest.map_or(this, |s: (u64, NodeId)| this.min(s)));
            }
        }
        slowest.map(|(_, node)| node)
    }
}

/// Until the subscriber has attached there is no word to sleep on.
fn clock_sleep(until: u64) {
    crate::os::process::sched::sleep_until(until.min(clock::now_ns() + POLL_NS));
}
