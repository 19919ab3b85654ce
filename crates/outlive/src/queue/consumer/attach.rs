//! The consumer and its lanes: taking the queue over, finding lanes, ending them.

use std::collections::HashMap;

use super::later::{Pause, is_lack};
use super::reader::{Event, Lane, Reader};
use crate::node::peer::death_of;
use crate::os::death::robust;
use crate::os::fs::file;
use crate::os::process::sched;
use crate::os::sleep::futex;
use crate::os::time::clock;
use crate::queue::lane::head::Head;
use crate::queue::lane::segment::{Segment, segment_path};
use crate::queue::membership::reclaim::is_absent;
use crate::queue::membership::table::{ProducerId, Table};
use crate::queue::membership::{Entry, Queue};
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::fault;
use crate::{Error, ErrorKind, Result, crash_point};

/// How long a new consumer waits for one that is just leaving, ns.
const LEAVING_NS_MAX: u64 = 100_000_000;
/// How long a new consumer waits for the last traces of a dead one, ns.
const DYING_NS_MAX: u64 = 10_000_000_000;

impl Reader {
    /// Looks at the queue's directory: attaches lanes that are new, ends those that are over.
    #[cold]
    pub(in crate::queue) fn look(&mut self) -> Result<()> {
        self.lay_down();
        let epoch = self.queue.epoch_seen();
        let mut present: HashMap<ProducerId, Vec<u32>> = HashMap::new();
        let entries = match self.queue.entries() {
            // Those that are attached can be read.
            Err(e) if is_lack(&e) && !fault("attach.one_fails_all") => {
                self.fail_look(e);
                self.seen_epoch = epoch;
                return Ok(());
            }
            entries => entries?,
        };
        for entry in entries {
            if let Entry::Lane { owner, segment } = entry {
                present.entry(owner).or_default().push(segment);
            }
        }
        let slots: Vec<_> = self.table.lanes().collect();
        for (slot, id) in &slots {
            if !present.contains_key(id) {
                // Ended by us or a predecessor, who died before it freed the slot; or by a producer
                // that found no room, while we did not look.
                self.lose_lane(*id);
                self.table.forget(*slot);
            }
        }
        let mut ids: Vec<_> = present.keys().copied().collect();
        ids.sort();
        for id in ids {
            if !self.producers().any(|known| known == id) {
                let slot = slots.iter().find(|(_, lane)| *lane == id).map(|(slot, _)| *slot);
                match self.attach(id, slot, &present[&id]) {
                    Err(e) if fault("attach.one_fails_all") => return Err(e),
                    // The others can be read.
                    Err(e) => self.fail_look(e),
                    Ok(()) => {}
                }
            }
        }
        self.seen_epoch = epoch;
        Ok(())
    }

    /// A lane whose files are gone.
    fn lose_lane(&mut self, id: ProducerId) {
        let found = [&mut self.lanes, &mut self.later.lanes].into_iter().find_map(|lanes| {
            let i = lanes.iter().position(|lane| lane.id == id)?;
            Some(lanes.remove(i))
        });
        if let Some(lane) = found {
            self.event(match lane.proof_of_death().is_some() {
                true => Event::ProducerDied(id),
                false => Event::ProducerLeft(id),
            });
        }
    }

    /// Begins or goes on to read a lane.
    fn attach(&mut self, id: ProducerId, slot: Option<usize>, segments: &[u32]) -> Result<()> {
        let domain = self.queue.node.domain();
        let peer = self.queue.node.life(id.node)?;
        let gone = death_of(&peer).is_some();
        if slot.is_none() && gone && !segments.contains(&0) {
            // A cleaner died half-way through a lane that nobody was to read.
            return self.end_lane(id, None);
        }
        let slot = match slot {
            Some(slot) => slot,
            None => match self.table.admit(id) {
                Ok(slot) => slot,
                // It waits until a slot is free; the bell rings then.
                Err(e) if e.kind() == ErrorKind::TooManyMembers => {
                    self.left_out = true;
                    return Ok(());
                }
                Err(e) => return Err(e),
            },
        };
        crash_point!("queue.attach.admitted");
        let Some((at, done)) = self.table.place(slot).take_over() else {
            // Refused by a predecessor; it goes with its producer.
            return if gone { self.end_lane(id, Some(slot)) } else { Ok(()) };
        };
        for &old in segments.iter().filter(|s| **s < at.segment) {
            file::unlink(&segment_path(&self.queue.dir, id, old))?;
        }
        let segment = match Segment::open(&self.queue.dir, id, at.segment, domain) {
            Ok(segment) if at.offset % self.shape.unit == 0 => segment,
            Err(e) if e.kind() == ErrorKind::NotFound && (gone || !self.has_files(id)?) => {
                return self.end_lane(id, Some(slot));
            }
            bad => {
                let why = match bad {
                    Err(e) if is_absent(&e) => e.to_string(),
                    Err(e) => return Err(e),
                    Ok(_) => "its position is out of range: restart that producer".into(),
                };
                self.table.place(slot).refuse();
                self.event(Event::ProducerCorrupt { producer: id, why });
                return Ok(());
            }
        };
        let look_at = at.offset + segment.capacity() / 4;
        let received = self.table.received(slot).load(Relaxed);
        let head = Head::new(at, done);
        let pause = Pause::default();
        self.lanes.push(Lane { head, segment, slot, id, peer, look_at, received, pause });
        self.event(Event::ProducerJoined(id));
        Ok(())
    }

    /// Whether a lane has a file by now.
    fn has_files(&self, id: ProducerId) -> Result<bool> {
        let of_lane = |e: &Entry| matches!(e, Entry::Lane { owner, .. } if *owner == id);
        Ok(self.queue.entries()?.iter().any(of_lane))
    }

    /// Removes a drained lane: its files, then its slot.
    ///
    /// # Crash safety
    /// **Strict.** Commit point: the freeing of the slot. Dying before it, the successor finds a
    /// slot whose files are gone or drained, and ends it again.
    pub(in crate::queue) fn end_lane(&self, id: ProducerId, slot: Option<usize>) -> Result<()> {
        self.queue.unlink_lane(id)?;
        crash_point!("queue.lane.unlinked");
        if let Some(slot) = slot {
            self.table.forget(slot);
        }
        Ok(())
    }

    /// A slot is free: lanes that were left out for lack of one can be admitted.
    pub(in crate::queue) fn look_again(&mut self) {
        if std::mem::take(&mut self.left_out) {
            self.seen_epoch = u64::MAX;
        }
    }

    /// Stops reading the lane whose message is in hand.
    #[cold]
    pub(crate) fn refuse_in_hand(&mut self, what: &str) {
        if self.turn < self.lanes.len() {
            self.refuse(self.turn, format!("{what} is out of range: restart that producer"));
        }
    }

    /// Stops reading lane `i`.
    pub(in crate::queue) fn refuse(&mut self, i: usize, why: String) {
        self.lay_down();
        let lane = self.lanes.remove(i);
        let producer = lane.id;
        self.table.place(lane.slot).refuse();
        futex::wake(futex::low_half(self.table.place(lane.slot).word()), i32::MAX);
        self.event(Event::ProducerCorrupt { producer, why });
    }
}

/// Opens `consumer` and takes its lock.
pub(in crate::queue) fn lock_table(queue: &Queue) -> Result<Table> {
    let domain = queue.node.domain();
    let start = clock::now_ns();
    let mut pause_ns = 50_000;
    loop {
        let table = Table::open(&queue.dir, domain, true)?;
        if table.try_lock()? {
            return Ok(table);
        }
        // Held: by one that lives, or one whose death the file lock has not seen yet.
        let owner = table.owner();
        let peer = owner.node().and_then(|node| queue.node.peer(node).ok());
        let lives = peer.as_ref().is_some_and(|peer| peer.hint().is_alive());
        let dies = peer.as_ref().is_some_and(|p| robust::has_died(p.token().load(Acquire)));
        let now = clock::now_ns();
        let until = start + if dies { DYING_NS_MAX } else { LEAVING_NS_MAX };
        if lives || now >= until {
            return Err(exists(queue, peer.as_ref().map(|p| p.id().get())));
        }
        sched::sleep_until(now + pause_ns);
        pause_ns = (pause_ns * 2).min(2_000_000);
    }
}

#[cold]
fn exists(queue: &Queue, node: Option<u64>) -> Error {
    let who = node.map_or_else(|| "another process".into(), |n| format!("node {n}"));
    Error::new(
        ErrorKind::ConsumerExists,
        "consuming queue",
        queue.name.as_str(),
        format!("{who} consumes it: end that one first, or use another queue"),
    )
}
