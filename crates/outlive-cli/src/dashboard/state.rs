//! What the page asks for again and again, as JSON.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlive::{Deadline, Domain};
use serde_json::{Map, Value, json};

use super::journal::Journal;
use crate::look::{Look, Topic};
use crate::options::sleep_until;
use crate::{os, queue, service};

/// Between two looks at the nodes alone.
const NODES_EVERY: Duration = Duration::from_millis(100);

/// The newest look and the journal.
pub(super) struct Board {
    domain: Domain,
    name: String,
    every: Duration,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    look: Option<Look>,
    journal: Journal,
    error: Option<String>,
}

impl Board {
    pub(super) fn new(domain: Domain, name: String, every: Duration) -> Self {
        Self { domain, name, every, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks until a signal asks to stop.
    pub(super) fn look_on(&self) {
        let mut next = Deadline::AT_ONCE;
        while !os::stop_asked() {
            let done = if next.has_passed() {
                next = Deadline::after(self.every);
                self.look()
            } else {
                Look::nodes(&self.domain).map(|nodes| self.seen().journal.see_nodes(&nodes))
            };
            self.seen().error = done.err().map(|e| e.to_string());
            sleep_until(next.min(Deadline::after(NODES_EVERY)));
        }
    }

    fn look(&self) -> outlive::Result<()> {
        // Who asks meanwhile gets the look before.
        let before = self.seen().look.clone();
        let look = Look::whole(&self.domain, before.as_ref())?;
        let mut seen = self.seen();
        seen.journal.see(&look, before.as_ref());
        seen.look = Some(look);
        Ok(())
    }

    /// All of it; `watched` is what the subscribers know, `own` their node.
    pub(super) fn json(&self, own: Option<u64>, watched: Option<Value>) -> String {
        let seen = self.seen();
        let none = Look::default();
        let look = seen.look.as_ref().unwrap_or(&none);
        let nodes = look.nodes.iter().chain(seen.journal.gone());
        let queues: Vec<_> = look.queues.iter().cloned().map(queue::Row::of).collect();
        let services: Vec<_> = look.services.iter().cloned().map(service::Row::of).collect();
        let locks = look.locks.iter().map(|lock| {
            let mood = json!(lock.mood());
            with(json!(lock), [("mood", mood)])
        });
        json!({
            "domain": self.name,
            "at_ns": look.at_ns,
            "every_ms": self.every.as_millis() as u64,
            "error": seen.error,
            "deaths": seen.journal.deaths(),
            "nodes": nodes.collect::<Vec<_>>(),
            "topics": look.topics.iter().map(topic).collect::<Vec<_>>(),
            "queues": queues,
            "services": services,
            "locks": locks.collect::<Vec<_>>(),
            "events": seen.journal.events().collect::<Vec<_>>(),
            "own": own,
            "watched": watched,
        })
        .to_string()
    }
}

fn with<const N: usize>(value: Value, more: [(&str, Value); N]) -> Value {
    let mut fields = match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    fields.extend(more.map(|(key, value)| (key.to_owned(), value)));
    fields.into()
}

fn topic(topic: &Topic) -> Value {
    let (state, mood) = topic.state();
    let more = [
        ("hz", json!(topic.hz())),
        ("bytes_per_s", json!(topic.bytes_per_s())),
        ("messages", json!(topic.messages())),
        ("memory_bytes", json!(topic.memory_bytes())),
        ("lag", json!(topic.lag())),
        ("lost", json!(topic.lost())),
        ("state", json!(state)),
        ("mood", json!(mood)),
    ];
    with(json!(topic), more)
}
