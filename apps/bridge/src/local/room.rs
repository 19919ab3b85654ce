//! The shared memory that what comes from elsewhere may take of the RAM disk, as the file says; who
//! has which part of it, and who waits for room.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use outlive::queue::{BOUND_BYTES_DEFAULT, ProducerId};
use outlive::{Client, Producer, Server};

use crate::config::Limits;
use crate::report::Failures;
use crate::work::Stop;

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
    failures: Arc<Failures>,
    /// By publishers and lanes that are there.
    taken: AtomicU64,
    /// By lanes that bridges have left, which are not drained yet.
    left_behind: Mutex<LeftBehind>,
    growing: Mutex<()>,
    waiting: AtomicU64,
}

impl Room {
    pub(crate) fn new(limits: Limits, failures: Arc<Failures>) -> Self {
        let (taken, waiting) = Default::default();
        let (left_behind, growing) = (Mutex::default(), Mutex::default());
        Self { limits, failures, taken, left_behind, growing, waiting }
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
    pub(crate) fn of_lane(room: &Arc<Room>, what: &str, bytes: u64, stop: &Stop) -> Option<Self> {
        let mut waits = None;
        while stop.goes_on() {
            {
                let _growing = room.growing();
                if !room.lacks(bytes) {
                    let mut share = Self::new(room);
                    share.set(bytes);
                    return Some(share);
                }
            }
            waits.get_or_insert_with(|| Waits::new(room, what));
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

    /// How many bytes it takes.
    pub(crate) fn bytes(&self) -> u64 {
        self.taken
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
    pub(crate) fn new(room: &Arc<Room>, what: &str) -> Self {
        let total = room.limits.total_bytes;
        room.failures.say(format_args!(
            "{what} is not carried until there is room: what comes in takes all of total_bytes = \
             {total} in [limits]; raise it, or receive what waits in the queues"
        ));
        room.waiting.fetch_add(1, Relaxed);
        Self(room.clone())
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let room = Arc::new(Room::new(limits(100), Arc::default()));
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
