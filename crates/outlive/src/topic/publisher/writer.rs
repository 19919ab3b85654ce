//! The publishing half without types: ring, chunks, and the subscribers it knows.
//!
//! # Invariants
//! - A chunk is in exactly one of: free, loaned, named by one entry of the ring, retired.
//! - A subscriber is acknowledged in our file if and only if its hazards are looked at in a scan.
//! - Nobody else stores into the ring file or the data files.
#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::Arc;

use super::pulse::Pulse;
use super::refused::{Published, Refused, TryPublishError, behind, no_memory};
use super::room::Waited;
use crate::domain::header::{FileHeader, FileKind};
use crate::domain::path::DomainPath;
use crate::error::Refusal;
use crate::node::NodeId;
use crate::node::peer::{Dead, Peer, PortView};
use crate::os::fs::file;
use crate::os::fs::file::Draft;
use crate::os::fs::map::Mapping;
use crate::os::sleep::futex;
use crate::os::time::clock;
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::topic::chunks::hazard;
use crate::topic::chunks::hazard::Location;
use crate::topic::chunks::pool::{Chunk, Pool, PoolConfig};
use crate::topic::membership::meta::Meta;
use crate::topic::membership::{Entry as DirEntry, Ports, PublisherId, Topic, ring_path};
use crate::topic::ring::entries::Entry;
use crate::topic::ring::layout;
use crate::topic::ring::layout::ring;
use crate::topic::ring::listing::Listing;
use crate::wait::wake::call;
use crate::wait::wake::call::Caller;
use crate::wait::wake::handshake;
use crate::{Error, ErrorKind, Result, crash_point};

/// One subscriber whose waiting flag and hazards we look at.
#[derive(Debug)]
pub(in crate::topic) struct Admitted {
    pub(in crate::topic) peer: Arc<Peer>,
    port: u64,
    /// Its waiting flag, inside the mapping that `peer` keeps.
    waiting: NonNull<AtomicU32>,
    /// Its source slot for this ring, once it has attached.
    pub(in crate::topic) slot: Option<usize>,
    ack: Option<usize>,
    caller: Caller,
    /// We wait for it before we overwrite what it has not read.
    reliable: bool,
    /// Our next message when we admitted it: where it begins until it has attached.
    from: u64,
}

impl Admitted {
    /// Rings or calls it, if it asked for that.
    fn call(&mut self, domain: &DomainPath) {
        if let Ok(view) = self.peer.port(self.port) {
            self.caller.call(domain, self.peer.id(), call::request(view));
        }
    }
}

/// After a subscriber could not be opened for lack of memory or descriptors.
#[derive(Clone, Copy, Debug)]
struct Retry {
    /// Of subscribers, at that look.
    epoch: u64,
    /// Not before this message.
    at: u64,
    /// Messages until the next try, doubled each time.
    step: u64,
}

/// Messages between two tries at most.
const RETRY_STEP_MAX: u64 = 1024;

/// A publisher's files and private bookkeeping.
#[derive(Debug)]
pub(crate) struct Writer {
    topic: Arc<Topic>,
    pulse: Pulse,
    id: PublisherId,
    map: Mapping,
    entry_words: usize,
    inline_bytes_max: usize,
    mask: u64,
    next: u64,
    payload_bytes: u64,
    /// Chunk that each entry names.
    named: Box<[Option<Location>]>,
    pool: Pool,
    admitted: Vec<Admitted>,
    seen_epoch: u64,
    /// A subscriber could not be opened: when to try again.
    retry: Option<Retry>,
    held: Vec<Location>,
    /// Messages below this overwrite nothing that a reliable subscriber has yet to read.
    room_until: u64,
    reliable_timeout_ns: u64,
    pub(in crate::topic) waited: Waited,
    pub(in crate::topic) room_spins: u32,
    /// Keeps no history; see `withdraw_newest`.
    volatile: bool,
    timestamps: bool,
    /// The latest stamp: none of this publisher's is before it.
    stamped_ns: u64,
    /// What a refusal says, once somebody prints it.
    pub(super) refusal: Refusal,
}

/// How a publisher wants to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublisherOptions {
    /// Messages in its ring, a power of two; 0: as many as the topic says.
    pub(crate) depth: u64,
    pub(crate) memory_bytes_max: u64,
    pub(crate) reliable_timeout_ns: u64,
    pub(crate) volatile: bool,
    pub(crate) timestamps: bool,
}

// SAFETY: the raw pointers point into mappings that the same struct owns (`map`, `pool`) or keeps
// alive (`Admitted::peer`); nothing in it is bound to a thread.
unsafe impl Send for Writer {}

impl Writer {
    /// Opens a ring in `topic`; the caller holds the joining lock.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the complete ring file.
    pub(crate) fn open(topic: Arc<Topic>, options: PublisherOptions) -> Result<Self> {
        let PublisherOptions {
            memory_bytes_max, reliable_timeout_ns, volatile, timestamps, ..
        } = options;
        let node = &topic.node;
        let id = PublisherId { node: node.id(), port: node.next_port_serial() };
        let depth = if options.depth > 0 { options.depth } else { topic.meta.depth } as usize;
        let entry_bytes = topic.meta.entry_bytes;
        let bytes = layout::ring_bytes(depth, entry_bytes);
        let path = ring_path(&topic.dir, id);
        let access = &node.domain().access;
        let draft = Draft::new(&topic.dir, bytes as u64, access.own_mode)?;
        let map = draft.map_reserve(bytes, &path)?;
        FileHeader {
            kind: FileKind::Ring,
            total_bytes: bytes as u64,
            node: id.node.0,
            port: id.port,
        }
        .write(&map)?;
        map.atomic_u64(ring::DEPTH)?.store(depth as u64, Relaxed);
        map.atomic_u64(ring::ENTRY_BYTES)?.store(entry_bytes as u64, Relaxed);
        map.atomic_u64(ring::VOLATILE)?.store(u64::from(volatile), Relaxed);
        map.atomic_u32(ring::STATE)?.store(ring::STATE_OPEN, Relaxed);
        map.bytes(ring::ENTRIES, depth * entry_bytes)?;
        let pool = Pool::new(PoolConfig {
            dir: topic.dir.clone(),
            topic: topic.name.as_str().into(),
            node: id.node.0,
            port: id.port,
            mode: access.own_mode,
            memory_bytes_max,
        });
        draft.link(&path)?;
        crash_point!("writer.open.after_link");
        let mut writer = Self {
            pulse: Pulse::new(&topic, Ports::Subscribers),
            id,
            map,
            entry_words: entry_bytes / 8,
            inline_bytes_max: inline_bytes_max(&topic.meta),
            mask: depth as u64 - 1,
            next: 0,
            payload_bytes: 0,
            named: vec![None; depth].into(),
            pool,
            admitted: Vec::new(),
            seen_epoch: u64::MAX,
            retry: None,
            held: Vec::new(),
            room_until: u64::MAX,
            reliable_timeout_ns,
            waited: Waited::default(),
            room_spins: super::room::SPINS,
            volatile,
            timestamps,
            stamped_ns: 0,
            refusal: Refusal::new(topic.name.as_str()),
            topic,
        };
        let born = writer.topic.ring_bell(Ports::Publishers);
        // Dying here: the ring is empty and counts as seen by everybody.
        writer.map.atomic_u64(ring::BORN)?.store(born, Release);
        writer.refresh()?;
        writer.call_sleepers();
        Ok(writer)
    }

    pub(crate) fn id(&self) -> PublisherId {
        self.id
    }

    pub(crate) fn topic(&self) -> &Arc<Topic> {
        &self.topic
    }

    /// Messages in our ring.
    pub(in crate::topic) fn depth(&self) -> u64 {
        self.mask + 1
    }

    pub(crate) fn published(&self) -> u64 {
        self.next
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.map.len() as u64 + self.pool.bytes()
    }

    pub(crate) fn waited(&self) -> Waited {
        self.waited
    }

    /// Subscribers this publisher knows.
    pub(crate) fn subscribers(&self) -> usize {
        self.admitted.len()
    }

    #[inline]
    fn entry(&self, n: u64) -> Entry<'_> {
        let index = (n & self.mask) as usize * self.entry_words;
        // SAFETY: `open` checked that the ring of mask + 1 entries lies inside `map`, and entries
        // are 8-aligned; only atomics touch these bytes.
        Entry::new(unsafe {
            let base = self.map.base().add(ring::ENTRIES).cast::<AtomicU64>();
            std::slice::from_raw_parts(base.add(index), self.entry_words)
        })
    }

    /// A header word of our own file at a constant offset.
    #[inline]
    fn counter(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + 8 <= ring::ENTRIES && offset % 8 == 0);
        // SAFETY: the file is at least ENTRIES long; constants below that are 8-aligned.
        unsafe { &*self.map.base().add(offset).cast::<AtomicU64>() }
    }

    /// Most bytes that travel inside an entry of this topic.
    #[inline]
    pub(crate) fn inline_bytes_max(&self) -> usize {
        self.inline_bytes_max
    }

    /// Room in the ring for the next message; `at_once`: without waiting for it.
    #[inline]
    pub(super) fn before_publish(&mut self, at_once: bool) -> Published<()> {
        if !self.pulse.is_steady(self.seen_epoch) {
            self.attend()?;
        }
        if self.next < self.room_until { Ok(()) } else { self.make_room(at_once) }
    }

    #[cold]
    fn attend(&mut self) -> Result<()> {
        self.topic.node.tend()?;
        let epoch = self.topic.epoch(Ports::Subscribers).load(Relaxed);
        let later = self.retry.is_some_and(|r| r.epoch == epoch && self.next < r.at);
        if epoch != self.seen_epoch && !later {
            self.refresh()?;
        }
        Ok(())
    }

    /// From one line of the clock to the next a thread's stamps may go back by some ns.
    #[inline]
    fn timestamp(&mut self) -> u64 {
        if self.timestamps {
            self.stamped_ns = self.stamped_ns.max(clock::timestamp());
        }
        self.stamped_ns
    }

    /// Publishes `bytes` inside the entry; they fit (`inline_bytes_max`).
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of `seq`.
    #[inline]
    pub(super) fn publish_inline(&mut self, bytes: &[u8], at_once: bool) -> Published<u64> {
        debug_assert!(bytes.len() <= self.inline_bytes_max());
        self.before_publish(at_once)?;
        let n = self.next;
        let timestamp = self.timestamp();
        self.entry(n).publish_inline(n, timestamp, bytes);
        self.after_commit(n, bytes.len(), None);
        Ok(n)
    }

    /// Publishes `bytes` bytes of a chunk that `loan` handed out.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of `seq`.
    #[inline]
    pub(super) fn publish_chunk(
        &mut self,
        location: Location,
        bytes: usize,
        at_once: bool,
    ) -> Published<u64> {
        self.before_publish(at_once)?;
        if self.pool.is_poisoned(location) {
            return Err(self.truncated().into());
        }
        let n = self.next;
        let timestamp = self.timestamp();
        self.entry(n).publish_chunk(n, timestamp, location.encode(), bytes);
        self.after_commit(n, bytes, Some(location));
        Ok(n)
    }

    #[inline]
    fn after_commit(&mut self, n: u64, bytes: usize, chunk: Option<Location>) {
        // Dying here: the message is sent; sleepers also wait on our token.
        crash_point!("publish.committed");
        // SAFETY: points into the mapping that `subscriber.peer` keeps alive.
        let flags = self.admitted.iter().map(|s| unsafe { s.waiting.as_ref() });
        if handshake::wanted(flags) != 0 && !fault("publish.no_wake") {
            self.wake(n);
        }
        self.next = n + 1;
        self.payload_bytes += bytes as u64;
        // ORDERING(HEAD): pairs with `Source::head`; the entry is committed before.
        self.counter(ring::HEAD).store(n + 1, Release);
        self.counter(ring::PAYLOAD_BYTES).store(self.payload_bytes, Relaxed);
        let named = &mut self.named[(n & self.mask) as usize];
        if let Some(old) = std::mem::replace(named, chunk) {
            self.pool.retire(old);
        }
    }

    /// Wakes whoever sleeps on the entry of message `n`, and rings doorbells.
    #[cold]
    fn wake(&mut self, n: u64) {
        let mut dead = false;
        let domain = self.topic.node.domain();
        for subscriber in &mut self.admitted {
            // SAFETY: as in `after_commit`.
            let flag = unsafe { subscriber.waiting.as_ref() }.load(Relaxed);
            dead |= flag != 0 && subscriber.peer.death().is_some();
            if flag & handshake::KIND_MASK > handshake::WAITING_WORDS {
                subscriber.call(domain);
            }
        }
        crash_point!("publish.before_wake");
        futex::wake(futex::low_half(self.entry(n).word()), i32::MAX);
        if dead {
            // Looked at again by the next publish.
            self.seen_epoch = u64::MAX;
        }
    }

    /// After a ring of the bell: those who do not sleep on it are told as well.
    fn call_sleepers(&mut self) {
        crash_point!("writer.before_calls");
        let domain = self.topic.node.domain();
        self.admitted.iter_mut().for_each(|subscriber| subscriber.call(domain));
    }

    /// The error that `refused` stands for.
    #[cold]
    pub(super) fn error(&mut self, refused: Refused) -> Error {
        match refused {
            Refused::Behind => behind(self.told(), ErrorKind::WouldBlock),
            Refused::Late => behind(self.told(), ErrorKind::Timeout),
            Refused::NoMemory => no_memory(self.told()),
            Refused::Failed(e) => e,
        }
    }

    /// The same for calls that do not wait.
    #[cold]
    pub(super) fn not_published(&mut self, refused: Refused) -> TryPublishError {
        match refused {
            Refused::Behind => TryPublishError::Behind(self.told().clone()),
            Refused::NoMemory => TryPublishError::NoMemory(self.told().clone()),
            other => TryPublishError::Failed(self.error(other)),
        }
    }

    /// What the text of a refusal is made of.
    fn told(&mut self) -> &Refusal {
        let [bytes, segments, allowed] = self.pool.figures();
        let slowest = self.slowest().map_or(0, |node| node.get());
        self.refusal.set([slowest, self.depth(), bytes, segments, allowed]);
        &self.refusal
    }

    /// A chunk of at least `bytes` for the caller to fill. `at_once`: a holder that is dead but
    /// not marked so by the kernel keeps its chunks; otherwise all are asked.
    ///
    /// # Errors
    /// `OutOfMemory` at the publisher's bound, `NoSpace` on a full RAM disk.
    #[inline]
    pub(super) fn loan(&mut self, bytes: usize, at_once: bool) -> Published<Chunk> {
        self.pulse.check_process()?;
        if self.volatile {
            self.withdraw_newest();
        }
        if let Some(chunk) = self.pool.take(bytes) {
            return Ok(chunk);
        }
        self.loan_slow(bytes, at_once)
    }

    #[cold]
    fn loan_slow(&mut self, bytes: usize, at_once: bool) -> Published<Chunk> {
        self.topic.node.tend()?;
        let align = self.topic.meta.align;
        self.scan(false);
        if let Some(chunk) = self.pool.take(bytes) {
            return Ok(chunk);
        }
        let at_bound = self.pool.is_at_bound(bytes, align);
        if at_bound && at_once {
            return Err(Refused::NoMemory);
        }
        self.scan(true);
        if let Some(chunk) = self.pool.take(bytes) {
            return Ok(chunk);
        }
        let first = (self.mask as usize + 1).min(8) + 2;
        self.pool.grow(bytes, align, first)?;
        self.pool.take(bytes).ok_or(Refused::NoMemory)
    }

    /// Takes the chunk of the newest message back if every live subscriber has read that: once they
    /// let go of it, the same memory, still in the cache, is for the next message. Who holds one
    /// sample while it waits for the next lets two chunks take turns.
    ///
    /// # Crash safety
    /// **Strict.** Dying after the entry is withdrawn, nobody misses what all have read.
    #[cold]
    pub(in crate::topic) fn withdraw_newest(&mut self) -> Option<()> {
        let n = self.next.checked_sub(1)?;
        let location = self.named[(n & self.mask) as usize]?;
        let id = self.id;
        for s in &mut self.admitted {
            let view = s.peer.port(s.port).ok()?;
            s.slot = s.slot.or_else(|| find_source(view, id));
            let cursor = view.source(s.slot?)[2].load(Acquire);
            if cursor < self.next && !is_dead(&s.peer) {
                return None;
            }
        }
        // From here on it reads as being overwritten by the message that will take this entry.
        self.entry(n).withdraw(n + self.mask + 1);
        self.named[(n & self.mask) as usize] = None;
        crash_point!("writer.withdrawn");
        self.pool.retire(location);
        self.scan(false);
        Some(())
    }

    /// Frees the retired chunks that no live subscriber holds. `confirm`: ask the file locks of
    /// the holders, whatever their words say.
    fn scan(&mut self, confirm: bool) {
        hazard::barrier();
        self.held.clear();
        let id = self.id;
        for subscriber in &mut self.admitted {
            let view = match subscriber.peer.port(subscriber.port) {
                Ok(view) => view,
                Err(_) if fault("scan.unread_holds_none") => continue,
                Err(_) if subscriber.peer.death().is_some() => continue,
                // It may hold any of them: none is free.
                Err(_) => return,
            };
            if subscriber.slot.is_none() {
                subscriber.slot = find_source(view, id);
            }
            // Not attached: its first hazard comes after our barrier and fails its check.
            let Some(slot) = subscriber.slot else { continue };
            let before = self.held.len();
            if !fault("scan.no_hazards") {
                hazard::held(view.hazards(), slot, |location| self.held.push(location));
            }
            if self.held.len() > before {
                let peer = &subscriber.peer;
                let death = if confirm { peer.proof_of_death() } else { peer.death() };
                if let Some(dead) = death {
                    forget_borrows(&mut self.held, before, dead);
                }
            }
        }
        self.pool.reclaim(&self.held);
    }

    /// A loan that was dropped unpublished.
    pub(crate) fn give_back(&mut self, location: Location) {
        self.pool.give_back(location);
    }

    /// Looks at the topic's directory: admits new subscribers, forgets the departed. One that
    /// cannot be opened right now is tried again after 1, 2, 4, ... messages.
    ///
    /// # Errors
    /// Those of the directory. What kept a reliable subscriber from being opened, or one of which
    /// that cannot be said: without it a message would be lost to it.
    #[cold]
    pub(crate) fn refresh(&mut self) -> Result<()> {
        let epoch = self.topic.epoch_seen(Ports::Subscribers);
        self.forget_departed();
        let entries = self.topic.entries()?;
        self.topic.node.must_be_listed()?;
        if !entries.contains(&DirEntry::Publisher(self.id)) {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "publishing by",
                ring_path(&self.topic.dir, self.id).display().to_string(),
                "somebody removed it: open the publisher again",
            ));
        }
        let (mut unopened, mut failed) = (false, None);
        for entry in entries {
            if let DirEntry::Subscriber { node, port } = entry
                && !self.admitted.iter().any(|s| s.peer.id() == node && s.port == port)
                && let Err(e) = self.admit(node, port)
            {
                unopened = true;
                if self.may_be_reliable(node, port) {
                    failed = failed.or(Some(e));
                }
            }
        }
        if let Some(e) = failed {
            return Err(e);
        }
        self.seen_epoch = epoch;
        let step = self.retry.filter(|r| r.epoch == epoch).map_or(1, |r| r.step * 2);
        let step = step.min(RETRY_STEP_MAX);
        self.retry = unopened.then_some(Retry { epoch, at: self.next + step, step });
        if unopened {
            self.seen_epoch = u64::MAX;
        }
        if self.map.is_poisoned() { Err(self.truncated()) } else { Ok(()) }
    }

    #[cold]
    fn truncated(&self) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            "publishing on",
            self.topic.name.as_str(),
            "somebody truncated its files: open the publisher again",
        )
    }

    /// Whether a subscriber that could not be mapped is one to wait for: read from its file.
    fn may_be_reliable(&self, node: NodeId, port: u64) -> bool {
        let domain = self.topic.node.domain();
        Peer::read_reliable(&domain.nodes(), node, port, &domain.access).unwrap_or(true)
    }

    /// Acknowledges a subscriber; one that cannot be is served without borrows.
    ///
    /// # Errors
    /// What keeps its file from being opened right now.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: that of `Listing::name`.
    fn admit(&mut self, node: NodeId, port: u64) -> Result<()> {
        use ErrorKind::{Corrupt, NotFound, NotOwned, Permission, VersionMismatch};
        let peer = match self.topic.node.peer(node) {
            Ok(peer) => peer,
            // It has left, or nobody can read what it says.
            Err(e) if fault("admit.failed_is_gone") || e.kind() == NotFound => return Ok(()),
            Err(e) => match e.kind() {
                Corrupt | NotOwned | Permission | VersionMismatch => return Ok(()),
                _ => return Err(e),
            },
        };
        let Some(view) = peer.claimed_port(port)? else { return Ok(()) };
        // ORDERING(PORT_ID): pairs with `Ports::allocate`.
        if view.id().load(Acquire) != port || peer.death().is_some() {
            return Ok(());
        }
        // Beyond the table's end it is woken, yet copies.
        let ack = (0..ring::ACKS_MAX).find(|&i| self.ack(i).is_free());
        let waiting = NonNull::from(view.waiting());
        // Its hazards count from here on.
        if let Some(ack) = ack {
            self.ack(ack).name(node.0, port);
        }
        crash_point!("writer.admitted");
        let reliable = view.reliable().load(Relaxed) == 1;
        if reliable {
            // Looked at again before the next message.
            self.room_until = 0;
        }
        let from = self.next;
        self.admitted.push(Admitted {
            peer,
            port,
            waiting,
            slot: None,
            ack,
            caller: Caller::default(),
            reliable,
            from,
        });
        Ok(())
    }

    fn ack(&self, i: usize) -> Listing<'_> {
        let at = ring::ACKS + i * ring::ACK_BYTES;
        Listing([0, 8, 16, 24].map(|offset| self.counter(at + offset)))
    }

    pub(in crate::topic) fn admitted(&self) -> &[Admitted] {
        &self.admitted
    }

    pub(in crate::topic) fn reliable_timeout_ns(&self) -> u64 {
        self.reliable_timeout_ns
    }

    pub(in crate::topic) fn set_room_until(&mut self, n: u64) {
        self.room_until = n;
    }

    /// A 32-bit header word of our own file at a constant offset.
    pub(in crate::topic) fn header_u32(&self, offset: usize) -> &AtomicU32 {
        futex::low_half(self.counter(offset))
    }

    /// Where admitted subscriber `i` reads, if it is reliable.
    pub(in crate::topic) fn reliable_cursor(&mut self, i: usize) -> Option<u64> {
        let id = self.id;
        let s = &mut self.admitted[i];
        if !s.reliable {
            return None;
        }
        // How far one has read that cannot be asked, nobody knows.
        let Ok(view) = s.peer.port(s.port) else { return Some(s.from.min(self.next)) };
        // One that was dropped while a sample of it is held keeps its port, but reads no more.
        let reads = view.reliable().load(Relaxed) == 1 && view.id().load(Relaxed) == s.port;
        if !reads && !fault("reliable.dropped_counts") {
            return None;
        }
        if s.slot.is_none() {
            s.slot = find_source(view, id);
        }
        let from = s.from;
        // A cursor beyond what was published is garbage: it counts as "has read everything".
        Some(self.reliable_cursor_word(i).map_or(from, |w| w.load(Acquire)).min(self.next))
    }

    pub(in crate::topic) fn reliable_cursor_word(&self, i: usize) -> Option<&AtomicU64> {
        let s = &self.admitted[i];
        Some(s.peer.port(s.port).ok()?.source(s.slot?)[2])
    }

    /// Forgets subscribers whose port is closed or whose node is gone for certain.
    pub(in crate::topic) fn forget_departed(&mut self) {
        let mut i = 0;
        while i < self.admitted.len() {
            let s = &self.admitted[i];
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
                self.ack(ack).clear();
            }
            self.admitted.swap_remove(i);
        }
    }
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

/// The slot in which a subscriber attached publisher `id`.
fn find_source(view: PortView<'_>, id: PublisherId) -> Option<usize> {
    (0..view.sources()).find(|&slot| Listing(view.source(slot)).names(id.node.0, id.port))
}

fn inline_bytes_max(meta: &Meta) -> usize {
    if meta.align > 8 { 0 } else { meta.entry_bytes - layout::ENTRY_HEAD_BYTES }
}

impl Drop for Writer {
    /// Marks the ring closed. Its files stay for those who still read; the last to leave, the
    /// next to come or a cleaner removes them.
    fn drop(&mut self) {
        if !self.topic.node.is_own_process() {
            return;
        }
        if let Ok(state) = self.map.atomic_u32(ring::STATE) {
            state.store(ring::STATE_CLOSED, Release);
        }
        if self.next == 0 {
            let _ = file::unlink(&ring_path(&self.topic.dir, self.id));
            self.pool.unlink();
        }
        self.topic.ring_bell(Ports::Publishers);
        self.call_sleepers();
        let _ = self.topic.reclaim();
    }
}
