//! What was carried, and what was not and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

/// Names with counters of their own at most, unless more are carried.
const NAMES_MAX: usize = 4096;
/// Whose counters are those of names that had to make room.
const OTHERS: &str = "(others)";

/// Counters of one topic in one direction since the bridge began.
///
/// Of a topic that goes out, every message published while it was carried is in exactly one of
/// `sent`, `dropped`, `skipped`, `overrun`, `unheard`, `bad`. What another bridge has sent since we
/// heard of it is in exactly one of `received`, `lost`, `dropped`, `bad`, or still on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counters {
    /// Messages given to the network.
    pub(crate) sent: u64,
    /// Messages published here that came from there.
    pub(crate) received: u64,
    /// Their payload bytes.
    pub(crate) bytes: u64,
    /// The same on the wire, without Zenoh's frames.
    pub(crate) wire_bytes: u64,
    /// Dropped by us: by the rate limit, because this machine was too slow, or while it could not
    /// tell whether they came from here. Of a service: calls and answers refused for want of room.
    pub(crate) dropped: u64,
    /// Given way to a newer one, while the link was busy.
    pub(crate) skipped: u64,
    /// Overwritten in the ring before we read them: the link was too slow.
    pub(crate) overrun: u64,
    /// Published while nobody elsewhere wanted them.
    pub(crate) unheard: u64,
    /// Sent there and not come here: a gap in the numbers.
    pub(crate) lost: u64,
    /// No payload of the topic's type, or no message at all.
    pub(crate) bad: u64,
    /// Publication there to publication here, us; by two clocks, whose difference is in it.
    pub(crate) latency_last_us: i64,
    /// The least of them.
    pub(crate) latency_min_us: i64,
    /// The most of them.
    pub(crate) latency_max_us: i64,
}

impl Counters {
    fn add(&mut self, other: &Self) {
        let Self {
            sent,
            received,
            bytes,
            wire_bytes,
            dropped,
            skipped,
            overrun,
            unheard,
            lost,
            bad,
            ..
        } = self;
        for (sum, part) in [
            (sent, other.sent),
            (received, other.received),
            (bytes, other.bytes),
            (wire_bytes, other.wire_bytes),
            (dropped, other.dropped),
            (skipped, other.skipped),
            (overrun, other.overrun),
            (unheard, other.unheard),
            (lost, other.lost),
            (bad, other.bad),
        ] {
            *sum = sum.saturating_add(part);
        }
    }

    pub(crate) fn latency(&mut self, us: i64) {
        let first = self.received <= 1;
        self.latency_last_us = us;
        self.latency_min_us = if first { us } else { self.latency_min_us.min(us) };
        self.latency_max_us = if first { us } else { self.latency_max_us.max(us) };
    }
}

/// One topic's counters, shared with the thread that carries it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted(Arc<Mutex<Counters>>);

impl Counted {
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut Counters) -> R) -> R {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn get(&self) -> Counters {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What [`Stats::snapshot`] is published as.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Snapshot {
    /// Bridges that are connected, of this namespace.
    pub(crate) bridges: u64,
    /// Topics, services and queues that are wanted and not carried: there are too many, or there
    /// is no room for what a queue or a service brings.
    pub(crate) not_carried: u64,
    /// Topics, services that go out.
    pub(crate) out: BTreeMap<String, Counters>,
    /// Those that come in.
    #[serde(rename = "in")]
    pub(crate) into: BTreeMap<String, Counters>,
}

impl Snapshot {
    /// A line for each topic and direction.
    pub(crate) fn lines(&self) -> String {
        let mut out = String::new();
        for (name, c) in &self.out {
            let _ = writeln!(
                out,
                "out {name} sent {} bytes {} wire {} dropped {} skipped {} overrun {} \
                 unheard {} bad {}",
                c.sent, c.bytes, c.wire_bytes, c.dropped, c.skipped, c.overrun, c.unheard, c.bad
            );
        }
        for (name, c) in &self.into {
            let _ = writeln!(
                out,
                "in {name} received {} bytes {} wire {} lost {} dropped {} bad {} latency_us {} \
                 min {} max {}",
                c.received,
                c.bytes,
                c.wire_bytes,
                c.lost,
                c.dropped,
                c.bad,
                c.latency_last_us,
                c.latency_min_us,
                c.latency_max_us
            );
        }
        let _ = writeln!(out, "bridges {} not carried {}", self.bridges, self.not_carried);
        out
    }
}

/// All counters by direction and name.
#[derive(Debug, Default)]
pub(crate) struct Stats {
    all: Mutex<BTreeMap<(bool, String), Counted>>,
}

impl Stats {
    /// Those of `name`; they go on where they were when a topic comes back.
    pub(crate) fn of(&self, out: bool, name: &str) -> Counted {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= NAMES_MAX && !all.contains_key(&(out, name.to_owned())) {
            make_room(&mut all);
        }
        all.entry((out, name.to_owned())).or_default().clone()
    }

    pub(crate) fn snapshot(&self, bridges: usize, not_carried: u64) -> Snapshot {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let side = |out: bool| {
            let of = all.iter().filter(|((o, _), _)| *o == out);
            of.map(|((_, name), c)| (name.clone(), c.get())).collect()
        };
        Snapshot { bridges: bridges as u64, not_carried, out: side(true), into: side(false) }
    }
}

/// Sums up what nobody carries any more.
fn make_room(all: &mut BTreeMap<(bool, String), Counted>) {
    let mut gone = [Counters::default(); 2];
    all.retain(|(out, name), counted| {
        let kept = name == OTHERS || Arc::strong_count(&counted.0) > 1;
        if !kept {
            gone[usize::from(*out)].add(&counted.get());
        }
        kept
    });
    for (out, gone) in [(false, gone[0]), (true, gone[1])] {
        all.entry((out, OTHERS.to_owned())).or_default().with(|c| c.add(&gone));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_come_and_go_are_summed_up() {
        let stats = Stats::default();
        let kept = stats.of(true, "/kept");
        kept.with(|c| c.sent = 1);
        for n in 0..3 * NAMES_MAX as u64 {
            stats.of(n % 2 == 0, &format!("/{n}")).with(|c| c.lost = 1);
        }
        let snapshot = stats.snapshot(0, 0);
        assert!(snapshot.out.len() + snapshot.into.len() <= NAMES_MAX + 3);
        let lost = |side: &BTreeMap<String, Counters>| side.values().map(|c| c.lost).sum::<u64>();
        assert_eq!(lost(&snapshot.out) + lost(&snapshot.into), 3 * NAMES_MAX as u64);
        assert_eq!((snapshot.out["/kept"].sent, snapshot.out.get("/0")), (1, None));
    }
}
