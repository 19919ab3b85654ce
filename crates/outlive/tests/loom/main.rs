//! loom models of the algorithms: every interleaving and every reordering that the memory model
//! allows, up to a bound on preemptions, for a few steps of each side.
//!
//! The algorithm files are compiled here a second time, behind `sync`, a door to loom's atomics;
//! the crate itself does not know loom. Run with
//! `RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 cargo test -p outlive --test loom --release`.
//!
//! | model     | what it shows                                                                 |
//! |-----------|-------------------------------------------------------------------------------|
//! | `entries` | copied messages are whole and in order, losses counted, kills before or after |
//! | `borrows` | a borrowed chunk is not rewritten, also if another thread ends the borrow     |
//! | `listings`| a subscriber borrows only where its hazards are looked at                     |
//! | `calls`   | the same where a descriptor is waited for, with one datagram per wait          |
//! | `sleeps`  | no wake is lost, also if the waker is killed before it wakes                  |
//! | `lanes`   | queues: records whole and in order; a killed consumer's successor goes on     |
//! | `locks`   | holders exclude, no wake is lost, deaths are told, wherever one is killed     |
//! | `rwlocks` | the same for readers and writers                                              |
//! | `realtime`| newest value whole, every value in order, no wake lost, wherever one is killed |
//! | `sets`    | ids are found, permits come back from the dead                                |
//!
//! Each model comes with mutants: the same model with an ordering or a fence taken out, which it
//! must catch. What loom cannot catch is said at the mutants of the model.
//!
//! What loom (0.7) takes for granted: a load never sees a store that is executed later; SeqCst
//! accesses are AcqRel, hence the fence in `swap_fenced`; SeqCst fences synchronise. It remembers
//! only the last access to a word, so that a thread which loads and then stores one hides its
//! store from an earlier load of another: a writer changes such a word in one access. What it
//! takes for granted, docs/internals/litmus.md does not.
#![cfg(loom)]
// The crate uses all of what the models use in part; loom's threads need no Send.
#![allow(dead_code, unreachable_pub, clippy::arc_with_non_send_sync)]

mod borrows;
mod calls;
#[path = "../../src/crash.rs"]
mod crash;
mod entries;
mod futex;
mod kernel;
mod lanes;
mod listings;
mod locks;
#[cfg(miri)]
#[path = "miri.rs"]
mod loom;
mod realtime;
mod rwlocks;
mod sets;
mod shared;
mod sleeps;
mod sync;

#[cfg(not(miri))]
use ::loom;

#[path = "../../src/lock"]
mod lock {
    pub(crate) mod mutex {
        pub(crate) mod word;
    }
    pub(crate) mod rwlock {
        pub(crate) mod readers;
    }
    pub(crate) mod semaphore {
        pub(crate) mod permits;
    }
    pub(crate) mod set {
        pub(crate) mod slots;
    }
}

#[path = "../../src/os"]
mod os {
    pub(crate) mod time {
        pub(crate) mod deadline;
        /// Models have no time.
        pub(crate) mod clock {
            pub(crate) fn now_ns() -> u64 {
                0
            }
        }
    }
}

#[path = "../../src/rt"]
mod rt {
    pub(crate) mod channel {
        pub(crate) mod four_slot;
        pub(crate) mod ring;
    }
    pub(crate) mod stages {
        pub(crate) mod signal;
    }
}

#[path = "../../src/topic"]
mod topic {
    pub(crate) mod chunks {
        pub(crate) mod hazard;
    }
    pub(crate) mod ring {
        pub(crate) mod body;
        pub(crate) mod entries;
        pub(crate) mod listing;
    }
}

#[path = "../../src/queue"]
mod queue {
    pub(crate) mod lane {
        pub(crate) mod head;
        pub(crate) mod position;
        pub(crate) mod record;
        pub(crate) mod tail;
    }
}

#[path = "../../src/wait"]
mod wait {
    pub(crate) mod wake {
        pub(crate) mod handshake;
    }
}
