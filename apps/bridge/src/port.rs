//! What comes from elsewhere, within what the file lets that take of the RAM disk; and a publisher
//! of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use outlive::queue::{BOUND_BYTES_DEFAULT, ProducerId};
use outlive::{Client, Producer, Server};
use outlive::{Encoding, Error, ErrorKind, Node, PayloadType, Publisher};

use crate::config::Limits;
use crate::shared::Shared;
use crate::stop::Stop;

/// Payloads up to here travel inside the ring, without a loan; values of a fixed size up to there.
const SMALL_BYTES: usize = 104;
const SMALL_VALUE_BYTES: usize = 1024;
/// What a message takes in a ring beside its payload, and what the rest of its file takes.
const ENTRY_HEAD_BYTES: usize = 24;
const HEAD_BYTES: u64 = 24 << 10;
/// Of a lane here at first, unless its messages need more.
pub(crate) const LANE_BYTES: u64 = 16 << 10;
/// How soon room that came is noticed, and a stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A lane: its queue, and who writes it.
pub(crate) type LaneName = (String, ProducerId);

/// Bytes by lane.
type LeftBehind = HashMap<LaneName, u64>;

/// Shared memory of all that comes in.
#[derive(Debug)]
pub(crate) struct Room {
    pub(crate) limits: Limits,
    /// By publishers and lanes that are there.
    taken: AtomicU64,
    /// By lanes that bridges have left, which are not drained yet.
    left_behind: Mutex<LeftBehind>,
    growing: Mutex<()>,
    waiting: AtomicU64,
}

impl Room {
    pub(crate) fn new(limits: Limits) -> Self {
        let (taken, waiting) = Default::default();
        let (left_behind, growing) = (Mutex::default(), Mutex::default());
        Self { limits, taken, left_behind, growing, waiting }
    }

    fn in_use(&self) -> u64 {
        // In this order: what is left behind meanwhile counts twice rather than not at all.
        let taken = self.taken.load(Relaxed);
        taken + self.left_behind().values().sum::<u64>()
    }

    fn left_behind(&self) -> MutexGuard<'_, LeftBehind> {
        self.left_behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether so many bytes more are too many.
    pub(crate) fn lacks(&self, bytes: u64) -> bool {
        self.in_use().saturating_add(bytes) > self.limits.total_bytes
    }

    pub(crate) fn left(&self) -> u64 {
        self.limits.total_bytes.saturating_sub(self.in_use())
    }

    /// Bound of a lane, where there is room.
    pub(crate) fn lane_bytes(&self) -> u64 {
        BOUND_BYTES_DEFAULT.min(self.limits.publisher_bytes).min(self.limits.total_bytes)
    }

    /// The lanes that are known to be left behind, for [`Room::found`].
    pub(crate) fn known(&self) -> HashSet<LaneName> {
        self.left_behind().keys().cloned().collect()
    }

    /// A look at the domain, begun after `known` was taken, has found these lanes of bridges; with
    /// their bytes, where their bridge has left them. A lane that was left during the look may
    /// have been seen as it was before.
    pub(crate) fn found(&self, known: &HashSet<LaneName>, lanes: HashMap<LaneName, Option<u64>>) {
        let mut left_behind = self.left_behind();
        left_behind.retain(|lane, _| lanes.contains_key(lane) || !known.contains(lane));
        let left = lanes.into_iter().filter_map(|(lane, bytes)| Some((lane, bytes?)));
        left_behind.extend(left);
    }

    /// One lane grows at a time: what is left is there for each of them.
    fn growing(&self) -> MutexGuard<'_, ()> {
        self.growing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many queues and services wait for room.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Relaxed)
    }
}

/// Somebody's part of the room; given back with it.
#[derive(Debug)]
pub(crate) struct Share {
    room: Arc<Room>,
    taken: u64,
}

impl Share {
    pub(crate) fn new(room: &Arc<Room>) -> Self {
        Self { room: room.clone(), taken: 0 }
    }

    /// Waits for room for a lane of so many bytes; none when `what` is to end.
    pub(crate) fn of_lane(shared: &Shared, what: &str, bytes: u64, stop: &Stop) -> Option<Self> {
        let mut waits = None;
        while stop.goes_on() {
            {
                let _growing = shared.room.growing();
                if !shared.room.lacks(bytes) {
                    let mut share = Self::new(&shared.room);
                    share.set(bytes);
                    return Some(share);
                }
            }
            waits.get_or_insert_with(|| Waits::new(shared, what));
            thread::sleep(LOOK_EVERY);
        }
        None
    }

    /// Calls `put` while these lanes may grow as far as there is room, up to `most` bytes; also
    /// says whether that was less than `most`.
    pub(crate) fn within<L: Lanes, R>(
        &mut self,
        lanes: &mut L,
        most: u64,
        put: impl FnOnce(&mut L) -> R,
    ) -> (R, bool) {
        let room = self.room.clone();
        let _growing = room.growing();
        let may = lanes.memory_bytes() + room.left();
        lanes.set_bound_bytes(may.min(most));
        let done = put(lanes);
        self.set(lanes.memory_bytes());
        // The rest may be taken by others meanwhile.
        lanes.set_bound_bytes(lanes.memory_bytes());
        (done, may < most)
    }

    /// What it takes stays in that lane, until a look at the domain says otherwise.
    pub(crate) fn leave_behind(&mut self, lane: LaneName) {
        self.room.left_behind().insert(lane, self.taken);
        self.set(0);
    }

    /// Takes so many bytes in all now; by how much that is more than before.
    pub(crate) fn set(&mut self, now: u64) -> u64 {
        let before = std::mem::replace(&mut self.taken, now);
        self.room.taken.fetch_add(now.wrapping_sub(before), Relaxed);
        now.saturating_sub(before)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Lanes here, whose messages come from elsewhere.
pub(crate) trait Lanes {
    fn memory_bytes(&self) -> u64;
    fn set_bound_bytes(&mut self, bytes: u64);
}

impl Lanes for Producer<[u8]> {
    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }

    fn set_bound_bytes(&mut self, bytes: u64) {
        self.set_bound_bytes(bytes);
    }
}

impl Lanes for Client<[u8], [u8]> {
    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }

    fn set_bound_bytes(&mut self, bytes: u64) {
        self.set_bound_bytes(bytes);
    }
}

impl Lanes for Server<[u8], [u8]> {
    fn memory_bytes(&self) -> u64 {
        self.memory_bytes()
    }

    fn set_bound_bytes(&mut self, bytes: u64) {
        self.set_memory_bytes_max(bytes);
    }
}

/// Counts as one that waits for room.
#[derive(Debug)]
pub(crate) struct Waits(Arc<Room>);

impl Waits {
    /// Says so of `what`.
    pub(crate) fn new(shared: &Shared, what: &str) -> Self {
        let total = shared.room.limits.total_bytes;
        shared.say_failed(format_args!(
            "{what} is not carried until there is room: what comes in takes all of total_bytes = \
             {total} in [limits]; raise it, or receive what waits in the queues"
        ));
        shared.room.waiting.fetch_add(1, Relaxed);
        Self(shared.room.clone())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
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
        let share = Share::new(&topic.shared.room);
        let mut port = Self { topic, publisher: None, share, small: Vec::new(), refused: None };
        port.reopen()?;
        Ok(port)
    }

    fn reopen(&mut self) -> Result<(), Error> {
        let Topic { shared, node, name, of, attributes, depth } = &self.topic;
        let limits = shared.room.limits;
        let entry_bytes = (small_bytes(of) + ENTRY_HEAD_BYTES).next_multiple_of(64) as u64;
        let deepest = (limits.publisher_bytes / entry_bytes).clamp(1, limits.depth);
        let depth = (*depth).clamp(1, prev_power_of_two(deepest));
        if shared.room.lacks(depth.next_power_of_two() * entry_bytes + HEAD_BYTES) {
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
        let over = |(least, growth)| bytes >= least && self.topic.shared.room.lacks(growth);
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
        if self.share.taken != publisher.memory_bytes() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Alone;

    /// A port of a topic of bytes that comes in.
    fn port(shared: &Arc<Shared>, node: &Node, name: &str) -> Port {
        let (shared, node, name) = (shared.clone(), node.clone(), name.to_owned());
        let (of, attributes) = (PayloadType::of::<[u8]>(), BTreeMap::new());
        Port::open(Topic { shared, node, name, of, attributes, depth: 8 }).expect("a port")
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
            port(&shared, &shared.node, "/map"),
            port(&shared, &far, "/map"),
            port(&shared, &shared.node, "/image"),
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
        let all: u64 = ports.iter().map(|port| port.share.taken).sum();
        assert!(all > 2 * MOST, "{all} bytes");
    }

    fn limits(total_bytes: u64) -> Limits {
        Limits { depth: 1, publisher_bytes: total_bytes, total_bytes }
    }

    fn lane(port: u64) -> LaneName {
        let node = outlive::NodeId::from_raw(1);
        ("/q".to_owned(), ProducerId { node, port })
    }

    /// A share of so many bytes.
    fn share(room: &Arc<Room>, bytes: u64) -> Share {
        let mut share = Share::new(room);
        share.set(bytes);
        share
    }

    #[test]
    fn a_lane_left_during_a_look_keeps_its_bytes() {
        let room = Arc::new(Room::new(limits(100)));
        let (mut first, mut second) = (share(&room, 40), share(&room, 30));
        first.leave_behind(lane(1));
        let known = room.known();
        // Listed while it was alive, and not at all.
        second.leave_behind(lane(2));
        room.found(&known, HashMap::from([(lane(1), Some(40)), (lane(2), None)]));
        assert_eq!(room.left(), 30);
        room.found(&known, HashMap::from([(lane(1), Some(40))]));
        assert_eq!(room.left(), 30);
        // The next look knows both: the one is smaller now, the other drained.
        let known = room.known();
        room.found(&known, HashMap::from([(lane(1), Some(10))]));
        assert_eq!(room.left(), 90);
    }
}
