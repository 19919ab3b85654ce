//! What is shown, and what keys do. It knows no terminal.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::look::{Life, Lock, Look, Mood, Node, Topic};
use crate::output::bytes;

/// The lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Topics,
    Nodes,
    Locks,
}

impl View {
    pub(super) const ALL: [Self; 3] = [Self::Topics, Self::Nodes, Self::Locks];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Topics => "topics",
            Self::Nodes => "nodes",
            Self::Locks => "locks",
        }
    }

    /// Head and least width of each column; those after the first are to the right if numbers.
    pub(super) fn columns(self) -> &'static [(&'static str, u16)] {
        match self {
            Self::Topics => &[
                ("TOPIC", 18),
                ("HZ", 8),
                ("BYTES/S", 9),
                ("MEMORY", 9),
                ("LAG", 6),
                ("LOST", 7),
                ("STATE", 14),
            ],
            Self::Nodes => &[
                ("NODE", 18),
                ("PID", 8),
                ("STATE", 8),
                ("UP", 9),
                ("OUT", 4),
                ("IN", 4),
                ("HELD", 5),
                ("MEMORY", 9),
                ("LOCKS", 6),
            ],
            Self::Locks => &[
                ("LOCK", 22),
                ("KIND", 10),
                ("STATE", 14),
                ("HOLDER", 16),
                ("WAIT", 5),
                ("USERS", 6),
            ],
        }
    }
}

/// One line of a list: what is shown, what it is sorted by.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) key: String,
    pub(super) cells: Vec<String>,
    weights: Vec<f64>,
    pub(super) mood: Mood,
}

#[derive(Debug)]
pub(super) struct App {
    pub(super) domain: String,
    pub(super) view: View,
    pub(super) look: Look,
    /// Column, and whether the largest come last.
    pub(super) sort: (usize, bool),
    pub(super) filter: String,
    pub(super) typing: bool,
    pub(super) paused: bool,
    pub(super) chosen: usize,
    /// The name that is shown in detail.
    pub(super) detail: Option<String>,
    pub(super) leaves: bool,
}

impl App {
    pub(super) fn new(domain: String) -> Self {
        Self {
            domain,
            view: View::Topics,
            look: Look::default(),
            sort: (0, false),
            filter: String::new(),
            typing: false,
            paused: false,
            chosen: 0,
            detail: None,
            leaves: false,
        }
    }

    /// Takes a new look, unless it holds still.
    pub(super) fn see(&mut self, look: &Look) {
        if !self.paused {
            self.look = look.clone();
        }
    }

    pub(super) fn key(&mut self, key: KeyEvent) {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            self.leaves |= key.code == KeyCode::Char('c');
            return;
        }
        if self.typing {
            match key.code {
                KeyCode::Enter => self.typing = false,
                KeyCode::Esc => (self.typing, self.filter) = (false, String::new()),
                KeyCode::Backspace => drop(self.filter.pop()),
                KeyCode::Char(c) if self.filter.len() < 60 => self.filter.push(c),
                _ => {}
            }
            self.chosen = 0;
            return;
        }
        let rows = self.rows();
        match key.code {
            KeyCode::Char('q') => self.leaves = true,
            KeyCode::Char('1') => self.show(View::Topics),
            KeyCode::Char('2') => self.show(View::Nodes),
            KeyCode::Char('3') => self.show(View::Locks),
            KeyCode::Tab | KeyCode::Right => self.turn(1),
            KeyCode::BackTab | KeyCode::Left => self.turn(2),
            KeyCode::Char('s') => self.sort.0 = (self.sort.0 + 1) % self.view.columns().len(),
            KeyCode::Char('r') => self.sort.1 = !self.sort.1,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => {
                self.chosen = (self.chosen + 1).min(rows.len().saturating_sub(1));
            }
            KeyCode::Enter => self.detail = rows.get(self.chosen).map(|row| row.key.clone()),
            KeyCode::Esc if self.detail.is_none() => self.filter.clear(),
            KeyCode::Esc => self.detail = None,
            _ => {}
        }
    }

    fn turn(&mut self, by: usize) {
        let at = View::ALL.iter().position(|v| *v == self.view).unwrap_or(0);
        self.show(View::ALL[(at + by) % View::ALL.len()]);
    }

    fn show(&mut self, view: View) {
        (self.view, self.sort, self.chosen, self.detail) = (view, (0, false), 0, None);
    }

    /// The lines of the list, filtered and sorted.
    pub(super) fn rows(&self) -> Vec<Row> {
        let look = &self.look;
        let mut rows: Vec<Row> = match self.view {
            View::Topics => look.topics.iter().map(topic).collect(),
            View::Nodes => look.nodes.iter().map(|n| node(n, look.at_ns)).collect(),
            View::Locks => look.locks.iter().map(lock).collect(),
        };
        let wanted = self.filter.to_lowercase();
        rows.retain(|row| row.cells[0].to_lowercase().contains(&wanted));
        let (column, backwards) = self.sort;
        rows.sort_by(|a, b| {
            let by_weight = b.weights[column].total_cmp(&a.weights[column]);
            let by_text = a.cells[column].cmp(&b.cells[column]);
            by_weight.then(by_text).then_with(|| a.key.cmp(&b.key))
        });
        if backwards {
            rows.reverse();
        }
        rows
    }

    /// What is known of the one in detail.
    pub(super) fn details(&self) -> Vec<String> {
        let Some(key) = &self.detail else { return Vec::new() };
        let look = &self.look;
        let found = match self.view {
            View::Topics => look.topics.iter().find(|t| t.name == *key).map(topic_details),
            View::Nodes => look.nodes.iter().find(|n| n.id.to_string() == *key).map(node_details),
            View::Locks => {
                look.locks.iter().find(|l| l.name == *key).map(|l| lock_details(l, look))
            }
        };
        found.unwrap_or_else(|| vec!["gone".into()])
    }
}

/// Three digits that matter.
fn rate(value: f64) -> String {
    match value {
        v if v <= 0.0 => "-".into(),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

fn count(n: u64) -> String {
    if n == 0 { "-".into() } else { n.to_string() }
}

fn topic(topic: &Topic) -> Row {
    let (state, mood) = topic.state();
    let bytes_per_s = topic.bytes_per_s();
    let rate_of = if bytes_per_s > 0.0 { bytes(bytes_per_s as u64) } else { "-".into() };
    Row {
        key: topic.name.clone(),
        cells: vec![
            topic.name.clone(),
            rate(topic.hz()),
            rate_of,
            bytes(topic.memory_bytes()),
            count(topic.lag()),
            count(topic.lost()),
            state.unwrap_or_else(|| "-".into()),
        ],
        weights: vec![
            0.0,
            topic.hz(),
            bytes_per_s,
            topic.memory_bytes() as f64,
            topic.lag() as f64,
            topic.lost() as f64,
            f64::from(mood as u8),
        ],
        mood,
    }
}

fn node(node: &Node, now_ns: u64) -> Row {
    let up_s = now_ns.saturating_sub(node.started_ns) as f64 / 1e9;
    let mood = if node.life == Life::Alive { Mood::Good } else { Mood::Bad };
    let number = |n: usize| count(n as u64);
    Row {
        key: node.id.to_string(),
        cells: vec![
            format!("{} {}", node.id, node.name),
            node.pid.to_string(),
            node.life.name().into(),
            up(up_s),
            number(node.publishes.len()),
            number(node.reads.len()),
            number(node.holds),
            bytes(node.memory_bytes),
            number(node.locks.len()),
        ],
        weights: vec![
            -(node.id as f64),
            f64::from(node.pid),
            f64::from(mood as u8),
            up_s,
            node.publishes.len() as f64,
            node.reads.len() as f64,
            node.holds as f64,
            node.memory_bytes as f64,
            node.locks.len() as f64,
        ],
        mood,
    }
}

fn up(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.0} h", s / 3600.0),
    }
}

fn lock(lock: &Lock) -> Row {
    let mood = lock.mood();
    let holder = lock.holder.as_ref().map_or("-".into(), |(id, name, life)| match life {
        Life::Alive => format!("{id} {name}"),
        life => format!("{id} {name}, {}", life.name()),
    });
    Row {
        key: lock.name.clone(),
        cells: vec![
            lock.name.clone(),
            lock.kind.clone(),
            lock.state.into(),
            holder,
            if lock.waiters { "yes".into() } else { "-".into() },
            count(lock.users as u64),
        ],
        weights: vec![
            0.0,
            0.0,
            f64::from(mood as u8),
            0.0,
            f64::from(u8::from(lock.waiters)),
            lock.users as f64,
        ],
        mood,
    }
}

fn topic_details(topic: &Topic) -> Vec<String> {
    let mut lines = vec![format!(
        "{}  {}, depth {}, {} messages",
        topic.name,
        topic.type_name,
        topic.depth,
        topic.messages()
    )];
    for p in &topic.publishers {
        let state = if p.closed { "left" } else { p.life.name() };
        lines.push(format!(
            "publisher {}.{} {}: {state}, {} Hz, {}/s, {} messages, {}",
            p.node,
            p.port,
            p.name,
            rate(p.hz),
            bytes(p.bytes_per_s as u64),
            p.messages,
            bytes(p.memory_bytes)
        ));
    }
    for r in &topic.readers {
        let mut notes = vec![r.life.name().to_owned()];
        notes.extend(r.reliable.then(|| "reliable".to_owned()));
        notes.extend(r.waiting.then(|| "asleep".to_owned()));
        notes.push(format!("lag {}", r.lag));
        notes.extend((r.lost > 0).then(|| format!("lost {}", r.lost)));
        lines.push(format!("reader    {}.{} {}: {}", r.node, r.port, r.name, notes.join(", ")));
        let (held, borrows) = (r.held.len(), r.borrows);
        lines.extend(
            (held > 0)
                .then(|| format!("          holds {held} of {borrows}: {}", r.held.join(", "))),
        );
    }
    lines
}

fn node_details(node: &Node) -> Vec<String> {
    let list = |names: &[String]| if names.is_empty() { "-".into() } else { names.join(", ") };
    vec![
        format!("{} {}: {}, pid {}", node.id, node.name, node.life.name(), node.pid),
        format!("publishes {}", list(&node.publishes)),
        format!("reads     {}", list(&node.reads)),
        format!("holds     {} samples", node.holds),
        format!("locks     {}", list(&node.locks)),
        format!("memory    {}", bytes(node.memory_bytes)),
    ]
}

fn lock_details(lock: &Lock, look: &Look) -> Vec<String> {
    let mut lines = vec![format!("{}  {}: {}", lock.name, lock.kind, lock.state)];
    if let Some((id, name, life)) = &lock.holder {
        lines.push(format!("holder {id} {name}: {}", life.name()));
        let node = look.nodes.iter().find(|n| n.id == *id);
        lines.extend(node.map(|n| format!("pid {}, holds {}", n.pid, n.locks.join(", "))));
    }
    lines.push(format!("users {}", lock.users));
    lines.extend(lock.waiters.then(|| "somebody waits".to_owned()));
    lines
}
