//! Why something could not be carried, and how often that is said.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::log::say;

/// What fails again and again is said again after so long.
const AGAIN: Duration = Duration::from_secs(30);
/// Different failures that are remembered at most.
const FAILURES_MAX: usize = 1024;

pub(crate) type Failed = Box<dyn std::error::Error + Send + Sync>;

/// What fails, and is tried again many times a second: said now and then.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<Said>);

impl Failures {
    /// A line about it.
    pub(crate) fn say(&self, line: impl fmt::Display) {
        let mut said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let line = said.again(line.to_string(), Instant::now());
        drop(said);
        let _ = line.map(say);
    }
}

/// Lines by when they were said, and how often they were not since.
#[derive(Debug, Default)]
struct Said(HashMap<String, (Instant, u64)>);

impl Said {
    /// What is to be said of `line` now.
    fn again(&mut self, line: String, now: Instant) -> Option<String> {
        let recent = |at: Instant| now.saturating_duration_since(at) < AGAIN;
        if let Some((at, unsaid)) = self.0.get_mut(&line) {
            if recent(*at) {
                *unsaid += 1;
                return None;
            }
            let text = format!("{line} (and {unsaid} times since it was last said)");
            (*at, *unsaid) = (now, 0);
            return Some(text);
        }
        if self.0.len() >= FAILURES_MAX {
            self.0.retain(|_, (at, _)| recent(*at));
        }
        if self.0.len() >= FAILURES_MAX {
            self.0.clear();
        }
        self.0.insert(line.clone(), (now, 0));
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_again_is_said_now_and_then_and_counted() {
        let (mut failures, begun) = (Said::default(), Instant::now());
        let mut at = |ms| failures.again("x".into(), begun + Duration::from_millis(ms));
        assert_eq!(at(0).as_deref(), Some("x"));
        assert!((1..300).all(|n| at(100 * n).is_none()));
        assert_eq!(at(30_000).as_deref(), Some("x (and 299 times since it was last said)"));
        assert!(at(30_100).is_none());
        for n in 0..3 * FAILURES_MAX {
            assert!(failures.again(format!("{n}"), begun).is_some());
            assert!(failures.0.len() <= FAILURES_MAX);
        }
    }
}
