//! The subscribers that a publisher has admitted: those it wakes, and whose hazards it looks at.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use super::ring::OwnRing;
use crate::domain::path::DomainPath;
use crate::node::NodeId;
use crate::node::peer::{Dead, Peer, PortView, proof_by_name};
use crate::os::time::clock;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::topic::chunks::hazard;
use crate::topic::chunks::hazard::Location;
use crate::topic::membership::entry::{Entry as DirEntry, PublisherId, ring_path};
use crate::topic::membership::{Ports, Topic};
use crate::topic::ring::listing::Listing;
use crate::wait::wake::call;
use crate::wait::wake::call::Caller;
use crate::wait::wake::handshake;
use crate::wait::wake::handshake::Request;
use crate::{Error, ErrorKind, Result, crash_point};

/// One of them.
#[derive(Debug)]
struct Admitted {
    peer: Arc<Peer>,
    port: u64,
    /// Its waiting flag, inside the mapping that `peer` keeps.
    waiting: NonNull<AtomicU32>,
    /// Its source slot for this ring, once it has attached.
    slot: Option<usize>,
    ack: Option<usize>,
    caller: Caller,
    /// We wait for it before we overwrite what it has not read.
    reliable: bool,
    /// Our next message when we admitted it: where it begins until it has attached.
    from: u64,
}

// SAFETY: the raw pointer points into a mapping that the same struct keeps alive (`peer`); nothing
// in it is bound to a thread.
unsafe impl Send for Admitted {}

impl Admitted {
    /// Its waiting flag now.
    #[inline]
    fn flag(&self) -> &AtomicU32 {
        // SAFETY: points into the mapping that `peer` keeps alive.
        unsafe { self.waiting.as_ref() }
    }

    /// Rings or calls it, if it asked for that.
    fn call(&mut self, domain: &DomainPath) {
        if let Ok(view) = self.peer.port(self.port) {
            self.caller.call(domain, self.peer.id(), call::request(view));
        }
    }
}

/// One that could not be opened at the last look.
#[derive(Debug)]
struct Unopened {
    node: NodeId,
    port: u64,
    caller: Caller,
    /// For lack of rights. Nobody waits for it, as they may be wrong for good; nor is it gone.
    denied: bool,
}

impl Unopened {
    /// Rings or calls it, if it asked for that: its words are read, as its file is not mapped. What
    /// cannot be read asks for nothing; it looks by itself some time later.
    fn call(&mut self, domain: &DomainPath) {
        let Self { node, port, caller, .. } = self;
        let read = Peer::read_request(&domain.nodes(), *node, *port, &domain.access);
        let Ok([flag, generation, socket]) = read else { return };
        let flag = AtomicU32::new(flag as u32);
        let (socket, generation) = (AtomicU64::new(socket), AtomicU64::new(generation));
        let request = Request { flag: &flag, socket: &socket, generation: &generation };
        caller.call(domain, *node, request);
    }
}

/// After a subscriber could not be opened for lack of memory, descriptors or rights.
#[derive(Clone, Copy, Debug)]
struct Retry {
    /// Of subscribers, at that look.
    epoch: u64,
    /// Not before this message,
    at: u64,
    /// or this time: few may come, and none while its chunks are in use.
    at_ns: u64,
    /// Messages until the next try, doubled each time.
    step: u64,
}

/// Messages between two tries at most.
const RETRY_STEP_MAX: u64 = 1024;
/// Time between two tries at most, where a message is published or tried to be.
const RETRY_NS: u64 = 250_000_000;

impl Retry {
    /// Whether it is time for the next, before message `next`.
    fn is_due(&self, next: u64) -> bool {
        let timely = || clock::now_ns() >= self.at_ns && !fault("retry.by_messages_alone");
        next >= self.at || timely()
    }

    /// When to try again after a try before message `next`, at `epoch`; `last`: what the
    /// try before it has set.
    fn after(last: Option<Self>, epoch: u64, next: u64) -> Self {
        // Who only asks how many subscribers there are puts nothing off.
        let is_reached = |r: &Self| next >= r.at || fault("retry.doubled_by_looks");
        let step = |r: Self| if is_reached(&r) { (r.step * 2).min(RETRY_STEP_MAX) } else { r.step };
        let step = last.filter(|r| r.epoch == epoch).map_or(1, step);
        Self { epoch, at: next + step, at_ns: clock::now_ns() + RETRY_NS, step }
    }
}

/// For whoever sleeps and cannot be seen.
static RAISED: AtomicU32 = AtomicU32::new(handshake::WAITING_WORDS);

/// All of them, as the last look at the topic's directory found them.
#[derive(Debug)]
pub(super) struct Audience {
    all: Vec<Admitted>,
    /// What each message looks at: their waiting flags; see `list_flags`.
    flags: Vec<NonNull<AtomicU32>>,
    /// Those that are there and could not be opened.
    unopened: Vec<Unopened>,
    /// Who publishes to them.
    id: PublisherId,
    seen_epoch: u64,
    /// A subscriber could not be opened: when to try again.
    retry: Option<Retry>,
    /// A reliable one was admitted since `take_newcomer`.
    newcomer: bool,
    /// What `held` found last.
    held: Vec<Location>,
}

// SAFETY: the raw pointers point into mappings that the same struct keeps alive (`all`), or to a
// static; nothing in it is bound to a thread.
unsafe impl Send for Audience {}

impl Audience {
    /// That of publisher `id` before it has looked.
    pub(super) fn new(id: PublisherId) -> Self {
        let (all, flags, unopened, held) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (seen_epoch, retry, newcomer) = (u64::MAX, None, false);
        Self { all, flags, unopened, id, seen_epoch, retry, newcomer, held }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Those that receive all that is published from here on: not those still at opening, which
    /// begin with what is published once they have looked.
    pub(super) fn opened(&self) -> usize {
        let is_open = |s: &&Admitted| {
            // ORDERING(SEEN): pairs with `Reader::look`; it shows where it reads before that.
            let seen = s.peer.port(s.port).is_ok_and(|view| view.seen().load(Acquire) != 0);
            seen || fault("subscribers.unopened_counts")
        };
        self.all.iter().filter(is_open).count()
    }

    /// The bell at the last look; `u64::MAX`: look again.
    #[inline]
    pub(super) fn seen_epoch(&self) -> u64 {
        self.seen_epoch
    }

    /// Whether one of them asks to be woken, or may.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        // SAFETY: each points into the mapping that a peer in `all` keeps alive, or is a static.
        handshake::is_wanted(self.flags.iter().map(|flag| unsafe { flag.as_ref() }))
    }

    /// Notes whose flags each message looks at. Of one that could not be opened the flag is not
    /// mapped, and it may be raised.
    fn list_flags(&mut self) {
        self.flags.clear();
        self.flags.extend(self.all.iter().map(|subscriber| subscriber.waiting));
        if !self.unopened.is_empty() && !fault("wake.unopened_is_forgotten") {
            self.flags.push(NonNull::from(&RAISED));
        }
    }

    /// Rings or calls those who are not woken by the words alone.
    pub(super) fn wake(&mut self, domain: &DomainPath) {
        let mut dead = false;
        for subscriber in &mut self.all {
            let flag = subscriber.flag().load(Relaxed);
            dead |= flag != 0 && subscriber.peer.death().is_some();
            if flag & handshake::KIND_MASK > handshake::WAITING_WORDS {
                subscriber.call(domain);
            }
        }
        self.call_unopened(domain);
        if dead {
            // Looked at again by the next publish.
            self.seen_epoch = u64::MAX;
        }
    }

    /// After a ring of the bell: those who do not sleep on it are told as well.
    pub(super) fn call(&mut self, domain: &DomainPath) {
        self.all.iter_mut().for_each(|subscriber| subscriber.call(domain));
        self.call_unopened(domain);
    }

    /// As `call`, those that could not be opened: a wake of the words reaches neither who sleeps on
    /// a doorbell nor who waits for a descriptor. Without the rights its words cannot be read.
    fn call_unopened(&mut self, domain: &DomainPath) {
        if !fault("call.unopened_is_forgotten") {
            let readable = self.unopened.iter_mut().filter(|subscriber| !subscriber.denied);
            readable.for_each(|subscriber| subscriber.call(domain));
        }
    }

    /// Whether every live one has read all messages before `next`; not, where one cannot be asked.
    pub(super) fn has_read(&mut self, next: u64) -> bool {
        let id = self.id;
        self.all.iter_mut().all(|s| {
            let Ok(view) = s.peer.port(s.port) else { return false };
            let Some(slot) = find_slot(&mut s.slot, view, id) else { return false };
            view.source(slot).cursor.load(Acquire) >= next || is_dead(&s.peer)
        })
    }

    /// The chunks that live ones hold; `None` where one cannot be asked. `confirm`: ask the file
    /// locks of the holders, whatever their words say.
    pub(super) fn held(&mut self, confirm: bool) -> Option<&[Location]> {
        self.held.clear();
        for subscriber in &mut self.all {
            let peer = &subscriber.peer;
            let view = match peer.port(subscriber.port) {
                Ok(view) => view,
                Err(_) if fault("scan.unread_holds_none") => continue,
                Err(_) if peer.death().is_some() => continue,
                // It may hold any of them: none is free.
                Err(_) => return None,
            };
            // Not attached: its first hazard comes after our barrier and fails its check.
            let Some(slot) = find_slot(&mut subscriber.slot, view, self.id) else { continue };
            let before = self.held.len();
            if !fault("scan.no_hazards") {
                hazard::held(view.hazards(), slot, |location| self.held.push(location));
            }
            if self.held.len() > before {
                let death = if confirm { peer.proof_of_death() } else { peer.death() };
                if let Some(dead) = death {
                    forget_borrows(&mut self.held, before, dead);
                }
            }
        }
        Some(&self.held)
    }

    /// Whether all that are there, as the bell says `epoch`, are opened or deny us the right to.
    pub(super) fn lacks_only_denied(&self, epoch: u64) -> bool {
        self.retry.is_some_and(|r| r.epoch == epoch) && self.unopened.iter().all(|s| s.denied)
    }

    /// Whether to look at the directory, where the bell says `epoch` before message `next`.
    pub(super) fn is_stale(&self, epoch: u64, next: u64) -> bool {
        let later = self.retry.is_some_and(|r| r.epoch == epoch && !r.is_due(next));
        epoch != self.seen_epoch && !later
    }

    /// Looks at the topic's directory: admits new subscribers, forgets the departed. One that
    /// cannot be opened right now is tried again after 1, 2, 4, ... messages, or some time.
    ///
    /// # Errors
    /// Those of the directory. What kept a reliable subscriber from being opened, or one of which
    /// that cannot be said: without it a message would be lost to it. But not lack of rights.
    #[cold]
    pub(super) fn refresh(&mut self, topic: &Topic, ring: &OwnRing) -> Result<()> {
        let epoch = topic.epoch_seen(Ports::Subscribers);
        self.forget_departed(ring);
        let entries = topic.entries()?;
        topic.node.must_be_listed()?;
        if !entries.contains(&DirEntry::Publisher(self.id)) {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "publishing by",
                ring_path(&topic.dir, self.id).display().to_string(),
                "somebody removed it: open the publisher again",
            ));
        }
        let mut known = std::mem::take(&mut self.unopened);
        let mut failed = None;
        for entry in entries {
            if let DirEntry::Subscriber { node, port } = entry
                && !self.all.iter().any(|s| s.peer.id() == node && s.port == port)
                && let Err(e) = self.admit(topic, ring, (node, port))
                && !has_died(topic, node)
            {
                // Who was called once for this generation is not called again.
                let was = known.iter().position(|s| (s.node, s.port) == (node, port));
                let caller = was.map(|i| known.swap_remove(i).caller).unwrap_or_default();
                let denied = e.kind() == ErrorKind::Permission && !fault("admit.denied_stops_all");
                self.unopened.push(Unopened { node, port, caller, denied });
                if !denied && may_be_reliable(topic, node, port) {
                    failed = failed.or(Some(e));
                }
            }
        }
        self.list_flags();
        if let Some(e) = failed {
            return Err(e);
        }
        let all_known = self.unopened.is_empty();
        self.seen_epoch = if all_known { epoch } else { u64::MAX };
        self.retry = (!all_known).then(|| Retry::after(self.retry, epoch, ring.next()));
        Ok(())
    }

    /// Acknowledges a subscriber; one that cannot be is served without borrows.
    ///
    /// # Errors
    /// What keeps its file from being opened right now.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: that of `Listing::name`.
    fn admit(&mut self, topic: &Topic, ring: &OwnRing, (node, port): (NodeId, u64)) -> Result<()> {
        use ErrorKind::{Corrupt, NotFound, NotOwned, Permission, VersionMismatch};
        let peer = match topic.node.peer(node) {
            Ok(peer) => peer,
            // It has left, or nobody can read what it says.
            Err(e) if fault("admit.failed_is_gone") || e.kind() == NotFound => return Ok(()),
            Err(e) => match e.kind() {
                Corrupt | NotOwned | VersionMismatch => return Ok(()),
                Permission if fault("admit.denied_is_gone") => return Ok(()),
                _ => return Err(e),
            },
        };
        let Some(view) = peer.claimed_port(port)? else { return Ok(()) };
        // ORDERING(PORT_ID): pairs with `Ports::allocate`.
        if view.id().load(Acquire) != port || peer.death().is_some() {
            return Ok(());
        }
        let waiting = NonNull::from(view.waiting());
        // Its hazards count from here on. Beyond the table's end it is woken, yet copies.
        let ack = ring.acknowledge(node.0, port);
        crash_point!("writer.admitted");
        let reliable = view.reliable().load(Relaxed) == 1;
        self.newcomer |= reliable;
        let caller = Caller::default();
        let (slot, from) = (None, ring.next());
        self.all.push(Admitted { peer, port, waiting, slot, ack, caller, reliable, from });
        Ok(())
    }

    /// Whether a reliable one was admitted since the last call: it is to be looked at.
    pub(super) fn take_newcomer(&mut self) -> bool {
        std::mem::take(&mut self.newcomer)
    }

    /// Forgets subscribers whose port is closed or whose node is gone for certain.
    pub(super) fn forget_departed(&mut self, ring: &OwnRing) {
        let mut i = 0;
        while i < self.all.len() {
            let s = &self.all[i];
            let open = match s.peer.port(s.port) {
                Ok(view) => view.id().load(Acquire) == s.port,
                // Who cannot be asked has not left.
                Err(_) => !fault("depart.unread_is_gone"),
            };
            if open && s.peer.death().is_none() {
                i += 1;
                continue;
            }
            if let Some(ack) = s.ack {
                ring.disown(ack);
            }
            self.all.swap_remove(i);
        }
        self.list_flags();
    }

    pub(super) fn peer(&self, i: usize) -> &Arc<Peer> {
        &self.all[i].peer
    }

    /// Whether it was seen to have attached our ring.
    pub(super) fn is_attached(&self, i: usize) -> bool {
        self.all[i].slot.is_some()
    }

    /// Where subscriber `i` reads, if it is reliable; `next` at most.
    pub(super) fn reliable_cursor(&mut self, i: usize, next: u64) -> Option<u64> {
        let id = self.id;
        let s = &mut self.all[i];
        if !s.reliable {
            return None;
        }
        // How far one has read that cannot be asked, nobody knows.
        let Ok(view) = s.peer.port(s.port) else { return Some(s.from.min(next)) };
        // One that was dropped while a sample of it is held keeps its port, but reads no more.
        let reads = view.reliable().load(Relaxed) == 1 && view.id().load(Relaxed) == s.port;
        if !reads && !fault("reliable.dropped_counts") {
            return None;
        }
        find_slot(&mut s.slot, view, id);
        let from = s.from;
        // A cursor beyond what was published is garbage: it counts as "has read everything".
        Some(self.cursor_word(i).map_or(from, |w| w.load(Acquire)).min(next))
    }

    /// The word in which subscriber `i` shows that, once it has attached.
    pub(super) fn cursor_word(&self, i: usize) -> Option<&AtomicU64> {
        let s = &self.all[i];
        Some(s.peer.port(s.port).ok()?.source(s.slot?).cursor)
    }

    /// The node of the reliable one that is furthest behind.
    pub(super) fn slowest(&mut self, next: u64) -> Option<NodeId> {
        let n = self.len();
        let reliable = |i| Some((self.reliable_cursor(i, next)?, self.all[i].peer.id()));
        (0..n).filter_map(reliable).min().map(|(_, node)| node)
    }
}

/// The slot in which a subscriber has attached publisher `id`; looked for until it is `known`.
fn find_slot(known: &mut Option<usize>, view: PortView<'_>, id: PublisherId) -> Option<usize> {
    let is_ours = |&slot: &usize| Listing::of(view.source(slot)).names(id.node.0, id.port);
    *known = known.or_else(|| (0..view.sources()).find(is_ours));
    *known
}

/// Whether a subscriber that could not be mapped is dead: asked without mapping its file. Nobody
/// waits for the dead, and it may be long before somebody removes what they left.
fn has_died(topic: &Topic, node: NodeId) -> bool {
    let nodes = topic.node.domain().nodes();
    !fault("admit.dead_stop_all") && matches!(proof_by_name(&nodes, node), Ok(Some(_)))
}

/// Whether a subscriber that could not be mapped is one to wait for: read from its file.
fn may_be_reliable(topic: &Topic, node: NodeId, port: u64) -> bool {
    let domain = topic.node.domain();
    Peer::read_reliable(&domain.nodes(), node, port, &domain.access).unwrap_or(true)
}

/// Whether what a subscriber has not read may be taken back: only its death allows that.
fn is_dead(peer: &Peer) -> bool {
    if fault("withdraw.on_hint") {
        return !peer.hint().is_alive();
    }
    peer.death().is_some()
}

/// What the dead hold is free: `held` from `first` on.
fn forget_borrows(held: &mut Vec<Location>, first: usize, _: Dead) {
    held.truncate(first);
}
