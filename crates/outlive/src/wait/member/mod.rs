//! What can be waited for: the trait behind [`Waitable`], and one sleep as its members describe it.
//!
//! A member of a kind that is yet to come implements [`Member`]; nothing else here need know it.
//! Ports do so at home; what is not a port is here.

pub(super) mod descriptor;
pub(super) mod interrupt;
pub(super) mod shutdown;
pub(super) mod timer;

use std::os::fd::{BorrowedFd, RawFd};

use super::SleepSet;
use super::wake::bridge::Bridge;
use super::wake::handshake::Request;
use crate::node::Node;
use crate::node::peer::Peer;
use crate::os::sleep::event::Event;
use crate::os::time::deadline::Deadline;
use crate::sync::AtomicU32;

/// Most events of this process whose descriptors one sleep takes; others are looked at.
const EVENTS_MAX: usize = 4;

/// What a [`WaitSet`](crate::WaitSet) can wait for: a [`Subscriber`](crate::Subscriber), the
/// [`Consumer`](crate::Consumer) of a queue, the [`Server`](crate::Server) or a
/// [`Client`](crate::Client) of a service, a [`Watch`](crate::Watch) on a node's death, a
/// [`Timer`](crate::Timer), a [`Descriptor`](crate::Descriptor), a
/// [`Shutdown`](crate::Shutdown), an `&`[`Interrupt`](crate::Interrupt).
///
/// Only this crate implements it.
///
/// # Examples
/// ```
/// # let dir = outlive::doc_dir();
/// # let node = outlive::Node::builder().root(dir.path()).open()?;
/// use outlive::{Timer, WaitSet, Waitable};
/// use std::time::Duration;
///
/// let mut poses = node.topic::<f64>("/pose")?.subscriber()?;
/// let mut goals = node.topic::<f64>("/goal")?.subscriber()?;
/// let mut tick = Timer::at(0); // due already
/// let mut members: Vec<&mut dyn Waitable> = vec![&mut poses, &mut goals];
/// members.push(&mut tick); // of another kind
/// let mut set = WaitSet::new();
/// let ready = set.wait(&mut members, Duration::from_secs(5))?;
/// assert!(ready.contains(2) && !ready.contains(0));
/// # Ok::<(), outlive::Error>(())
/// ```
pub trait Waitable: Member {}

impl<T: Member + ?Sized> Waitable for T {}

/// What a member does once a second, beside what wakes it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overslept {
    /// Asks the locks of those it knows whether they live: an answer without a look at a directory,
    /// and without allocating.
    Ask,
    /// Nothing came for long: looks at its directory, too.
    Look,
}

/// One thing to wait for.
#[doc(hidden)]
pub trait Member {
    /// Notices what changed; whether a call on it would give something. One call per member and
    /// look: what else a look has to know of a member goes into `look`.
    fn is_ready(&mut self, look: &mut Look) -> bool;

    /// The caller was told that it is ready.
    fn told(&mut self) {}

    /// Adds what ends a sleep on it. `false`: there is something to look at already.
    fn plan<'a>(&'a self, plan: &mut Plan<'a>) -> bool;

    /// Where writers learn that its owner sleeps, if writers have to wake it.
    fn seat(&self) -> Option<Seat<'_>> {
        None
    }

    /// A sleep is over and its flag is lowered.
    fn awake(&mut self) {}

    /// A second has passed: looks also at what no wake tells of. `true`: there is news.
    fn overslept(&mut self, _how: Overslept) -> bool {
        false
    }

    /// What was found out about the descriptor it asked for; whether that makes it ready.
    fn found(&mut self, events: i16) -> bool {
        events != 0
    }
}

/// A look at all members.
#[doc(hidden)]
#[derive(Debug)]
pub struct Look {
    pub(crate) now: u64,
    pub(super) due: Deadline,
    pub(super) asked: Option<(RawFd, i16)>,
}

impl Look {
    pub(crate) fn at(now: u64) -> Self {
        Self { now, due: Deadline::NEVER, asked: None }
    }

    /// The member that is looked at will be ready by itself at `due`.
    #[inline]
    pub(crate) fn due(&mut self, due: Deadline) {
        self.due = self.due.min(due);
    }

    /// It stands for this foreign descriptor; [`Member::found`] gets what becomes of it.
    pub(crate) fn ask(&mut self, fd: RawFd, events: i16) {
        self.asked = Some((fd, events));
    }
}

/// A sleeper's request in shared memory, and the node whose it is.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Seat<'a> {
    pub(crate) request: Request<'a>,
    pub(crate) node: &'a Node,
}

/// How a sleep will be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// By the words that commits change.
    Words,
    /// By a doorbell, and by tokens.
    Doorbell,
    /// By a descriptor.
    Fd,
    /// There is no sleep: a look only.
    Look,
}

/// One sleep, as its members describe it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Plan<'a> {
    mode: Mode,
    pub(super) set: SleepSet<'a>,
    writers: usize,
    bridge: Option<&'a Bridge>,
    /// Events of this process, where only descriptors are waited for.
    pub(super) own_fds: [Option<BorrowedFd<'a>>; EVENTS_MAX],
    /// Somebody's token says dead and its file lock does not, or a descriptor could not be made:
    /// only looking tells.
    pub(super) in_doubt: bool,
}

impl<'a> Plan<'a> {
    pub(super) fn new(mode: Mode, bridge: Option<&'a Bridge>) -> Self {
        Self {
            mode,
            set: SleepSet::empty(),
            writers: 0,
            bridge,
            own_fds: [None; EVENTS_MAX],
            in_doubt: false,
        }
    }

    /// Words of writers so far.
    pub(super) fn writers(&self) -> usize {
        self.writers
    }

    /// A word that a writer's commit changes. Who adds it raises its flag, see [`Member::seat`].
    pub(crate) fn word(&mut self, word: &'a AtomicU32, seen: u32) {
        self.writers += 1;
        if self.mode == Mode::Words {
            self.set.word(word, seen);
        }
    }

    /// A bell. Its ringers also ring doorbells and call sockets.
    pub(crate) fn bell(&mut self, word: &'a AtomicU32, seen: u32) {
        if self.mode == Mode::Words {
            self.set.push(word, seen);
        }
    }

    /// An event of this process; `false` when it is raised.
    pub(crate) fn event(&mut self, event: &'a Event) -> bool {
        match self.mode {
            Mode::Words | Mode::Doorbell => self.set.push(event.word(), 0),
            Mode::Fd => match (self.own_fds.iter_mut().find(|free| free.is_none()), event.fd()) {
                (Some(free), Ok(fd)) => *free = Some(fd),
                _ => self.in_doubt = true,
            },
            Mode::Look => {}
        }
        // After its descriptor is there: who raises it looks for that afterwards.
        event.raised() == 0
    }

    /// The life of `peer`; `false` when it is dead.
    pub(crate) fn life(&mut self, peer: &'a Peer) -> bool {
        if let Some(bridge) = self.bridge {
            bridge.watch(peer);
        }
        let end = peer.end();
        if peer.death().is_some() {
            return false;
        }
        match self.mode {
            Mode::Words | Mode::Doorbell => self.set.end(end),
            Mode::Fd => self.in_doubt |= end.has_begun,
            Mode::Look => {}
        }
        true
    }
}
