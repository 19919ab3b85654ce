//! How work is asked to end, and says that nothing is left of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};

const RUNS: u8 = 0;
const ASKED: u8 = 1;
const ENDS: u8 = 2;

/// What a route has been asked. Only the words count; nothing else is passed through it.
///
/// | from | to | by |
/// |---|---|---|
/// | runs | asked to end | the table of routes |
/// | asked | runs | the table, which wants it after all |
/// | asked | ends | the thread, which lets go of what it has from then on |
#[derive(Debug, Default)]
pub(crate) struct Stop {
    asked: AtomicU8,
    /// Nothing is left of it.
    gone: AtomicBool,
}

impl Stop {
    /// Whether it is to end.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Relaxed) != RUNS
    }

    /// Asked by the thread when it is ready to end: whether it is still to, for good.
    pub(crate) fn ends(&self) -> bool {
        self.turn(ASKED, ENDS)
    }

    /// For threads that are always ready: whether to go on.
    pub(crate) fn goes_on(&self) -> bool {
        !self.is_asked() || !self.ends()
    }

    /// One that was asked before it began.
    #[cfg(test)]
    pub(crate) fn asked() -> Self {
        Self { asked: AtomicU8::new(ASKED), ..Self::default() }
    }

    /// Asks it to end; false if it was asked before.
    pub(crate) fn ask(&self) -> bool {
        !self.is_asked() && self.turn(RUNS, ASKED)
    }

    /// Takes that back, unless it comes too late.
    pub(crate) fn call_back(&self) {
        self.turn(ASKED, RUNS);
    }

    /// Whether nothing is left of it.
    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// Whether it ended for good after it was asked to.
    pub(crate) fn has_agreed(&self) -> bool {
        self.asked.load(Relaxed) == ENDS
    }

    fn turn(&self, from: u8, to: u8) -> bool {
        self.asked.compare_exchange(from, to, Relaxed, Relaxed).is_ok()
            || self.asked.load(Relaxed) == to
    }
}

/// Says at its end that nothing is left.
pub(crate) struct Ending(pub(crate) Arc<Stop>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.gone.store(true, Relaxed);
    }
}

impl std::ops::Deref for Ending {
    type Target = Stop;

    fn deref(&self) -> &Stop {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_called_back_in_time_goes_on() {
        let stop = Stop::default();
        assert!(stop.goes_on() && !stop.ends());
        assert!(stop.turn(RUNS, ASKED) && stop.is_asked());
        assert!(stop.turn(ASKED, RUNS) && stop.goes_on());
        stop.turn(RUNS, ASKED);
        assert!(stop.ends(), "for good");
        stop.turn(ASKED, RUNS);
        assert!(stop.ends() && !stop.goes_on());
    }
}
