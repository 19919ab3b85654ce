//! How a history begins, and what it stays with.
//!
//! A defect of one object shows after a few given steps on it, by threads of several members that
//! have it open. Where members and ports come one by one in between, and each step picks among all
//! there is, those steps seldom follow each other. So most histories begin with a populated scene,
//! and prefer, more or less, who acted last and what they acted on.

use crate::history::step::{Handle, Step, Verb};
use crate::rng::Rng;

/// Objects that a history stays with.
const NEAR: usize = 4;

/// A thread of a member.
type Who = (usize, usize);

#[derive(Clone, Debug, Default)]
pub(super) struct Scene {
    /// Steps that only begin and open things, before all others.
    opening: u64,
    /// As many once there is too little of something, and once there is enough again.
    lacking: u64,
    /// Threads that each member begins with, besides its first.
    threads: usize,
    /// Of these, a member and the next one.
    beginning: Option<Who>,
    /// How often of four a step stays with what there was last.
    loyalty: u64,
    /// What the last steps were about, the newest last.
    recent: Vec<Handle>,
    /// Who took the last one.
    last: Who,
}

impl Scene {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let opening = if rng.one_in(3) { 0 } else { 4 + rng.below(16) };
        let (threads, loyalty) = ([0, 0, 1, 2, 3][rng.below(5) as usize], rng.below(4));
        let lacking = if rng.one_in(2) { 3 } else { 0 };
        Self {
            opening,
            lacking,
            threads,
            beginning: None,
            loyalty,
            recent: Vec::new(),
            last: (0, 0),
        }
    }

    /// The next thread of a member that begins.
    pub(super) fn thread(&mut self) -> Option<Step> {
        let (member, next) = self.beginning.take()?;
        self.beginning = (next < self.threads).then_some((member, next + 1));
        (next <= self.threads).then(|| Step::new(member, 0, Verb::Thread, &[next as u64]))
    }

    pub(super) fn is_opening(&self) -> bool {
        self.opening > 0
    }

    /// What the next step is to be about and who may take it, if it is to stay with something.
    pub(super) fn stays(&self, rng: &mut Rng) -> Option<(&[Handle], Option<Who>)> {
        let stays = rng.below(4) < self.loyalty && !self.recent.is_empty();
        stays.then(|| (&*self.recent, rng.one_in(2).then_some(self.last)))
    }

    pub(super) fn saw(&mut self, step: &Step) {
        match step.verb {
            Verb::Start => self.beginning = Some((step.member, 1)),
            Verb::Thread => {}
            // Who cannot open undoes what it began; who opens afterwards sees what that took away.
            Verb::Limit | Verb::Fill | Verb::Unlimit | Verb::Free => {
                self.opening = self.opening.max(self.lacking);
            }
            _ => self.opening = self.opening.saturating_sub(1),
        }
        // Who has just been limited goes on: that is when calls fail.
        let goes_on = step.thread > 0 || step.verb == Verb::Limit;
        if goes_on || step.new_handle().is_some() || step.arg("on") > 0 {
            self.last = (step.member, step.thread);
        }
        let names = ["new", "on", "and", "or", "guard"].map(|name| step.arg(name));
        let about = if step.verb == Verb::Thread { [0; 5] } else { names };
        for handle in about.into_iter().filter(|handle| *handle > 0) {
            self.recent.retain(|old| *old != handle);
            self.recent.push(handle);
        }
        let surplus = self.recent.len().saturating_sub(NEAR);
        self.recent.drain(..surplus);
    }
}

/// Whether it begins or opens something.
pub(super) fn opens(verb: Verb) -> bool {
    use Verb::{Client, Condvar, Consumer, Interrupt, Mutex, Node, PiMutex, Producer, Publisher};
    use Verb::{RtOpen, RwLock, Segment, Semaphore, Server, Set, Subscriber, Thread, Timer, Watch};
    let ports = [Client, Consumer, Producer, Publisher, RtOpen, Server, Subscriber, Timer, Watch];
    let others = [Condvar, Interrupt, Mutex, PiMutex, RwLock, Segment, Semaphore, Set];
    ports.contains(&verb) || others.contains(&verb) || matches!(verb, Node | Thread)
}
