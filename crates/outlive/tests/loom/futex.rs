//! The kernel's futex for one sleeper: it compares under a lock that a wake takes too, so that
//! the wake comes before the comparison or finds the sleeper.

use crate::loom::sync::{Condvar, Mutex};

use crate::sync::step;

pub(crate) struct Futex {
    state: Mutex<State>,
    woken: Condvar,
}

#[derive(Default)]
struct State {
    sleeping_on: Vec<usize>,
}

/// Where a word lies.
pub(crate) fn address<T>(word: &T) -> usize {
    std::ptr::from_ref(word).addr()
}

impl Futex {
    pub(crate) fn new() -> Self {
        Self { state: Mutex::new(State::default()), woken: Condvar::new() }
    }

    /// Sleeps on `words` while `unchanged`, until one of them is woken.
    pub(crate) fn wait(&self, words: &[usize], unchanged: impl FnOnce() -> bool) {
        let mut state = self.state.lock().unwrap();
        if !unchanged() {
            return;
        }
        state.sleeping_on = words.to_vec();
        while !state.sleeping_on.is_empty() {
            state = self.woken.wait(state).unwrap();
        }
    }

    /// One visible step: a thread may be killed before it.
    pub(crate) fn wake(&self, word: usize) {
        step();
        let mut state = self.state.lock().unwrap();
        if state.sleeping_on.contains(&word) {
            state.sleeping_on.clear();
            self.woken.notify_one();
        }
    }
}
