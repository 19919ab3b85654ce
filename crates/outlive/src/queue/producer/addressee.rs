//! The consumer as one producer sees it: who it is, whether it lives, how to wake it.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use super::refused::{Refused, Sent};
use crate::node::peer::Peer;
use crate::node::{Node, NodeId};
use crate::os::death::robust;
use crate::os::process::fork::wiped::Wiped;
use crate::os::sleep::futex;
use crate::queue::lane::layout::consumer;
use crate::queue::membership::table::Table;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::wait::SleepSet;
use crate::wait::member::Plan;
use crate::wait::wake::call::Caller;
use crate::{ErrorKind, Result};

/// What no consumer's word is.
const NOT_SEEN: u64 = u64::MAX;
/// The word of no consumer.
static NOBODY: AtomicU32 = AtomicU32::new(0);

/// Proof that the consumer that was there does not read any more: it has left, or its node is dead.
#[derive(Debug)]
#[must_use]
pub(crate) struct Deserted(());

/// Who reads what a producer sends.
#[derive(Debug)]
pub(super) struct Addressee {
    // What every send looks at comes first.
    /// The consumer's word as it was when `token` was found; another value means look again, and
    /// so does a fork.
    seen: Wiped,
    /// The word now, in `table`.
    owner: NonNull<AtomicU64>,
    /// In the file that `peer` maps; `NOBODY` before there was one.
    token: NonNull<AtomicU32>,
    /// A consumer's word whose node is not there any more.
    gone: u64,
    table: Table,
    peer: Option<Arc<Peer>>,
    /// How to wake the consumer of the word `called`, where words alone do not.
    caller: Caller,
    called: u64,
}

// SAFETY: the raw pointers point into mappings that the same struct owns (`table`) or keeps alive
// (`peer`); nothing in it is bound to a thread.
unsafe impl Send for Addressee {}

impl Addressee {
    /// Whoever `table` names; nobody has looked yet.
    pub(super) fn new(table: Table) -> Result<Self> {
        let seen = Wiped::new()?;
        seen.set(NOT_SEEN);
        Ok(Self {
            seen,
            owner: NonNull::from(table.owner_word()),
            token: NonNull::from(&NOBODY),
            gone: 0,
            table,
            peer: None,
            caller: Caller::default(),
            called: 0,
        })
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }

    /// Whether it is the one that was seen last, and lives by its word: three loads.
    #[inline(always)]
    pub(super) fn is_there(&self) -> bool {
        // SAFETY: `owner` points into `table`, `token` into the file that `peer` keeps mapped.
        let (owner, token) = unsafe { (self.owner.as_ref(), self.token.as_ref()) };
        owner.load(Relaxed) == self.seen.get() && robust::is_alive_word(token.load(Relaxed))
    }

    /// Whether this is a forked child's copy, where the kernel cleared the word. Else 0 is never
    /// in it: a consumer's word counts from 1.
    #[inline]
    pub(super) fn is_forked(&self) -> bool {
        self.seen.get() == 0
    }

    /// Looks who consumes now, as `node`.
    ///
    /// # Errors
    /// `Nobody`, by its word.
    #[cold]
    pub(super) fn find(&mut self, node: &Node) -> Sent<()> {
        self.table.check_poisoned()?;
        let owner = self.table.owner();
        if owner.raw() != self.seen.get() || self.peer.is_none() {
            (self.token, self.peer) = (NonNull::from(&NOBODY), None);
            self.seen.set(NOT_SEEN);
            let Some(id) = owner.node() else { return Err(Refused::Nobody) };
            let peer = match node.peer(id) {
                Ok(peer) => peer,
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    self.gone = owner.raw();
                    return Err(Refused::Nobody);
                }
                Err(e) => return Err(e.into()),
            };
            self.token = NonNull::from(peer.token());
            self.peer = Some(peer);
            self.seen.set(owner.raw());
        }
        let Some(peer) = &self.peer else { return Err(Refused::Nobody) };
        // The hint is enough to refuse: nothing was sent, and the next one may try again.
        if !peer.hint().is_alive() {
            return Err(Refused::Nobody);
        }
        Ok(())
    }

    /// Does it live? A token that the kernel could not mark says alive for ever; its file lock
    /// does not. From here on `is_there` knows.
    pub(super) fn ask_its_lock(&mut self) {
        let died = |peer: &Arc<Peer>| peer.proof_of_death().is_some();
        if self.peer.as_ref().is_some_and(died) && !fault("room.believes_the_word") {
            self.token = NonNull::from(&NOBODY);
        }
    }

    /// Somebody else in this process may have found it dead, where its token says alive. From here
    /// on `is_there` knows.
    pub(super) fn heed_others(&mut self) {
        let died = |peer: &Arc<Peer>| peer.death().is_some();
        if self.peer.as_ref().is_some_and(died) {
            self.token = NonNull::from(&NOBODY);
        }
    }

    /// The proof that nobody reads, if so; asked where `find` has just said `Nobody`.
    pub(super) fn deserted(&self) -> Option<Deserted> {
        let owner = self.table.owner();
        let left = owner.node().is_none() || owner.raw() == self.gone;
        // Another one than the last look found is news.
        let known = self.peer.as_ref().filter(|_| self.seen.get() == owner.raw());
        let dead = || known.is_some_and(|peer| peer.proof_of_death().is_some());
        (left || fault("queue.deserted_by_hint") || dead()).then_some(Deserted(()))
    }

    /// The proof that the consumer of `term` does not read any more, if so: as `deserted`, or
    /// another one has taken over, which takes the lock that it held.
    pub(super) fn is_over(&self, term: u64) -> Option<Deserted> {
        let followed = self.table.owner().raw() != term;
        if followed { Some(Deserted(())) } else { self.deserted() }
    }

    /// The node that consumes, by what the table says.
    pub(super) fn node(&self) -> Option<NodeId> {
        self.table.owner().node()
    }

    /// That node, as the last look found it.
    pub(super) fn peer(&self) -> Option<&Arc<Peer>> {
        self.peer.as_ref()
    }

    /// Names the consumer that the last look found alive, and no other one before or after.
    pub(super) fn term(&self) -> u64 {
        self.seen.get()
    }

    /// Whether it asks to be woken.
    #[inline(always)]
    pub(super) fn is_waiting(&self) -> bool {
        // ORDERING(WAITING): pairs with `handshake::sleep`; a late answer costs a short sleep.
        // SAFETY: both words are in `table`; so near to each other, one pointer does for both.
        let waiting = unsafe { self.owner.byte_add(consumer::WAITING - consumer::OWNER).as_ref() };
        futex::low_half(waiting).load(Relaxed) != 0
    }

    /// Rings or calls it, as `node`, if it asked for that.
    pub(super) fn call(&mut self, node: &Node) {
        let owner = self.table.owner();
        if self.called != owner.raw() {
            (self.called, self.caller) = (owner.raw(), Caller::default());
        }
        if let Some(id) = owner.node() {
            self.caller.call(node.domain(), id, self.table.request());
        }
    }

    /// A sleep that ends when another one consumes; `None` where another one does already.
    pub(super) fn begin_sleep(&self) -> Option<SleepSet<'_>> {
        let owner = self.table.owner();
        let owner_word = futex::low_half(self.table.owner_word());
        (owner.raw() == self.seen.get()).then(|| SleepSet::new(owner_word, owner.count()))
    }

    /// Adds to a sleep what ends it when this one dies; `false` where it is dead.
    pub(super) fn watch<'a>(&'a self, set: &mut SleepSet<'a>) -> bool {
        let Some(peer) = &self.peer else { return false };
        let end = peer.end();
        // By the file lock: the kernel may have been unable to mark the word.
        if end.has_begun || peer.proof_of_death().is_some() {
            return false;
        }
        set.end(end);
        true
    }

    /// Adds to a sleep what tells that the consumer of `term` is not there any more; `false` when
    /// it is not. `for_next`: without it, what tells of the next one.
    pub(super) fn plan<'a>(&'a self, plan: &mut Plan<'a>, term: u64, for_next: bool) -> bool {
        let owner = self.table.owner();
        plan.bell(futex::low_half(self.table.owner_word()), owner.count());
        let known = self.peer.as_ref().filter(|_| self.seen.get() == owner.raw());
        let died = |peer: &Arc<Peer>| peer.death().is_some();
        if owner.node().is_none() || owner.raw() == self.gone || known.is_some_and(died) {
            return for_next;
        }
        // Another one than that of `term` is news, unless its word says dead, as the last look has
        // found too: then the end of its lock is.
        known
            .is_some_and(|peer| (owner.raw() == term || !peer.hint().is_alive()) && plan.life(peer))
    }
}
