//! Sleeping until a peer writes, leaves or dies.
//!
//! # Theory of operation
//! A sleeper waits on words that the writers' own commits change, on the writers' liveness tokens
//! and on the topic's bell, all through read-only maps. Its waiting flag is only a request that
//! makes writers call wake; it is never what the sleeper sleeps on, so no wake can be lost to it.
//! How flag and first sleep make up for the barrier that writers do without: `handshake`.
//!
//! Without `futex_waitv` one writer is waited for on its word and several on the sleeper's
//! doorbell; tokens are then polled every `POLL_NS`. A file descriptor and a futex cannot be waited
//! for together: with descriptors in the wait, writers call a socket instead (`bridge`).
//!
//! | module | what |
//! |---|---|
//! | `set` | waiting for many members at once: begin here |
//! | `member/` | what can be a member, and those that are not ports |
//! | `alone`, `news` | what a port needs that waits by itself; what it noticed meanwhile |
//! | `wake/` | the handshake with writers, their calls, doorbells, deaths, one descriptor for all |
//!
//! May use `os`, `domain`, `types` and `node`. After `set` read `wake/handshake`.

pub(crate) mod alone;
pub(crate) mod member;
pub(crate) mod news;
mod set;
#[cfg(test)]
mod tests;
pub(crate) mod wake;

use crate::node::peer::End;
use crate::os::death::robust;
use crate::os::sleep::futex;
use crate::os::sleep::futex::{WaitWord, Woken};
use crate::os::sleep::slice::{Looks, POLL_NS};
use crate::os::time::deadline::Deadline;
use crate::sync::AtomicU32;
use crate::sync::Ordering::Relaxed;
pub use member::Waitable;
pub use member::descriptor::Descriptor;
pub use member::interrupt::Interrupt;
pub use member::shutdown::Shutdown;
pub use member::timer::Timer;
pub use set::{Ready, WaitSet};
use wake::handshake::Slept;

/// Most words that one `futex_waitv` takes.
const WORDS_MAX: usize = 128;

/// What an empty place of a sleep refers to.
static NOTHING: AtomicU32 = AtomicU32::new(0);

/// The words of one sleep: those that commits change, bells and tokens.
#[derive(Debug)]
pub(crate) struct SleepSet<'a> {
    words: [WaitWord<'a>; WORDS_MAX],
    len: usize,
    /// Which of them are tokens: bit i for word i.
    tokens: u128,
    /// The word to sleep on where there can be only one.
    main: Option<usize>,
    /// First token, if any: our death while asleep on it passes its wake on.
    token: Option<&'a AtomicU32>,
    overflow: bool,
    poll: bool,
    /// Between two looks for deaths, where a sleep cannot be on tokens, too.
    look_ns: u64,
}

impl<'a> SleepSet<'a> {
    pub(crate) fn empty() -> Self {
        let nothing = WaitWord { word: &NOTHING, expected: 0 };
        let words = [nothing; WORDS_MAX];
        Self {
            words,
            len: 0,
            tokens: 0,
            main: None,
            token: None,
            overflow: false,
            poll: false,
            look_ns: POLL_NS,
        }
    }

    /// Begins with a word that is there besides those of writers: the topic's bell.
    pub(crate) fn new(word: &'a AtomicU32, expected: u32) -> Self {
        let mut set = Self::empty();
        set.push(word, expected);
        set
    }

    /// A word that a writer's commit changes.
    pub(crate) fn word(&mut self, word: &'a AtomicU32, expected: u32) {
        self.main = self.main.or(Some(self.len));
        self.push(word, expected);
    }

    /// Any other word.
    pub(crate) fn push(&mut self, word: &'a AtomicU32, expected: u32) {
        match self.words.get_mut(self.len) {
            Some(place) => {
                *place = WaitWord { word, expected };
                self.len += 1;
            }
            None => self.overflow = true,
        }
    }

    /// More was added than one sleep takes.
    pub(crate) fn overflows(&self) -> bool {
        self.overflow
    }

    /// Looks again every `POLL_NS`: something cannot be slept on.
    pub(crate) fn set_poll(&mut self) {
        self.poll = true;
    }

    /// When to look for deaths, where a sleep cannot be on tokens, too; else every `POLL_NS`.
    pub(crate) fn look(&mut self, looks: Looks) {
        self.look_ns = looks.pause_ns();
    }

    /// The end of a node that was judged alive after this was read.
    pub(crate) fn end(&mut self, end: End<'a>) {
        self.poll |= end.has_begun;
        if end.is_token && self.token.is_none() {
            self.token = Some(end.word);
        }
        // Ports of one node often come one after the other.
        if self.words[..self.len].iter().rev().any(|w| std::ptr::eq(w.word, end.word)) {
            return;
        }
        if end.is_token {
            self.tokens |= 1u128.checked_shl(self.len as u32).unwrap_or(0);
        }
        self.push(end.word, end.seen);
    }

    /// Sleeps until a word changes, at most until `until`.
    ///
    /// # Crash safety
    /// Dying here: the kernel passes the wake of the first token on (`pending_guard`); sleepers
    /// on further tokens wake at the end of their slice at the latest.
    pub(crate) fn sleep(&self, until: Deadline) -> Slept {
        let words = &self.words[..self.len];
        let _pending = self.token.map(robust::pending_guard);
        let look_ns = if self.poll { POLL_NS } else { self.look_ns };
        let poll_until = until.min(Deadline::in_ns(look_ns));
        let woken = match futex::wait_many(words, if self.poll { poll_until } else { until }) {
            Ok(woken) => woken,
            Err(_) if self.len == 0 => futex::wait(&NOTHING, 0, until),
            Err(_) => {
                let w = self.words[self.main.unwrap_or(0)];
                futex::wait(w.word, w.expected, poll_until)
            }
        };
        if woken == Woken::Timeout {
            return Slept::Slice;
        }
        self.pass_on();
        Slept::Woken
    }

    /// A token changes once, at its holder's end, and the kernel wakes one waiter: wake the others.
    fn pass_on(&self) {
        for (i, w) in self.words[..self.len].iter().enumerate() {
            if self.tokens >> i & 1 == 1 && w.word.load(Relaxed) != w.expected {
                robust::pass_on(w.word);
            }
        }
    }
}
