//! A domain at one moment, and what moved between two: read from outside, read-only, so that
//! nobody whom it looks at waits or is woken.

mod take;

pub(crate) use take::is_image;

use outlive::queue;
use outlive::service;
use serde::Serialize;

/// Everything that is seen at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Look {
    /// ns of CLOCK_MONOTONIC.
    pub(crate) at_ns: u64,
    pub(crate) nodes: Vec<Node>,
    pub(crate) topics: Vec<Topic>,
    pub(crate) locks: Vec<Lock>,
    /// Only in a [`Look::whole`].
    pub(crate) queues: Vec<queue::Info>,
    pub(crate) services: Vec<service::Info>,
}

/// How a process is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Life {
    Dead,
    /// By SIGSTOP or a debugger.
    Stopped,
    #[default]
    Alive,
}

impl Life {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Dead => "dead",
            Self::Stopped => "stopped",
            Self::Alive => "alive",
        }
    }
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Node {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) pid: u32,
    pub(crate) life: Life,
    pub(crate) started_ns: u64,
    /// Topics that it publishes, and reads.
    pub(crate) publishes: Vec<String>,
    pub(crate) reads: Vec<String>,
    /// Samples that it holds.
    pub(crate) holds: usize,
    /// Locks that it holds.
    pub(crate) locks: Vec<String>,
    /// Shared memory of its publishers, bytes.
    pub(crate) memory_bytes: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Topic {
    pub(crate) name: String,
    pub(crate) type_name: String,
    pub(crate) encoding: &'static str,
    /// Whether its messages are [`outlive::msg::Image`].
    pub(crate) image: bool,
    pub(crate) depth: u64,
    pub(crate) publishers: Vec<Publisher>,
    pub(crate) readers: Vec<Reader>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Publisher {
    pub(crate) node: u64,
    pub(crate) port: u64,
    pub(crate) name: String,
    pub(crate) life: Life,
    pub(crate) closed: bool,
    pub(crate) messages: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) newest_ns: Option<u64>,
    pub(crate) memory_bytes: u64,
    /// Since the look before.
    pub(crate) hz: f64,
    pub(crate) bytes_per_s: f64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Reader {
    pub(crate) node: u64,
    pub(crate) port: u64,
    pub(crate) name: String,
    pub(crate) life: Life,
    pub(crate) reliable: bool,
    pub(crate) waiting: bool,
    pub(crate) borrows: u64,
    /// Messages that it has not read.
    pub(crate) lag: u64,
    #[serde(skip)]
    pub(crate) sources: Vec<Source>,
    /// The samples that it holds, as text.
    pub(crate) held: Vec<String>,
    /// Messages overwritten before it read them, since the first look; at least.
    pub(crate) lost: u64,
}

/// How far a reader is with a publisher.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// Node and port.
    publisher: (u64, u64),
    /// What it reads next.
    next: u64,
    /// Up to here every message is read, or counted as lost.
    counted: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Lock {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) state: &'static str,
    pub(crate) holder: Option<(u64, String, Life)>,
    pub(crate) waiters: bool,
    pub(crate) users: usize,
}

/// How bad something is, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mood {
    Good,
    Slow,
    Bad,
}

impl Topic {
    fn sum<T: std::iter::Sum<T>>(&self, of: impl Fn(&Publisher) -> T) -> T {
        self.publishers.iter().map(of).sum()
    }

    pub(crate) fn hz(&self) -> f64 {
        self.sum(|p| p.hz)
    }

    pub(crate) fn bytes_per_s(&self) -> f64 {
        self.sum(|p| p.bytes_per_s)
    }

    pub(crate) fn messages(&self) -> u64 {
        self.sum(|p| p.messages)
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        self.sum(|p| p.memory_bytes)
    }

    pub(crate) fn lost(&self) -> u64 {
        self.readers.iter().map(|r| r.lost).sum()
    }

    pub(crate) fn lag(&self) -> u64 {
        self.readers.iter().map(|r| r.lag).max().unwrap_or(0)
    }

    /// The reader that is furthest behind, if that is far.
    pub(crate) fn slow(&self) -> Option<&Reader> {
        let far = |r: &&Reader| r.life != Life::Dead && r.lag * 2 > self.depth;
        self.readers.iter().filter(far).max_by_key(|r| r.lag)
    }

    /// What is to be said of it, if anything, and how bad that is.
    pub(crate) fn state(&self) -> (Option<String>, Mood) {
        let count = |life| self.publishers.iter().filter(|p| p.life == life && !p.closed).count();
        let live = count(Life::Alive);
        match self.slow() {
            _ if self.publishers.iter().any(|p| p.life == Life::Stopped) => {
                (Some("stopped".into()), Mood::Bad)
            }
            _ if live == 0 && count(Life::Dead) > 0 => (Some("dead".into()), Mood::Bad),
            Some(slow) => (Some(format!("slow: {}", slow.name)), Mood::Slow),
            None if live == 0 => (Some("no publisher".into()), Mood::Slow),
            None => (None, Mood::Good),
        }
    }
}

impl Lock {
    /// How bad its state is.
    pub(crate) fn mood(&self) -> Mood {
        let dead = self.holder.as_ref().is_some_and(|(.., life)| *life != Life::Alive);
        match self.state {
            _ if dead => Mood::Bad,
            "abandoned" | "unrecoverable" => Mood::Bad,
            _ if self.waiters => Mood::Slow,
            _ => Mood::Good,
        }
    }
}
