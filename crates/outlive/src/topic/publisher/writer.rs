//! The publishing half without types: ring, chunks, and the subscribers it knows.
//!
//! # Invariants
//! - A subscriber is acknowledged in our file if and only if its hazards are looked at in a scan.
//! - Nobody else stores into the ring file or the data files.

use std::sync::Arc;

use super::audience::Audience;
use super::named::Named;
use super::refused::{Published, Refused, TryPublishError, refusals};
use super::ring::OwnRing;
use super::room::{Room, Waited};
use crate::error::{Refusal, Refusals};
use crate::os::fs::file;
use crate::os::sleep::futex;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::Relaxed;
use crate::sync::fault;
use crate::topic::chunks::hazard;
use crate::topic::chunks::hazard::Location;
use crate::topic::chunks::pool::{Chunk, PoolConfig};
use crate::topic::membership::entry::{PublisherId, ring_path};
use crate::topic::membership::pulse::Pulse;
use crate::topic::membership::{Ports, Topic};
use crate::{Error, ErrorKind, Result, crash_point};

/// A publisher's files and private bookkeeping.
#[derive(Debug)]
pub(crate) struct Writer {
    /// Keeps the topic.
    pulse: Pulse,
    ring: OwnRing,
    audience: Audience,
    room: Room,
    chunks: Named,
    /// Keeps no history; see `withdraw_newest`.
    volatile: bool,
    stamps: Stamps,
    refusals: Refusals<3>,
}

/// The time stamps of its messages.
#[derive(Debug)]
struct Stamps {
    wanted: bool,
    /// The latest: none of this publisher's is before it.
    last_ns: u64,
}

impl Stamps {
    /// From one line of the clock to the next a thread's stamps may go back by some ns.
    #[inline(always)]
    fn next(&mut self) -> u64 {
        if self.wanted {
            self.last_ns = self.last_ns.max(clock::timestamp());
        }
        self.last_ns
    }
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

impl Writer {
    /// Opens a ring in `topic`; the caller holds the joining lock.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the link of the complete ring file.
    pub(crate) fn open(topic: &Arc<Topic>, options: PublisherOptions) -> Result<Self> {
        let PublisherOptions {
            memory_bytes_max, reliable_timeout_ns, volatile, timestamps, ..
        } = options;
        let node = &topic.node;
        let id = PublisherId { node: node.id(), port: node.next_port_serial() };
        let depth = if options.depth > 0 { options.depth } else { topic.meta.depth } as usize;
        let ring = OwnRing::create(topic, id, depth, volatile)?;
        crash_point!("writer.open.after_link");
        let config = PoolConfig {
            dir: topic.dir.clone(),
            topic: topic.name.as_str().into(),
            node: id.node.0,
            port: id.port,
            mode: node.domain().access.own_mode,
            memory_bytes_max,
        };
        let mut writer = Self {
            ring,
            audience: Audience::new(id),
            room: Room::new(reliable_timeout_ns),
            chunks: Named::new(depth, config),
            volatile,
            stamps: Stamps { wanted: timestamps, last_ns: 0 },
            refusals: refusals(topic.name.as_str()),
            pulse: Pulse::new(topic, Ports::Subscribers),
        };
        let born = writer.topic().ring_bell(Ports::Publishers);
        // Dying here: the ring is empty and counts as seen by everybody.
        writer.ring.set_born(born);
        writer.refresh()?;
        writer.call_sleepers();
        Ok(writer)
    }

    pub(crate) fn id(&self) -> PublisherId {
        self.ring.id()
    }

    pub(crate) fn topic(&self) -> &Arc<Topic> {
        self.pulse.topic()
    }

    pub(crate) fn published(&self) -> u64 {
        self.ring.next()
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.ring.bytes() + self.chunks.pool.bytes()
    }

    pub(crate) fn waited(&self) -> Waited {
        self.room.waited()
    }

    /// Subscribers this publisher knows.
    pub(crate) fn subscribers(&self) -> usize {
        self.audience.opened()
    }

    /// Most bytes that travel inside an entry of this topic, where any do.
    pub(in crate::topic) fn inline_bytes_max(&self) -> usize {
        self.ring.inline_below().saturating_sub(1)
    }

    /// Whether a payload of `bytes` bytes travels inside an entry of this topic.
    #[inline(always)]
    pub(super) fn is_inline(&self, bytes: usize) -> bool {
        bytes < self.ring.inline_below()
    }

    /// Room in the ring for the next message; `at_once`: without waiting for it.
    #[inline(always)]
    pub(super) fn before_publish(&mut self, at_once: bool) -> Published<()> {
        if !self.pulse.is_steady(self.audience.seen_epoch()) {
            self.attend()?;
        }
        if self.room.is_there(self.ring.next()) { Ok(()) } else { self.make_room(at_once) }
    }

    /// Whether `before_publish` has nothing to do.
    #[inline(always)]
    fn may_publish(&self) -> bool {
        self.pulse.is_steady(self.audience.seen_epoch()) && self.room.is_there(self.ring.next())
    }

    #[cold]
    fn make_room(&mut self, at_once: bool) -> Published<()> {
        self.make_room_within(if at_once { 0 } else { self.room.timeout_ns() })
    }

    fn make_room_within(&mut self, allowed_ns: u64) -> Published<()> {
        let mut since = None;
        loop {
            self.room.make(&self.ring, &mut self.audience, allowed_ns, &mut since)?;
            // Whoever joined meanwhile may have yet to read what the message overwrites. Each round
            // has admitted another one, and all of them have one deadline.
            let steady = self.pulse.is_steady(self.audience.seen_epoch());
            if steady || fault("reliable.joiner_unseen") {
                return Ok(());
            }
            self.attend()?;
            if self.room.is_there(self.ring.next()) {
                return Ok(());
            }
        }
    }

    /// Waits until the next message may be published, until `until` whatever the timeout is.
    pub(super) fn wait_for_room(&mut self, until: Deadline) -> Published<()> {
        match self.before_publish(true) {
            Err(Refused::Behind) if until != Deadline::AT_ONCE => {
                // One that has just passed is late all the same.
                let allowed_ns = until.remaining().as_nanos().clamp(1, 1 << 62) as u64;
                self.make_room_within(allowed_ns)
            }
            done => done,
        }
    }

    #[cold]
    fn attend(&mut self) -> Result<()> {
        self.topic().node.tend()?;
        let epoch = self.topic().epoch(Ports::Subscribers).load(Relaxed);
        if self.audience.is_stale(epoch, self.ring.next()) { self.refresh() } else { Ok(()) }
    }

    /// Publishes `bytes` inside the entry; they fit (`is_inline`). Inlined whatever else the
    /// program contains: where the length is known the copy is a few stores.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of `seq`.
    #[inline(always)]
    pub(super) fn publish_inline(&mut self, bytes: &[u8], at_once: bool) -> Published<u64> {
        debug_assert!(self.is_inline(bytes.len()));
        self.before_publish(at_once)?;
        let n = self.ring.next();
        let timestamp = self.stamps.next();
        self.ring.entry(n).publish_inline(n, timestamp, bytes);
        self.after_commit(n, bytes.len(), None);
        Ok(n)
    }

    /// Publishes each of `values` inside an entry, in order; they fit (`is_inline`). All have one
    /// time stamp, but one that had to wait and those behind it have another.
    ///
    /// # Crash safety
    /// **Strict.** Commit points: the store of `seq` of each.
    #[inline(always)]
    pub(super) fn publish_inline_batch<'a>(
        &mut self,
        values: impl Iterator<Item = &'a [u8]>,
    ) -> Published<()> {
        let mut timestamp = None;
        for bytes in values {
            if !self.may_publish() {
                let waits = self.room.waited().messages;
                self.before_publish(false)?;
                timestamp = timestamp.filter(|_| self.room.waited().messages == waits);
            }
            let n = self.ring.next();
            let timestamp = *timestamp.get_or_insert_with(|| self.stamps.next());
            self.ring.entry(n).publish_inline(n, timestamp, bytes);
            self.after_commit(n, bytes.len(), None);
        }
        Ok(())
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
        if self.chunks.pool.is_poisoned(location) {
            return Err(self.truncated().into());
        }
        let n = self.ring.next();
        let timestamp = self.stamps.next();
        self.ring.entry(n).publish_chunk(n, timestamp, location.encode(), bytes);
        self.after_commit(n, bytes, Some(location));
        Ok(n)
    }

    #[inline(always)]
    fn after_commit(&mut self, n: u64, bytes: usize, chunk: Option<Location>) {
        // Dying here: the message is sent; sleepers also wait on our token.
        crash_point!("publish.committed");
        if self.audience.is_waiting() && !fault("publish.no_wake") {
            self.wake(n);
        }
        self.ring.count(bytes);
        self.chunks.rename(&self.ring, n, chunk);
    }

    /// Wakes whoever sleeps on the entry of message `n`, and rings doorbells.
    #[cold]
    fn wake(&mut self, n: u64) {
        self.audience.wake(self.pulse.topic().node.domain());
        crash_point!("publish.before_wake");
        futex::wake(futex::low_half(self.ring.entry(n).word()), i32::MAX);
    }

    /// After a ring of the bell: those who do not sleep on it are told as well.
    fn call_sleepers(&mut self) {
        crash_point!("writer.before_calls");
        self.audience.call(self.pulse.topic().node.domain());
    }

    /// The error that `refused` stands for.
    #[cold]
    pub(super) fn error(&mut self, refused: Refused) -> Error {
        match refused {
            Refused::Behind => self.refuse(ErrorKind::WouldBlock),
            Refused::Late => self.refuse(ErrorKind::Timeout),
            Refused::NoMemory => self.refuse(ErrorKind::OutOfMemory),
            Refused::Failed(e) => e,
        }
    }

    /// The same for calls that do not wait.
    #[cold]
    pub(super) fn not_published(&mut self, refused: Refused) -> TryPublishError {
        match refused {
            Refused::Behind => TryPublishError::Behind(self.note().clone()),
            Refused::NoMemory => TryPublishError::NoMemory(self.note().clone()),
            other => TryPublishError::Failed(self.error(other)),
        }
    }

    fn refuse(&mut self, kind: ErrorKind) -> Error {
        self.note();
        self.refusals.error(kind)
    }

    /// Stores what the text of a refusal is made of.
    fn note(&mut self) -> &Refusal {
        let [bytes, segments, allowed] = self.chunks.pool.figures();
        let slowest = self.audience.slowest(self.ring.next()).map_or(0, |node| node.get());
        let facts = self.refusals.facts();
        facts.set([slowest, self.ring.depth(), bytes, segments, allowed]);
        facts
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
            // Who joined keeps each message its chunk until it is known. Once none is left nothing
            // is published, and so nobody else would look.
            let steady = self.pulse.is_steady(self.audience.seen_epoch());
            if !steady && !fault("loan.joiner_unseen") {
                self.attend()?;
            }
            self.withdraw_newest();
        }
        if let Some(chunk) = self.chunks.pool.take(bytes) {
            return Ok(chunk);
        }
        self.loan_slow(bytes, at_once)
    }

    #[cold]
    fn loan_slow(&mut self, bytes: usize, at_once: bool) -> Published<Chunk> {
        self.topic().node.tend()?;
        let align = self.topic().meta.of.align;
        if self.volatile && !fault("withdraw.newest_only") {
            self.withdraw_all();
        }
        self.scan(false);
        if let Some(chunk) = self.chunks.pool.take(bytes) {
            return Ok(chunk);
        }
        let at_bound = self.chunks.pool.is_at_bound(bytes, align);
        if at_bound && at_once {
            return Err(Refused::NoMemory);
        }
        self.scan(true);
        if let Some(chunk) = self.chunks.pool.take(bytes) {
            return Ok(chunk);
        }
        let first = (self.ring.depth() as usize).min(8) + 2;
        if !fault("grow.into_anothers") {
            self.topic().node.must_be_listed()?;
        }
        match self.chunks.pool.grow(bytes, align, first) {
            Err(e) if e.kind() == ErrorKind::NoSpace && self.topic().make_room(bytes as u64) => {
                self.chunks.pool.grow(bytes, align, first)?;
            }
            grown => grown?,
        }
        self.chunks.pool.take(bytes).ok_or(Refused::NoMemory)
    }

    /// Takes the chunk of the newest message back if every live subscriber has read that: once they
    /// let go of it, the same memory, still in the cache, is for the next message. Who holds one
    /// sample while it waits for the next lets two chunks take turns.
    ///
    /// # Crash safety
    /// **Strict.** Dying after the entry is withdrawn, nobody misses what all have read.
    #[cold]
    pub(in crate::topic) fn withdraw_newest(&mut self) -> Option<()> {
        let n = self.ring.next().checked_sub(1)?;
        self.chunks.get(&self.ring, n)?;
        if !self.all_is_read() {
            return None;
        }
        self.withdraw(n);
        self.scan(false);
        Some(())
    }

    /// Takes all chunks back once every live subscriber has read all: those of messages that one
    /// had yet to read when the next came, too. Nobody else would before as many messages were sent
    /// as the ring has room for, and without a chunk none is.
    ///
    /// # Crash safety
    /// **Strict.** As `withdraw_newest`, each.
    fn withdraw_all(&mut self) {
        let next = self.ring.next();
        if !self.all_is_read() {
            return;
        }
        for n in next.saturating_sub(self.ring.depth())..next {
            if self.chunks.get(&self.ring, n).is_some() {
                self.withdraw(n);
            }
        }
    }

    /// Whether every live subscriber has read all. Whoever joined since the last look, or could not
    /// be opened by it, has yet to be asked; but nobody waits for who denies us the rights to.
    fn all_is_read(&mut self) -> bool {
        let epoch = self.topic().epoch(Ports::Subscribers).load(Relaxed);
        let all_known =
            epoch == self.audience.seen_epoch() || self.audience.lacks_only_denied(epoch);
        (all_known || fault("withdraw.unopened_has_read"))
            && self.audience.has_read(self.ring.next())
    }

    /// From here on message `n` reads as being overwritten by the one that will take its entry.
    fn withdraw(&mut self, n: u64) {
        self.ring.entry(n).withdraw(n + self.ring.depth());
        crash_point!("writer.withdrawn");
        self.chunks.rename(&self.ring, n, None);
    }

    /// Frees the retired chunks that no live subscriber holds. `confirm`: ask the file locks of
    /// the holders, whatever their words say.
    fn scan(&mut self, confirm: bool) {
        hazard::barrier();
        if let Some(held) = self.audience.held(confirm) {
            self.chunks.pool.reclaim(held);
        }
    }

    /// A loan that was dropped unpublished.
    pub(crate) fn give_back(&mut self, location: Location) {
        self.chunks.pool.give_back(location);
    }

    /// Looks who subscribes: see `Audience::refresh`.
    ///
    /// # Errors
    /// As `Audience::refresh`; `Corrupt` when somebody truncated our files.
    #[cold]
    pub(crate) fn refresh(&mut self) -> Result<()> {
        let looked = self.audience.refresh(self.pulse.topic(), &self.ring);
        if self.audience.take_newcomer() {
            self.room.look_again();
        }
        looked?;
        if self.ring.is_poisoned() { Err(self.truncated()) } else { Ok(()) }
    }

    #[cold]
    fn truncated(&self) -> Error {
        Error::new(
            ErrorKind::Corrupt,
            "publishing on",
            self.topic().name.as_str(),
            "somebody truncated its files: open the publisher again",
        )
    }
}

impl Drop for Writer {
    /// Marks the ring closed. Its files stay for those who still read; the last to leave, the
    /// next to come or a cleaner removes them.
    fn drop(&mut self) {
        if !self.topic().node.is_own_process() {
            return;
        }
        self.ring.close();
        self.topic().ring_bell(Ports::Publishers);
        // After that bell: whoever joins now sees that it rang. While the ring is listed: a look
        // without it fails.
        let steady = self.pulse.is_steady(self.audience.seen_epoch());
        if !steady && !fault("leave.joiner_uncalled") {
            let _ = self.refresh();
        }
        if self.ring.next() == 0 && !self.topic().node.is_replaced() {
            let _ = file::unlink(&ring_path(&self.topic().dir, self.ring.id()));
            self.chunks.pool.unlink();
        }
        self.call_sleepers();
        let _ = self.topic().reclaim();
    }
}
