//! A subscriber as a member of a wait, and behind a descriptor of its own.
#![allow(unsafe_code)]

use std::os::fd::BorrowedFd;

use super::{Event, Reader, glance};
use crate::sync::Ordering::Acquire;
use crate::topic::membership::Ports;
use crate::topic::subscriber::sources::source::Source;
use crate::wait::member::{Look, Member, Overslept, Plan, Seat};
use crate::wait::wake::call;
use crate::wait::wake::handshake::Request;
use crate::{Error, Result};

impl Reader {
    fn request(&self) -> Request<'_> {
        call::request(self.own.view())
    }

    /// A descriptor that is readable unless the last call that receives found nothing.
    ///
    /// # Errors
    /// `NoSpace`, or `Io` when the process is out of descriptors.
    pub(crate) fn fd(&mut self) -> Result<BorrowedFd<'_>> {
        self.topic().node.tend()?;
        self.alone.fd(&self.pulse.topic().node)
    }

    /// Nothing was found: with a descriptor, makes it quiet. `true` when there is something now;
    /// the descriptor stays readable then, and once for events that nobody has looked at.
    #[inline]
    pub(crate) fn rest(&mut self) -> bool {
        self.alone.has_fd() && self.rest_with_fd()
    }

    /// A call that receives failed: as `Alone::failed`.
    #[cold]
    pub(crate) fn failed(&mut self, why: &Error) {
        self.alone.failed(why);
    }

    /// # Crash safety
    /// **Strict.** Dying here leaves a raised flag: the next call finds nobody.
    #[cold]
    fn rest_with_fd(&mut self) -> bool {
        let Some(mut bridge) = self.alone.take_bridge() else { return false };
        let peers = self.sources.all().iter().filter_map(Source::peer);
        // Nobody calls when it is time to look again.
        let hasty = self.known.has_lack();
        let found =
            bridge.rest(&self.topic().node, self.request(), peers, hasty, || self.is_quiet());
        let news = self.news.is_untold();
        if news {
            self.news.tell();
        }
        // Who only waits for the descriptor comes back for the next tries, not for ever.
        let again = self.known.has_early_retry();
        if found || news || again {
            bridge.trip();
        }
        self.alone.give_back(bridge);
        found
    }

    /// Whether a wait ends for events; `events` were seen before it.
    #[cold]
    pub(crate) fn tells_news(&mut self, events: u64) -> bool {
        self.news.end_wait(events, |event| !matches!(event, Event::PublisherJoined(_)))
    }
}

impl Reader {
    /// As `is_ready`, looking at everything.
    #[inline(never)]
    fn look_fully(&mut self) -> bool {
        let before = glance::upheavals();
        loop {
            if self.news.is_untold() || self.sources.all().iter().any(|s| s.sleep_word().is_none())
            {
                return true;
            }
            match if self.is_cut() { self.attend() } else { self.attend_if_needed() } {
                Ok(true) => {}
                Ok(false) if self.news.is_untold() || self.known.has_trouble() => return true,
                Ok(false) => {
                    self.glance_next(before);
                    return false;
                }
                // The next call that receives says what is wrong.
                Err(_) => return true,
            }
        }
    }

    /// A full look found nothing: has the next one be a glance, where that can tell.
    fn glance_next(&mut self, before: u32) {
        let source = match self.sources.all() {
            _ if !self.is_steady() => return,
            [] => None,
            [source] => {
                let (Some((word, empty)), Some(peer)) = (source.empty_word(), source.peer()) else {
                    return;
                };
                Some((word, empty, peer.token()))
            }
            _ => return,
        };
        let bell = (self.pulse.topic().epoch(Ports::Publishers), self.known.seen_epoch());
        // SAFETY: `self.pulse` keeps the bell for as long as `self` lives; the source keeps its
        // ring and its peer, and `detach` forgets them before it lets the source go.
        unsafe { self.glance.remember(source, bell, before) };
    }
}

impl Member for Reader {
    #[inline]
    fn is_ready(&mut self, look: &mut Look) -> bool {
        let ready = !self.glance.is_idle() && self.look_fully();
        if self.known.has_lack() {
            look.due(self.known.next_look());
        }
        ready
    }

    fn told(&mut self) {
        self.news.tell();
    }

    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool {
        for source in self.sources.all() {
            let Some((word, seen)) = source.sleep_word() else { return false };
            plan.word(word, seen);
            let Some(peer) = source.peer() else { return false };
            if source.poisoned().is_some() || !plan.life(peer) {
                return false;
            }
        }
        plan.bell(self.topic().bell_word(Ports::Publishers), self.known.seen_epoch() as u32);
        self.topic().epoch(Ports::Publishers).load(Acquire) == self.known.seen_epoch()
    }

    fn seat(&self) -> Option<Seat<'_>> {
        Some(Seat { request: self.request(), node: &self.topic().node })
    }

    fn awake(&mut self) {
        self.alone.awake();
    }

    fn overslept(&mut self, how: Overslept) -> bool {
        let gone = self.sources.all().iter().any(|s| s.proof_of_death().is_some());
        gone || (how == Overslept::Look && self.look_again().is_err()) || !self.is_quiet()
    }
}
