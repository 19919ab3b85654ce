//! Room in a producer's lane: looking at the position, growing, shrinking, waiting.

use std::sync::Arc;

use super::Writer;
use crate::node::peer::Peer;
use crate::os::process::sched;
use crate::os::sleep::futex;
use crate::os::sleep::slice::{Looks, slice_ns_max};
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::queue::lane::position::Position;
use crate::queue::lane::record::Shape;
use crate::queue::producer::addressee::Deserted;
use crate::queue::producer::refused::{Refused, Sent};
use crate::sync::Ordering::Acquire;
use crate::sync::fault;
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
    pub(super) fn make_room(&mut self, need: u64, deadline: Deadline) -> Sent<()> {
        self.queue.node.tend()?;
        self.close_run();
        if !self.lane.may_hold(need) {
            return Err(self.too_large(need).into());
        }
        let at_once = deadline == Deadline::AT_ONCE;
        let spins = if at_once || sched::allowed_cpus() == 1 { 0 } else { SPINS };
        for spin in 0..=spins {
            let fits = self.look_for_room(need)?;
            // Better a good deal of room than room for one: the next calls need not come here.
            if fits && (self.lane.has_plenty() || spin == spins) {
                return Ok(());
            }
            if spin < spins {
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
            }
        }
        let larger = self.larger(need, at_once);
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
        if at_once { Err(Refused::Full) } else { self.wait_for_room(need, deadline) }
    }

    /// As `reserve`, without waiting; a full lane's consumer is asked whether it lives: where
    /// nobody ever waits, nobody else would.
    pub(crate) fn reserve_at_once(&mut self, bytes: u64, shape: &Shape) -> Sent<*mut u8> {
        match self.reserve(bytes, shape, Deadline::AT_ONCE) {
            Err(Refused::Full) => Err(self.confirm_consumer().err().unwrap_or(Refused::Full)),
            done => done,
        }
    }

    /// Looks at the position once more; `true` when a record of `need` bytes fits now.
    fn look_for_room(&mut self, need: u64) -> Result<bool> {
        let at = self.position()?;
        self.lane.set_consumed(at).ok_or_else(|| self.corrupt("the consumer's position"))?;
        if let Some(header) = self.lane.pad(need) {
            self.after_commit(header);
        }
        if let Some(capacity) = self.lane.smaller(need)
            && self.leave_for(capacity).unwrap_or(false)
        {
            return Ok(true);
        }
        Ok(self.lane.fits(need))
    }

    /// Where the consumer is in the lane.
    fn position(&mut self) -> Result<Position> {
        self.check_poisoned()?;
        match self.lane.find_slot(self.to.table()) {
            None => Ok(Position::START),
            Some(slot) => self.to.table().place(slot).consumed().ok_or_else(|| self.refused()),
        }
    }

    /// A consumer that refused the lane reads nothing of it any more.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn check_accepted(&mut self) -> Result<()> {
        self.position().map(drop)
    }

    /// Whether the consumer refused the lane.
    pub(super) fn is_refused(&mut self) -> bool {
        let slot = self.lane.find_slot(self.to.table());
        slot.is_some_and(|slot| self.to.table().place(slot).consumed().is_none())
    }

    /// The consumer lets nothing go: does it live? A token that the kernel could not mark says
    /// alive for ever; its file lock does not.
    pub(crate) fn confirm_consumer(&mut self) -> Sent<()> {
        self.to.ask_its_lock();
        self.check_served()
    }

    /// As `check_served`, also by what others in this process have found out.
    ///
    /// # Errors
    /// As `check_served`.
    #[cold]
    pub(crate) fn look_at_consumer(&mut self) -> Sent<()> {
        self.to.heed_others();
        self.check_served()
    }

    /// Goes on in a segment of `capacity` bytes; `false` where there is no space for it now.
    fn grow_if_possible(&mut self, need: u64, capacity: u64) -> Result<bool> {
        let done = match self.leave_for(capacity) {
            // The RAM disk is full; what is there may still become free.
            Err(e) if e.kind() == ErrorKind::NoSpace && self.lane.can_hold(need) => {
                self.refusals.stick(e);
                return Ok(false);
            }
            done => done,
        };
        self.refusals.unstick();
        done
    }

    /// Bytes of the segment with which the lane can go on; `None` at the bound.
    fn larger(&mut self, need: u64, at_once: bool) -> Option<u64> {
        let larger = self.lane.larger(need, at_once);
        if larger.is_none() {
            self.refusals.unstick();
        }
        larger
    }

    /// Adds a segment of `capacity` bytes and leaves the current one; `false` at the last number.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the `JUMP`. Dying before it, the new segment goes with the lane.
    fn leave_for(&mut self, capacity: u64) -> Result<bool> {
        let Some(next) = self.lane.next_segment(&self.queue, capacity)? else { return Ok(false) };
        crash_point!("queue.grow.before_jump");
        let header = self.lane.jump();
        self.after_commit(header);
        crash_point!("queue.grow.after_jump");
        self.lane.go_on_in(next);
        Ok(true)
    }

    /// Sleeps until a record of `need` bytes fits.
    ///
    /// # Crash safety
    /// **Strict.** Dying asleep leaves a raised flag in our own file, and nothing sent.
    fn wait_for_room(&mut self, need: u64, deadline: Deadline) -> Sent<()> {
        let looks = Looks::begin();
        loop {
            if self.look_for_room(need)? {
                return Ok(());
            }
            if let Some(capacity) = self.larger(need, false)
                && self.grow_if_possible(need, capacity)?
            {
                return Ok(());
            }
            self.confirm_consumer()?;
            if deadline.has_passed() {
                // What a call that does not wait would get.
                let fresh = self.larger(need, !fault("lane.late_before_fresh"));
                return match fresh {
                    Some(capacity) if self.grow_if_possible(need, capacity)? => Ok(()),
                    _ => Err(Refused::Late),
                };
            }
            self.sleep(need, deadline, looks)?;
        }
    }

    fn sleep(&mut self, need: u64, deadline: Deadline, looks: Looks) -> Result<()> {
        let (flag, request) = (self.lane.waiting(), handshake::WAITING_WORDS);
        handshake::sleep(flag, request, deadline, slice_ns_max(), clock::now_ns, |until| {
            let Some(mut set) = self.to.begin_sleep() else { return Ok(None) };
            let word = match self.lane.slot() {
                Some(slot) => self.to.table().place(slot).word(),
                None => self.to.table().changes(),
            };
            let seen = word.load(Acquire);
            // Room may have come since: the caller looks again at anything but this value.
            if self.has_moved(seen, need) {
                return Ok(None);
            }
            set.word(futex::low_half(word), seen as u32);
            set.look(looks);
            let lives = self.to.watch(&mut set);
            Ok(lives.then(|| set.sleep(until)))
        })
    }

    /// Whether there is something to do for a sleeper, with the word it sleeps on at this value.
    fn has_moved(&self, word: u64, need: u64) -> bool {
        if self.lane.slot().is_none() {
            return self.to.table().find(self.lane.id()).is_some();
        }
        Position::decode(word).is_none_or(|at| self.lane.would_move(at, need))
    }

    /// Names the consumer that the last look found alive, and no other one before or after.
    pub(crate) fn term(&self) -> u64 {
        self.to.term()
    }

    /// As `Addressee::is_over`.
    #[cold]
    pub(crate) fn is_over(&self, term: u64) -> Option<Deserted> {
        self.to.is_over(term)
    }

    /// As `Addressee::plan`.
    pub(crate) fn plan<'a>(&'a self, plan: &mut Plan<'a>, term: u64, for_next: bool) -> bool {
        self.to.plan(plan, term, for_next)
    }

    /// The consumer's node, as the last look found it.
    pub(crate) fn consumer_peer(&self) -> Option<&Arc<Peer>> {
        self.to.peer()
    }

    /// Waits until a live consumer reads the queue; `false` when the deadline passed first.
    pub(crate) fn wait_for_consumer(&mut self, deadline: Deadline) -> Result<bool> {
        loop {
            let owner = self.to.table().owner();
            match self.check_served().and_then(|()| self.confirm_consumer()) {
                Ok(()) => return Ok(true),
                Err(Refused::Nobody) => {}
                Err(refused) => return Err(self.error(refused)),
            }
            let now = clock::now_ns();
            if deadline.has_passed_by(now) {
                return Ok(false);
            }
            let word = futex::low_half(self.to.table().owner_word());
            futex::wait(word, owner.count(), deadline.min(Deadline::at_ns(now + slice_ns_max())));
        }
    }

    fn check_poisoned(&self) -> Result<()> {
        self.to.table().check_poisoned()?;
        if self.lane.is_poisoned() {
            return Err(self.corrupt("its own file was truncated, which"));
        }
        Ok(())
    }
}
