//! What was carried, and what was not and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

/// Counters of one topic in one direction since the bridge began.
///
/// Of a topic that goes out, every message published while it was carried is in exactly one of
/// `sent`, `dropped`, `overrun`, `unheard`, `bad`. What another bridge has sent since we heard of
/// it is in exactly one of `received`, `lost`, `dropped`, `bad`, or still on its way.
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
    /// Dropped by us: by the rate limit, or because this machine was too slow.
    pub(crate) dropped: u64,
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
    pub(crate) fn with(&self, change: impl FnOnce(&mut Counters)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
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
                "out {name} sent {} bytes {} wire {} dropped {} overrun {} unheard {} bad {}",
                c.sent, c.bytes, c.wire_bytes, c.dropped, c.overrun, c.unheard, c.bad
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
        let _ = writeln!(out, "bridges {}", self.bridges);
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
        all.entry((out, name.to_owned())).or_default().clone()
    }

    pub(crate) fn snapshot(&self, bridges: usize) -> Snapshot {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let side = |out: bool| {
            let of = all.iter().filter(|((o, _), _)| *o == out);
            of.map(|((_, name), c)| (name.clone(), c.get())).collect()
        };
        Snapshot { bridges: bridges as u64, out: side(true), into: side(false) }
    }
}
