//! What happened: deaths, departures, losses, by comparing one look with the next.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use crate::look::{Life, Look, Node};

/// Events that are kept.
const EVENTS_MAX: usize = 200;
/// How long a dead node is shown after its files were removed.
const SHOWN_DEAD: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Serialize)]
pub(super) struct Event {
    id: u64,
    /// ms since 1970.
    time_ms: u64,
    kind: &'static str,
    text: String,
    /// What may happen again and again, and is then counted.
    #[serde(skip)]
    key: Option<String>,
    #[serde(skip)]
    count: u64,
}

/// The events, and what was last known of every node.
#[derive(Debug, Default)]
pub(super) struct Journal {
    events: VecDeque<Event>,
    next: u64,
    nodes: BTreeMap<u64, Node>,
    dead: Vec<(Node, Instant)>,
    deaths: u64,
    begun: bool,
}

impl Journal {
    pub(super) fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }

    /// Nodes seen to die, or dead at the first look.
    pub(super) fn deaths(&self) -> u64 {
        self.deaths
    }

    /// Nodes that died lately and whose files are gone already.
    pub(super) fn gone(&self) -> impl Iterator<Item = &Node> {
        self.dead.iter().map(|(node, _)| node).filter(|node| !self.nodes.contains_key(&node.id))
    }

    fn note(&mut self, kind: &'static str, text: String) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time_ms = now.as_millis() as u64;
        let event = Event { id: self.next, time_ms, kind, text, key: None, count: 0 };
        self.next += 1;
        self.events.push_back(event);
        if self.events.len() > EVENTS_MAX {
            self.events.pop_front();
        }
    }

    /// One that may come with every look: a newer one takes the place of the one before, with the
    /// sum.
    fn note_again(
        &mut self,
        kind: &'static str,
        key: &str,
        more: u64,
        text: impl Fn(u64) -> String,
    ) {
        let recent = self.events.iter().rev().take(20).find(|e| e.key.as_deref() == Some(key));
        let count = more + recent.map_or(0, |e| e.count);
        if let Some(id) = recent.map(|e| e.id) {
            self.events.retain(|e| e.id != id);
        }
        self.note(kind, text(count));
        if let Some(event) = self.events.back_mut() {
            (event.key, event.count) = (Some(key.to_owned()), count);
        }
    }

    /// Nodes alone: often, so that few deaths fall between two looks.
    pub(super) fn see_nodes(&mut self, nodes: &[Node]) {
        self.dead.retain(|(_, since)| since.elapsed() < SHOWN_DEAD);
        for node in nodes {
            let was = self.nodes.get(&node.id).map(|was| was.life);
            let who = format!("{} {} (pid {})", node.id, node.name, node.pid);
            match (was, node.life) {
                (None, Life::Dead) => self.died(node, format!("{who} is dead")),
                (Some(Life::Alive | Life::Stopped), Life::Dead) => {
                    self.died(node, format!("{who} died"));
                }
                (None, _) if self.begun => self.note("joined", format!("{who} joined")),
                (None | Some(Life::Alive), Life::Stopped) => {
                    self.note("stopped", format!("{who} is stopped"));
                }
                (Some(Life::Stopped), Life::Alive) => self.note("joined", format!("{who} goes on")),
                _ => {}
            }
        }
        let here = |id: &u64| nodes.iter().any(|n| n.id == *id);
        let left: Vec<u64> = self.nodes.keys().filter(|id| !here(id)).copied().collect();
        for id in left {
            let Some(node) = self.nodes.remove(&id) else { continue };
            // The files of a dead node are removed by the next one that joins.
            if node.life != Life::Dead {
                self.note("left", format!("{} {} (pid {}) left", node.id, node.name, node.pid));
            }
        }
        for node in nodes {
            let known = self.nodes.entry(node.id).or_insert_with(|| node.clone());
            known.life = node.life;
        }
        self.begun = true;
    }

    fn died(&mut self, node: &Node, text: String) {
        self.deaths += 1;
        self.note("died", text);
        let mut node = self.nodes.get(&node.id).unwrap_or(node).clone();
        node.life = Life::Dead;
        self.dead.push((node, Instant::now()));
    }

    /// Everything.
    pub(super) fn see(&mut self, look: &Look, before: Option<&Look>) {
        self.see_nodes(&look.nodes);
        for node in &look.nodes {
            self.nodes.insert(node.id, node.clone());
            // What it published is known a little later than its death.
            if let Some((dead, _)) = self.dead.iter_mut().find(|(dead, _)| dead.id == node.id) {
                *dead = node.clone();
            }
        }
        let Some(before) = before else { return };
        self.losses(look, before);
        for lock in &look.locks {
            let was = before.locks.iter().find(|l| l.name == lock.name);
            let news = ["abandoned", "unrecoverable"].contains(&lock.state);
            if news && was.is_some_and(|was| was.state != lock.state) {
                self.note("lock", format!("{} {} is {}", lock.kind, lock.name, lock.state));
            }
        }
        for queue in &look.queues {
            let was = before.queues.iter().find(|q| q.name == queue.name);
            if let (Some(node), None) = (was.and_then(|was| was.consumer), queue.consumer) {
                self.note(
                    "lock",
                    format!("queue {} has lost its consumer, node {node}", queue.name),
                );
            }
        }
        for service in &look.services {
            let was = before.services.iter().find(|s| s.name == service.name);
            if let (Some(node), None) = (was.and_then(|was| was.server), service.server) {
                self.note(
                    "lock",
                    format!("service {} has lost its server, node {node}", service.name),
                );
            }
        }
    }

    fn losses(&mut self, look: &Look, before: &Look) {
        for topic in &look.topics {
            let Some(was) = before.topics.iter().find(|t| t.name == topic.name) else { continue };
            for reader in &topic.readers {
                let same =
                    |r: &&crate::look::Reader| (r.node, r.port) == (reader.node, reader.port);
                let lost = reader.lost - was.readers.iter().find(same).map_or(0, |r| r.lost);
                if lost > 0 {
                    let key = format!("{} {}.{}", topic.name, reader.node, reader.port);
                    let (who, of) = (&reader.name, &topic.name);
                    self.note_again("loss", &key, lost, |n| format!("{who} lost {n} of {of}"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::look::{Reader, Topic};

    fn node(id: u64, life: Life) -> Node {
        Node { id, name: format!("n{id}"), pid: 100 + id as u32, life, ..Node::default() }
    }

    fn texts(journal: &Journal) -> Vec<String> {
        journal.events().map(|e| format!("{}: {}", e.kind, e.text)).collect()
    }

    #[test]
    fn deaths_departures_and_newcomers_are_told_once() {
        let mut journal = Journal::default();
        journal.see_nodes(&[node(1, Life::Alive), node(2, Life::Alive)]);
        assert!(texts(&journal).is_empty(), "nodes from before are not news");
        for _ in 0..2 {
            journal.see_nodes(&[node(1, Life::Dead), node(3, Life::Alive)]);
        }
        journal.see_nodes(&[node(3, Life::Stopped)]);
        journal.see_nodes(&[node(3, Life::Alive)]);
        let wanted = [
            "died: 1 n1 (pid 101) died",
            "joined: 3 n3 (pid 103) joined",
            "left: 2 n2 (pid 102) left",
            "stopped: 3 n3 (pid 103) is stopped",
            "joined: 3 n3 (pid 103) goes on",
        ];
        assert_eq!(texts(&journal), wanted);
        assert_eq!(journal.deaths(), 1);
        // Its files are gone, it is shown for a while.
        assert_eq!(journal.gone().map(|n| n.id).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn losses_of_one_reader_are_summed_up() {
        let look = |lost: u64| {
            let reader =
                Reader { node: 1, port: 1, name: "slow".into(), lost, ..Reader::default() };
            let topic = Topic { name: "/t".into(), readers: vec![reader], ..Topic::default() };
            Look { topics: vec![topic], ..Look::default() }
        };
        let mut journal = Journal::default();
        for (before, now) in [(0, 3), (3, 3), (3, 10)] {
            journal.see(&look(now), Some(&look(before)));
        }
        assert_eq!(texts(&journal), ["loss: slow lost 10 of /t"]);
    }

    #[test]
    fn only_so_many_are_kept() {
        let mut journal = Journal::default();
        (0..EVENTS_MAX + 50).for_each(|i| journal.note("lock", i.to_string()));
        assert_eq!(journal.events().count(), EVENTS_MAX);
        assert_eq!(journal.events().next().unwrap().id, 50);
    }
}
