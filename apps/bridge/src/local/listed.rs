//! The topics, services and queues of the domain, read again only when something has changed.
//!
//! # Theory of operation
//! | who | shows in topics | in services and queues |
//! |---|---|---|
//! | comes | in the time of the topic's directory | in that of the directory of all |
//! | leaves | to the route that reads the topic, which says so | in the same |
//! | dies | to the same | in the nodes |
//!
//! Of a topic without a route nobody needs to know who left. Who was stopped, or refused, before it
//! touched is seen late: every two seconds all is read in any case.

use std::fs::Metadata;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use outlive::{Domain, Result, queue, service, topic};

/// All is read again after so long.
const AGAIN: Duration = Duration::from_secs(2);
/// Two changes within so long may have the same time.
const TICK: Duration = Duration::from_millis(50);

/// All of one kind, as they were seen last.
pub(crate) struct Listed<T> {
    of: Of<T>,
    all: Vec<T>,
    /// None if there may have been a change that it does not tell.
    stamp: Option<u64>,
    read: Instant,
    /// To be read, whatever the stamp says.
    due: bool,
    again: Duration,
    /// How often they were.
    #[cfg(test)]
    pub(crate) reads: u32,
}

/// How they are read, and what tells of changes in the directory of all.
struct Of<T> {
    dir: &'static str,
    read: fn(&Domain) -> Result<Vec<T>>,
    stamp: fn(&Path) -> Option<u64>,
}

impl Listed<topic::Info> {
    pub(crate) fn topics() -> Self {
        Self::new(Of { dir: "topics", read: Domain::topics, stamp: of_each })
    }
}

impl Listed<service::Info> {
    pub(crate) fn services() -> Self {
        Self::new(Of { dir: "services", read: Domain::services, stamp: of_all })
    }
}

impl Listed<queue::Info> {
    pub(crate) fn queues() -> Self {
        Self::new(Of { dir: "queues", read: Domain::queues, stamp: of_all })
    }
}

impl<T> Listed<T> {
    fn new(of: Of<T>) -> Self {
        Self {
            of,
            all: Vec::new(),
            stamp: None,
            read: Instant::now(),
            due: true,
            again: AGAIN,
            #[cfg(test)]
            reads: 0,
        }
    }

    /// All of them, and whether they were read again, as they are if something is `told`.
    ///
    /// # Errors
    /// Those of reading, which the next look tries again.
    pub(crate) fn look(&mut self, domain: &Domain, told: bool) -> Result<(&[T], bool)> {
        // The stamp is taken first: a change meanwhile is seen the next time.
        let stamp = (self.of.stamp)(&domain.dir().join(self.of.dir));
        let silent = stamp.is_some() && stamp == self.stamp && self.read.elapsed() < self.again;
        let old = told || self.due || !silent;
        if old {
            self.due = true;
            #[cfg(test)]
            (self.reads += 1);
            self.all = (self.of.read)(domain)?;
            (self.stamp, self.read, self.due) = (stamp, Instant::now(), false);
        }
        Ok((&self.all, old))
    }

    /// The next look reads them.
    pub(crate) fn read_again(&mut self) {
        self.due = true;
    }

    /// However much time passes, they are read only for a reason.
    #[cfg(test)]
    pub(crate) fn without_time(self) -> Self {
        Self { again: Duration::MAX, ..self }
    }
}

/// Of that directory; none if it has just changed or cannot be asked.
fn of_all(dir: &Path) -> Option<u64> {
    stamp(&dir.metadata().ok()?, SystemTime::now())
}

/// Of all directories in it.
fn of_each(dir: &Path) -> Option<u64> {
    let (now, mut sum) = (SystemTime::now(), 0_u64);
    for topic in dir.read_dir().ok()? {
        // In whatever order they come.
        sum = sum.wrapping_add(stamp(&topic.ok()?.metadata().ok()?, now)?);
    }
    Some(sum)
}

fn stamp(dir: &Metadata, now: SystemTime) -> Option<u64> {
    // A clock that was set back makes it young, too.
    if now.duration_since(dir.modified().ok()?).is_ok_and(|age| age >= TICK) {
        let mut of = DefaultHasher::new();
        (dir.ino(), dir.mtime(), dir.mtime_nsec()).hash(&mut of);
        Some(of.finish())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::fixture::Alone;

    /// Looks until nothing is read any more.
    fn settle<T>(listed: &mut Listed<T>, domain: &Domain) {
        for _ in 0..1000 {
            if !listed.look(domain, false).expect("a domain").1 {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("they are read each time");
    }

    fn is_not_forgotten<T>(alone: &Alone, domain: &Domain, listed: Listed<T>) {
        let (dir, mut listed) = (domain.dir().join(listed.of.dir), listed.without_time());
        settle(&mut listed, domain);
        alone.without(&dir, || assert!(listed.look(domain, true).is_err()));
        assert!(listed.look(domain, false).expect("a domain").1, "they are read again");
        settle(&mut listed, domain);
        listed.read_again();
        assert!(listed.look(domain, false).expect("a domain").1, "and again");
    }

    #[test]
    fn that_something_has_changed_is_not_forgotten_while_nothing_can_be_read() {
        let alone = Alone::new("listed");
        let (shared, node) = (alone.bridge(), alone.node("robot"));
        let _topic = node.topic::<u64>("/t").and_then(|of| of.publisher()).expect("a publisher");
        let _service = node.service::<u64, u64>("/s").and_then(|of| of.server()).expect("a server");
        let _queue = node.queue::<u64>("/q").and_then(|of| of.consumer()).expect("a consumer");
        is_not_forgotten(&alone, &shared.domain, Listed::topics());
        is_not_forgotten(&alone, &shared.domain, Listed::services());
        is_not_forgotten(&alone, &shared.domain, Listed::queues());
    }

    /// Its files stay, as somebody else is there: only words in them change.
    #[test]
    fn who_serves_or_consumes_is_seen_to_come_and_leave_where_no_file_does() {
        let alone = Alone::new("words");
        let (shared, node) = (alone.bridge(), alone.node("robot"));
        let domain = &shared.domain;
        let service = || node.service::<u64, u64>("/s").expect("a name");
        let queue = || node.queue::<u64>("/q").expect("a name");
        let _client = service().client().expect("a client");
        let _producer = queue().producer().expect("a producer");
        let mut services = Listed::services().without_time();
        let mut queues = Listed::queues().without_time();
        for _ in 0..2 {
            settle(&mut services, domain);
            settle(&mut queues, domain);
            let server = service().server().expect("a server");
            let consumer = queue().consumer().expect("a consumer");
            let seen = services.look(domain, false).expect("a domain").0[0].server;
            assert_eq!(seen, Some(node.id()));
            let seen = queues.look(domain, false).expect("a domain").0[0].consumer;
            assert_eq!(seen, Some(node.id()));
            settle(&mut services, domain);
            settle(&mut queues, domain);
            drop((server, consumer));
            assert_eq!(services.look(domain, false).expect("a domain").0[0].server, None);
            assert_eq!(queues.look(domain, false).expect("a domain").0[0].consumer, None);
        }
    }
}
