//! Two ends of a channel become a pair: each names the other's serial in its own file, and both
//! are told when that ends.
//!
//! # Theory of operation
//! A channel has at most one living end of each role: `file::create` refuses another. The writer
//! *offers*: it names the reader. The reader *accepts*: it names a writer that names it. Who is
//! named by both is paired; a call first (the writer) or afterwards (the reader) loads the other's
//! word and compares it with its own serial.
//!
//! | writer's *paired* | reader's *paired* | what it means                                       |
//! |-------------------|-------------------|-----------------------------------------------------|
//! | other             | anything          | not offered: the reader reads nothing               |
//! | this reader       | other             | offered: the writer writes nothing                  |
//! | this reader       | this writer       | a pair                                              |
//! | .. and `LEFT`     | this writer       | the writer was dropped: what it wrote can be read   |
//! | this reader       | .. and `LEFT`     | the reader was dropped: the writer writes nothing   |
//!
//! A serial is never used again and an end that went on never comes back, so a reader that finds
//! the writer's word unchanged after it has copied a value was the one that the writer looked at
//! all the while (label RT_PAIR): also one that was stopped for long and replaced meanwhile.
//!
//! # Crash safety
//! **Strict.** Dying between offer and acceptance, the one who lives on is not paired and looks
//! for the next. Nobody takes back what the dead one's word says: its file goes.
#![deny(unsafe_code)]

use std::sync::{Arc, PoisonError, Weak};

use super::file::{self, Role, Shape};
use crate::node::Node;
use crate::os::process::fork::per_process::PerProcess;
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;
use crate::rt::thread::memory::{LEFT, Words};
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{Mutex, fault, fence};
use crate::{Error, ErrorKind, Result};

/// Between two looks for a peer that has not come yet.
const LOOK_NS: u64 = 500_000;

/// The other end is gone: `reconnect` finds its successor.
///
/// # Examples
/// ```
/// use outlive::rt::{Lost, latest};
///
/// let (mut writer, reader) = latest::<f64>();
/// drop(reader);
/// let next = match writer.write(&1.5) {
///     Ok(()) => "the next cycle",
///     Err(Lost::Left | Lost::Unpaired) => "reconnect",
///     Err(Lost::Forked) => "open a node and ends of the child's own",
/// };
/// assert_eq!(next, "reconnect");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lost {
    /// It was dropped.
    Left,
    /// It is connected to another end, or its successor has not connected yet.
    Unpaired,
    /// This process was forked from the one that opened this end, and nothing was done.
    Forked,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Left => "the other end was dropped: reconnect to its successor",
            Self::Unpaired => "the other end works with another one than this: reconnect",
            Self::Forked => {
                "a forked child has its parent's end: open a node and an end of its own"
            }
        })
    }
}

impl std::error::Error for Lost {}

/// An end's own words, and where to look for the other end; nowhere on the heap.
#[derive(Debug)]
pub(in crate::rt) struct Pair {
    pub(in crate::rt) own: Arc<Words>,
    pub(in crate::rt) peer: Arc<Words>,
    /// Our own, as the other end must name it.
    serial: u64,
    seeker: Option<Seeker>,
}

/// Where the other end is to be found.
#[derive(Clone, Debug)]
pub(in crate::rt) struct Seeker {
    pub(in crate::rt) node: Node,
    pub(in crate::rt) name: String,
    pub(in crate::rt) peer: Shape,
}

/// What a reader does with the words of its writer.
#[derive(Clone, Copy, Debug)]
pub(in crate::rt) struct Reading {
    /// Gets it ready for what the writer wrote, as in `start` of the ring.
    pub(in crate::rt) take: fn(own: &Words, writer: &Words, depth: usize) -> Result<()>,
    /// How many values of the writer it has accepted and not read, which no other writer may drop.
    pub(in crate::rt) unread: fn(own: &Words, writer: &Words, depth: usize) -> u64,
}

/// An end that was made and is not connected yet. While one of a process waits in `connect`, it
/// does what the others can do, too: else two processes could wait for each other for ever, each
/// for the end that the other connects next.
#[derive(Debug)]
pub(in crate::rt) struct Waiting(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    own: Arc<Words>,
    seeker: Seeker,
    reading: Reading,
    depth: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    peer: Option<Arc<Words>>,
    /// Its `connect` has returned: nobody else touches its words.
    done: bool,
}

static WAITING: PerProcess<Vec<Weak<Inner>>> = PerProcess::new();

impl Waiting {
    pub(in crate::rt) fn new(
        own: Arc<Words>,
        seeker: Seeker,
        depth: usize,
        reading: Reading,
    ) -> Self {
        let new = Arc::new(Inner { own, seeker, reading, depth, state: Mutex::default() });
        let mut all = WAITING.get().lock().unwrap_or_else(PoisonError::into_inner);
        all.push(Arc::downgrade(&new));
        Self(new)
    }

    /// # Errors
    /// `Timeout`, `TypeMismatch`, `Corrupt`.
    pub(in crate::rt) fn connect(self, deadline: Deadline) -> Result<Pair> {
        let end = &self.0;
        loop {
            let mut state = end.state.lock().unwrap_or_else(PoisonError::into_inner);
            let paired = end.step(&mut state.peer)?;
            if let Some(peer) = state.peer.take_if(|_| paired) {
                // From here on its words are touched by its owner only.
                state.done = true;
                let (own, seeker) = (Arc::clone(&end.own), Some(end.seeker.clone()));
                let serial = own.serial();
                return Ok(Pair { own, peer, serial, seeker });
            }
            drop(state);
            end.help_others();
            end.seeker.wait(deadline)?;
        }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Whoever helps holds the list: after this the end is its owner's alone, and goes with it.
        let mut all = WAITING.get().lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|end| !std::ptr::eq(end.as_ptr(), Arc::as_ptr(&self.0)));
    }
}

/// Of a ring's reader that is to go on with another writer.
#[cold]
pub(in crate::rt) fn rest_first(left: u64) -> Error {
    let why = format!("{left} values of the old writer are left: pop them first");
    let what = "reconnecting the reading end of a ring";
    Error::new(ErrorKind::WouldBlock, what, "its old writer", why)
}

impl Inner {
    fn step(&self, peer: &mut Option<Arc<Words>>) -> Result<bool> {
        if self.seeker.peer.role == Role::Reader {
            return self.seeker.offer(&self.own, peer, |_| 0);
        }
        let had = peer.clone();
        // It may have accepted that one while another of its process waited; what that wrote comes
        // before a successor's, also if it has ended since.
        let rest = || match &had {
            Some(_) if fault("rt_pair.accepts_again") => 0,
            Some(writer) => (self.reading.unread)(&self.own, writer, self.depth),
            None => 0,
        };
        // The writer before has ended when this is called, and writes no more.
        let take = |writer: &Words| match rest() {
            0 => (self.reading.take)(&self.own, writer, self.depth),
            left => Err(rest_first(left)),
        };
        match self.seeker.accept(&self.own, peer, take) {
            Ok(true) => Ok(true),
            _ if rest() > 0 => Ok(true),
            done => done,
        }
    }

    fn help_others(self: &Arc<Self>) {
        let Ok(all) = WAITING.get().try_lock() else { return };
        for end in all.iter().filter_map(Weak::upgrade).filter(|end| !Arc::ptr_eq(end, self)) {
            if let Ok(mut state) = end.state.try_lock()
                && !state.done
            {
                // Its own `connect` says what is wrong.
                let _ = end.step(&mut state.peer);
            }
        }
    }
}

impl Pair {
    pub(in crate::rt) fn heap(own: Arc<Words>, peer: Arc<Words>) -> Self {
        let serial = own.serial();
        Self { own, peer, serial, seeker: None }
    }

    /// Whether the other end works with this one: one load.
    ///
    /// For a writer, before it writes.
    #[inline]
    pub(in crate::rt) fn check(&self) -> std::result::Result<(), Lost> {
        self.check_owner()?;
        // ORDERING(RT_ACCEPT): pairs with `accept`; carries the reader's position.
        let word = self.peer.paired().load(Acquire);
        if word == self.serial || fault("rt_pair.unchecked") {
            return Ok(());
        }
        Err(self.why(word))
    }

    /// For a reader, before it says what it reads: one load.
    #[inline]
    pub(in crate::rt) fn check_owner(&self) -> std::result::Result<(), Lost> {
        if self.own.are_ours() { Ok(()) } else { Err(Lost::Forked) }
    }

    /// For a reader, after it has copied: what it copied was meant for it, and whether the writer
    /// has left.
    #[inline]
    pub(in crate::rt) fn check_read(&self) -> std::result::Result<bool, Lost> {
        // ORDERING(RT_PAIR): pairs with `offer`: who saw a word written for another end sees here
        // that the other end is named.
        fence(Acquire);
        let word = self.peer.paired().load(Relaxed);
        if word == self.serial || fault("rt_pair.unchecked") {
            return Ok(false);
        }
        if word == self.serial | LEFT { Ok(true) } else { Err(Lost::Unpaired) }
    }

    #[cold]
    fn why(&self, word: u64) -> Lost {
        if word == self.serial | LEFT { Lost::Left } else { Lost::Unpaired }
    }

    /// A writer's way to its reader's successor. `start` is told the words of a reader that it was
    /// paired with, and says from which entry on the next one is to read.
    pub(in crate::rt) fn offer(
        &mut self,
        deadline: Deadline,
        mut start: impl FnMut(Option<&Words>) -> u64,
    ) -> Result<()> {
        let Self { own, peer, seeker: Some(seeker), .. } = self else { return self.alone() };
        let mut named = Some(Arc::clone(peer));
        let done = until(seeker, deadline, || seeker.offer(own, &mut named, &mut start));
        // From an offer on only the one that is named is looked at, accepted or not.
        *peer = named.expect("`offer` only replaces it");
        done
    }

    /// A reader's way to its writer's successor. `take` gets ready to read what this writer wrote.
    pub(in crate::rt) fn accept(
        &mut self,
        deadline: Deadline,
        mut take: impl FnMut(&Words) -> Result<()>,
    ) -> Result<()> {
        let Self { own, peer, seeker: Some(seeker), .. } = self else { return self.alone() };
        let mut named = Some(Arc::clone(peer));
        let done = until(seeker, deadline, || seeker.accept(own, &mut named, &mut take));
        *peer = named.expect("`accept` only replaces it");
        done
    }

    /// On the heap nobody else can come.
    fn alone(&self) -> Result<()> {
        match self.check() {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::new(
                ErrorKind::NotFound,
                "reconnecting",
                "a channel on the heap",
                "its other end was dropped, and nobody else can find it: make a new channel",
            )),
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.own.leave();
    }
}

fn until(
    seeker: &Seeker,
    deadline: Deadline,
    mut step: impl FnMut() -> Result<bool>,
) -> Result<()> {
    while !step()? {
        seeker.wait(deadline)?;
    }
    Ok(())
}

impl Seeker {
    /// Names the reader that is there; true once it names us too.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of *paired*, as far as the writer goes.
    fn offer(
        &self,
        own: &Words,
        peer: &mut Option<Arc<Words>>,
        mut start: impl FnMut(Option<&Words>) -> u64,
    ) -> Result<bool> {
        let Some(found) = self.look(peer.as_ref())? else { return Ok(false) };
        let serial = own.serial();
        if own.paired().load(Relaxed) != found.serial() {
            // ORDERING(RT_ACCEPT): as in `check`; the last position of the one before.
            let ours = |old: &&Words| old.paired().load(Acquire) & !LEFT == serial;
            own.start().store(start(peer.as_deref().filter(ours)), Relaxed);
            // ORDERING(RT_OFFER): pairs with `accept`; carries `start`.
            own.paired().store(found.serial(), Release);
            // ORDERING(RT_PAIR): pairs with `check_read`: comes before all that is written from now
            // on.
            fence(Release);
        }
        // Dying here: the reader waits for another offer.
        let accepted = found.paired().load(Acquire) == serial;
        *peer = Some(found);
        Ok(accepted || fault("rt_pair.offer_is_enough"))
    }

    /// Names the writer that names us; true once that is done.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of *paired*. Dying before it, the writer's offer stays
    /// unanswered.
    fn accept(
        &self,
        own: &Words,
        peer: &mut Option<Arc<Words>>,
        mut take: impl FnMut(&Words) -> Result<()>,
    ) -> Result<bool> {
        let Some(found) = self.look(peer.as_ref())? else { return Ok(false) };
        // ORDERING(RT_OFFER): pairs with `offer`; carries `start`.
        let offered = found.paired().load(Acquire) == own.serial();
        if !offered && !fault("rt_pair.accepts_anybody") {
            return Ok(false);
        }
        if own.paired().load(Relaxed) != found.serial() {
            take(&found)?;
            // ORDERING(RT_ACCEPT): pairs with `check`; carries the position.
            own.paired().store(found.serial(), Release);
        }
        *peer = Some(found);
        Ok(true)
    }

    /// The living end of the other role; `current` if it is that.
    fn look(&self, current: Option<&Arc<Words>>) -> Result<Option<Arc<Words>>> {
        let found = file::look(&self.node, &self.name, self.peer)?;
        Ok(found.map(|found| match current {
            Some(current) if current.serial() == found.serial() => Arc::clone(current),
            _ => {
                found.prefault();
                found
            }
        }))
    }

    fn wait(&self, deadline: Deadline) -> Result<()> {
        if !deadline.has_passed() {
            sched::sleep_until(deadline.min(Deadline::in_ns(LOOK_NS)));
            return Ok(());
        }
        let remedy = "it has not connected to this end: start its process, allow more time, or let \
                      it call `reconnect` if it had another end before";
        Err(file::not_found_in_time(&self.name, self.peer.role, remedy))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::Node;
    use crate::os::fixture::{TempDir, fork_child};
    use crate::rt::LatestWriter;

    #[test]
    fn a_child_that_was_forked_amid_a_connect_opens_ends_of_its_own() {
        let dir = TempDir::new("rt-child");
        let ends = super::WAITING.get().lock().unwrap();
        let child = fork_child(|| {
            let node = Node::builder().root(dir.join("root")).open().unwrap();
            i32::from(LatestWriter::<u64>::open(&node, "x").is_err())
        });
        assert_eq!(child.wait(), 0);
        drop(ends);
    }
}
