//! From a file into publishers, in the original time.
//!
//! Each publisher of the file gets one of its own, so that messages keep their order and
//! their numbers count what they counted. A message is due at
//! `begin + (its time - that of the first) / rate`: instants, not pauses, so that being late once
//! does not add up.

use std::collections::HashMap;
use std::time::Duration;

use mcap::Message;
use outlive::{ErrorKind, Node, Publisher};

use crate::channel::Source;
use crate::{Damage, Error, Recording, Selection};

/// A message is not played earlier than so long before it was recorded, ns: what a recorder took
/// from a topic's history may be old.
const HISTORY_NS_MAX: u64 = 1_000_000_000;

/// How to play.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// How many times as fast as recorded; above 0.
    pub rate: f64,
    /// Skip this much at the beginning.
    pub start: Duration,
    /// Leave out what is later than this after the beginning.
    pub end: Option<Duration>,
    /// Which topics, by their names in the file.
    pub selection: Selection,
    /// Other names for topics: `(in the file, to be played on)`.
    pub remap: Vec<(String, String)>,
    /// How long one message waits for a slow reliable subscriber; zero: not at all.
    pub reliable_timeout: Duration,
    /// Most shared memory of each publisher, bytes.
    pub memory_bytes_max: u64,
}

impl Default for PlayOptions {
    fn default() -> Self {
        Self {
            rate: 1.0,
            start: Duration::ZERO,
            end: None,
            selection: Selection::all(),
            remap: Vec::new(),
            reliable_timeout: Duration::from_secs(10),
            memory_bytes_max: outlive::topic::MEMORY_BYTES_DEFAULT,
        }
    }
}

/// A message whose turn is next.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Due {
    /// When it is due, ns of CLOCK_MONOTONIC.
    pub at_ns: u64,
    /// Its time in the file, ns since the epoch; never less than that of the one before.
    pub time_ns: u64,
}

/// What to do with the message that is due.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Turn {
    /// Publish it. It counts as due at this instant, and later ones are timed from here.
    Play(u64),
    /// Continue at this time after the beginning of the recording.
    Seek(Duration),
    /// Play the rest at this multiple of the recorded speed.
    Rate {
        /// Above 0.
        factor: f64,
        /// From this instant on.
        now_ns: u64,
        /// When the message was due by then.
        at_ns: u64,
    },
    /// Play nothing more.
    End,
}

/// What was played so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Played {
    /// Messages published.
    pub messages: u64,
    /// Messages left out: their bytes are not a payload of their topic's type.
    pub invalid: u64,
    /// The longest delay of a message behind its original time, ns.
    pub late_ns_max: u64,
}

/// Plays a recording.
#[derive(Debug)]
pub struct Player {
    recording: Recording,
    options: PlayOptions,
    /// By channel of the file, with the index of its publisher.
    sources: HashMap<u16, (Source, usize)>,
    publishers: Vec<Publisher<[u8]>>,
    played: Played,
    damage: Damage,
}

impl Player {
    /// Joins all topics to be played, creating missing ones with the type and depth they had.
    ///
    /// # Errors
    /// `TypeMismatch` when a topic is there with another type: it lists what differs.
    /// [`Error::Usage`] when a name to be remapped is not in the file.
    pub fn open(node: &Node, recording: Recording, options: PlayOptions) -> Result<Self, Error> {
        for (from, _) in &options.remap {
            if !recording.sources.iter().any(|s| rooted(&s.source.topic) == rooted(from)) {
                let why =
                    format!("{} has no topic {from} to be remapped", recording.path.display());
                return Err(Error::Usage(why));
            }
        }
        let (mut sources, mut publishers) = (HashMap::new(), Vec::new());
        // A publisher whose messages have several forms in the file has several channels.
        let mut known = HashMap::new();
        for recorded in &recording.sources {
            let source = &recorded.source;
            if !options.selection.matches(&source.topic) {
                continue;
            }
            let key = (source.topic.clone(), source.publisher.clone());
            let same = known.get(&key).copied().filter(|_| !source.publisher.is_empty());
            if let Some(index) = same {
                sources.insert(recorded.channel, (source.clone(), index));
                continue;
            }
            known.insert(key, publishers.len());
            let renamed =
                options.remap.iter().find(|(from, _)| rooted(from) == rooted(&source.topic));
            let name = renamed.map_or(&source.topic, |(_, to)| to);
            let named = node.topic::<[u8]>(name);
            if let Err(e) = &named
                && e.kind() == ErrorKind::InvalidName
                && renamed.is_none()
            {
                let why = format!("{e}: --remap plays it under another name");
                return Err(Error::Corrupt { path: recording.path.clone(), why });
            }
            let mut topic = named?
                .of_type(&source.payload_type)
                .reliable_timeout(options.reliable_timeout)
                .memory_bytes_max(options.memory_bytes_max);
            for (key, value) in &source.attributes {
                topic = topic.attribute(key, value);
            }
            if let Some(depth) = source.depth {
                topic = topic.depth(depth);
            }
            sources.insert(recorded.channel, (source.clone(), publishers.len()));
            publishers.push(topic.publisher()?);
        }
        Ok(Self {
            recording,
            options,
            sources,
            publishers,
            played: Played::default(),
            damage: Damage::default(),
        })
    }

    /// What is played.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Names of the topics, without repetition.
    pub fn topics(&self) -> Vec<String> {
        let mut names: Vec<_> = self.publishers.iter().map(Publisher::topic).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The fewest subscribers that any of the topics has.
    ///
    /// # Errors
    /// Those of reading the topic.
    pub fn subscribers_min(&self) -> Result<usize, Error> {
        let mut fewest = usize::MAX;
        for publisher in &self.publishers {
            fewest = fewest.min(publisher.subscribers()?);
        }
        Ok(fewest)
    }

    /// The speed, as a multiple of the recorded one.
    pub fn rate(&self) -> f64 {
        self.options.rate
    }

    /// What was played so far, over all rounds.
    pub fn played(&self) -> Played {
        self.played
    }

    /// What could not be read of the file, in the last round.
    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// Plays once, from `start` to `end`. `wait_until` sleeps until an instant of CLOCK_MONOTONIC
    /// in ns and returns whether to continue; it is called before each message.
    ///
    /// # Errors
    /// [`Error::Io`] of reading; what is damaged is left out ([`Player::damage`]). `Timeout` when a
    /// reliable subscriber is too slow; `OutOfMemory` and other errors of a topic.
    pub fn play(&mut self, mut wait_until: impl FnMut(u64) -> bool) -> Result<(), Error> {
        let mut go_on = |at_ns| if wait_until(at_ns) { Turn::Play(at_ns) } else { Turn::End };
        self.play_controlled(|due| go_on(due.at_ns))
    }

    /// As [`Player::play`], and `wait` may also change the pace, change the rate, which stays, and
    /// seek.
    ///
    /// # Errors
    /// As [`Player::play`].
    pub fn play_controlled(&mut self, mut wait: impl FnMut(Due) -> Turn) -> Result<(), Error> {
        let mut from = Some(self.options.start);
        while let Some(start) = from {
            from = self.play_from(start, &mut wait)?;
        }
        Ok(())
    }

    /// Plays to the end, or until it is to go on elsewhere.
    fn play_from(
        &mut self,
        start: Duration,
        wait: &mut impl FnMut(Due) -> Turn,
    ) -> Result<Option<Duration>, Error> {
        let after_start =
            |d: Duration| self.recording.start_ns.saturating_add(d.as_nanos().min(1 << 62) as u64);
        let first = after_start(start);
        let last = self.options.end.map_or(u64::MAX, after_start);
        let mut sought = None;
        let mut begin = outlive::now_ns();
        let mut due = Due { at_ns: begin, time_ns: 0 };
        let mut origin = None;
        let mut messages = self.recording.messages_between(first, last)?;
        'messages: for message in messages.by_ref() {
            let message = message?;
            let Some((source, index)) = self.sources.get(&message.channel.id) else { continue };
            let Ok(payload) = source.payload(&message.data) else {
                self.played.invalid += 1;
                continue;
            };
            let time = time_of(&message, source);
            let after = time.saturating_sub(*origin.get_or_insert(time)) as f64;
            due.at_ns = due.at_ns.max(begin + (after / self.options.rate) as u64);
            due.time_ns = due.time_ns.max(time);
            let at_ns = loop {
                match wait(due) {
                    Turn::Play(at_ns) => break at_ns,
                    Turn::Rate { factor, now_ns, at_ns } => {
                        let left = at_ns.saturating_sub(now_ns) as f64 * self.options.rate;
                        self.options.rate = factor;
                        due.at_ns = now_ns + (left / factor) as u64;
                        begin = due.at_ns.saturating_sub((after / factor) as u64);
                    }
                    Turn::Seek(to) => {
                        sought = Some(to);
                        break 'messages;
                    }
                    Turn::End => break 'messages,
                }
            };
            begin = begin.saturating_add_signed(at_ns.wrapping_sub(due.at_ns) as i64);
            due.at_ns = at_ns;
            self.publishers[*index].publish(&payload)?;
            self.played.messages += 1;
            let late = outlive::now_ns().saturating_sub(at_ns);
            self.played.late_ns_max = self.played.late_ns_max.max(late);
        }
        self.damage = messages.damage();
        Ok(sought)
    }
}

/// When it was published, as far as that can be: others' files may count that by another clock.
fn time_of(message: &Message<'_>, source: &Source) -> u64 {
    if source.publisher.is_empty() {
        return message.log_time;
    }
    let earliest = message.log_time.saturating_sub(HISTORY_NS_MAX);
    message.publish_time.clamp(earliest, message.log_time)
}

fn rooted(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}
