//! What a member has under its handles. Begin with [`Thing`] and [`Own`]; the other files are what
//! they hold of the kinds whose steps are in the files of the same names one level up.

pub(super) mod batches;
pub(super) mod lasting;
pub(super) mod locks;
pub(super) mod rt;
pub(super) mod segments;
pub(super) mod semaphores;
pub(super) mod services;

use std::sync::Arc;

use outlive::lock::{LocklessSet, RobustCondvar, RobustSemaphore};
use outlive::service::Ticket;
use outlive::{
    Consumer, Interrupt, Loan, Node, Producer, Publisher, Received, Sample, Subscriber, Timer,
    Watch,
};

use crate::history::reply::Seen;
use crate::history::step::Handle;
use batches::{Slice, Values};
use lasting::Lasting;
use locks::{Guard, Lock};
use rt::End;
use segments::Segment;
use semaphores::Held;
use services::{Asking, InHand, Serving};

/// What any thread of the process may use.
pub(crate) enum Thing {
    Node(Node),
    Publisher(Box<Publisher<[u8]>>),
    Subscriber(Box<Subscriber<[u8]>>),
    /// One that receives messages of a fixed size.
    Values(Box<Values>),
    Sample(Sample<[u8]>, Seen),
    Producer(Box<Producer<[u8]>>),
    /// Not a box: a message in hand borrows from what it points to.
    Consumer(Lasting<Consumer<[u8]>>),
    /// Kept for its drop.
    Received {
        _it: Hand,
    },
    Lock(Lock),
    Semaphore(Arc<RobustSemaphore>),
    Condvar(Arc<RobustCondvar>),
    Set(LocklessSet),
    Watch(Watch),
    Client(Box<Asking>),
    /// With its client's handle.
    Ticket(Ticket, Handle),
    Server(Box<Serving>),
    Request(Box<InHand>),
    End(Box<End>),
    Segment(Segment),
    Timer(Timer),
    Interrupt(Arc<Interrupt>),
}

/// A message in hand, or several in a row.
pub(crate) enum Hand {
    One { _it: Received<'static, [u8]> },
    Slice { _it: Slice },
}

/// What only the thread that took it may use.
pub(crate) enum Own {
    /// With the publisher's handle.
    Loan(Loan<'static, [u8]>, Handle),
    Guard(Guard),
    /// Kept for its drop.
    Permit(Held),
}
