//! The handshake of a sleeper with the writers that wake it.
//!
//! # Theory of operation
//! The sleeper raises its flag, looks at the writers' words, sleeps; a writer commits, looks at
//! the flags, wakes. Neither has a barrier between its store and its look, so both looks may miss
//! the other's store. Therefore the first sleep is short. By its end both stores are visible:
//! either the sleeper's second look finds the commit, or the writer's look found the flag, and
//! then its wake ends the long sleep. The flag is a request only; who slept on it could miss the
//! wake, because the writer cannot change it.
//!
//! | waiting flag       | means                                | stored by |
//! |--------------------|--------------------------------------|-----------|
//! | 0                  | awake                                | `sleep`   |
//! | `WAITING_WORDS`    | asleep on words that commits change  | `sleep`   |
//! | 2 \| doorbell << 2 | asleep on that doorbell              | `sleep`   |
//! | `WAITING_FD`       | waits for a descriptor               | `Request::arm` |
//!
//! Label WAITING: stored by `sleep`, loaded by `is_wanted`; it carries nothing.
//!
//! # Who waits for a descriptor
//! Its request names a socket and a generation. A writer that finds it raised sends one datagram a
//! generation and remembers which (`Request::due`), so an application that is slow to look costs
//! each writer one system call, not one per message. The sleeper begins a new generation only
//! after it has taken what was sent, and before it looks at the words: whoever commits after that
//! look owes a call again.

use crate::crash_point;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::sync::{AtomicU32, AtomicU64, fault, time_passes, unless_fault};

/// First sleep after raising a waiting flag: longer than any store waits to become visible.
pub(crate) const FIRST_SLICE_NS: u64 = 100_000;
/// Waiting flag: asleep on the writers' words.
pub(crate) const WAITING_WORDS: u32 = 1;
/// Waiting flag: asleep on doorbell `flag >> DOORBELL_SHIFT`.
pub(crate) const WAITING_DOORBELL: u32 = 2;
pub(crate) const DOORBELL_SHIFT: u32 = 2;
/// Waiting flag: waits for a descriptor, see [`Request`].
pub(crate) const WAITING_FD: u32 = 3;
/// The bits of a waiting flag that say how its owner waits.
pub(crate) const KIND_MASK: u32 = 3;

/// Where a sleeper says how it wants to be woken: words in a file that only its node writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// The waiting flag.
    pub(crate) flag: &'a AtomicU32,
    /// Number of the socket to call, where the flag is `WAITING_FD`.
    pub(crate) socket: &'a AtomicU64,
    /// Goes up each time the sleeper has taken what was sent; never 0 while the flag is raised.
    pub(crate) generation: &'a AtomicU64,
}

impl Request<'_> {
    /// Sleeper: from here on each writer calls `socket` once. Look at the words after this.
    ///
    /// # Crash safety
    /// **Strict.** Dying here leaves a raised flag: the next call finds nobody.
    pub(crate) fn arm(self, socket: u64, generation: u64) {
        self.socket.store(socket, Relaxed);
        // ORDERING(CALL): pairs with `due`; carries the socket. The flag may have been raised for
        // another one: a writer that called that for this generation would not call ours.
        let order = unless_fault("request.generation.relaxed", Release);
        self.generation.store(generation, order);
        // ORDERING(CALL): pairs with `due`; carries the generation.
        self.flag.swap(WAITING_FD, SeqCst);
        crash_point!("reader.armed");
    }

    /// Writer, after its commit: whether to call, given the generation it `called` last; the socket
    /// and the generation.
    pub(crate) fn due(self, called: u64) -> Option<(u64, u64)> {
        // ORDERING(CALL): pairs with `arm`. A later generation than the flag's is as good: it
        // began after the sleeper took what was sent.
        if self.flag.load(Acquire) & KIND_MASK != WAITING_FD {
            return None;
        }
        let generation = self.generation.load(Acquire);
        (generation != called).then(|| (self.socket.load(Relaxed), generation))
    }
}

/// How a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slept {
    /// A word changed or somebody woke us.
    Woken,
    /// The slice passed.
    Slice,
}

/// Sleeper: raises `flag` and sleeps by `once`, which looks first and answers `None` when there is
/// something to do; its argument is when to wake up at the latest.
///
/// # Crash safety
/// **Strict.** Dying asleep leaves a raised flag: the next wake finds us dead.
pub(crate) fn sleep<E>(
    flag: &AtomicU32,
    request: u32,
    deadline: Deadline,
    slice_ns_max: u64,
    now: impl Fn() -> u64,
    once: impl FnMut(Deadline) -> Result<Option<Slept>, E>,
) -> Result<(), E> {
    // ORDERING(WAITING): pairs with `is_wanted`.
    flag.swap(request, SeqCst);
    crash_point!("reader.sleep.flag_raised");
    let done = in_slices(deadline, slice_ns_max, now, once);
    flag.store(0, Relaxed);
    done
}

/// The sleep of one whose flags are raised: short at first.
pub(crate) fn in_slices<E>(
    deadline: Deadline,
    slice_ns_max: u64,
    now: impl Fn() -> u64,
    mut once: impl FnMut(Deadline) -> Result<Option<Slept>, E>,
) -> Result<(), E> {
    let mut slice = if fault("sleep.first_is_long") { slice_ns_max } else { FIRST_SLICE_NS };
    loop {
        let now = now();
        if deadline.has_passed_by(now) {
            return Ok(());
        }
        match once(deadline.min(Deadline::at_ns(now + slice))) {
            Ok(Some(Slept::Slice)) => slice = slice_ns_max,
            Ok(_) => return Ok(()),
            Err(e) => return Err(e),
        }
        time_passes();
    }
}

/// Writer, after its commit: whether anybody wants to be woken.
#[inline]
pub(crate) fn is_wanted<'a>(flags: impl Iterator<Item = &'a AtomicU32>) -> bool {
    time_passes();
    // ORDERING(WAITING): pairs with `sleep`; a late answer costs a short sleep. All of them, as
    // mostly nobody waits: half the time of a loop that ends at the first.
    flags.fold(0, |wanted, flag| wanted | flag.load(Relaxed)) != 0
}
