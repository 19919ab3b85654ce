//! From subscribers into files.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use outlive::topic::{Event, PublisherId};
use outlive::{
    Deadline, Domain, Encoding, ErrorKind, Node, PayloadType, Subscriber, WaitSet, Waitable,
};

use crate::about::EPOCH;
use crate::channel::{Coding, Source};
use crate::dir_watch::DirWatch;
use crate::file::{Files, Gone, Key, Stamp};
use crate::options::Profile;
use crate::options::{Progress, RecordOptions};
use crate::ring::{Ring, Saved};
use crate::ros2::{Layout, ToRos, epoch_ns};
use crate::selection::rooted;
use crate::{Error, Selection};

/// How often topics that appeared are looked for, ns.
const LOOK_NS: u64 = 200_000_000;
/// Messages taken from one topic before the others have their turn.
const TURN_MESSAGES: usize = 256;
/// The same in bytes.
const TURN_BYTES: usize = 64 << 20;
/// How often it is looked whether a topic appeared, where the kernel tells that, ns.
const WATCH_NS: u64 = 20_000_000;
/// A topic that appeared can be joined within so long, ns.
const SEEN_NS: u64 = 500_000_000;
/// A topic that could not be joined is tried again after so long, ns.
const RETRY_NS: u64 = 1_000_000_000;
/// A topic that could not be read is not looked at for so long, ns: each look may fail.
const REST_NS: u64 = 10_000_000;
/// A lack is told again within so long while it lasts, ns.
const LACK_NS: u64 = 500_000_000;
/// What cannot be had at the second try is passed over; others are behind it.
const TRIES: usize = 3;
/// A smaller change of the time of day is not told, ns.
const CLOCK_STEP_NS: u64 = 100_000_000;
/// Most messages of a topic that are read at the end, or before a file is saved.
const LAST_MESSAGES: usize = 1 << 20;

/// Records until [`Recorder::finish`].
///
/// Topics that match and appear later are joined when they are seen, at most 0.2 s later, with all
/// that their rings still hold. While it records it is a member of its topics: they stay.
///
/// # Crash safety
/// Shared memory: **Strict**, as a subscriber's. The file: after a death at any point all chunks
/// handed over are readable; they are at most [`RecordOptions::flush_every`] behind while
/// [`Recorder::step`] is called.
#[derive(Debug)]
pub struct Recorder {
    node: Node,
    domain: Domain,
    selection: Selection,
    options: RecordOptions,
    sink: Sink,
    topics: Vec<Topic>,
    joined: HashSet<String>,
    /// Topics that were gone before they could be joined.
    gone: HashSet<String>,
    /// Topics that could not be joined: why, and when they are tried again.
    refused: HashMap<String, (String, u64)>,
    /// Publishers that are corrupt or may not be read, with the index of their topic.
    given_up: HashSet<(usize, PublisherId)>,
    /// Publishers that were there when we began, and the next number of each by then: of what was
    /// before that nothing is lost.
    before: HashMap<PublisherId, u64>,
    watch: Option<DirWatch>,
    /// Topics that appeared, and when.
    seen: Vec<(String, u64)>,
    /// The last look for them failed, which was told.
    blind: bool,
    wait: WaitSet,
    look_at_ns: u64,
    flush_at_ns: u64,
    /// What to add to CLOCK_MONOTONIC for the time since the epoch, ns.
    epoch_ns: u64,
    progress: Progress,
    /// By topic and publisher.
    losses: BTreeMap<String, u64>,
    losses_are_new: bool,
    /// Memory was too small, which was told.
    short: bool,
    notes: Vec<String>,
    /// For a message as it goes into the file.
    room: Vec<u8>,
}

/// Where messages go.
#[derive(Debug)]
enum Sink {
    Files(Box<Files>),
    Ring(Box<Ring>),
}

#[derive(Debug)]
struct Topic {
    subscriber: Subscriber<[u8]>,
    /// Its type as the file has it.
    of: PayloadType,
    coding: Coding,
    sources: HashMap<PublisherId, Publisher>,
    left_out: u64,
    /// What kept us from reading all of it, each told once.
    troubles: HashSet<ErrorKind>,
    /// Until then it is not read after the last of them.
    rests_until_ns: u64,
}

/// A publisher.
#[derive(Debug)]
struct Publisher {
    ordinal: usize,
    source: Source,
    lost: u64,
}

impl Topic {
    /// Whether publishers of it are not read at `now_ns`, or were not for lack of places.
    fn is_unread(&self, now_ns: u64) -> bool {
        self.troubles.contains(&ErrorKind::TooManyMembers)
            || self.rests_until_ns.saturating_add(LACK_NS) > now_ns
    }
}

impl Recorder {
    /// Begins `path` and joins all existing topics of `selection`.
    ///
    /// # Errors
    /// [`Error::Io`] when the file exists and must not be replaced, or cannot be created;
    /// [`Error::Usage`] for limits on the files of a recording that is not split; errors of the
    /// domain.
    pub fn start(
        node: &Node,
        selection: Selection,
        path: &Path,
        options: RecordOptions,
    ) -> Result<Self, Error> {
        options.check()?;
        let now = outlive::now_ns();
        let epoch_ns = epoch_ns();
        let about = BTreeMap::from([
            ("version".into(), env!("CARGO_PKG_VERSION").into()),
            (EPOCH.into(), epoch_ns.to_string()),
        ]);
        let mut notes = Vec::new();
        let sink = match options.last {
            None => {
                let mut files = Files::create(path, &options, about)?;
                notes.append(&mut files.notes);
                Sink::Files(Box::new(files))
            }
            Some(last) => Sink::Ring(Box::new(Ring::new(path, &options, last, about))),
        };
        let mut recorder = Self {
            domain: Domain::of_node(node),
            node: node.clone(),
            selection,
            sink,
            topics: Vec::new(),
            joined: HashSet::new(),
            gone: HashSet::new(),
            refused: HashMap::new(),
            given_up: HashSet::new(),
            before: HashMap::new(),
            watch: None,
            seen: Vec::new(),
            blind: false,
            wait: WaitSet::new(),
            look_at_ns: now + LOOK_NS,
            flush_at_ns: now,
            epoch_ns,
            progress: Progress::default(),
            losses: BTreeMap::new(),
            losses_are_new: false,
            short: false,
            notes,
            room: Vec::new(),
            options,
        };
        // First the watch: what appears while we look is seen by one of them.
        recorder.watch = DirWatch::new(recorder.domain.dir());
        for topic in recorder.domain.topics()? {
            recorder.before.extend(topic.publishers.iter().map(|p| (p.id, p.messages)));
        }
        recorder.look(recorder.options.history)?;
        // A join reads on from its own instant, and that of the last of them is the start. Where
        // joins took the last descriptors, it is the first look.
        for topic in recorder.domain.topics().unwrap_or_default() {
            for publisher in topic.publishers {
                recorder.before.entry(publisher.id).and_modify(|next| *next = publisher.messages);
            }
        }
        recorder.schedule_flush(now);
        Ok(recorder)
    }

    /// Records what arrives until `deadline`, or until something arrived.
    ///
    /// # Errors
    /// [`Error::Io`] when the disk is full or fails; what was handed over before stays readable.
    pub fn step(&mut self, deadline: Deadline) -> Result<(), Error> {
        let now = outlive::now_ns();
        let (changed, seen) = self.watch.as_mut().map(DirWatch::changed).unwrap_or_default();
        self.seen.extend(seen.into_iter().map(|name| (name, now)));
        if changed || now >= self.look_at_ns {
            if self.look_on()? {
                self.name_missed(now.saturating_sub(SEEN_NS));
            }
            self.look_at_ns = outlive::now_ns() + LOOK_NS;
        }
        let watched_ns = if self.watch.is_some() { now + WATCH_NS } else { u64::MAX };
        let own_ns = self.look_at_ns.min(self.flush_at_ns).min(watched_ns);
        let until = deadline.min(Deadline::at_ns(own_ns));
        for topic in self.wait(until)? {
            self.take(topic, TURN_MESSAGES, u64::MAX)?;
        }
        let now = outlive::now_ns();
        if now >= self.flush_at_ns {
            self.flush()?;
            self.schedule_flush(now);
        }
        Ok(())
    }

    /// Waits until topics have something, and returns which.
    fn wait(&mut self, until: Deadline) -> Result<Vec<usize>, Error> {
        let now = outlive::now_ns();
        let rested = self.topics.iter().map(|t| t.rests_until_ns).filter(|at| *at > now).min();
        let until = rested.map_or(until, |at| until.min(Deadline::at_ns(at)));
        let awake = self.topics.iter_mut().enumerate().filter(|(_, t)| t.rests_until_ns <= now);
        let (topics, mut members): (Vec<usize>, Vec<&mut dyn Waitable>) =
            awake.map(|(i, t)| (i, &mut t.subscriber as &mut dyn Waitable)).unzip();
        if members.is_empty() {
            std::thread::sleep(until.remaining());
            return Ok(Vec::new());
        }
        Ok(self.wait.wait_until(&mut members, until)?.map(|at| topics[at]).collect())
    }

    /// What has been recorded so far.
    pub fn progress(&self) -> Progress {
        let topics = self.topics.len();
        let (file_bytes, memory_bytes) = match &self.sink {
            Sink::Files(files) => (files.bytes(), 0),
            Sink::Ring(ring) => (ring.saved().1, ring.bytes()),
        };
        let corrupt = self.given_up.len() as u64;
        Progress { topics, file_bytes, memory_bytes, corrupt, ..self.progress }
    }

    /// Whether topic `name` has been there since the start, whether or not it could be joined.
    pub fn has_met(&self, name: &str) -> bool {
        let name = &*rooted(name);
        let is_told = self.joined.contains(name) || self.refused.contains_key(name);
        is_told || self.gone.contains(name) || self.seen.iter().any(|(seen, _)| seen == name)
    }

    /// What happened since the last call that a person may want to know: topics joined, losses,
    /// deaths of publishers.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Starts to write what is in memory into the next file, if [`RecordOptions::last`] is given:
    /// the path with the first number that no file has. All that was published before is in it.
    /// `why` is stored in it. False if a file is being written, or nothing is kept in memory.
    ///
    /// # Errors
    /// As [`Recorder::step`].
    pub fn save(&mut self, why: &str) -> Result<bool, Error> {
        if self.options.last.is_none() || self.is_saving() {
            return Ok(false);
        }
        self.take_all()?;
        let now = outlive::now_ns();
        Ok(if let Sink::Ring(ring) = &mut self.sink { ring.save(now, why) } else { false })
    }

    /// Whether a file is being written after [`Recorder::save`].
    pub fn is_saving(&self) -> bool {
        if let Sink::Ring(ring) = &self.sink { ring.is_saving() } else { false }
    }

    /// The outcome of [`Recorder::save`], once, when it is known. Never waits.
    pub fn take_saved(&mut self) -> Option<Result<Saved, Error>> {
        if let Sink::Ring(ring) = &mut self.sink { ring.take_saved(false) } else { None }
    }

    /// Records what is there now, leaves the topics and finishes the file. It waits for a file
    /// being saved; anything else that is only in memory is lost.
    ///
    /// # Errors
    /// As [`Recorder::step`].
    pub fn finish(self) -> Result<Progress, Error> {
        self.finish_or_count().map_err(|(error, _)| error)
    }

    /// As [`Recorder::finish`].
    ///
    /// # Errors
    /// As [`Recorder::step`], with what [`Recorder::leave`] returns.
    pub fn finish_or_count(mut self) -> Result<Progress, (Error, Box<Progress>)> {
        if let Err(e) = self.take_rest() {
            return Err((e, self.leave().into()));
        }
        let mut done = self.progress();
        match self.sink {
            Sink::Files(files) => match files.finish() {
                Ok((bytes, files)) => (done.file_bytes, done.files) = (bytes, files),
                Err((e, messages)) => return Err((e, done.but_only(messages).into())),
            },
            Sink::Ring(mut ring) => {
                ring.take_saved(true).transpose().map_err(|e| (e, done.into()))?;
                (done.files, done.file_bytes) = ring.saved();
            }
        }
        Ok(done)
    }

    /// Leaves the files as they are after a failure, and counts as recorded only what is in them.
    pub fn leave(self) -> Progress {
        let done = self.progress();
        match self.sink {
            Sink::Files(files) => done.but_only(files.leave()),
            Sink::Ring(_) => done,
        }
    }

    /// Records what is there now, and hands it over.
    fn take_rest(&mut self) -> Result<(), Error> {
        self.take_all()?;
        let now = outlive::now_ns();
        self.name_missed(now);
        self.progress.missed += self.refused.len() as u64;
        self.progress.unread = self.topics.iter().filter(|t| t.is_unread(now)).count() as u64;
        self.flush()
    }

    /// Records what was published until now.
    fn take_all(&mut self) -> Result<(), Error> {
        let now = outlive::now_ns();
        (0..self.topics.len()).try_for_each(|topic| self.take(topic, LAST_MESSAGES, now))
    }

    fn schedule_flush(&mut self, now: u64) {
        self.flush_at_ns = now.saturating_add(self.options.flush_every.as_nanos() as u64);
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.set_clock(epoch_ns());
        if let Sink::Files(files) = &mut self.sink
            && let Some(gone) = files.begin_anew_if_gone()?
        {
            self.gone(&gone);
        }
        let losses = std::mem::take(&mut self.losses_are_new).then_some(&self.losses);
        match &mut self.sink {
            Sink::Files(files) => {
                self.notes.append(&mut files.notes);
                files.flush(losses)
            }
            Sink::Ring(ring) => {
                if std::mem::take(&mut ring.is_short) && !std::mem::replace(&mut self.short, true) {
                    let most = self.options.memory_bytes_max;
                    self.notes.push(format!("not all of it fits into {most} bytes of memory"));
                }
                Ok(())
            }
        }
    }

    /// What went with a file is lost, and the one that was begun in its place says so, with what
    /// was lost before.
    fn gone(&mut self, gone: &Gone) {
        let messages = gone.messages.iter().map(|(_, messages)| messages).sum::<u64>();
        let path = gone.path.display();
        self.notes.push(format!("{path} was removed with {messages} messages; started a new file"));
        self.progress.messages -= messages;
        self.progress.lost += messages;
        for (key, messages) in &gone.messages {
            let topic = &mut self.topics[key.topic];
            let mut sources = topic.sources.iter_mut();
            if let Some((id, from)) = sources.find(|(_, from)| from.ordinal == key.source) {
                from.lost += messages;
                self.losses.insert(loss_of(&topic.subscriber, *id), from.lost);
            }
        }
        self.losses_are_new = true;
    }

    /// The time of day may be set, and stands still for us while the machine sleeps.
    fn set_clock(&mut self, now: u64) {
        let by = now.abs_diff(self.epoch_ns);
        if by >= CLOCK_STEP_NS {
            let s = by as f64 / 1e9;
            let how = if now > self.epoch_ns { "forward" } else { "back" };
            self.notes.push(format!("the time of day went {how} by {s:.3} s"));
        }
        self.epoch_ns = now;
        match &mut self.sink {
            Sink::Files(files) => files.set_epoch(now),
            Sink::Ring(ring) => ring.set_epoch(now),
        }
        for topic in &self.topics {
            if let Coding::To(ros) = &topic.coding {
                ros.set_epoch(now);
            }
        }
    }

    /// Names topics that appeared before `until_ns` and are not to be had any more.
    fn name_missed(&mut self, until_ns: u64) {
        let mut seen = std::mem::take(&mut self.seen);
        seen.retain(|(name, at_ns)| {
            let done = self.joined.contains(name) || self.refused.contains_key(name);
            let missed = !done && *at_ns <= until_ns && self.selection.matches(name);
            if missed {
                self.progress.missed += 1;
                self.gone.insert(name.clone());
                self.notes.push(format!("{name} was gone before it could be joined"));
            }
            !done && *at_ns > until_ns
        });
        self.seen = seen;
    }

    /// Looks for topics; whether that was possible. If not, the next look may be.
    fn look_on(&mut self) -> Result<bool, Error> {
        match self.look(u64::MAX) {
            Err(Error::Outlive(e)) if may_pass(e.kind()) => {
                if !std::mem::replace(&mut self.blind, true) {
                    self.notes.push(format!("topics that appear now are joined later: {e}"));
                }
                Ok(false)
            }
            looked => {
                self.blind = false;
                looked.map(|()| true)
            }
        }
    }

    /// Joins topics that are asked for and not joined yet.
    fn look(&mut self, history: u64) -> Result<(), Error> {
        for info in self.domain.topics()? {
            if self.joined.contains(&info.name) || !self.selection.matches(&info.name) {
                continue;
            }
            let now = outlive::now_ns();
            if self.refused.get(&info.name).is_some_and(|(_, until)| now < *until) {
                continue;
            }
            let topic = self.node.topic::<[u8]>(&info.name)?.reliable(self.options.reliable);
            match topic.history(history).subscriber_of_any_type() {
                Ok(subscriber) => self.join(subscriber),
                // Left in between; it may come again.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(e) => {
                    let (why, until) = (e.to_string(), now + RETRY_NS);
                    let before = self.refused.insert(info.name.clone(), (why.clone(), until));
                    if before.is_none_or(|(before, _)| before != why) {
                        let name = &info.name;
                        self.notes
                            .push(format!("{name} is left out until it can be joined: {why}"));
                    }
                    continue;
                }
            }
            self.refused.remove(&info.name);
            self.joined.insert(info.name);
        }
        Ok(())
    }

    fn join(&mut self, subscriber: Subscriber<[u8]>) {
        let (name, mut of) = (subscriber.topic(), subscriber.payload_type());
        if of.encoding() == Encoding::Cdr && of.schema().is_empty() {
            match self.options.definitions.payload_type(of.name()) {
                Ok(None) => {}
                Ok(Some(known)) => {
                    // Its topic may name it in short.
                    let named = PayloadType::encoded(Encoding::Cdr, of.name(), known.schema());
                    of = named.unwrap_or(known);
                }
                Err(why) => {
                    self.notes.push(format!("{name} is recorded without its definition: {why}"));
                }
            }
        }
        let coding = match self.options.profile {
            Profile::Outlive => match Layout::generated(&of) {
                Some(layout) => Coding::Layout(Arc::new(layout)),
                None if of.encoding() == Encoding::MessagePack => Coding::Json(Arc::default()),
                None => Coding::No,
            },
            // It is what ROS has.
            Profile::Ros2 if of.encoding() == Encoding::Cdr => Coding::No,
            Profile::Ros2 => match self.for_ros(&of) {
                Ok(coding) => coding,
                Err(why) => {
                    self.progress.topics_left_out += 1;
                    self.notes.push(format!("{name} is left out: {why}"));
                    return;
                }
            },
        };
        self.notes.push(format!("recording {name}"));
        self.topics.push(Topic {
            subscriber,
            of,
            coding,
            sources: HashMap::new(),
            left_out: 0,
            troubles: HashSet::new(),
            rests_until_ns: 0,
        });
    }

    /// How payloads of a type become messages of ROS.
    fn for_ros(&self, of: &PayloadType) -> Result<Coding, String> {
        if let Some(to) = ToRos::among(of, self.epoch_ns, &self.options.definitions)? {
            return Ok(match to.layout() {
                Some(layout) => Coding::Layout(Arc::new(layout.clone())),
                None => Coding::To(Arc::new(to)),
            });
        }
        let layout = Layout::generated(of);
        let layout = layout.ok_or_else(|| format!("ROS has no message like {}", of.name()))?;
        Ok(Coding::Layout(Arc::new(layout)))
    }

    /// Records what one topic has, up to the first message that was published after `until_ns`.
    fn take(&mut self, index: usize, most: usize, until_ns: u64) -> Result<(), Error> {
        let (mut bytes, mut tries) = (0, 0);
        for _ in 0..most {
            let topic = &mut self.topics[index];
            let sample = match topic.subscriber.receive() {
                Ok(Some(sample)) => sample,
                Ok(None) => break,
                Err(e) => {
                    self.trouble(index, e)?;
                    tries += 1;
                    if tries < TRIES { continue } else { break }
                }
            };
            let meta = *sample.meta();
            let (ordinal, mut new) = (topic.sources.len(), false);
            let from = topic.sources.entry(meta.publisher).or_insert_with(|| {
                new = true;
                let (of, coding) = (topic.of.clone(), topic.coding.clone());
                let source = source(&topic.subscriber, of, meta.publisher, coding);
                Publisher { ordinal, source, lost: 0 }
            });
            // The first message that we get may not be the first since we began, or since its
            // publisher came.
            let first =
                if new { self.before.get(&meta.publisher).copied().unwrap_or(0) } else { meta.seq };
            let missed = meta.lost_before.max(meta.seq.saturating_sub(first));
            // Without a time stamp it is as old as we know it.
            let log_ns = self.epoch_ns + outlive::now_ns();
            let publish_ns = match meta.timestamp_ns {
                0 => log_ns,
                then => self.epoch_ns + then,
            };
            let stamp = Stamp { seq: meta.seq, log_ns, publish_ns };
            match from.source.message(&sample, &mut self.room) {
                Ok((form, data)) => {
                    let key = Key { topic: index, source: from.ordinal, form };
                    match &mut self.sink {
                        Sink::Files(files) => files.write(key, &from.source, stamp, &data)?,
                        Sink::Ring(ring) => {
                            ring.write((key, &from.source), stamp, outlive::now_ns(), &data);
                        }
                    }
                    self.progress.messages += 1;
                    self.progress.payload_bytes += sample.len() as u64;
                }
                Err(why) => {
                    self.progress.left_out += 1;
                    topic.left_out += 1;
                    if topic.left_out == 1 {
                        let name = topic.subscriber.topic();
                        self.notes.push(format!("{name}: some messages are left out: {why}"));
                    }
                }
            }
            bytes += sample.len();
            if missed > 0 {
                from.lost += missed;
                let lost = from.lost;
                drop(sample);
                self.lost(index, meta.publisher, missed, lost);
            }
            let late = meta.timestamp_ns > until_ns;
            if late || bytes >= TURN_BYTES && until_ns == u64::MAX {
                break;
            }
        }
        self.events(index);
        Ok(())
    }

    /// Tells what kept us from reading a topic, unless that ends the recording: the subscriber goes
    /// on with the publishers that it has, and tries again.
    fn trouble(&mut self, index: usize, e: outlive::Error) -> Result<(), Error> {
        if !may_pass(e.kind()) {
            return Err(e.into());
        }
        let topic = &mut self.topics[index];
        topic.rests_until_ns = outlive::now_ns() + REST_NS;
        if topic.troubles.insert(e.kind()) {
            let name = topic.subscriber.topic();
            self.notes.push(format!("{name} cannot all be read for now: {e}"));
        }
        Ok(())
    }

    fn events(&mut self, index: usize) {
        while let Some(event) = self.topics[index].subscriber.next_event() {
            let topic = &mut self.topics[index];
            let name = topic.subscriber.topic().to_owned();
            match event {
                Event::PublisherDied { publisher, lost, .. } => {
                    self.notes.push(format!("{name}: publisher {publisher} died"));
                    if lost > 0 {
                        let before = topic.sources.get_mut(&publisher);
                        let total = before.map_or(lost, |from| {
                            from.lost += lost;
                            from.lost
                        });
                        self.lost(index, publisher, lost, total);
                    }
                }
                // What could not be opened is, by now.
                Event::PublisherJoined(publisher) => {
                    topic.rests_until_ns = 0;
                    self.given_up.remove(&(index, publisher));
                }
                Event::PublisherCorrupt { publisher, why } => {
                    self.given_up.insert((index, publisher));
                    self.notes.push(format!("{name}: publisher {publisher} is corrupt: {why}"));
                }
                _ => {}
            }
        }
    }

    fn lost(&mut self, index: usize, publisher: PublisherId, now: u64, total: u64) {
        self.progress.lost += now;
        let name = self.topics[index].subscriber.topic();
        self.notes.push(format!("{name}: lost {now} messages of publisher {publisher}"));
        let by = loss_of(&self.topics[index].subscriber, publisher);
        if let Sink::Ring(ring) = &mut self.sink {
            ring.lost(outlive::now_ns(), by.clone(), now);
        }
        self.losses.insert(by, total);
        self.losses_are_new = true;
    }
}

/// Whether another try may do: an error of one topic is no reason to end the others.
fn may_pass(kind: ErrorKind) -> bool {
    use ErrorKind::{Io, NoSpace, OutOfMemory, Permission, TooManyMembers};
    matches!(kind, Io | NoSpace | OutOfMemory | Permission | TooManyMembers)
}

/// How a file names what was lost.
fn loss_of(topic: &Subscriber<[u8]>, publisher: PublisherId) -> String {
    format!("{} {publisher}", topic.topic())
}

fn source(
    topic: &Subscriber<[u8]>,
    payload_type: PayloadType,
    publisher: PublisherId,
    coding: Coding,
) -> Source {
    Source {
        topic: topic.topic().into(),
        payload_type,
        depth: Some(topic.depth()),
        attributes: topic.attributes(),
        publisher: publisher.to_string(),
        coding,
    }
}

#[cfg(test)]
mod tests;
