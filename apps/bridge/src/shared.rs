//! What all threads of the bridge know.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use outlive::{Domain, Error, ErrorKind, Node};

use crate::config::Config;
use crate::link::Link;
use crate::link::place::Taken;
use crate::local::room::Room;
use crate::local::speakers::Speakers;
use crate::report::Failures;
use crate::report::stats::Stats;
use crate::work::Workers;

pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) node: Node,
    pub(crate) domain: Domain,
    pub(crate) link: Arc<Link>,
    pub(crate) stats: Stats,
    pub(crate) taken: Taken,
    pub(crate) room: Arc<Room>,
    pub(crate) workers: Arc<Workers>,
    pub(crate) speakers: Speakers,
    /// A publisher of a topic that is read has come or gone.
    pub(crate) topics_changed: AtomicBool,
    /// Local nodes that stand for remote ones, by bridge and ordinal there.
    pub(crate) proxies: Mutex<HashMap<(String, u64), Node>>,
    failures: Arc<Failures>,
}

impl Shared {
    pub(crate) fn new(config: Config, node: Node, domain: Domain, link: Link) -> Self {
        let failures = Arc::<Failures>::default();
        let room = Arc::new(Room::new(config.limits, failures.clone()));
        let speakers = Speakers::new(domain.clone(), node.id());
        Self {
            config,
            node,
            domain,
            link: Arc::new(link),
            stats: Stats::default(),
            taken: Taken::default(),
            room,
            workers: Arc::new(Workers::new(failures.clone())),
            speakers,
            topics_changed: AtomicBool::new(false),
            proxies: Mutex::default(),
            failures,
        }
    }

    /// A line about what fails, and is tried again many times a second.
    pub(crate) fn say_failed(&self, line: impl fmt::Display) {
        self.failures.say(line);
    }

    /// Whether only somebody who has come cannot be carried now, for want of something: all others
    /// can. Says so of `what`.
    pub(crate) fn is_short(&self, what: &str, e: &Error) -> bool {
        use ErrorKind::{Io, NoSpace, OutOfMemory, Permission, TooManyMembers};
        let short = matches!(e.kind(), Io | NoSpace | OutOfMemory | Permission | TooManyMembers);
        if short {
            self.say_failed(format_args!(
                "{what}: who has just come is left out for now, and tried again: {e}"
            ));
        }
        short
    }

    /// The node that publishes what `id` of `bridge` has published there.
    pub(crate) fn proxy(&self, bridge: &str, id: u64) -> Option<Node> {
        let proxies = self.proxies.lock().unwrap_or_else(PoisonError::into_inner);
        proxies.get(&(bridge.to_owned(), id)).cloned()
    }
}
