//! What blows did: silences, returns, losses; and what of it counts as broken.
//!
//! A topic's *usual* silence is its longest before the first blow. Longer than five times that,
//! and than [`SILENCE_NS_MIN`], counts as a stall.

use std::collections::BTreeMap;

use serde::Serialize;

use super::plan::{Act, Blow};
use crate::look::{Life, Look, Node};
use crate::output::table;

/// Shorter silences are nobody's stall, ns.
const SILENCE_NS_MIN: u64 = 100_000_000;

/// A topic as one name of a node publishes it.
type Stream = (String, String);

#[derive(Clone, Debug, Default)]
struct Pulse {
    messages: u64,
    publisher: (u64, u64),
    /// When they last grew, ns.
    grew_ns: u64,
    /// The longest silence before the first blow, and since.
    usual_ns: u64,
    longest_ns: u64,
    /// Silences that count.
    stalls: u64,
    stalled_ns: u64,
}

#[derive(Clone, Debug)]
struct Wound {
    name: String,
    act: Act,
    node: u64,
    at_ns: u64,
    /// When a node of its name lived again, or went on.
    back_ns: Option<u64>,
    until_ns: u64,
}

#[derive(Debug)]
pub(super) struct Account {
    patience_ns: u64,
    pulses: BTreeMap<Stream, Pulse>,
    wounds: Vec<Wound>,
    missed: u64,
    lost: BTreeMap<(String, String), BTreeMap<(u64, u64), u64>>,
}

/// What is told in the end.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    seed: u64,
    kills: usize,
    stops: usize,
    /// Blows for which there was no such node.
    missed: u64,
    victims: Vec<Victim>,
    streams: Vec<Stalls>,
    losses: Vec<Losses>,
    /// Nodes that are dead and not cleaned up, and those that are stopped.
    dead: Vec<String>,
    stopped: Vec<String>,
    faults: Vec<String>,
    /// A line for each thing that is not as it was.
    pub(super) broke: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Victim {
    name: String,
    blows: usize,
    back: usize,
    longest_away_ms: u64,
}

#[derive(Debug, Serialize)]
struct Stalls {
    topic: String,
    publisher: String,
    victim: bool,
    stalls: u64,
    longest_ms: u64,
    usual_ms: u64,
}

#[derive(Debug, Serialize)]
struct Losses {
    topic: String,
    reader: String,
    lost: u64,
}

impl Account {
    pub(super) fn new(first: &Look, patience_ns: u64) -> Self {
        let (pulses, wounds, lost) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        let mut new = Self { patience_ns, pulses, wounds, missed: 0, lost };
        new.see(first);
        new
    }

    pub(super) fn hit(&mut self, blow: &Blow, node: &Node, now_ns: u64) {
        let for_ns = if blow.act == Act::Stop { blow.for_ns } else { 0 };
        self.wounds.push(Wound {
            name: blow.name.clone(),
            act: blow.act,
            node: node.id,
            at_ns: now_ns,
            back_ns: None,
            until_ns: now_ns + for_ns,
        });
    }

    /// There was no such node, or it was not to be hit.
    pub(super) fn missed(&mut self, _blow: &Blow) {
        self.missed += 1;
    }

    pub(super) fn see(&mut self, look: &Look) {
        let calm = self.wounds.is_empty();
        for topic in &look.topics {
            for p in topic.publishers.iter().filter(|p| p.life != Life::Dead && !p.closed) {
                let pulse = self.pulses.entry((topic.name.clone(), p.name.clone())).or_default();
                let id = (p.node, p.port);
                if pulse.grew_ns == 0 {
                    (pulse.grew_ns, pulse.messages, pulse.publisher) = (look.at_ns, p.messages, id);
                } else if id != pulse.publisher || p.messages != pulse.messages {
                    let newcomer_is_silent = id != pulse.publisher && p.messages == 0;
                    (pulse.messages, pulse.publisher) = (p.messages, id);
                    if !newcomer_is_silent {
                        pulse.ended(look.at_ns, calm);
                    }
                }
            }
            for reader in topic.readers.iter().filter(|r| r.lost > 0) {
                let lost = self.lost.entry((topic.name.clone(), reader.name.clone())).or_default();
                lost.insert((reader.node, reader.port), reader.lost);
            }
        }
        for wound in self.wounds.iter_mut().filter(|w| w.back_ns.is_none()) {
            let lives = |n: &Node| {
                n.name == wound.name
                    && n.life == Life::Alive
                    && (n.id != wound.node || wound.act == Act::Stop)
            };
            if look.at_ns >= wound.until_ns && look.nodes.iter().any(lives) {
                wound.back_ns = Some(look.at_ns);
            }
        }
    }

    /// Whether all victims are back and speak, or have had their time.
    pub(super) fn is_settled(&self, look: &Look) -> bool {
        let last = self.wounds.iter().map(|w| w.until_ns).max().unwrap_or(0);
        let back = self.wounds.iter().all(|w| w.back_ns.is_some());
        let speaks = self.pulses.values().all(|p| !p.is_silent(look.at_ns));
        (back && speaks) || look.at_ns > last + self.patience_ns
    }

    pub(super) fn report(mut self, seed: u64, look: &Look, faults: Vec<String>) -> Report {
        let mut broke = Vec::new();
        let is_victim = |name: &str| self.wounds.iter().any(|w| w.name == name);
        let mut names: Vec<String> = self.wounds.iter().map(|w| w.name.clone()).collect();
        names.sort();
        names.dedup();
        let victims: Vec<Victim> = names
            .iter()
            .map(|name| {
                let own: Vec<&Wound> = self.wounds.iter().filter(|w| w.name == *name).collect();
                let away = |w: &&&Wound| w.back_ns.map_or(0, |back| back - w.at_ns) / 1_000_000;
                let back = own.iter().filter(|w| w.back_ns.is_some()).count();
                if back < own.len() {
                    let kind = own.iter().find(|w| w.back_ns.is_none()).map(|w| w.act);
                    let how = if kind == Some(Act::Kill) { "a kill" } else { "a stop" };
                    broke.push(format!("node {name} did not come back after {how}"));
                }
                Victim {
                    name: name.clone(),
                    blows: own.len(),
                    back,
                    longest_away_ms: own.iter().map(|w| away(&w)).max().unwrap_or(0),
                }
            })
            .collect();
        let mut streams = Vec::new();
        for ((topic, publisher), pulse) in &mut self.pulses {
            let silent = pulse.is_silent(look.at_ns);
            let silence_ms = look.at_ns.saturating_sub(pulse.grew_ns) / 1_000_000;
            let victim = is_victim(publisher);
            let gone = victims.iter().any(|v| v.name == *publisher && v.back < v.blows);
            if silent && !gone {
                let who = if victim { "a victim that came back" } else { "a bystander" };
                broke.push(format!(
                    "{publisher} has been silent on {topic} for {silence_ms} ms: {who}"
                ));
            }
            if silent {
                pulse.ended(look.at_ns, false);
            }
            if pulse.stalls > 0 {
                streams.push(Stalls {
                    topic: topic.clone(),
                    publisher: publisher.clone(),
                    victim,
                    stalls: pulse.stalls,
                    longest_ms: pulse.longest_ns / 1_000_000,
                    usual_ms: pulse.usual_ns / 1_000_000,
                });
            }
        }
        broke.extend(faults.iter().map(|fault| format!("file not sound: {fault}")));
        let named = |life: Life| {
            let of = look.nodes.iter().filter(|n| n.life == life);
            of.map(|n| format!("{} {}", n.id, n.name)).collect::<Vec<_>>()
        };
        let losses = self.lost.into_iter().map(|((topic, reader), by)| {
            let lost = by.values().sum();
            Losses { topic, reader, lost }
        });
        let of = |act| self.wounds.iter().filter(|w| w.act == act).count();
        Report {
            seed,
            kills: of(Act::Kill),
            stops: of(Act::Stop),
            missed: self.missed,
            victims,
            streams,
            losses: losses.collect(),
            dead: named(Life::Dead),
            stopped: named(Life::Stopped),
            faults,
            broke,
        }
    }
}

impl Pulse {
    fn limit_ns(&self) -> u64 {
        (5 * self.usual_ns).max(SILENCE_NS_MIN)
    }

    /// Whether it spoke more than once and has now been silent for too long.
    fn is_silent(&self, now_ns: u64) -> bool {
        self.usual_ns > 0 && now_ns.saturating_sub(self.grew_ns) > self.limit_ns()
    }

    /// A silence has ended.
    fn ended(&mut self, now_ns: u64, calm: bool) {
        let silence_ns = now_ns.saturating_sub(self.grew_ns);
        self.grew_ns = now_ns;
        if calm {
            self.usual_ns = self.usual_ns.max(silence_ns);
        } else if self.usual_ns > 0 && silence_ns > self.limit_ns() {
            self.stalls += 1;
            self.stalled_ns += silence_ns;
            self.longest_ns = self.longest_ns.max(silence_ns);
        }
    }
}

impl Report {
    pub(super) fn text(&self) -> String {
        let Self { seed, kills, stops, missed, .. } = self;
        let mut text = format!("chaos: seed {seed}, {kills} kills, {stops} stops");
        text += &if *missed > 0 { format!(", {missed} had no target\n\n") } else { "\n\n".into() };
        let mut cells = vec![["VICTIM", "HITS", "BACK", "LONGEST AWAY"].map(String::from).to_vec()];
        cells.extend(self.victims.iter().map(|v| {
            let away = format!("{} ms", v.longest_away_ms);
            vec![v.name.clone(), v.blows.to_string(), v.back.to_string(), away]
        }));
        text += &table(&cells, &[1, 2, 3]);
        if !self.streams.is_empty() {
            let head = ["STALLED", "ON", "WHO", "TIMES", "LONGEST", "USUAL"];
            let mut cells = vec![head.map(String::from).to_vec()];
            cells.extend(self.streams.iter().map(|s| {
                let who = if s.victim { "victim" } else { "bystander" };
                let ms = |ms: u64| format!("{ms} ms");
                let (longest, usual) = (ms(s.longest_ms), ms(s.usual_ms));
                let times = s.stalls.to_string();
                vec![s.publisher.clone(), s.topic.clone(), who.into(), times, longest, usual]
            }));
            text += &format!("\n{}", table(&cells, &[3, 4, 5]));
        }
        if !self.losses.is_empty() {
            let mut cells = vec![["LOST", "ON", "BY"].map(String::from).to_vec()];
            let row = |l: &Losses| vec![l.lost.to_string(), l.topic.clone(), l.reader.clone()];
            cells.extend(self.losses.iter().map(row));
            text += &format!("\n{}", table(&cells, &[0]));
        }
        for (what, names) in [("dead, not cleaned up", &self.dead), ("stopped", &self.stopped)] {
            if !names.is_empty() {
                text += &format!("\nleft {what}: {}\n", names.join(", "));
            }
        }
        text += "\n";
        for line in &self.broke {
            text += &format!("broke: {line}\n");
        }
        if self.broke.is_empty() {
            text += "nothing broke: everybody came back, and all files are sound\n";
        }
        text
    }
}
