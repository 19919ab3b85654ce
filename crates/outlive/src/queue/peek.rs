//! The unread messages of a queue, copied from outside: nobody receives them by that.
//!
//! A consumer may receive a message, and its producer overwrite it, while it is copied. So the
//! consumer's position is read again after the copy, and what it has passed by then is dropped.

use std::path::Path;

use super::admin::lanes;
use super::lane::ProducerId;
use super::lane::head::{Head, Next};
use super::lane::position::{Place, Position, distance};
use super::lane::record::{Ring, Shape};
use super::lane::segment::Segment;
use super::membership::meta::Meta;
use super::membership::table::Table;
use crate::Result;
use crate::domain::path::DomainPath;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::{AtomicU64, fence};

/// A message that the consumer has not received yet.
///
/// Example: [`Domain::unread`](crate::Domain::unread).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Unread {
    /// Who sent it.
    pub producer: ProducerId,
    /// Where it lies, as [`Received::place`](crate::queue::Received::place).
    pub place: (u64, u64),
    /// When it was sent, ns of CLOCK_MONOTONIC, in a queue with time stamps.
    pub timestamp_ns: Option<u64>,
    /// Its bytes.
    pub payload: Vec<u8>,
}

/// At most `max` unread messages of the queue in `dir`, lane by lane. A lane that cannot be read
/// ends where that is so.
pub(crate) fn unread(domain: &DomainPath, dir: &Path, max: usize) -> Result<Vec<Unread>> {
    let shape = Meta::read(dir, &domain.access)?.shape();
    let table = Table::open_existing(dir, domain)?;
    let mut out = Vec::new();
    for (producer, _) in lanes(dir)? {
        let Some(first) = consumed(&table, producer) else { continue };
        let lane = Lane { domain, dir, producer, shape: &shape, table: &table, first: first.0 };
        lane.read(Head::new(first.0, first.1), max, &mut out);
    }
    Ok(out)
}

/// How far the lane is consumed; `None`: refused.
fn consumed(table: &Table, producer: ProducerId) -> Option<(Position, u32)> {
    match table.find(producer) {
        Some(slot) => table.place(slot).peek(),
        None => Some((Position::START, 0)),
    }
}

struct Lane<'a> {
    domain: &'a DomainPath,
    dir: &'a Path,
    producer: ProducerId,
    shape: &'a Shape,
    table: &'a Table,
    /// Where the consumer was when the look began.
    first: Position,
}

impl Lane<'_> {
    fn read(&self, mut head: Head, max: usize, out: &mut Vec<Unread>) {
        // The walk keeps a position of its own.
        let (position, progress) = (AtomicU64::new(0), AtomicU64::new(0));
        let place = Place::new(&position, &progress);
        while out.len() < max {
            let opened = Segment::open(self.dir, self.producer, head.segment, self.domain);
            let Ok(segment) = opened else { return };
            loop {
                if out.len() >= max {
                    return;
                }
                match head.next(segment.ring(), self.shape, place) {
                    Next::Item => {
                        let message = self.copy(&head, segment.ring());
                        // The copy is over before the position is read. A producer loads the
                        // position, Acquire, before it overwrites: who sees its bytes sees that.
                        fence(Acquire);
                        if self.is_unread(&head) {
                            out.push(message);
                        }
                        head.take(1, place);
                    }
                    Next::Jump => break,
                    Next::Empty(_) | Next::Corrupt(_) => return,
                }
            }
            head.jump(place);
        }
    }

    fn copy(&self, head: &Head, ring: Ring<'_>) -> Unread {
        let (from, bytes) = (head.item_at(self.shape), head.item_bytes() as usize);
        let skip = (from % 8) as usize;
        let words = (skip + bytes).div_ceil(8) as u64;
        let mut payload = Vec::with_capacity(words as usize * 8);
        for word in 0..words {
            let word = ring.header(from - skip as u64 + word * 8).load(Relaxed);
            payload.extend_from_slice(&word.to_ne_bytes());
        }
        payload.drain(..skip);
        payload.truncate(bytes);
        Unread {
            producer: self.producer,
            place: (
                Position { segment: head.segment, offset: head.at() }.encode(),
                head.done().into(),
            ),
            timestamp_ns: self.shape.stamped.then(|| head.stamp(ring)),
            payload,
        }
    }

    /// Whether the consumer has not passed the record at `head`.
    fn is_unread(&self, head: &Head) -> bool {
        let Some((now, _)) = consumed(self.table, self.producer) else { return false };
        let start = if now.segment == self.first.segment { self.first.offset } else { 0 };
        match now.segment.cmp(&head.segment) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Greater => false,
            std::cmp::Ordering::Equal => distance(start, now.offset) <= distance(start, head.at()),
        }
    }
}
