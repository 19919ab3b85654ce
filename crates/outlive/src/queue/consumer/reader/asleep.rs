//! The consumer asleep, alone or as one of several members of a wait.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::Reader;
use crate::node::peer::Peer;
use crate::os::sleep::slice::slice_ns_max;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::queue::consumer::lanes::Lane;
use crate::queue::event::Event;
use crate::sync::Ordering::{Acquire, Relaxed};
use crate::sync::fault;
use crate::wait::alone::Alone;
use crate::wait::member::{Look, Member, Overslept, Plan, Seat};
use crate::{Error, Result};

impl Reader {
    /// Sleeps until there is something to do, at most until `deadline`.
    ///
    /// # Crash safety
    /// **Strict.** As that of a wait set, of which we are the only member.
    pub(crate) fn sleep(&mut self, deadline: Deadline) -> Result<()> {
        let until = deadline.min(self.due());
        Alone::sleep(self, |reader| &mut reader.alone, until)
    }

    /// A descriptor that is readable unless the last call that receives found nothing.
    ///
    /// # Errors
    /// `NoSpace`, or `Io` when the process is out of descriptors.
    pub(crate) fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.queue.node.tend()?;
        self.alone.fd(&self.queue.node)
    }

    /// Whether somebody waits for its descriptor.
    pub(crate) fn has_fd(&self) -> bool {
        self.alone.has_fd()
    }

    /// A call that receives failed: as `Alone::failed`.
    #[cold]
    pub(crate) fn failed(&mut self, why: &Error) {
        self.alone.failed(why);
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
        let Some(mut bridge) = self.alone.take_bridge() else { return false };
        let open = self.lanes.iter().filter(|lane| !self.holds_back(lane));
        let peers = open.filter_map(Lane::peer).chain(also);
        // Nobody calls when a message that is held back has its turn.
        let hasty = hasty || !self.due().is_never();
        let request = self.lanes.table().request();
        let mut found = bridge.rest(&self.queue.node, request, peers, hasty, || self.is_quiet());
        let now = clock::now_ns();
        if now >= self.ask_ns {
            self.ask_ns = now + slice_ns_max();
            found |= self.finds_dead();
        }
        let news = self.news.is_untold();
        if news {
            self.news.tell();
        }
        if found || news {
            bridge.trip();
        }
        self.alone.give_back(bridge);
        found
    }

    /// Whether the lock of a producer that is read says that it is dead. A token that the kernel
    /// could not mark says alive for ever.
    fn finds_dead(&self) -> bool {
        let mut open = self.lanes.iter().filter(|lane| !self.holds_back(lane));
        open.any(|lane| lane.proof_of_death().is_some())
    }

    fn is_quiet(&self) -> bool {
        let quiet = |lane: &Lane| self.holds_back(lane) || lane.sleep_word().is_some();
        self.queue.epoch().load(Acquire) == self.later.seen_epoch()
            && self.lanes.iter().all(|lane| quiet(lane) && !lane.is_cut())
    }

    /// Whether a wait ends for events; `events` were seen before it.
    #[cold]
    pub(crate) fn tells_news(&mut self, events: u64) -> bool {
        self.news.end_wait(events, |event| !matches!(event, Event::ProducerJoined(_)))
    }

    /// When a message that is held back, or a look that failed, has its turn.
    pub(crate) fn due(&self) -> Deadline {
        let held_back = self.order.and_then(|order| order.due_ns());
        Deadline::at_ns(held_back.unwrap_or(u64::MAX).min(self.next_try_ns()))
    }

    /// A message shows, and is held back until its turn.
    fn holds_back(&self, lane: &Lane) -> bool {
        self.order.is_some() && lane.shows_message()
    }
}

impl Member for Reader {
    fn is_ready(&mut self, look: &mut Look) -> bool {
        // What is wrong, the next call that receives says.
        let ready = self.news.is_untold()
            || self.next_slow().unwrap_or(true)
            || self.news.is_untold()
            || self.later.has_trouble();
        look.due(self.due());
        ready
    }

    fn told(&mut self) {
        self.news.tell();
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        for lane in self.lanes.iter() {
            if lane.is_cut() {
                return false;
            }
            // It has its turn when it is due, whether its producer lives then or not.
            if self.holds_back(lane) && !fault("order.held_back_is_asked") {
                continue;
            }
            let Some((word, seen)) = lane.sleep_word() else { return false };
            plan.word(word, seen);
            let Some(peer) = lane.peer() else { return false };
            if !plan.life(peer) {
                return false;
            }
        }
        plan.bell(self.queue.bell_word(), self.later.seen_epoch() as u32);
        self.queue.epoch().load(Acquire) == self.later.seen_epoch()
    }

    fn seat(&self) -> Option<Seat<'_>> {
        Some(Seat { request: self.lanes.table().request(), node: &self.queue.node })
    }

    fn awake(&mut self) {
        self.alone.awake();
    }

    fn overslept(&mut self, how: Overslept) -> bool {
        let gone = self.finds_dead();
        // Somebody may have scribbled over the bell.
        let quiet = self.queue.epoch().load(Relaxed) == self.later.seen_epoch()
            && self.lanes.iter().all(|lane| self.holds_back(lane) || lane.sleep_word().is_some());
        gone || (how == Overslept::Look && self.look().is_err()) || !quiet
    }
}
