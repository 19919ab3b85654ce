//! The consumer asleep, alone or as one of several members of a wait.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::reader::{Event, Lane, Reader};
use crate::Result;
use crate::node::peer::Peer;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::{AtomicU32, fault};
use crate::wait::member::{Member, Plan, Seat};
use crate::wait::wake::bridge::Bridge;

impl Lane {
    /// The header that the next commit changes, and its value; `None` when there is something to
    /// do.
    fn sleep_word(&self) -> Option<(&AtomicU32, u32)> {
        let word = self.segment.ring().peek(self.head.at());
        let quiet = self.head.is_empty(word) && !self.segment.is_closed();
        quiet.then(|| (self.segment.header_half(self.head.at()), word as u32))
    }

    /// A truncated file reads as empty for ever: nothing else would tell.
    fn is_cut(&self) -> bool {
        self.segment.is_poisoned()
    }
}

impl Reader {
    /// Sleeps until there is something to do, at most until `deadline`.
    ///
    /// # Crash safety
    /// **Strict.** As that of a wait set, of which we are the only member.
    pub(crate) fn sleep(&mut self, deadline: u64) -> Result<()> {
        let until = deadline.min(self.due());
        let mut set = self.set.take().unwrap_or_default();
        let slept = set.sleep(&mut [self], until);
        self.set = Some(set);
        slept
    }

    /// A descriptor that is readable unless the last call that receives found nothing.
    ///
    /// # Errors
    /// `NoSpace`, or `Io` when the process is out of descriptors.
    pub(crate) fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.queue.node.tend()?;
        let bridge = match self.bridge.take() {
            Some(bridge) => bridge,
            None => Box::new(Bridge::of_one(&self.queue.node)?),
        };
        Ok(self.bridge.insert(bridge).fd())
    }

    /// Nothing was found: with a descriptor, makes it quiet. `true` when there is something now;
    /// the descriptor stays readable then, and once for events that nobody has looked at.
    ///
    /// # Crash safety
    /// **Strict.** Dying here leaves a raised flag: the next call finds nobody.
    #[cold]
    pub(crate) fn rest(&mut self) -> bool {
        self.rest_also(None, false)
    }

    /// As `rest`; the death of `also` is news too. `hasty`: so is the time, every 2 ms.
    ///
    /// # Crash safety
    /// **Strict.** As `rest`.
    #[cold]
    pub(crate) fn rest_also(&mut self, also: Option<&Arc<Peer>>, hasty: bool) -> bool {
        let Some(mut bridge) = self.bridge.take() else { return false };
        let peers = self.lanes.iter().filter_map(|lane| lane.peer.as_ref().ok()).chain(also);
        // Nobody calls when a message that is held back has its turn.
        let hasty = hasty || self.due() != u64::MAX;
        let request = self.table.request();
        let found = bridge.rest(&self.queue.node, request, peers, hasty, || self.is_quiet());
        let news = self.has_news();
        if news {
            self.told();
        }
        if found || news {
            bridge.trip();
        }
        self.bridge = Some(bridge);
        found
    }

    fn is_quiet(&self) -> bool {
        let quiet = |lane: &Lane| self.holds_back(lane) || lane.sleep_word().is_some();
        self.queue.epoch().load(Acquire) == self.seen_epoch
            && self.lanes.iter().all(|lane| quiet(lane) && !lane.is_cut())
    }

    fn has_news(&self) -> bool {
        self.events_seen != self.events_told && !self.events.is_empty()
    }

    /// Whether a wait ends for events: some came since `events` were seen, or there is an end that
    /// nobody has looked at, which no other wait ends for then.
    #[cold]
    pub(crate) fn tells_news(&mut self, events: u64) -> bool {
        if self.events_seen != events {
            return true;
        }
        let ends = |event: &Event| !matches!(event, Event::ProducerJoined(_));
        let untold = self.has_news() && self.events.iter().any(ends);
        if untold && !fault("events.only_new") {
            self.told();
            return true;
        }
        false
    }

    /// A message shows, and is held back until its turn.
    fn holds_back(&self, lane: &Lane) -> bool {
        self.order.is_some() && lane.head.items() > 0
    }
}

impl Member for Reader {
    fn is_ready(&mut self, _now: u64) -> bool {
        // What is wrong, the next call that receives says.
        self.has_news() || self.next_slow().unwrap_or(true) || self.has_news() || self.has_trouble()
    }

    fn told(&mut self) {
        self.events_told = self.events_seen;
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        for lane in &self.lanes {
            if !self.holds_back(lane) {
                let Some((word, seen)) = lane.sleep_word() else { return false };
                plan.word(word, seen);
            }
            let Ok(peer) = &lane.peer else { return false };
            if lane.is_cut() || !plan.life(peer) {
                return false;
            }
        }
        plan.bell(self.queue.bell_word(), self.seen_epoch as u32);
        self.queue.epoch().load(Acquire) == self.seen_epoch
    }

    fn seat(&self) -> Option<Seat<'_>> {
        Some(Seat { request: self.table.request(), node: &self.queue.node })
    }

    fn awake(&mut self) {
        // While it was lowered nobody called the descriptor.
        if let Some(bridge) = &self.bridge {
            bridge.trip();
        }
    }

    fn overslept(&mut self) -> bool {
        // A token that the kernel could not mark says alive for ever, and somebody may have
        // scribbled over the bell.
        let gone = self.lanes.iter().any(|lane| lane.proof_of_death().is_some());
        let quiet = self.queue.epoch().load(Relaxed) == self.seen_epoch
            && self.lanes.iter().all(|lane| lane.sleep_word().is_some());
        gone || self.look().is_err() || !quiet
    }

    fn due(&self) -> u64 {
        let held_back = self.order.and_then(|order| order.due_ns);
        held_back.unwrap_or(u64::MAX).min(self.next_try_ns())
    }
}
