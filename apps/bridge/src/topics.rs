//! The topics of the domain, read again only when something has changed.
//!
//! # Theory of operation
//! Who joins a topic makes a file in its directory, whose time tells. Who leaves or dies may change
//! nothing there: the route that reads the topic sees it and says so (`Shared::topics_changed`); of
//! a topic without a route nobody needs to know. Every two seconds all is read in any case.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

use outlive::topic;

use crate::shared::Shared;

/// All is read again after so long.
const AGAIN: Duration = Duration::from_secs(2);
/// Two changes within so long may have the same time.
const TICK: Duration = Duration::from_millis(50);

/// What was seen last.
pub(crate) struct Topics {
    all: Vec<topic::Info>,
    /// None if there may have been a change that it does not tell.
    stamp: Option<u64>,
    read: Instant,
}

impl Topics {
    pub(crate) fn new() -> Self {
        Self { all: Vec::new(), stamp: None, read: Instant::now() }
    }

    /// All topics, and whether they were read again.
    pub(crate) fn look(&mut self, shared: &Shared) -> outlive::Result<(&[topic::Info], bool)> {
        // The stamp is taken first: a change meanwhile is seen the next time.
        let stamp = stamp(shared);
        let told = shared.topics_changed.swap(false, Relaxed);
        let old = told || stamp.is_none() || stamp != self.stamp || self.read.elapsed() >= AGAIN;
        if old {
            let all = shared.domain.topics();
            // What was told is still to be seen.
            let all = all.inspect_err(|_| shared.topics_changed.store(true, Relaxed));
            self.all = all?;
            (self.stamp, self.read) = (stamp, Instant::now());
        }
        Ok((&self.all, old))
    }
}

/// Of the directories of all topics; none if one of them has just changed or cannot be asked.
fn stamp(shared: &Shared) -> Option<u64> {
    let (now, mut sum) = (SystemTime::now(), 0_u64);
    for topic in shared.domain.dir().join("topics").read_dir().ok()? {
        let dir = topic.ok()?.metadata().ok()?;
        // A clock that was set back makes it young, too.
        if now.duration_since(dir.modified().ok()?).is_ok_and(|age| age >= TICK) {
            let mut of = DefaultHasher::new();
            (dir.ino(), dir.mtime(), dir.mtime_nsec()).hash(&mut of);
            // In whatever order they come.
            sum = sum.wrapping_add(of.finish());
        } else {
            return None;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Alone;

    #[test]
    fn that_something_has_changed_is_not_forgotten_while_topics_cannot_be_read() {
        let alone = Alone::new("topics");
        let shared = alone.bridge();
        let mut topics = Topics::new();
        shared.topics_changed.store(true, Relaxed);
        let dir = shared.domain.dir().join("topics");
        alone.without(&dir, || assert!(topics.look(&shared).is_err()));
        assert!(shared.topics_changed.load(Relaxed));
        assert!(topics.look(&shared).expect("a domain").1, "they are read again");
        assert!(!shared.topics_changed.load(Relaxed));
    }
}
