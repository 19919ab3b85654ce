//! One publisher as a subscriber reads it: how far, and what came of each message.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::peer_ring::PeerRing;
use super::segments::{Segments, corrupt};
use crate::error::Refusals;
use crate::node::OwnPort;
use crate::node::peer::{Dead, Life, Peer, PortView, death_of};
use crate::os::sleep::futex;
use crate::sync::Ordering::{Relaxed, Release};
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::topic::chunks::hazard;
use crate::topic::chunks::hazard::Location;
use crate::topic::membership::Topic;
use crate::topic::membership::entry::PublisherId;
use crate::topic::ring::body;
use crate::topic::ring::entries::{Chase, Descriptor, Entry, Peek};
use crate::topic::ring::listing::Listing;
use crate::topic::subscriber::raw::{Meta, RawSample, Vacant};
use crate::topic::subscriber::sample::is_value;
use crate::types::payload::Payload;
use crate::{Error, ErrorKind, Result};

/// A ring that this subscriber has attached.
#[derive(Debug)]
pub(crate) struct Source {
    id: PublisherId,
    /// `None` when the publisher's node file was gone already: dead for certain.
    peer: Life,
    /// Place in the source table of our port.
    slot: usize,
    ring: PeerRing,
    topic: Arc<Topic>,
    /// Next message to read.
    cursor: u64,
    /// Cursor as our port shows it.
    shown: u64,
    /// How far it may be ahead of that. A volatile publisher waits to use the memory again: 0.
    ahead_max: u64,
    acknowledged: bool,
    closed: bool,
    /// Its publisher was seen to be dead or gone: what it left is read before what others send.
    over: bool,
    reliable: bool,
    segments: Segments,
    lost_before: u64,
    /// The message that could not be taken for lack of memory, at the last try.
    failed: Option<u64>,
    /// What a subscriber answers that holds as many samples as it may.
    full: Error,
}

/// What a subscriber of `topic` answers that holds `borrows` samples and may not hold more.
pub(crate) fn too_many_borrows(topic: &str, borrows: usize) -> Error {
    let refusals = Refusals::new(topic, [ErrorKind::TooManyBorrows], |at, kind| {
        let [held, ..] = at.figures();
        Error::new(
            kind,
            "receiving on",
            at.object(),
            format!("{held} samples are held already: drop some, or ask for more with borrows()"),
        )
    });
    refusals.facts().set([borrows as u64, 0, 0, 0, 0]);
    refusals.error(ErrorKind::TooManyBorrows)
}

/// How a source stands with its publisher.
pub(in crate::topic::subscriber) enum Standing {
    /// That may still send.
    Lives,
    /// Somebody cut its files.
    Cut(Error),
    /// That is gone and left something to read; `newly`: so far it was not known.
    Unread { newly: bool },
    /// That is gone, and all it left is read.
    Over(Departure),
}

/// Why a publisher is not there any more.
pub(in crate::topic::subscriber) enum Departure {
    Left,
    Died(Dead),
}

impl Source {
    /// Maps and checks the ring of `id`; everything it holds is to be read unless `skip_to` says
    /// otherwise. `full`: see `too_many_borrows`.
    pub(crate) fn open(topic: &Arc<Topic>, id: PublisherId, full: Error) -> Result<Self> {
        let ring = PeerRing::open(topic, id)?;
        let peer = topic.node.life(id.node)?;
        Ok(Self {
            id,
            peer,
            slot: 0,
            topic: Arc::clone(topic),
            cursor: 0,
            shown: 0,
            ahead_max: if ring.is_volatile() { 0 } else { ring.depth() / 4 },
            ring,
            acknowledged: false,
            closed: false,
            over: false,
            reliable: false,
            segments: Segments::default(),
            lost_before: 0,
            failed: None,
            full,
        })
    }

    pub(crate) fn id(&self) -> PublisherId {
        self.id
    }

    /// Its publisher's node, unless its file was gone already.
    pub(crate) fn peer(&self) -> Option<&Arc<Peer>> {
        self.peer.as_ref().ok()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// Sorts the publishers of the topic by age.
    pub(crate) fn age(&self) -> (u64, PublisherId) {
        (self.birth(), self.id)
    }

    /// Where it comes by age among the publishers of the topic.
    pub(super) fn birth(&self) -> u64 {
        self.ring.birth()
    }

    /// Messages that this publisher's ring holds.
    pub(crate) fn depth(&self) -> u64 {
        self.ring.depth()
    }

    /// Behind the newest message there is. A publisher that died may not have counted it.
    pub(crate) fn end(&self) -> Option<u64> {
        self.ring.end()
    }

    /// When message `n` was published, if it is kept for those who come later and still there.
    pub(crate) fn history_time(&self, n: u64) -> Option<u64> {
        self.ring.history_time(n)
    }

    /// Leaves out what comes before message `n`: it was sent before we joined.
    pub(crate) fn skip_to(&mut self, n: u64) {
        self.cursor = self.cursor.max(n);
    }

    /// Writes this source into place `slot` of our port, from where its publisher finds it.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: that of `Listing::name`.
    pub(crate) fn show(&mut self, slot: usize, view: PortView<'_>) {
        self.slot = slot;
        self.shown = self.cursor;
        let place = view.source(slot);
        place.cursor.store(self.cursor, Relaxed);
        Listing::of(place).name(self.id.node.0, self.id.port);
    }

    /// Whether a sample of its is held.
    pub(super) fn is_held(&self, view: PortView<'_>) -> bool {
        let mut held = false;
        hazard::held(view.hazards(), self.slot, |_| held = true);
        held
    }

    /// Frees its place in our port.
    pub(super) fn hide(&self, view: PortView<'_>) {
        Listing::of(view.source(self.slot)).clear();
    }

    /// Begins to read, now that the publisher can see how far we are.
    pub(crate) fn begin(&mut self, view: PortView<'_>) {
        if self.shown != self.cursor {
            self.show_cursor(view);
        }
    }

    /// Reads no more: its publisher waits for us no longer, whatever is still held.
    ///
    /// # Crash safety
    /// **Strict.** Dying before the wake, our token ends the publisher's sleep.
    pub(crate) fn leave(&self, view: PortView<'_>) {
        let cursor = view.source(self.slot).cursor;
        // Beyond what was published: everything is read.
        cursor.store(u64::MAX, Release);
        if self.reliable {
            futex::wake(futex::low_half(cursor), i32::MAX);
        }
    }

    #[inline]
    fn entry(&self) -> Entry<'_> {
        self.ring.entry(self.cursor)
    }

    /// The word that the commit of the next message changes, and its value now; `None` when
    /// there is something to read.
    pub(crate) fn sleep_word(&self) -> Option<(&AtomicU32, u32)> {
        let (word, seen) = self.empty_word()?;
        Some((futex::low_half(word), seen as u32))
    }

    /// As `sleep_word`, the whole of it.
    #[inline]
    pub(crate) fn empty_word(&self) -> Option<(&AtomicU64, u64)> {
        let entry = self.entry();
        let seen = entry.seen_empty(self.cursor, self.ring.depth())?;
        Some((entry.word(), seen))
    }

    /// Whether its publisher left in order; remembered, so that `is_steady` need not look.
    fn has_closed(&mut self) -> bool {
        self.closed |= self.ring.is_closed();
        self.closed
    }

    /// Nothing to attend to: its publisher looks alive and was not seen to close.
    #[inline]
    pub(crate) fn is_steady(&self) -> bool {
        !self.closed && self.peer.as_ref().is_ok_and(|peer| peer.hint().is_alive())
    }

    /// How it stands; what its publisher had sent before it went can be read by then.
    pub(in crate::topic::subscriber) fn standing(&mut self) -> Standing {
        if let Some(e) = self.poisoned() {
            return Standing::Cut(e);
        }
        let newly = !self.over;
        let Some(departure) = self.departure() else { return Standing::Lives };
        // What it committed before it went is visible now: drain once more, then detach.
        match self.sleep_word() {
            None => Standing::Unread { newly },
            Some(_) => Standing::Over(departure),
        }
    }

    /// Whether its publisher is gone.
    pub(in crate::topic::subscriber) fn departure(&mut self) -> Option<Departure> {
        let death = self.death();
        // After the look at the token: who closed and then ended left in order.
        let departure = match (self.has_closed(), death) {
            (true, _) => Departure::Left,
            (false, Some(dead)) => Departure::Died(dead),
            (false, None) => return None,
        };
        self.over = true;
        Some(departure)
    }

    /// Whether its publisher is dead, asked once its word says so.
    #[inline]
    pub(crate) fn death(&self) -> Option<Dead> {
        death_of(&self.peer)
    }

    /// As `death`, whatever the word says.
    pub(crate) fn proof_of_death(&self) -> Option<Dead> {
        self.peer.as_ref().map_or_else(|dead| Some(*dead), |peer| peer.proof_of_death())
    }

    /// Whether its publisher lists us, or is beyond listing anybody.
    pub(crate) fn is_noticed(&mut self, view: PortView<'_>) -> bool {
        self.acknowledged || self.closed || self.death().is_some() || self.is_acknowledged(view)
    }

    /// Its next message is being written, or was when its publisher died.
    pub(crate) fn is_busy(&self) -> bool {
        let busy = self.ring.peek(self.cursor) == Peek::Empty { busy: true };
        busy && !(self.ring.is_volatile() && self.entry().is_withdrawn())
    }

    /// Receives the next message into `vacant` if there is one, its chunk borrowed if the publisher
    /// has acknowledged us.
    ///
    /// # Errors
    /// `TooManyBorrows`: nothing is consumed. `Corrupt`: the entry cannot be a publisher's.
    #[inline]
    pub(super) fn take(
        &mut self,
        own: &OwnPort,
        mut vacant: Vacant<'_>,
    ) -> Result<Option<RawSample>> {
        let entry = self.entry();
        self.ring.fetch_second_line(entry);
        match entry.peek(self.cursor, self.ring.depth()) {
            Peek::Ready => {}
            Peek::Empty { .. } => return Ok(self.nothing(own)),
            Peek::Overrun { .. } | Peek::Corrupt => return self.take_slow(own, vacant),
        }
        // The usual way, without a call.
        if let Some(Descriptor::Inline { bytes }) = Descriptor::decode(entry.descriptor())
            && self.ring.fits_inline(bytes)
            && self.copy_inline(entry, &mut vacant, bytes)
        {
            self.advance(own);
            return Ok(Some(vacant.hold()));
        }
        self.take_slow(own, vacant)
    }

    /// Appends the next messages to `to`, at most `most`, while they travel in their entries and
    /// nothing else is to be done or told. `false`: the next one is for `take`.
    #[inline]
    pub(super) fn take_values<T: Payload>(
        &mut self,
        own: &OwnPort,
        to: &mut Vec<T>,
        most: usize,
    ) -> bool {
        let plain = Descriptor::Inline { bytes: size_of::<T>() }.encode();
        let end = to.len().saturating_add(most);
        while to.len() < end {
            let entry = self.entry();
            match entry.peek(self.cursor, self.ring.depth()) {
                Peek::Ready if entry.descriptor() == plain && self.lost_before == 0 => {}
                Peek::Empty { .. } => return true,
                _ => return false,
            }
            if !self.ring.fits_inline(size_of::<T>()) || to.try_reserve(1).is_err() {
                return false;
            }
            let value = &mut to.spare_capacity_mut()[0];
            body::copy_value(value, entry.body());
            // SAFETY: filled by `copy_value`.
            if !entry.unchanged(self.cursor) || !unsafe { is_value(value) } {
                return false;
            }
            // SAFETY: the place behind the end was just filled, with a valid `T`.
            unsafe { to.set_len(to.len() + 1) };
            self.advance(own);
        }
        true
    }

    /// As `take`, of a message that lies in a chunk or is not what the cursor was at.
    #[inline(never)]
    fn take_slow(&mut self, own: &OwnPort, mut vacant: Vacant<'_>) -> Result<Option<RawSample>> {
        let mut chase = Chase::default();
        loop {
            match self.ring.peek(self.cursor) {
                Peek::Ready => {}
                Peek::Empty { .. } => return Ok(self.nothing(own)),
                Peek::Overrun { oldest } => {
                    if self.overrun(&mut chase, oldest) {
                        continue;
                    }
                    return Ok(self.nothing(own));
                }
                Peek::Corrupt => return Err(self.corrupt("an entry's sequence number")),
            }
            let entry = self.entry();
            let whole = match Descriptor::decode(entry.descriptor()) {
                Some(Descriptor::Inline { bytes }) if self.ring.fits_inline(bytes) => {
                    self.copy_inline(entry, &mut vacant, bytes)
                }
                Some(Descriptor::Inline { .. }) => self.refuse("an entry's length")?,
                Some(Descriptor::Chunk { bytes }) => {
                    match self.take_chunk(own.view(), &mut vacant, bytes) {
                        Ok(whole) => whole,
                        Err(e) => return Err(self.not_taken(e)),
                    }
                }
                None => self.refuse("an entry's descriptor")?,
            };
            // Else overwritten while we read it: the next look counts what was lost.
            if whole {
                self.advance(own);
                return Ok(Some(vacant.hold()));
            }
        }
    }

    #[inline]
    fn advance(&mut self, own: &OwnPort) {
        self.lost_before = 0;
        self.cursor += 1;
        if self.cursor - self.shown > self.ahead_max {
            self.show_cursor(own.view());
        }
    }

    /// The publisher waits for this subscriber before it overwrites what is unread.
    pub(crate) fn set_reliable(&mut self) {
        self.reliable = true;
    }

    /// Messages that are gone but not yet reported with a later one.
    pub(crate) fn count_lost(&mut self) -> u64 {
        self.next_time();
        std::mem::take(&mut self.lost_before)
    }

    /// Skips everything but the newest message; returns how many were skipped.
    pub(crate) fn skip_to_newest(&mut self) -> u64 {
        let newest = self.ring.head().unwrap_or(0).saturating_sub(1);
        if newest <= self.cursor {
            return 0;
        }
        let skipped = newest - self.cursor;
        self.cursor = newest;
        skipped
    }

    /// Skips the next message; 0 when there is none.
    pub(crate) fn skip_one(&mut self, own: &OwnPort) -> u64 {
        let ready = self.next_time().is_some();
        if ready {
            self.advance(own);
        }
        u64::from(ready)
    }

    /// The next message is overwritten: goes on with a later one, and counts what it passes over
    /// as lost. `false`: the publisher was quicker each time; the next call goes on from here.
    #[cold]
    fn overrun(&mut self, chase: &mut Chase, oldest: u64) -> bool {
        // Where the counter says more than the entry, it is right: `head` has looked there.
        let head = self.ring.head().unwrap_or(0);
        let oldest = oldest.max(head.saturating_sub(self.ring.depth()));
        let Some(mut next) = chase.next(oldest, self.ring.depth()) else { return false };
        if self.ring.is_volatile() && next > head && !fault("chase.ahead_of_volatile") {
            // Not overwritten but withdrawn, one by one, up to those that it must not miss.
            next = oldest;
        }
        self.lost_before += next - self.cursor;
        self.cursor = next;
        true
    }

    /// When the next message was published; `None` when there is none.
    pub(crate) fn next_time(&mut self) -> Option<u64> {
        let mut chase = Chase::default();
        loop {
            match self.ring.peek(self.cursor) {
                Peek::Ready => {
                    let time = self.entry().timestamp();
                    if self.entry().unchanged(self.cursor) {
                        return Some(time);
                    }
                }
                Peek::Overrun { oldest } => {
                    if !self.overrun(&mut chase, oldest) {
                        return None;
                    }
                }
                // `take` tells what is wrong with a corrupt one.
                Peek::Corrupt => return Some(0),
                Peek::Empty { .. } => return None,
            }
        }
    }

    #[inline]
    fn nothing(&mut self, own: &OwnPort) -> Option<RawSample> {
        if self.shown != self.cursor {
            self.show_cursor(own.view());
        }
        None
    }

    /// Shows how far we have read, and wakes the publisher if it waits for that: in batches, so
    /// that a stream is not a system call for each message.
    fn show_cursor(&mut self, view: PortView<'_>) {
        let cursor = view.source(self.slot).cursor;
        cursor.store(self.cursor, Release);
        self.shown = self.cursor;
        if self.reliable && self.ring.wants_room() {
            futex::wake(futex::low_half(cursor), i32::MAX);
        }
    }

    /// What the entry at the cursor says of itself; built where it is used, else it is moved.
    #[inline(always)]
    fn meta_of(&self, entry: Entry<'_>) -> Meta {
        Meta {
            publisher: self.id,
            seq: self.cursor,
            timestamp_ns: entry.timestamp(),
            lost_before: self.lost_before,
        }
    }

    /// Whether the copy is whole.
    #[inline(always)]
    fn copy_inline(&self, entry: Entry<'_>, vacant: &mut Vacant<'_>, bytes: usize) -> bool {
        vacant.inline(entry.body(), bytes, self.meta_of(entry));
        entry.unchanged(self.cursor)
    }

    #[inline]
    fn take_chunk(
        &mut self,
        view: PortView<'_>,
        vacant: &mut Vacant<'_>,
        bytes: usize,
    ) -> Result<bool> {
        let meta = self.meta_of(self.entry());
        let Some(location) = Location::decode(self.entry().location()) else {
            return self.refuse("an entry's chunk");
        };
        if !self.acknowledged && !self.is_acknowledged(view) {
            return self.copy_chunk(vacant, location, bytes, meta);
        }
        let full = fault("borrow.full_unchecked");
        let Some(hazard) = view.hazards().iter().find(|h| full || h.load(Relaxed) == 0) else {
            return Err(self.full.clone());
        };
        let word = hazard::hazard_word(self.slot, location);
        if !hazard::borrow(hazard, word, self.entry(), self.cursor) {
            return Ok(false);
        }
        match self.segments.resolve(&self.topic, self.id, location, bytes) {
            Ok(ptr) => {
                vacant.borrowed(ptr, bytes, hazard, meta);
                Ok(true)
            }
            Err(e) => {
                hazard::clear(hazard);
                Err(e)
            }
        }
    }

    /// The message at the cursor is not there for this process right now. It must not hide those
    /// behind it for ever: at the second failure it is passed over and counts as lost, unless
    /// nothing may be lost.
    #[cold]
    fn not_taken(&mut self, e: Error) -> Error {
        use ErrorKind::{Io, OutOfMemory, Permission};
        let lacks = matches!(e.kind(), OutOfMemory | Io | Permission);
        let again = lacks && self.failed.replace(self.cursor) == Some(self.cursor);
        if !again || self.reliable || fault("receive.starves") {
            return e;
        }
        let remedy = format!("message {} is lost to this subscriber; {}", self.cursor, e.remedy());
        self.lost_before += 1;
        self.cursor += 1;
        Error::new(e.kind(), "receiving on", self.topic.name.as_str(), remedy)
    }

    /// Copies a chunk that we may not borrow; valid if its entry is the same afterwards.
    #[cold]
    fn copy_chunk(
        &mut self,
        vacant: &mut Vacant<'_>,
        location: Location,
        bytes: usize,
        meta: Meta,
    ) -> Result<bool> {
        let ptr = match self.segments.resolve(&self.topic, self.id, location, bytes) {
            Ok(ptr) => ptr,
            Err(_) if !self.entry().unchanged(self.cursor) => return Ok(false),
            Err(e) => return Err(e),
        };
        if !vacant.copied(ptr, bytes, self.topic.meta.of.align, meta) {
            return Err(Error::new(
                ErrorKind::OutOfMemory,
                "copying a sample of",
                self.topic.name.as_str(),
                format!("{bytes} bytes of process memory cannot be had"),
            ));
        }
        let whole = self.entry().unchanged(self.cursor);
        if !whole {
            vacant.give_back();
        }
        Ok(whole)
    }

    /// Whether the publisher lists us. Until it does it does not look at our hazards.
    #[cold]
    fn is_acknowledged(&mut self, view: PortView<'_>) -> bool {
        let (me, port) = (self.topic.node.id().0, view.id().load(Relaxed));
        self.acknowledged = self.ring.acknowledges(me, port);
        self.acknowledged
    }

    /// An entry that makes no sense is corrupt, unless it changed while it was read (`false`).
    #[cold]
    fn refuse(&self, what: &str) -> Result<bool> {
        if self.entry().unchanged(self.cursor) { Err(self.corrupt(what)) } else { Ok(false) }
    }

    #[cold]
    fn corrupt(&self, what: &str) -> Error {
        corrupt(&self.topic, self.id, what)
    }

    /// Whether somebody cut its files short while they were mapped.
    pub(crate) fn poisoned(&self) -> Option<Error> {
        let cut = std::iter::once(self.ring.map())
            .chain(self.segments.maps())
            .find(|m| m.is_poisoned())?;
        Some(Error::new(
            ErrorKind::Corrupt,
            "reading",
            cut.path().display().to_string(),
            "somebody truncated it: restart its publisher; it is not read any more",
        ))
    }
}
