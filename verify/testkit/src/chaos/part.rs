//! What every member has: its place in the ledger, its random numbers, its timed calls.

use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use outlive::{Domain, ErrorKind, Node, NodeBuilder};

use super::Sabotage;
use super::board::{Board, Call, Fault, Life, RUN, Slot};
use super::message::{Head, check, fill};
use crate::{Rng, slow};

/// More than this for a call or a wake is a hang.
pub(super) const HANG: Duration = Duration::from_secs(1);

/// One life of a member, seen from inside.
pub(super) struct Part {
    pub(super) board: &'static Board,
    pub(super) slot: usize,
    pub(super) life: usize,
    pub(super) root: PathBuf,
    pub(super) rng: Rng,
    pub(super) sabotage: Option<Sabotage>,
}

impl Part {
    pub(super) fn place(&self) -> &'static Slot {
        self.board.slot(self.slot)
    }

    pub(super) fn account(&self) -> &'static Life {
        self.place().life(self.life)
    }

    fn settings(&self, name: &str) -> NodeBuilder {
        Node::builder().root(&self.root).name(name)
    }

    pub(super) fn domain(&self) -> outlive::Result<Domain> {
        Domain::of(&self.settings("chaos"))
    }

    pub(super) fn node(&mut self, name: &str) -> outlive::Result<Node> {
        let settings = self.settings(name);
        self.call(Call::OpenNode, 0, || patiently(|| settings.clone().open()))
    }

    /// Makes a call that may take `limit_ms`.
    pub(super) fn call<R>(&self, what: Call, limit_ms: u64, body: impl FnOnce() -> R) -> R {
        self.place().enter(what, limit_ms);
        let done = body();
        self.place().leave();
        done
    }

    pub(super) fn join<R>(&self, body: impl FnOnce() -> R) -> R {
        self.call(Call::Join, 0, body)
    }

    /// Drops `member` as a timed call.
    pub(super) fn leave<T>(&self, member: T) {
        self.call(Call::Leave, 0, || drop(member));
    }

    /// Whether to go on: for senders, and whoever may end at any time.
    pub(super) fn runs(&self) -> bool {
        self.board.phase() == RUN
    }

    /// Whether to leave in order, now and then.
    pub(super) fn has_enough(&mut self, calls: u64) -> bool {
        self.rng.one_in(calls)
    }

    /// Sleeps for less than `us`.
    pub(super) fn pause_us(&mut self, us: u64) {
        std::thread::sleep(Duration::from_micros(self.rng.below(us)));
    }

    pub(super) fn clear_ns(&self) -> u64 {
        self.board.clear_ns.load(Acquire)
    }

    pub(super) fn fill(&self, words: &mut [u64], seq: u64) {
        let (slot, life, stamp) = (self.slot, self.life, self.clear_ns());
        fill(words, Head { slot, life, seq, stamp });
    }

    /// The head of a message, if it is whole and from a member.
    pub(super) fn check(&self, words: &[u64], from: &str) -> Option<Head> {
        let head = check(words);
        self.board.messages.fetch_add(1, Relaxed);
        match head {
            Ok(head) if self.board.life(head.slot, head.life).is_some() => Some(head),
            Ok(head) => {
                self.fault(Fault::Torn, 1, format!("{from}: from nobody: {head:?}"));
                None
            }
            Err(why) => {
                self.fault(Fault::Torn, 1, format!("{from}: {why}"));
                None
            }
        }
    }

    /// What was committed at `stamp` must have woken who waited since `began`, both clear time.
    pub(super) fn woken(&self, began: u64, stamp: u64, what: &str) {
        let now = self.clear_ns();
        let since = began.max(self.board.window_ns.load(Acquire));
        if stamp >= since && now.saturating_sub(stamp) > HANG.as_nanos() as u64 {
            let ms = (now - stamp) / 1_000_000;
            self.fault(Fault::Hang, 1, format!("{what}: woken {ms} ms after the commit"));
        }
    }

    pub(super) fn fault(&self, fault: Fault, n: u64, what: impl std::fmt::Display) {
        let (slot, life) = (self.slot, self.life);
        self.board.fault(fault, n, format!("member {slot}, life {life}: {what}"));
    }

    /// Whether this member is to commit `sabotage` now; it is done once it says so.
    pub(super) fn sabotages(&self, sabotage: Sabotage) -> bool {
        self.sabotage == Some(sabotage) && self.board.sabotaged.load(Relaxed) == 0
    }

    pub(super) fn sabotage_done(&self) {
        self.board.sabotaged.store(1, Relaxed);
    }
}

/// Where a node is opened in a second, not all get the domain's lock within its 10 s: they try
/// again there.
pub(super) fn patiently<R>(call: impl Fn() -> outlive::Result<R>) -> outlive::Result<R> {
    loop {
        match call() {
            Err(e) if e.kind() == ErrorKind::Timeout && slow::times() > 1 => {}
            done => return done,
        }
    }
}
