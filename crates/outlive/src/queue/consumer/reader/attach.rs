//! Finding lanes, ending them, and putting off what cannot be done now.

use std::collections::HashMap;

use super::Reader;
use crate::node::peer::death_of;
use crate::os::time::clock;
use crate::queue::consumer::lanes::Lane;
use crate::queue::event::Event;
use crate::queue::lane::ProducerId;
use crate::queue::lane::head::Head;
use crate::queue::lane::segment::segment_path;
use crate::queue::membership::entry::Entry;
use crate::sync::Ordering::Relaxed;
use crate::sync::fault;
use crate::{Error, ErrorKind, Result, crash_point};

impl Reader {
    /// Looks at the queue's directory: attaches lanes that are new, ends those that are over.
    #[cold]
    pub(super) fn look(&mut self) -> Result<()> {
        self.lay_down();
        let epoch = self.queue.epoch_seen();
        let mut present: HashMap<ProducerId, Vec<u32>> = HashMap::new();
        let entries = match self.queue.entries() {
            // Those that are attached can be read.
            Err(e) if e.is_lack() && !fault("attach.one_fails_all") => {
                self.later.fail_look(e);
                self.later.looked(epoch, false);
                return Ok(());
            }
            entries => entries?,
        };
        if let Err(e) = self.queue.node.must_be_listed()
            && !fault("lane.namesake")
        {
            self.later.fail_look(e);
            self.later.looked(epoch, false);
            return Ok(());
        }
        for entry in entries {
            if let Entry::Lane { owner, segment } = entry {
                present.entry(owner).or_default().push(segment);
            }
        }
        let slots: Vec<_> = self.lanes.table().lanes().collect();
        for (slot, id) in &slots {
            if !present.contains_key(id) {
                // Ended by us or a predecessor, who died before it freed the slot; or by a producer
                // that found no room, while we did not look.
                self.lose_lane(*id);
                self.lanes.table().forget(*slot);
            }
        }
        let mut ids: Vec<_> = present.keys().copied().collect();
        ids.sort();
        let mut all = true;
        for id in ids {
            if !self.producers().any(|known| known == id) {
                let slot = slots.iter().find(|(_, lane)| *lane == id).map(|(slot, _)| *slot);
                match self.attach(id, slot, &present[&id]) {
                    Err(e) if fault("attach.one_fails_all") => return Err(e),
                    // The others can be read.
                    Err(e) => {
                        all = false;
                        self.later.fail_look(e);
                    }
                    Ok(()) => {}
                }
            }
        }
        self.later.looked(epoch, all);
        Ok(())
    }

    /// A lane whose files are gone.
    fn lose_lane(&mut self, id: ProducerId) {
        if let Some(lane) = self.lanes.take_out(id) {
            let death = lane.proof_of_death();
            self.news.push(match death {
                Some(_) if fault("lost_lane.left_is_death") => Event::ProducerDied(id),
                // Of a living one that found no room only the files are gone.
                death => lane.departure(death).unwrap_or(Event::ProducerLeft(id)),
            });
        }
    }

    /// Begins or goes on to read a lane.
    fn attach(&mut self, id: ProducerId, slot: Option<usize>, segments: &[u32]) -> Result<()> {
        let peer = self.queue.node.life(id.node)?;
        let gone = death_of(&peer).is_some();
        if slot.is_none() && gone && !segments.contains(&0) {
            // A cleaner died half-way through a lane that nobody was to read.
            return self.end_lane(id, None);
        }
        let slot = match slot {
            Some(slot) => slot,
            None => match self.lanes.table().admit(id) {
                Ok(slot) => slot,
                // It waits until a slot is free; the bell rings then.
                Err(e) if e.kind() == ErrorKind::TooManyMembers => {
                    self.later.leave_out();
                    return Ok(());
                }
                Err(e) => return Err(e),
            },
        };
        crash_point!("queue.attach.admitted");
        let Some((at, done)) = self.lanes.table().place(slot).take_over() else {
            // Refused, by us or a predecessor; it goes with its producer.
            let newest = segments.iter().max().copied().unwrap_or(0);
            let over = gone
                || match self.queue.open_segment(id, newest) {
                    Ok(segment) => segment.is_closed(),
                    // It is looked at again.
                    Err(e) if e.is_lack() => return Err(e),
                    Err(_) => false,
                };
            return if over { self.end_lane(id, Some(slot)) } else { Ok(()) };
        };
        for &old in segments.iter().filter(|s| **s < at.segment) {
            let path = segment_path(&self.queue.dir, id, old);
            if let Err(e) = self.queue.unlink(&path) {
                if fault("attach.needs_unlink") {
                    return Err(e);
                }
                // Nobody reads it: what comes behind it does not wait for that.
                self.later.keep(path);
            }
        }
        let segment = match self.queue.open_segment(id, at.segment) {
            Ok(segment) if at.offset % self.shape().unit == 0 => segment,
            Err(e) if e.kind() == ErrorKind::NotFound && (gone || !self.has_files(id)?) => {
                return self.end_lane(id, Some(slot));
            }
            bad => {
                let why = match bad {
                    Err(e) if e.is_absent() => e.to_string(),
                    Err(e) => return Err(e),
                    Ok(_) => "its position is out of range: restart that producer".into(),
                };
                self.lanes.table().place(slot).refuse();
                self.news.push(Event::ProducerCorrupt { producer: id, why });
                return Ok(());
            }
        };
        let received = self.lanes.table().received(slot).load(Relaxed);
        let head = Head::new(at, done);
        self.lanes.add(Lane::new(id, slot, head, segment, peer, received));
        self.news.push(Event::ProducerJoined(id));
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
    pub(super) fn end_lane(&self, id: ProducerId, slot: Option<usize>) -> Result<()> {
        self.queue.unlink_lane(id)?;
        crash_point!("queue.lane.unlinked");
        if let Some(slot) = slot {
            self.lanes.table().forget(slot);
        }
        Ok(())
    }

    /// Stops reading the lane whose message is in hand.
    #[cold]
    pub(crate) fn refuse_in_hand(&mut self, what: &str) {
        let turn = self.turn.lane();
        if turn < self.lanes.len() {
            self.refuse(turn, format!("{what} is out of range: restart that producer"));
        }
    }

    /// Stops reading lane `i`.
    pub(super) fn refuse(&mut self, i: usize, why: String) {
        self.lay_down();
        let producer = self.lanes.refuse(i);
        self.news.push(Event::ProducerCorrupt { producer, why });
    }

    /// The message in hand is put back, and its lane not read for a while.
    #[cold]
    pub(crate) fn put_off(&mut self) {
        let turn = self.turn.lane();
        if turn < self.lanes.len() {
            self.put_off_lane(turn);
        }
    }

    fn put_off_lane(&mut self, i: usize) {
        self.lay_down();
        self.lanes.put_off(i);
        self.turn.end();
    }

    /// Lane `i` cannot be read on now.
    #[cold]
    pub(super) fn fail_lane(&mut self, i: usize, why: Error) {
        self.put_off_lane(i);
        self.later.fail_lane(why);
    }

    /// Tries again what is due.
    pub(super) fn try_again(&mut self) {
        let now = clock::now_ns();
        self.later.try_again(now);
        if self.lanes.try_again(now) {
            self.later.lanes_are_tried();
        }
    }

    /// When that is; the end of time without any.
    #[inline]
    pub(super) fn next_try_ns(&self) -> u64 {
        self.later.next_look_ns().min(self.lanes.next_try_ns())
    }

    /// Whether a lane that is there, or may be, is not read for now.
    pub(crate) fn puts_off(&self) -> bool {
        self.next_try_ns() != u64::MAX
    }

    /// What failed since the last call, of one producer alone.
    pub(crate) fn trouble(&mut self) -> Option<Error> {
        self.later.take_trouble().inspect(|e| self.failed(e))
    }
}
