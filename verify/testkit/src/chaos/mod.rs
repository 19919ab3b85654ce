//! Chaos: processes of every kind under seeded random kills, stops and restarts.
//!
//! # What is checked
//! Every message carries who sent it, which life of that sender, its number there and a checksum.
//! What a sender has committed it writes into a ledger in anonymous shared memory, which outlives
//! it; receivers account for what comes in the same ledger. A sender notes the number it tries
//! before the call and the number it sent after it, so of each life at most the call in hand is in
//! doubt, and all the rest must have arrived exactly once.
//!
//! | count | means |
//! |---|---|
//! | lost | what was committed did not come to consumers or anchor; so with changes under a lock |
//! | duplicated | it came twice, but for the one in a consumer's hand when that died |
//! | torn | a checksum is wrong, a message nobody committed came, two were inside one lock |
//! | hangs | a call took 1 s longer than it may while nobody was stopped; so did a wake |
//! | files left | after the last one left and `clean` |
//!
//! The *anchor* is the one member that is stopped but never killed: it keeps topics, queues and
//! locks in being, for they go with their last live member.

mod account;
mod anchor;
mod awaited;
mod board;
mod cast;
mod director;
mod locks;
pub(crate) mod message;
mod others;
mod part;
mod queues;
mod realtime;
mod services;
mod topics;

use std::time::Duration;

pub use board::Fault;
pub use director::run;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Of all random choices.
    pub seed: u64,
    /// Time under chaos; quiet time at the end is added.
    pub lasts: Duration,
    /// A fault that the harness commits itself, to see whether it finds it.
    pub sabotage: Option<Sabotage>,
    /// The kernel kills, as where memory is out: see `Child::kill_for_memory`.
    pub out_of_memory: bool,
}

/// See [`Plan::sabotage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Sabotage {
    /// A producer notes a message that it never sent.
    Lost,
    /// A producer sends one message twice.
    Dup,
    /// A publisher changes a message after taking its checksum.
    Torn,
    /// A member sits in a call for seconds.
    Hang,
    /// A file that nobody knows is in the domain.
    File,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Report {
    seed: u64,
    lasted: Duration,
    kills: u64,
    stops: u64,
    messages: u64,
    faults: [u64; Fault::COUNT],
    files: u64,
    members: usize,
    lives: u64,
    peak_bytes: u64,
}

impl Report {
    /// Whether nothing was found.
    pub fn is_clean(&self) -> bool {
        self.files == 0 && self.faults.iter().all(|n| *n == 0)
    }

    fn count(&self, fault: Fault) -> u64 {
        self.faults[fault as usize]
    }

    /// What else is worth knowing, on a line of its own.
    pub fn aside(&self) -> String {
        format!(
            "{} members, {} lives, at most {} MiB, {} other faults",
            self.members,
            self.lives,
            self.peak_bytes >> 20,
            self.count(Fault::Other)
        )
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "chaos: seed {}: {} s, {} kills, {} stops, {} messages, {} lost, {} duplicated, \
             {} torn, {} hangs, {} files left",
            self.seed,
            self.lasted.as_secs(),
            self.kills,
            self.stops,
            self.messages,
            self.count(Fault::Lost),
            self.count(Fault::Duplicated),
            self.count(Fault::Torn),
            self.count(Fault::Hang),
            self.files
        )
    }
}
