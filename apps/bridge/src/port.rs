//! A publisher of what comes from elsewhere, within what the file lets that take of the RAM disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use outlive::{Error, ErrorKind, Node, PayloadType, Publisher};

use crate::config::Limits;
use crate::shared::Shared;

/// Payloads up to here travel inside the ring, without a loan.
const SMALL_BYTES: usize = 104;
/// Of a message in a ring, and of the rest of its file.
const ENTRY_BYTES: u64 = 96;
const HEAD_BYTES: u64 = 8192;

/// Shared memory of all publishers of what comes in.
#[derive(Debug)]
pub(crate) struct Room {
    limits: Limits,
    taken: AtomicU64,
}

impl Room {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, taken: AtomicU64::new(0) }
    }

    /// Whether so many bytes more are too many.
    fn lacks(&self, bytes: u64) -> bool {
        self.taken.load(Relaxed).saturating_add(bytes) > self.limits.total_bytes
    }
}

/// What is published, and by whom.
pub(crate) struct Topic {
    pub(crate) shared: Arc<Shared>,
    pub(crate) node: Node,
    pub(crate) name: String,
    pub(crate) of: PayloadType,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) depth: u64,
}

/// A publisher that may have to do without its memory.
pub(crate) struct Port {
    topic: Topic,
    /// None once it has had to give its memory back.
    publisher: Option<Publisher<[u8]>>,
    /// Its part of what is taken of the room.
    taken: u64,
    /// Payloads of so many bytes or more made it take so much more than there was room for.
    refused: Option<(usize, u64)>,
}

impl Port {
    pub(crate) fn open(topic: Topic) -> Result<Self, Error> {
        let mut port = Self { topic, publisher: None, taken: 0, refused: None };
        port.reopen()?;
        Ok(port)
    }

    fn reopen(&mut self) -> Result<(), Error> {
        let Topic { shared, node, name, of, attributes, depth } = &self.topic;
        let limits = shared.room.limits;
        let depth = (*depth).clamp(1, limits.depth);
        if shared.room.lacks(depth.next_power_of_two() * ENTRY_BYTES + HEAD_BYTES) {
            return Err(self.no_room());
        }
        let mut topic = node.topic::<[u8]>(name)?.of_type(of);
        for (key, value) in attributes {
            topic = topic.attribute(key, value);
        }
        let topic = topic.memory_bytes_max(limits.publisher_bytes);
        let publisher = match topic.clone().depth(depth).publisher() {
            // Somebody here has made it less deep: what matters is that it is of one type.
            Err(e) if e.kind() == ErrorKind::TypeMismatch => topic.publisher()?,
            opened => opened?,
        };
        self.publisher = Some(publisher);
        self.measure();
        Ok(())
    }

    /// By how much it has grown.
    fn measure(&mut self) -> u64 {
        let now = self.publisher.as_ref().map_or(0, Publisher::memory_bytes);
        let before = std::mem::replace(&mut self.taken, now);
        let room = &self.topic.shared.room;
        room.taken.fetch_add(now.wrapping_sub(before), Relaxed);
        now.saturating_sub(before)
    }

    fn no_room(&self) -> Error {
        let what = "no room for what comes in: raise total_bytes in [limits]";
        Error::new(ErrorKind::OutOfMemory, "publishing", &*self.topic.name, what)
    }

    /// Publishes `bytes` bytes that `fill` writes. `Corrupt` if it answers false; `OutOfMemory`
    /// where its memory, or that of all, would be more than the file allows.
    pub(crate) fn publish(
        &mut self,
        bytes: usize,
        fill: impl FnOnce(&mut [u8]) -> bool,
    ) -> Result<(), Error> {
        let over = |(least, growth)| bytes >= least && self.topic.shared.room.lacks(growth);
        if self.refused.is_some_and(over) {
            return Err(self.no_room());
        }
        if self.publisher.is_none() {
            self.reopen()?;
        }
        let Some(publisher) = &self.publisher else { return Err(self.no_room()) };
        let bad = || Error::new(ErrorKind::Corrupt, "receiving", &*self.topic.name, "not filled");
        let mut small = [0; SMALL_BYTES];
        if let Some(small) = small.get_mut(..bytes) {
            return if fill(small) { publisher.publish(small).map(drop) } else { Err(bad()) };
        }
        let mut loan = publisher.loan_slice(bytes)?;
        if self.taken != publisher.memory_bytes() {
            drop(loan);
            let growth = self.measure();
            if self.topic.shared.room.lacks(0) {
                // Memory is given back only as a whole.
                (self.publisher, self.refused) = (None, Some((bytes, growth)));
                self.measure();
                return Err(self.no_room());
            }
            return self.publish(bytes, fill);
        }
        if !fill(loan.as_bytes_mut()) {
            drop(loan);
            return Err(bad());
        }
        loan.publish().map(drop)
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        self.publisher = None;
        self.measure();
    }
}
