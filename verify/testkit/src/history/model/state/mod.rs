//! What there is and what happened to it, as far as the model knows: no rules.
//!
//! Begin with [`Model`], which holds everything, and [`Kind`], what a handle names. The other files
//! are what there is of each kind; the rules for it are in the file of the same name one level up.

pub(super) mod locks;
pub(super) mod ordinals;
pub(super) mod queues;
pub(super) mod rt;
pub(super) mod segments;
pub(super) mod semaphores;
pub(super) mod services;
pub(super) mod sets;
pub(super) mod timers;
pub(super) mod topics;
pub(super) mod waits;

use std::collections::{BTreeMap, BTreeSet};

use crate::history::step::{Handle, Step};
use locks::{Lock, Name};
use ordinals::Ordinals;
use queues::{Producer, Queue};
use rt::End;
use segments::Segment;
use semaphores::Semaphore;
use services::{Client, InHand, Server};
use sets::Set;
use timers::Timer;
use topics::{Publisher, Subscriber, Topic};
use waits::{Named, Told};

/// What a handle names.
#[derive(Clone, Debug)]
pub(in crate::history) enum Kind {
    Node {
        ordinal: u64,
    },
    Publisher(Publisher),
    Subscriber(Subscriber),
    Sample {
        of: Handle,
        borrowed: bool,
    },
    Loan {
        of: Handle,
    },
    Producer(Producer),
    /// `untold`: what it lacked when it was limited may be told by a later call.
    Consumer {
        queue: u64,
        hand: Option<Handle>,
        untold: bool,
    },
    Received {
        of: Handle,
        from: Handle,
        count: u64,
    },
    Lock {
        name: Name,
        file: u64,
    },
    Guard {
        of: Handle,
        reads: bool,
    },
    Semaphore {
        name: u64,
        file: u64,
    },
    Permit {
        of: Handle,
    },
    Condvar {
        name: u64,
        file: u64,
    },
    Set {
        name: u64,
        file: u64,
    },
    Watch {
        target: Handle,
    },
    Client(Client),
    Ticket {
        of: Handle,
    },
    Server(Server),
    Request(InHand),
    End(End),
    Segment {
        name: u64,
        file: u64,
    },
    Timer(Timer),
    Interrupt {
        raised: bool,
    },
}

/// Whether a handle is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::history) enum Life {
    /// Its member may use it.
    Held,
    /// Forgotten: nobody can use it, but it is there as long as its process.
    Leaked,
    /// Dropped in order.
    Dropped,
    /// Its process is gone.
    Dead,
}

#[derive(Clone, Debug)]
pub(in crate::history) struct Object {
    pub(in crate::history) member: usize,
    /// The thread that alone may use it.
    pub(in crate::history) thread: Option<usize>,
    pub(in crate::history) node: Option<Handle>,
    pub(in crate::history) kind: Kind,
    pub(in crate::history) life: Life,
    /// Number of the type of its messages.
    pub(in crate::history) type_: u64,
    /// A long wait of its member uses it.
    pub(in crate::history) busy: bool,
}

/// A process.
#[derive(Clone, Debug, Default)]
pub(in crate::history) struct Member {
    pub(in crate::history) alive: bool,
    pub(in crate::history) language: u64,
    pub(in crate::history) stopped: bool,
    /// Limits that are lowered.
    pub(in crate::history) limits: BTreeSet<u64>,
    /// By number; with the long wait each is in.
    pub(in crate::history) threads: BTreeMap<usize, Option<Step>>,
}

/// Everything.
#[derive(Clone, Debug, Default)]
pub(in crate::history) struct Model {
    pub(in crate::history) members: BTreeMap<usize, Member>,
    pub(in crate::history) objects: BTreeMap<Handle, Object>,
    pub(in crate::history) topics: BTreeMap<u64, Topic>,
    pub(in crate::history) queues: BTreeMap<u64, Queue>,
    pub(in crate::history) locks: BTreeMap<Name, Lock>,
    pub(in crate::history) semaphores: BTreeMap<u64, Semaphore>,
    pub(in crate::history) sets: BTreeMap<u64, Set>,
    pub(super) segments: BTreeMap<u64, Segment>,
    /// Objects that were placed in segments.
    pub(super) placed: u64,
    /// With the number of the newest file.
    pub(super) condvars: BTreeMap<u64, u64>,
    /// Threads that wait for a notification.
    pub(super) sleeps: BTreeMap<(usize, usize), Told>,
    /// Of each group one was notified.
    pub(super) one_of: Vec<BTreeSet<(usize, usize)>>,
    /// With their types.
    pub(in crate::history) services: BTreeMap<u64, u64>,
    /// Node and port of publishers and producers, the last one of that number.
    pub(super) ids: BTreeMap<(bool, u64, u64), Handle>,
    /// Counts what happens: births, ends and messages are ordered by it.
    pub(super) clock: u64,
    /// Threads that waited for a mutex while nobody could say what comes of it.
    pub(super) excused: BTreeSet<(usize, usize)>,
    /// Threads whose wake may have gone to one that died, or whose answer nobody waited for.
    pub(super) may_oversleep: BTreeSet<(usize, usize)>,
    /// Threads that wait for each other, as far as another one has noticed.
    pub(super) circled: BTreeSet<(usize, usize)>,
    /// Threads that wait to read a lock since before somebody died inside.
    pub(super) saw_death: BTreeSet<(usize, usize)>,
    /// Threads of which one must say that it gave a lock up, as others were refused it.
    pub(super) claims: Vec<BTreeSet<(usize, usize)>>,
    /// Threads whose wait ends as what they wait on was closed.
    pub(super) closed: BTreeSet<(usize, usize)>,
    /// What wait sets named and nobody has looked at since.
    pub(super) named: BTreeMap<Handle, Named>,
    /// Members that have lacked something.
    pub(super) was_limited: BTreeSet<usize>,
    /// Threads that have ended.
    pub(super) ended: BTreeSet<(usize, usize)>,
    /// The disk is full.
    pub(in crate::history) full: bool,
    pub(super) ordinals: Ordinals,
    /// Nodes in which a publisher or producer lacked something as it was opened: it may have been
    /// seen before it gave up.
    pub(super) gave_up: BTreeSet<u64>,
}
