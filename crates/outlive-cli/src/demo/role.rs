//! What every actor has: real processes, this binary started again.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::{Args, ValueEnum};
use outlive::{Node, NodeId};

use super::protocol::{Order, Report};
use crate::exit::Failure;

/// A part in the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Part {
    Camera,
    Receiver,
    Starter,
}

/// A process of `outlive demo`; started by it.
#[derive(Args, Debug)]
pub(crate) struct RoleArgs {
    pub(super) part: Part,
    #[arg(long)]
    pub(super) name: String,
    /// Process that started this one; its death is ours.
    #[arg(long)]
    pub(super) parent: u32,
    /// For a receiver: how long it keeps each frame.
    #[arg(long, default_value_t = 0)]
    pub(super) keep_ms: u64,
    /// For a camera: leave one wrong word in this frame.
    #[arg(long)]
    pub(super) tear: Option<u64>,
}

pub(super) const TOPIC: &str = "/camera/front";
/// Frames that stay readable.
pub(super) const DEPTH: u64 = 8;

/// Says that it has joined.
pub(super) fn ready(node: &Node) -> Result<(), Failure> {
    report(&Report::Ready { node: node.id().get(), at_ns: outlive::now_ns() })
}

/// Tells the director, in one line.
pub(super) fn report(report: &Report) -> Result<(), Failure> {
    let told = serde_json::to_string(report).map_err(io::Error::from).and_then(|line| {
        let mut out = io::stdout().lock();
        writeln!(out, "{line}").and_then(|()| out.flush())
    });
    told.map_err(|e| Failure::io("report to the director", &e))
}

/// Orders from the director. Watching is done by a thread here; the rest is for the actor.
#[derive(Debug)]
pub(super) struct OrderListener {
    queue: Receiver<Order>,
    thread: JoinHandle<()>,
}

impl OrderListener {
    pub(super) fn listen(node: &Node) -> Self {
        let (to, queue) = channel();
        let node = node.clone();
        Self { queue, thread: thread::spawn(move || obey(&node, &to)) }
    }

    /// The next order, if there is one.
    pub(super) fn next(&self) -> Option<Order> {
        self.queue.try_recv().ok()
    }

    pub(super) fn next_within(&self, time: Duration) -> Option<Order> {
        self.queue.recv_timeout(time).ok()
    }

    /// After `Quit`: lets go of the node, so that it leaves in order.
    pub(super) fn close(self) {
        let _ = self.thread.join();
    }
}

fn obey(node: &Node, to: &Sender<Order>) {
    for line in io::stdin().lock().lines() {
        let order = line.map_err(drop).and_then(|l| serde_json::from_str(&l).map_err(drop));
        let Ok(order) = order else { break };
        match order {
            Order::Watch(id) => watch(node, id),
            Order::Quit => break,
            order => {
                let _ = to.send(order);
            }
        }
    }
    // Also when the director is gone.
    let _ = to.send(Order::Quit);
}

fn watch(node: &Node, id: u64) {
    // A node that is gone already was not watched: the director then waits in vain and says so.
    let Ok(watch) = node.watch(NodeId::from_raw(id)) else { return };
    thread::spawn(move || {
        if report(&Report::Watching { node: id }).is_ok() && watch.wait(Duration::MAX) {
            let _ = report(&Report::Gone { node: id, at_ns: outlive::now_ns() });
        }
    });
}
