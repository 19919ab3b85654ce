//! A publisher of what comes from elsewhere, within the room that there is for that.

use std::collections::BTreeMap;
use std::sync::Arc;

use outlive::{Encoding, Error, ErrorKind, Node, PayloadType, Publisher};

use super::room::{Room, Share};

/// Payloads up to here travel inside the ring, without a loan; values of a fixed size up to there.
const SMALL_BYTES: usize = 104;
const SMALL_VALUE_BYTES: usize = 1024;
/// What a message takes in a ring beside its payload, and what the rest of its file takes.
const ENTRY_HEAD_BYTES: usize = 24;
const HEAD_BYTES: u64 = 24 << 10;
/// What is published, and by whom.
pub(crate) struct Topic {
    pub(crate) room: Arc<Room>,
    pub(crate) node: Node,
    pub(crate) name: String,
    pub(crate) of: PayloadType,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) depth: u64,
}

/// Most bytes of a payload of that type that travel inside the ring.
fn small_bytes(of: &PayloadType) -> usize {
    match of.encoding() {
        Encoding::Fixed if of.size() <= SMALL_VALUE_BYTES => of.size().max(SMALL_BYTES),
        _ => SMALL_BYTES,
    }
}

/// The largest power of two that is not above `n`, which is not 0.
fn prev_power_of_two(n: u64) -> u64 {
    1 << n.ilog2()
}

/// A publisher that may have to do without its memory.
pub(crate) struct Port {
    topic: Topic,
    /// None once it has had to give its memory back.
    publisher: Option<Publisher<[u8]>>,
    share: Share,
    /// For payloads that need no loan.
    small: Vec<u8>,
    /// Payloads of so many bytes or more made it take so much more than there was room for.
    refused: Option<(usize, u64)>,
}

impl Port {
    pub(crate) fn open(topic: Topic) -> Result<Self, Error> {
        let share = Share::new(&topic.room);
        let mut port = Self { topic, publisher: None, share, small: Vec::new(), refused: None };
        port.reopen()?;
        Ok(port)
    }

    fn reopen(&mut self) -> Result<(), Error> {
        let Topic { room, node, name, of, attributes, depth } = &self.topic;
        let limits = room.limits;
        let entry_bytes = (small_bytes(of) + ENTRY_HEAD_BYTES).next_multiple_of(64) as u64;
        let deepest = (limits.publisher_bytes / entry_bytes).clamp(1, limits.depth);
        let depth = (*depth).clamp(1, prev_power_of_two(deepest));
        if room.lacks(depth.next_power_of_two() * entry_bytes + HEAD_BYTES) {
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
        self.share.set(now)
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
        let over = |(least, growth)| bytes >= least && self.topic.room.lacks(growth);
        if self.refused.is_some_and(over) {
            return Err(self.no_room());
        }
        if self.publisher.is_none() {
            self.reopen()?;
        }
        let Some(publisher) = &self.publisher else { return Err(self.no_room()) };
        let bad = || Error::new(ErrorKind::Corrupt, "receiving", &*self.topic.name, "not filled");
        if bytes <= small_bytes(&self.topic.of) {
            self.small.resize(bytes, 0);
            let small = &mut self.small[..];
            return if fill(small) { publisher.publish(small).map(drop) } else { Err(bad()) };
        }
        let mut loan = publisher.loan_slice(bytes)?;
        if self.share.bytes() != publisher.memory_bytes() {
            drop(loan);
            let growth = self.measure();
            if self.topic.room.lacks(0) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Alone;

    /// A port of a topic of bytes that comes in.
    fn port(room: &Arc<Room>, node: &Node, name: &str) -> Port {
        let (room, node, name) = (room.clone(), node.clone(), name.to_owned());
        let (of, attributes) = (PayloadType::of::<[u8]>(), BTreeMap::new());
        Port::open(Topic { room, node, name, of, attributes, depth: 8 }).expect("a port")
    }

    #[test]
    fn each_publisher_that_comes_in_has_publisher_bytes_for_itself() {
        const MOST: u64 = 1 << 20;
        let alone = Alone::new("publisher-bytes");
        let publish = |port: &mut Port, bytes| {
            let done = port.publish(bytes, |to| {
                to.fill(7);
                true
            });
            done.map_err(|e| e.kind())
        };
        let (far, wide) = (alone.node("far"), MOST as usize * 3 / 4);
        let shared = alone.bridge_with(&format!("[limits]\npublisher_bytes = {MOST}\n"));
        // Two of one topic, and one of another: more than publisher_bytes together.
        let mut ports = [
            port(&shared.room, &shared.node, "/map"),
            port(&shared.room, &far, "/map"),
            port(&shared.room, &shared.node, "/image"),
        ];
        for port in &mut ports {
            assert_eq!(publish(port, wide), Ok(()));
            assert_eq!(publish(port, MOST as usize + 1), Err(ErrorKind::OutOfMemory));
            // As many as its ring has room for, and more.
            for _ in 0..20 {
                let done = publish(port, wide / 8);
                assert!(matches!(done, Ok(()) | Err(ErrorKind::OutOfMemory)), "{done:?}");
                let taken = port.publisher.as_ref().map_or(0, Publisher::memory_bytes);
                assert!(taken <= MOST + HEAD_BYTES, "{taken} bytes");
            }
        }
        let all: u64 = ports.iter().map(|port| port.share.bytes()).sum();
        assert!(all > 2 * MOST, "{all} bytes");
    }
}
