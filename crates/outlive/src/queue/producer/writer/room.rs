//! Room in a producer's lane: looking at the position, growing, shrinking, waiting.

use std::ptr::NonNull;
use std::sync::Arc;

use super::refused::{Refused, Sent};
use super::writer::{NOBODY, Wait, Writer};
use crate::node::peer::Peer;
use crate::os::death::robust;
use crate::os::process::sched;
use crate::os::sleep::futex;
use crate::os::time::clock;
use crate::queue::lane::position::{Position, SEGMENT_MAX, distance};
use crate::queue::lane::record::Shape;
use crate::queue::lane::segment::Segment;
use crate::queue::lane::tail::Tail;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::fault;
use crate::wait;
use crate::wait::SleepSet;
use crate::wait::member::Plan;
use crate::wait::wake::handshake;
use crate::{ErrorKind, Result, crash_point};

/// Looks at the position before a blocked producer sleeps or grows its lane.
const SPINS: u32 = 16;
/// Pauses between two of them, in which the position's cache line is left to the consumer.
const PAUSES: u32 = 64;

impl Writer {
    /// Makes a record of `need` bytes fit at the tail, or says why it cannot.
    #[cold]
    pub(in crate::queue) fn make_room(&mut self, need: u64, wait: Wait) -> Sent<()> {
        self.queue.node.tend()?;
        self.close_run();
        if need > largest_power(self.bound_bytes) - self.shape.unit {
            return Err(self.too_large(need).into());
        }
        let at_once = wait == Wait::Never;
        let spins = if at_once || sched::allowed_cpus() == 1 { 0 } else { SPINS };
        for spin in 0..=spins {
            let fits = self.look_for_room(need)?;
            // Better a good deal of room than room for one: the next calls need not come here.
            if fits && (self.tail.has_plenty() || spin == spins) {
                return Ok(());
            }
            if spin < spins {
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
            }
        }
        let larger = self.larger(need);
        // The word is enough to refuse. Whoever waits, or takes more memory for a consumer that
        // may be dead, asks the kernel.
        if !at_once || larger.is_some() {
            self.confirm_consumer()?;
        }
        if let Some(capacity) = larger
            && self.grow_if_possible(need, capacity)?
        {
            return Ok(());
        }
        match wait {
            Wait::Never => Err(Refused::Full),
            Wait::Until(deadline) => self.wait_for_room(need, deadline),
        }
    }

    /// As `reserve`, without waiting; a full lane's consumer is asked whether it lives: where
    /// nobody ever waits, nobody else would.
    pub(crate) fn reserve_at_once(&mut self, bytes: u64, shape: &Shape) -> Sent<*mut u8> {
        match self.reserve(bytes, shape, Wait::Never) {
            Err(Refused::Full) => Err(self.confirm_consumer().err().unwrap_or(Refused::Full)),
            done => done,
        }
    }

    /// Looks at the position once more; `true` when a record of `need` bytes fits now.
    fn look_for_room(&mut self, need: u64) -> Result<bool> {
        let consumed = self.consumed()?;
        self.tail.set_consumed(consumed);
        self.peak = self.peak.max(self.tail.used());
        if let Some(at) = self.tail.pad(self.segment.ring(), need) {
            self.after_commit(self.segment.ring().word(at));
        }
        if self.tail.lap() != self.lap {
            self.lap = self.tail.lap();
            let peak = std::mem::take(&mut self.peak);
            if self.is_too_large_for(peak) && self.shrink(peak, need).unwrap_or(false) {
                return Ok(true);
            }
        }
        Ok(self.tail.fits(need))
    }

    /// How far the consumer is in the current segment.
    fn consumed(&mut self) -> Result<u64> {
        self.check_poisoned()?;
        if self.slot.is_none() {
            self.slot = self.table.find(self.id);
        }
        let at = match self.slot {
            None => Position::START,
            Some(slot) => self.table.place(slot).consumed().ok_or_else(|| self.refused())?,
        };
        while self.older.front().is_some_and(|(number, _)| *number < at.segment) {
            self.older.pop_front();
        }
        self.consumed_at(at).ok_or_else(|| self.corrupt("the consumer's position"))
    }

    /// A consumer that refused the lane reads nothing of it any more.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_accepted(&mut self) -> Result<()> {
        self.check_poisoned()?;
        if self.slot.is_none() {
            self.slot = self.table.find(self.id);
        }
        match self.slot.is_some_and(|slot| self.table.place(slot).consumed().is_none()) {
            true => Err(self.refused()),
            false => Ok(()),
        }
    }

    /// What a consumer at `at` has consumed of the current segment; `None`: it cannot be there.
    fn consumed_at(&self, at: Position) -> Option<u64> {
        if at.segment < self.number {
            return Some(0);
        }
        let behind = distance(at.offset, self.tail.pos());
        let possible = at.segment == self.number
            && behind <= self.tail.pos()
            && behind <= self.tail.capacity();
        possible.then(|| self.tail.pos() - behind)
    }

    /// The consumer lets nothing go: does it live? A token that the kernel could not mark says
    /// alive for ever; its file lock does not.
    fn confirm_consumer(&mut self) -> Sent<()> {
        let died = |peer: &Arc<Peer>| peer.proof_of_death().is_some();
        if self.peer.as_ref().is_some_and(died) && !fault("room.believes_the_word") {
            self.token = NonNull::from(&NOBODY);
        }
        self.check_served()
    }

    /// Goes on in a segment of `capacity` bytes; `false` where there is no space for it now.
    fn grow_if_possible(&mut self, need: u64, capacity: u64) -> Result<bool> {
        let done = match self.leave_for(capacity) {
            // The RAM disk is full; what is there may still become free.
            Err(e) if e.kind() == ErrorKind::NoSpace && self.tail.can_hold(need) => {
                self.is_stuck = true;
                self.refusal.set_cause(Some(e));
                return Ok(false);
            }
            done => done,
        };
        self.unstick();
        done
    }

    /// From here on nothing but its bound keeps the lane from growing.
    fn unstick(&mut self) {
        if std::mem::take(&mut self.is_stuck) {
            self.refusal.set_cause(None);
        }
    }

    /// Bytes of the segment with which the lane can go on; `None` at the bound.
    fn larger(&mut self, need: u64) -> Option<u64> {
        let least = (need + self.shape.unit).next_power_of_two();
        let capacity = (self.tail.capacity() * 2).max(least).max(self.first_bytes);
        // What is consumed entirely is left behind at once and does not count.
        let drained = self.tail.is_drained() && self.older.is_empty();
        let in_use = if drained { 0 } else { self.memory_bytes() };
        let larger = if self.number >= SEGMENT_MAX {
            None
        } else if in_use + capacity <= self.bound_bytes {
            Some(capacity)
        } else {
            // Smaller may still do for a large message.
            let fits = drained && least <= self.bound_bytes && least > self.tail.capacity();
            fits.then_some(least)
        };
        if larger.is_none() {
            self.unstick();
        }
        larger
    }

    /// Adds a segment of `capacity` bytes and leaves the current one; `false` at the last number.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the `JUMP`. Dying before it, the new segment goes with the lane.
    fn leave_for(&mut self, capacity: u64) -> Result<bool> {
        if self.number >= SEGMENT_MAX {
            return Ok(false);
        }
        let mode = self.queue.node.domain().access.own_mode;
        let number = self.number + 1;
        let next = Segment::create(&self.queue.dir, self.id, number, capacity, mode)?;
        crash_point!("queue.grow.before_jump");
        let at = self.tail.jump(self.segment.ring());
        self.after_commit(self.segment.ring().word(at));
        crash_point!("queue.grow.after_jump");
        self.older.push_back((self.number, self.tail.capacity()));
        self.segment = next;
        self.number = number;
        self.tail = Tail::new(capacity, self.shape.unit);
        (self.lap, self.peak) = (0, 0);
        Ok(true)
    }

    /// Whether the last time round needed so little that a smaller segment would do.
    fn is_too_large_for(&self, peak: u64) -> bool {
        let capacity = self.tail.capacity();
        capacity > 4 * self.first_bytes && peak < capacity / 16 && self.older.is_empty()
    }

    fn shrink(&mut self, peak: u64, need: u64) -> Result<bool> {
        let least = (4 * peak).max(need + self.shape.unit).next_power_of_two();
        let capacity = least.max(self.first_bytes);
        if capacity >= self.tail.capacity() {
            return Ok(false);
        }
        self.leave_for(capacity)
    }

    /// Sleeps until a record of `need` bytes fits.
    ///
    /// # Crash safety
    /// **Strict.** Dying asleep leaves a raised flag in our own file, and nothing sent.
    fn wait_for_room(&mut self, need: u64, deadline: u64) -> Sent<()> {
        loop {
            if self.look_for_room(need)? {
                return Ok(());
            }
            if let Some(capacity) = self.larger(need)
                && self.grow_if_possible(need, capacity)?
            {
                return Ok(());
            }
            self.confirm_consumer()?;
            if clock::now_ns() >= deadline {
                return Err(Refused::Late);
            }
            self.sleep(need, deadline)?;
        }
    }

    fn sleep(&mut self, need: u64, deadline: u64) -> Result<()> {
        let (flag, request) = (self.segment.waiting(), handshake::WAITING_WORDS);
        handshake::sleep(flag, request, deadline, wait::slice_ns_max(), clock::now_ns, |until| {
            let owner = self.table.owner();
            if owner.raw() != self.owner_seen.get() {
                return Ok(None);
            }
            let owner_word = futex::low_half(self.table.owner_word());
            let mut set = SleepSet::new(owner_word, owner.count());
            let word = match self.slot {
                Some(slot) => self.table.place(slot).word(),
                None => self.table.changes(),
            };
            let seen = word.load(Acquire);
            // Room may have come since: the caller looks again at anything but this value.
            if self.has_moved(seen, need) {
                return Ok(None);
            }
            set.word(futex::low_half(word), seen as u32);
            let Some(peer) = &self.peer else { return Ok(None) };
            let token = peer.token().load(Relaxed);
            // By the file lock: the kernel may have been unable to mark the word.
            if !robust::is_alive_word(token) || peer.proof_of_death().is_some() {
                return Ok(None);
            }
            set.token(peer.token(), token);
            Ok(Some(set.sleep(until)))
        })
    }

    /// Whether there is something to do for a sleeper, with the word it sleeps on at this value.
    fn has_moved(&self, word: u64, need: u64) -> bool {
        if self.slot.is_none() {
            return self.table.find(self.id).is_some();
        }
        let Some(at) = Position::decode(word) else { return true };
        let Some(consumed) = self.consumed_at(at) else { return true };
        let mut tail = self.tail;
        tail.set_consumed(consumed);
        let left_behind = at.segment == self.number && !self.older.is_empty();
        tail.fits(need) || tail.can_pad(need) || left_behind
    }

    /// Names the consumer that the last look found alive, and no other one before or after.
    pub(crate) fn term(&self) -> u64 {
        self.owner_seen.get()
    }

    /// Adds to a sleep what tells that the consumer of `term` is not there any more; `false` when
    /// it is not. `for_next`: without it, what tells of the next one.
    pub(crate) fn plan<'a>(&'a self, plan: &mut Plan<'a>, term: u64, for_next: bool) -> bool {
        let owner = self.table.owner();
        plan.bell(futex::low_half(self.table.owner_word()), owner.count());
        let known = self.peer.as_ref().filter(|_| self.owner_seen.get() == owner.raw());
        let died = |peer: &Arc<Peer>| peer.death().is_some();
        if owner.node().is_none() || owner.raw() == self.gone || known.is_some_and(died) {
            return for_next;
        }
        // Another one than that of `term` is news.
        known.is_some_and(|peer| owner.raw() == term && plan.life(peer))
    }

    /// The consumer's node, as the last look found it.
    pub(crate) fn consumer_peer(&self) -> Option<&Arc<Peer>> {
        self.peer.as_ref()
    }

    /// Waits until a live consumer reads the queue; `false` when the deadline passed first.
    pub(crate) fn wait_for_consumer(&mut self, deadline: u64) -> Result<bool> {
        loop {
            let owner = self.table.owner();
            match self.check_served().and_then(|()| self.confirm_consumer()) {
                Ok(()) => return Ok(true),
                Err(Refused::Nobody) => {}
                Err(refused) => return Err(self.error(refused)),
            }
            let now = clock::now_ns();
            if now >= deadline {
                return Ok(false);
            }
            let word = futex::low_half(self.table.owner_word());
            futex::wait(word, owner.count(), Some(deadline.min(now + wait::slice_ns_max())));
        }
    }

    pub(in crate::queue) fn check_poisoned(&self) -> Result<()> {
        self.table.check_poisoned()?;
        if self.segment.is_poisoned() {
            return Err(self.corrupt("its own file was truncated, which"));
        }
        Ok(())
    }
}

/// The largest power of two up to `bytes`.
pub(in crate::queue) fn largest_power(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { 1 << bytes.ilog2() }
}
