//! The kernel as locks need it: a futex for several sleepers, words that tell of a thread's death,
//! and what it does for a thread that dies with a pending operation.

use crate::loom::sync::{Condvar, Mutex};

use crate::futex::address;
use crate::lock::mutex::word::{ID, Refused, World};
use crate::sync::Ordering::{Acquire, Relaxed, Release};
use crate::sync::{AtomicU64, fault, kill_after, step};

/// Threads of a model are 1, 2, 3: their ids, and their tokens' places.
pub(crate) const THREADS: usize = 4;

pub(crate) struct Kernel {
    sleepers: Mutex<Vec<Sleeper>>,
    woken: Condvar,
    /// 1 while the thread lives.
    tokens: Vec<AtomicU64>,
}

struct Sleeper {
    id: u64,
    words: [usize; 2],
}

impl Kernel {
    pub(crate) fn new() -> Self {
        let tokens = (0..THREADS).map(|_| AtomicU64::new(1)).collect();
        Self { sleepers: Mutex::new(Vec::new()), woken: Condvar::new(), tokens }
    }

    fn token(&self, id: u64) -> &AtomicU64 {
        &self.tokens[id as usize]
    }

    fn wait(&self, id: u64, words: [usize; 2], unchanged: impl FnOnce() -> bool) {
        let mut sleepers = self.sleepers.lock().unwrap();
        if !unchanged() {
            return;
        }
        sleepers.push(Sleeper { id, words });
        while sleepers.iter().any(|s| s.id == id) {
            sleepers = self.woken.wait(sleepers).unwrap();
        }
    }

    fn wake_address(&self, word: usize, n: i32) -> i64 {
        let mut sleepers = self.sleepers.lock().unwrap();
        let mut woken = 0;
        sleepers.retain(|s| {
            let wake = s.words.contains(&word) && woken < i64::from(n);
            woken += i64::from(wake);
            !wake
        });
        self.woken.notify_all();
        woken
    }

    /// One visible step: a thread may be killed before it.
    pub(crate) fn wake(&self, word: &AtomicU64, n: i32) -> i64 {
        step();
        self.wake_address(address(word), n)
    }

    /// Runs `body` as thread `id` and kills it after `steps` visible steps; true if it was over
    /// before. Then the kernel looks at the pending operation, marks the token, wakes one sleeper.
    pub(crate) fn thread(&self, id: u64, steps: u32, body: impl FnOnce(&mut Side<'_>)) -> bool {
        let mut side = Side::new(self, id);
        let lived = kill_after(steps, || body(&mut side));
        if !lived {
            if let Some(word) = side.pending
                // SAFETY: a word of the model, which outlives its threads.
                && unsafe { &*word }.load(Relaxed) & ID == 0
            {
                self.wake_address(word.addr(), 1);
            }
        }
        if !lived || side.ends {
            self.token(id).store(0, Release);
            self.wake_address(address(self.token(id)), 1);
        }
        lived
    }
}

/// What one thread knows of the world.
pub(crate) struct Side<'a> {
    kernel: &'a Kernel,
    pub(crate) me: u64,
    /// Gives up instead of sleeping.
    pub(crate) tries: bool,
    /// Wants to be the heir after its first sleep.
    pub(crate) greedy: bool,
    /// The thread ends when its body does, and its token says so.
    pub(crate) ends: bool,
    slept: bool,
    pending: Option<*const AtomicU64>,
}

impl<'a> Side<'a> {
    fn new(kernel: &'a Kernel, me: u64) -> Self {
        Self { kernel, me, tries: false, greedy: false, ends: false, slept: false, pending: None }
    }

    /// The end of a call.
    pub(crate) fn done(&mut self) {
        self.pending = None;
        self.slept = false;
    }
}

impl World for Side<'_> {
    fn is_dead(&mut self, id: u64) -> Result<bool, Refused> {
        Ok(self.kernel.token(id & ID).load(Acquire) == 0)
    }

    fn is_caller(&mut self, _: u64) -> bool {
        false
    }

    fn spin(&mut self, _: impl Fn() -> bool) -> bool {
        false
    }

    fn expired(&mut self) -> bool {
        self.tries
    }

    fn sleep(&mut self, word: &AtomicU64, expected: u64, watched: u64) {
        if !fault("kernel.no_pending") {
            self.pending = Some(word);
        }
        self.slept = true;
        let token = self.kernel.token(watched);
        let words = [address(word), address(token)];
        let alive = || fault("kernel.no_token") || token.load(Relaxed) == 1;
        self.kernel.wait(self.me, words, || word.load(Relaxed) == expected && alive());
        if token.load(Acquire) == 0 && !fault("kernel.no_pass_on") {
            self.kernel.wake_address(address(token), i32::MAX);
        }
        // Killed right after its wake.
        step();
    }

    // Ends unwoken, the worst case.
    fn nap(&mut self, _: &AtomicU64, _: u64, _: u64) {}

    fn pause(&mut self) {
        crate::loom::thread::yield_now();
    }

    fn wake(&self, word: &AtomicU64, n: i32) -> i64 {
        self.kernel.wake(word, n)
    }

    fn was_woken(&self) -> bool {
        self.slept
    }

    fn is_starving(&mut self) -> bool {
        self.greedy && self.slept
    }

    // Never long enough: an heir that lives has to come.
    fn stand_back(&mut self, word: &AtomicU64, expected: u64, heir: u64) -> bool {
        self.sleep(word, expected, heir);
        false
    }

    // Stands still: as above.
    fn now_ns(&self) -> u64 {
        0
    }
}
