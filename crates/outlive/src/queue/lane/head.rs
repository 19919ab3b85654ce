//! The consumer's end of a lane: the record it reads, and how many of its messages are done. See
//! `lane`.

use super::position::{self, COUNT_MAX, Place, Position};
use super::record::{
    HEADER_BYTES, JUMP, KIND_BITS, KIND_MASK, ONE, PAD, RECORD, RUN, RUN_BYTES, RUN_CLOSED, Ring,
    Shape, record_word,
};
use crate::sync::Ordering::Relaxed;
use crate::sync::fault;

/// What the consumer finds at its end of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// A message: see `Head::item`.
    Item,
    /// Nothing yet; the header is this.
    Empty(u64),
    /// The next segment goes on.
    Jump,
    /// No producer stores this.
    Corrupt(&'static str),
}

/// The consumer's end of a lane: the record it reads, and how many of its messages are done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) segment: u32,
    /// Start of the record.
    at: u64,
    /// Bytes of one of its messages.
    item: u64,
    /// Messages of the record that are known, and done.
    known: u32,
    done: u32,
    /// Messages of the record when it is complete.
    full: u32,
    /// Bytes of the record.
    bytes: u64,
}

impl Head {
    /// Goes on where `Place::take_over` says.
    pub(crate) fn new(position: Position, done: u32) -> Self {
        let Position { segment, offset } = position;
        Self { segment, at: offset, item: 0, known: 0, done, full: 0, bytes: 0 }
    }

    #[inline]
    pub(crate) fn at(&self) -> u64 {
        self.at
    }

    /// Looks for the next message.
    ///
    /// # Crash safety
    /// **Strict.** Steps over what carries no message, by storing the position.
    #[inline(always)]
    pub(crate) fn next(&mut self, ring: Ring<'_>, shape: &Shape, place: Place<'_>) -> Next {
        if self.done < self.known {
            return Next::Item;
        }
        let word = ring.peek(self.at);
        if self.find(ring, shape, word) {
            Next::Item
        } else {
            self.next_slow(ring, shape, place, word)
        }
    }

    /// The messages of the record whose header is `word`, if it is of the kind that its queue
    /// mostly has.
    #[inline(always)]
    fn find(&mut self, ring: Ring<'_>, shape: &Shape, word: u64) -> bool {
        if shape.per_run != 0 {
            let n = word >> KIND_BITS;
            let fits = n > u64::from(self.done) && n <= shape.per_run.into();
            if word & KIND_MASK == RUN && fits {
                self.enter(n as u32, shape.per_run, RUN_BYTES, shape.item);
                return true;
            }
        } else if shape.item != 0 && word == record_word(shape.item) && self.done == 0 {
            let bytes = shape.record(shape.item);
            if (self.at & (ring.capacity() - 1)) + bytes <= ring.capacity() {
                self.enter(1, 1, bytes, shape.item);
                return true;
            }
        }
        false
    }

    /// As `next` between two records, but only where that is quick: `false` says nothing.
    #[inline(always)]
    pub(crate) fn next_at_once(&mut self, ring: Ring<'_>, shape: &Shape) -> bool {
        self.find(ring, shape, ring.peek(self.at))
    }

    /// Whether the record's known messages are all of a run that is full.
    #[inline(always)]
    pub(crate) fn is_full_run(&self, shape: &Shape) -> bool {
        self.known == shape.per_run
    }

    /// As `take` of the rest of a full run and `next_at_once`, where a run is likely to follow: the
    /// same with half the instructions.
    ///
    /// # Crash safety
    /// **Strict.** As `take`.
    #[inline(always)]
    pub(crate) fn pass_run(&mut self, ring: Ring<'_>, shape: &Shape, place: Place<'_>) -> bool {
        let at = self.at + RUN_BYTES;
        let word = ring.peek(at);
        place.advance(Position { segment: self.segment, offset: at }, true);
        (self.at, self.done) = (at, 0);
        // One less than its count; huge for any other kind.
        let more = word.wrapping_sub(ONE | RUN).rotate_right(KIND_BITS);
        let found = more < shape.per_run.into();
        if found {
            self.known = more as u32 + 1;
        } else {
            (self.known, self.full) = (0, 0);
        }
        found
    }

    /// As `pass_run`, of a record of one message in a queue without runs, whose messages are
    /// `item` bytes each.
    ///
    /// # Crash safety
    /// **Strict.** As `take`.
    #[inline(always)]
    pub(crate) fn pass_one(&mut self, ring: Ring<'_>, place: Place<'_>) -> bool {
        let at = self.at + self.bytes;
        let word = ring.peek(at);
        place.advance(Position { segment: self.segment, offset: at }, false);
        (self.at, self.done) = (at, 0);
        let within = (at & (ring.capacity() - 1)) + self.bytes <= ring.capacity();
        let found = word == record_word(self.item) && within;
        (self.known, self.full) = if found { (1, 1) } else { (0, 0) };
        found
    }

    /// Whether the record is one message, of a queue that has no runs.
    #[inline(always)]
    pub(crate) fn is_one(&self, shape: &Shape) -> bool {
        self.full == 1 && shape.per_run == 0 && shape.item != 0
    }

    #[inline(always)]
    fn enter(&mut self, known: u32, full: u32, bytes: u64, item: u64) {
        (self.known, self.full, self.bytes, self.item) = (known, full, bytes, item);
    }

    #[cold]
    #[inline(never)]
    fn next_slow(
        &mut self,
        ring: Ring<'_>,
        shape: &Shape,
        place: Place<'_>,
        mut word: u64,
    ) -> Next {
        // Each turn but the last steps over padding or a closed run; no producer has three.
        for _ in 0..3 {
            let value = word >> KIND_BITS;
            let rest = ring.capacity() - (self.at & (ring.capacity() - 1));
            match word & KIND_MASK {
                // Of a record whose messages were received a producer clears no header.
                0 if word == 0 && self.done == 0 => return Next::Empty(word),
                RECORD => {
                    if (value > rest || shape.record(value) > rest)
                        && !fault("record.length_unchecked")
                    {
                        return Next::Corrupt("a record's length");
                    }
                    let (count, item) = match shape.item {
                        0 => (1, value),
                        item if value % item == 0 => (value / item, item),
                        _ => return Next::Corrupt("a record's length"),
                    };
                    if count == 0 || count > COUNT_MAX {
                        return Next::Corrupt("a record's count");
                    }
                    self.enter(count as u32, count as u32, shape.record(value), item);
                    if self.done < self.known {
                        return Next::Item;
                    }
                }
                RUN | RUN_CLOSED if shape.per_run != 0 => {
                    let possible = (1..=shape.per_run.into()).contains(&value);
                    let shrunk = value < self.done.into() && !fault("run.may_shrink");
                    if !possible || shrunk || rest < RUN_BYTES {
                        return Next::Corrupt("a run's count");
                    }
                    self.enter(value as u32, shape.per_run, RUN_BYTES, shape.item);
                    if self.done < self.known {
                        return Next::Item;
                    }
                    if word & KIND_MASK == RUN && self.done < self.full {
                        return Next::Empty(word);
                    }
                }
                PAD if value == rest && rest < ring.capacity() => {
                    self.enter(0, 0, value, 0);
                }
                JUMP if word == JUMP => return Next::Jump,
                _ => return Next::Corrupt("a record's header"),
            }
            self.leave(place);
            word = ring.peek(self.at);
        }
        Next::Corrupt("a row of empty records")
    }

    /// Where the message found by `next` lies, as an offset.
    #[inline(always)]
    pub(crate) fn item_at(&self, shape: &Shape) -> u64 {
        self.at + shape.head + u64::from(self.done) * self.item
    }

    /// Bytes of the message found by `next`.
    #[inline(always)]
    pub(crate) fn item_bytes(&self) -> u64 {
        self.item
    }

    /// When the record was committed, in a queue with stamps.
    #[inline]
    pub(crate) fn stamp(&self, ring: Ring<'_>) -> u64 {
        ring.header(self.at + HEADER_BYTES).load(Relaxed)
    }

    /// Messages of the record that are known and not done, one behind the other.
    #[inline]
    pub(crate) fn items(&self) -> u32 {
        self.known - self.done
    }

    /// Messages of the record that are done.
    pub(crate) fn done(&self) -> u32 {
        self.done
    }

    /// Whether there is nothing to do while the header at `at` is `word`: `next` says `Empty`.
    pub(crate) fn is_empty(&self, word: u64) -> bool {
        let waits_in_run = word & KIND_MASK == RUN && word >> KIND_BITS == u64::from(self.done);
        self.done == self.known && if self.done == 0 { word == 0 } else { waits_in_run }
    }

    /// `n` of the known messages were received; `true` when they were the record's last.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: one store of `place`. Dying before it, the next consumer gets
    /// them again.
    #[inline(always)]
    pub(crate) fn take(&mut self, n: u32, place: Place<'_>) -> bool {
        debug_assert!(n <= self.items());
        self.done += n;
        let last = self.done == self.full;
        if last {
            self.leave(place);
        } else {
            place.within(self.at, self.done);
        }
        last
    }

    /// `n` of the known messages, not the last, were received and `place` says so already.
    pub(crate) fn taken(&mut self, n: u32) {
        debug_assert!(n < self.items());
        self.done += n;
    }

    /// What `place` says of the record.
    #[inline(always)]
    pub(crate) fn progress(&self) -> u64 {
        position::progress(self.at, self.done)
    }

    #[inline(always)]
    fn leave(&mut self, place: Place<'_>) {
        let partly = self.full > 1;
        self.at += self.bytes;
        (self.known, self.done, self.full) = (0, 0, 0);
        place.advance(Position { segment: self.segment, offset: self.at }, partly);
    }

    /// Goes on in the next segment; the caller unlinks the old one.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the store of the position.
    pub(crate) fn jump(&mut self, place: Place<'_>) {
        place.jump(self.segment + 1);
        *self = Self::new(Position { segment: self.segment + 1, offset: 0 }, 0);
    }
}
