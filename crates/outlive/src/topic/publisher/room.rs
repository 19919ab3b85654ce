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

use super::audience::Audience;
use super::refused::{Published, Refused};
use super::ring::OwnRing;
use crate::crash_point;
use crate::os::process::sched;
use crate::os::sleep::slice::{Looks, POLL_NS};
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::{Acquire, Relaxed, SeqCst};
use crate::sync::fault;
use crate::wait::SleepSet;

/// Most looks at the cursors before others are let run.
const SPINS: u32 = 50;
/// Then as many looks, each after the others on this core had their turn.
const YIELDS: u32 = 32;
/// Longest sleep between two looks; bounds what a lost wake can cost.
const SLICE_NS: u64 = 5 * POLL_NS;

/// Back-pressure: how much a publisher waited for reliable subscribers.
///
/// Example: [`Publisher::waited`](crate::Publisher::waited).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waited {
    /// Messages that had to wait, including those then not sent.
    pub messages: u64,
    /// The time they waited, in all.
    pub total: Duration,
}

/// Room in a ring for what is published next.
#[derive(Debug)]
pub(super) struct Room {
    /// Messages below this overwrite nothing that a reliable subscriber has yet to read.
    until: u64,
    timeout_ns: u64,
    spins: u32,
    waited: Waited,
}

impl Room {
    /// Of a publisher that waits at most `timeout_ns`.
    pub(super) fn new(timeout_ns: u64) -> Self {
        Self { until: u64::MAX, timeout_ns, spins: SPINS, waited: Waited::default() }
    }

    /// Whether message `next` may be published without a look.
    #[inline]
    pub(super) fn is_there(&self, next: u64) -> bool {
        next < self.until
    }

    /// The subscribers are looked at again before the next message.
    pub(super) fn look_again(&mut self) {
        self.until = 0;
    }

    pub(super) fn waited(&self) -> Waited {
        self.waited
    }

    pub(super) fn timeout_ns(&self) -> u64 {
        self.timeout_ns
    }

    /// Waits at most `allowed_ns` until the next message overwrites nothing in `ring` that a live
    /// reliable subscriber has yet to read. `since`: when the wait for this message began, from
    /// which that counts.
    ///
    /// # Errors
    /// `Late`; `Behind` if no time is allowed. Nothing was published.
    ///
    /// # Crash safety
    /// **Strict.** Dying here leaves `WANTS_ROOM` raised in a dead ring: a needless wake.
    #[cold]
    pub(super) fn make(
        &mut self,
        ring: &OwnRing,
        audience: &mut Audience,
        allowed_ns: u64,
        since: &mut Option<u64>,
    ) -> Published<()> {
        if fault("reliable.not_waited") {
            self.until = u64::MAX;
            return Ok(());
        }
        let at_once = allowed_ns == 0;
        let spins = if at_once || sched::allowed_cpus() == 1 { 0 } else { self.spins };
        for i in 0..=spins {
            if self.look(ring, audience).is_none() {
                // Room at the first look says nothing about spinning.
                self.spins = if i > 0 { SPINS } else { self.spins };
                return Ok(());
            }
            std::hint::spin_loop();
        }
        if at_once {
            // Who waits looks at deaths each time round; here nobody else would.
            if !fault("reliable.dead_refuse") {
                audience.forget_departed(ring);
            }
            return match self.look(ring, audience) {
                Some(_) => Err(Refused::Behind),
                None => Ok(()),
            };
        }
        self.spins = (self.spins / 2).max(1);
        let start = clock::now_ns();
        self.waited.messages += u64::from(since.is_none());
        let began = *since.get_or_insert(start);
        let deadline = Deadline::at_ns(began.saturating_add(allowed_ns));
        let done = match self.let_others_run(ring, audience, deadline) {
            true => Ok(()),
            false => self.sleep(ring, audience, deadline),
        };
        self.waited.total += Duration::from_nanos(clock::now_ns().saturating_sub(start));
        done
    }

    /// `true`: there is room now. Whoever has to read may only need this core.
    fn let_others_run(
        &mut self,
        ring: &OwnRing,
        audience: &mut Audience,
        deadline: Deadline,
    ) -> bool {
        for _ in 0..YIELDS {
            sched::yield_now();
            if self.look(ring, audience).is_none() {
                return true;
            }
            if deadline.has_passed() {
                return false;
            }
        }
        false
    }

    /// Sleeps until there is room, at most until `deadline`.
    fn sleep(
        &mut self,
        ring: &OwnRing,
        audience: &mut Audience,
        deadline: Deadline,
    ) -> Published<()> {
        // ORDERING(WANTS_ROOM): pairs with `Source::show_cursor`; a request, as a waiting flag is.
        ring.wants_room().swap(1, SeqCst);
        crash_point!("writer.wants_room");
        let mut slice = crate::wait::wake::handshake::FIRST_SLICE_NS;
        let looks = Looks::begin();
        let done = loop {
            audience.forget_departed(ring);
            let Some(slowest) = self.look(ring, audience) else { break Ok(()) };
            let now = clock::now_ns();
            if deadline.has_passed_by(now) {
                break Err(Refused::Late);
            }
            let until = deadline.min(Deadline::at_ns(now + slice));
            sleep_once(ring, audience, slowest, until, looks);
            // The kernel may have been unable to mark its word: ask its file lock as well.
            let _ = audience.peer(slowest).proof_of_death();
            slice = SLICE_NS;
        };
        ring.wants_room().store(0, Relaxed);
        done
    }

    /// Sets the room by the slowest reliable subscriber, and names it if there is none.
    fn look(&mut self, ring: &OwnRing, audience: &mut Audience) -> Option<usize> {
        let next = ring.next();
        let (mut floor, mut all_read) = ((u64::MAX, 0), true);
        for i in 0..audience.len() {
            if let Some(cursor) = audience.reliable_cursor(i, next) {
                floor = floor.min((cursor, i));
                all_read &= audience.is_attached(i);
            }
        }
        let until = floor.0.saturating_add(ring.depth());
        // One that joins may begin further back, once it has said where: look at each message.
        let next_look = if all_read { u64::MAX } else { next + 1 };
        self.until = until.min(next_look);
        (next >= until).then_some(floor.1)
    }
}

/// Sleeps until subscriber `slowest` has read on, has died, or `until`.
fn sleep_once(ring: &OwnRing, audience: &Audience, slowest: usize, until: Deadline, looks: Looks) {
    let Some(word) = audience.cursor_word(slowest) else {
        return clock_sleep(until, looks);
    };
    let peer = audience.peer(slowest);
    let end = peer.end();
    let at = word.load(Acquire);
    if ring.next() < at.saturating_add(ring.depth()) || peer.death().is_some() {
        return;
    }
    let mut set = SleepSet::new(crate::os::sleep::futex::low_half(word), at as u32);
    set.end(end);
    set.look(looks);
    set.sleep(until);
}

/// Until the subscriber has attached there is no word to sleep on.
fn clock_sleep(until: Deadline, looks: Looks) {
    crate::os::process::sched::sleep_until(until.min(Deadline::in_ns(looks.pause_ns())));
}
