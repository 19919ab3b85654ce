//! How a thread waits for a lock: spinning, sleeping on word and token, looking for deaths.

use std::cell::Cell;

use super::word::{CALLS, ID, Refused, World};
use crate::node::threads::tokens::{Threads, Token, Verdict, node_of, ordinal_of};
use crate::os::death::robust;
use crate::os::process::sched;
use crate::os::sleep::futex;
use crate::os::sleep::futex::{WaitWord, Woken};
use crate::os::sleep::slice::{Looks, slice_ns_max};
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::sync::Ordering::Relaxed;
use crate::sync::{AtomicU32, AtomicU64, fault};
use crate::{Error, ErrorKind};

/// Most rounds of spinning before a sleep.
const SPIN_MAX: u32 = 60;
const SPIN_FIRST: u32 = 20;
/// What is left where sections are long, to notice that they have become short.
const SPIN_MIN: u32 = 2;
/// A waiter that was woken so often in vain becomes the heir. Time would be no measure: waiting
/// for a holder that has no core is not being passed over.
const PASSED_OVER_MAX: u32 = 16;
/// The longest that others stand back from a free lock for the heir: a bound of one sleep.
const STAND_BACK_NS: u64 = 500_000;
/// Longer than any store waits to become visible.
const NAP_NS: u64 = 100_000;
pub(super) const PAUSE_NS: u64 = 1_000_000;

/// Most holders of a semaphore that one sleep watches; deaths of others are seen at its end.
const WATCHED_MAX: usize = 100;

/// How many rounds are worth spinning at a lock; each handle learns it for itself.
#[derive(Debug)]
pub(in crate::lock) struct Spin(AtomicU32);

impl Spin {
    pub(in crate::lock) const fn new() -> Self {
        Self(AtomicU32::new(SPIN_FIRST))
    }

    fn limit(&self) -> u32 {
        if sched::allowed_cpus() == 1 { 0 } else { self.0.load(Relaxed) }
    }

    /// Learns from a wait. Races between threads cost precision only.
    fn learn(&self, spun: u32, slept: bool) {
        let limit = self.0.load(Relaxed);
        let wanted = if slept { SPIN_MIN } else { (2 * spun + 10).min(SPIN_MAX) };
        let new = if wanted < limit { limit - (limit - wanted).div_ceil(8) } else { wanted };
        if new != limit {
            self.0.store(new, Relaxed);
        }
    }
}

/// One thread's wait for one lock.
#[derive(Debug)]
pub(in crate::lock) struct Waiter<'a> {
    threads: &'a Threads,
    spin: &'a Spin,
    until: Deadline,
    rounds_left: u32,
    spun: u32,
    /// Who was asked about last, if alive.
    token: Option<Token>,
    /// Dead by its node's file lock, whatever its token says.
    gone: u64,
    slept: bool,
    /// Since its first sleep that could not be on a token, too.
    looks: Cell<Option<Looks>>,
    /// Wake-ups in vain.
    passed_over: u32,
    /// By whatever word.
    woken: bool,
    /// From the first sleep on the lock word until the end of the wait: if we die after being woken
    /// and before we have the lock, the kernel wakes the next sleeper.
    pending: Option<robust::PendingGuard>,
    /// Why `Refused::Failed`.
    pub(in crate::lock) failure: Option<Error>,
}

impl<'a> Waiter<'a> {
    pub(in crate::lock) fn new(threads: &'a Threads, spin: &'a Spin, until: Deadline) -> Self {
        Self {
            threads,
            spin,
            until,
            rounds_left: if until == Deadline::AT_ONCE { 0 } else { spin.limit() },
            spun: 0,
            token: None,
            gone: 0,
            slept: false,
            looks: Cell::new(None),
            passed_over: 0,
            woken: false,
            pending: None,
            failure: None,
        }
    }

    /// Sleeps on `word` and on the token of `watched`, at most until `until`; says why it ended.
    ///
    /// # Crash safety
    /// Dying here: nobody looks at a sleeper. If it was just woken and the lock is free, the
    /// kernel wakes the next one (`pending`).
    fn sleep_until(
        &mut self,
        word: &AtomicU64,
        expected: u64,
        watched: u64,
        until: Deadline,
    ) -> Option<Woken> {
        if !matches!(self.is_dead(watched), Ok(false)) {
            return None; // the caller looks again and finds the same
        }
        let token = self.token.as_ref()?;
        let seen = token.word().load(Relaxed);
        if !robust::is_alive_word(seen) {
            return None;
        }
        let low = futex::low_half(word);
        let words = [
            WaitWord { word: low, expected: expected as u32 },
            WaitWord { word: token.word(), expected: seen },
        ];
        let woken = futex::wait_many(&words, until)
            .unwrap_or_else(|_| futex::wait(low, expected as u32, until.min(self.next_look())));
        if !token.is_alive() {
            // The kernel wakes one sleeper at a death: pass it on.
            futex::wake(token.word(), i32::MAX);
        } else if woken == Woken::Timeout && token.node_is_gone() {
            self.gone = watched;
        }
        self.passed_over += u32::from(woken == Woken::Word(0));
        self.woken |= matches!(woken, Woken::Word(_));
        self.rounds_left = self.spin.limit();
        Some(woken)
    }

    /// When to look for deaths, where nothing wakes at them.
    fn next_look(&self) -> Deadline {
        let looks = self.looks.get().unwrap_or_else(Looks::begin);
        self.looks.set(Some(looks));
        Deadline::in_ns(looks.pause_ns())
    }

    /// Whether only the file lock tells that the thread died. Asked here, too, because who does not
    /// wait, or is woken by signals, never comes to the end of a sleep. Our own process lives.
    fn left_no_mark(&self, token: &Token) -> bool {
        node_of(token.id()) != self.threads.node() && token.is_gone_lately()
    }

    /// From the first sleep on the lock word on.
    fn fall_asleep(&mut self, word: &AtomicU64) {
        self.slept = true;
        if self.pending.is_none() {
            // A lock word never holds a kernel thread id (see `node::threads::tokens`), so our
            // death marks nothing there.
            self.pending = Some(robust::pending_guard(futex::low_half(word)));
        }
    }
}

impl Waiter<'_> {
    /// Sleeps while `word` has the value `expected` and all `watched` threads live; 0 is nobody.
    ///
    /// # Errors
    /// When a thread cannot be asked about.
    pub(in crate::lock) fn sleep_on_many(
        &mut self,
        word: &AtomicU64,
        expected: u64,
        watched: impl Iterator<Item = u64>,
    ) -> Result<(), Refused> {
        // On the stack: a cycle that may wait must not allocate.
        let mut tokens = [const { None::<Token> }; WATCHED_MAX];
        let mut count = 0;
        for id in watched.filter(|id| *id != 0) {
            let is_known = tokens[..count].iter().flatten().any(|token| token.id() == id);
            if count == WATCHED_MAX || is_known {
                continue;
            }
            match self.threads.judge(id) {
                Ok(Verdict::Alive(token)) => {
                    tokens[count] = Some(token);
                    count += 1;
                }
                Ok(Verdict::Dead | Verdict::Ended(_)) => return Ok(()),
                Err(e) => {
                    self.failure = Some(e);
                    return Err(Refused::Failed);
                }
            }
        }
        let low = futex::low_half(word);
        let mut words = [WaitWord { word: low, expected: expected as u32 }; 1 + WATCHED_MAX];
        for (word, token) in words[1..].iter_mut().zip(tokens.iter().flatten()) {
            let seen = token.word().load(Relaxed);
            if !robust::is_alive_word(seen) {
                return Ok(());
            }
            *word = WaitWord { word: token.word(), expected: seen };
        }
        let until = self.until.min(Deadline::in_ns(slice_ns_max() / 10));
        let woken = futex::wait_many(&words[..=count], until)
            .unwrap_or_else(|_| futex::wait(low, expected as u32, until.min(self.next_look())));
        for token in tokens.iter().flatten() {
            if !token.is_alive() {
                futex::wake(token.word(), i32::MAX);
            } else if woken == Woken::Timeout && token.node_is_gone() {
                self.gone = token.id();
            }
        }
        Ok(())
    }
}

impl World for Waiter<'_> {
    fn is_dead(&mut self, holder: u64) -> Result<bool, Refused> {
        let id = holder & ID;
        if self.gone == id {
            return Ok(true);
        }
        if let Some(token) = &self.token
            && token.id() == id
            && token.is_alive()
        {
            return Ok(self.left_no_mark(token));
        }
        match self.threads.judge(id) {
            Ok(Verdict::Alive(token)) => {
                let gone = self.left_no_mark(&token);
                self.token = Some(token);
                Ok(gone)
            }
            Ok(Verdict::Dead) => Ok(true),
            Ok(Verdict::Ended(peer)) => {
                if holder & CALLS != 0 || fault("lock.leak_inherited") || peer.is_gone() {
                    return Ok(true);
                }
                if peer.may_be_ending(id) && !fault("lock.leak_told_at_exit") {
                    return Err(Refused::Leaving);
                }
                self.failure = Some(leaked(id));
                Err(Refused::Leaked)
            }
            Err(e) => {
                self.failure = Some(e);
                Err(Refused::Failed)
            }
        }
    }

    fn is_caller(&mut self, id: u64) -> bool {
        self.threads.is_caller(id)
    }

    fn spin(&mut self, busy: impl Fn() -> bool) -> bool {
        while self.rounds_left > 0 {
            self.rounds_left -= 1;
            self.spun += 1;
            std::hint::spin_loop();
            if !busy() {
                return true;
            }
        }
        false
    }

    fn expired(&mut self) -> bool {
        self.until.has_passed()
    }

    fn sleep(&mut self, word: &AtomicU64, expected: u64, watched: u64) {
        self.fall_asleep(word);
        // A tenth: a lost wake or an unmarked token then costs 100 ms.
        let slice = if fault("lock.sleep.awake") { 0 } else { slice_ns_max() / 10 };
        let until = self.until.min(Deadline::in_ns(slice));
        self.sleep_until(word, expected, watched, until);
    }

    fn stand_back(&mut self, word: &AtomicU64, expected: u64, heir: u64) -> bool {
        self.fall_asleep(word);
        let bound = Deadline::in_ns(STAND_BACK_NS);
        let until = bound.min(self.until);
        let woken = match self.is_dead(heir) {
            // No token tells of its end; the time is bounded.
            Err(Refused::Failed) if !fault("lock.heir.unjudged_awaited") => {
                let woken = futex::wait(futex::low_half(word), expected as u32, until);
                self.woken |= matches!(woken, Woken::Word(_));
                Some(woken)
            }
            _ => self.sleep_until(word, expected, heir, until),
        };
        let in_full = woken == Some(Woken::Timeout) && bound <= self.until;
        in_full && !fault("lock.heir.never_passed")
    }

    fn nap(&mut self, word: &AtomicU64, expected: u64, watched: u64) {
        let until = Deadline::in_ns(NAP_NS);
        self.sleep_until(word, expected, watched, until.min(self.until));
    }

    fn pause(&mut self) {
        sched::sleep_until(self.until.min(Deadline::in_ns(PAUSE_NS)));
    }

    fn wake(&self, word: &AtomicU64, n: i32) -> i64 {
        wake(word, n)
    }

    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn was_woken(&self) -> bool {
        self.woken || fault("lock.watch.passed_often")
    }

    fn is_starving(&mut self) -> bool {
        self.passed_over >= PASSED_OVER_MAX
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if self.until != Deadline::AT_ONCE && (self.spun > 0 || self.slept) {
            self.spin.learn(self.spun, self.slept);
        }
    }
}

#[cold]
pub(in crate::lock) fn leaked(id: u64) -> Error {
    let (node, thread) = (node_of(id), ordinal_of(id));
    let why = format!(
        "thread {thread} of node {node} has ended with a guard of it forgotten, and its process \
         may still read the data: end that process"
    );
    Error::new(ErrorKind::Unrecoverable, "taking", "a lock", why)
}

/// Wakes up to `n` sleepers of a lock word.
pub(in crate::lock) fn wake(word: &AtomicU64, n: i32) -> i64 {
    futex::wake(futex::low_half(word), n)
}
