//! From subscribers into files.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use outlive::{Domain, ErrorKind, Event, Node, PublisherId, Subscriber, WaitSet, Waitable};

use crate::channel::{Ros, Source};
use crate::file::{Files, Key, Profile, Stamp};
use crate::options::{Options, Progress};
use crate::ring::{Ring, Saved};
use crate::ros2::ToRos;
use crate::{Error, Selection};

/// How often topics that appeared are looked for, ns.
const LOOK_NS: u64 = 200_000_000;
/// Messages taken from one topic before the others have their turn.
const TURN_MESSAGES: usize = 256;
/// The same in bytes.
const TURN_BYTES: usize = 64 << 20;
/// Most messages of a topic that are read at the end, or before a file is saved.
const LAST_MESSAGES: usize = 1 << 20;

/// Records until [`Recorder::finish`].
///
/// Topics that match and appear later are joined when they are seen, at most 0.2 s later, with all
/// that their rings still hold. While it records it is a member of its topics: they stay.
///
/// # Crash safety
/// Shared memory: **Strict**, as a subscriber's. The file: killed at any point, all chunks that
/// were handed over are readable; they are at most [`Options::flush_every`] behind while
/// [`Recorder::step`] is called.
#[derive(Debug)]
pub struct Recorder {
    node: Node,
    domain: Domain,
    selection: Selection,
    options: Options,
    sink: Sink,
    topics: Vec<Topic>,
    joined: HashSet<String>,
    wait: WaitSet,
    look_at_ns: u64,
    flush_at_ns: u64,
    /// What to add to CLOCK_MONOTONIC for the time since the epoch, ns.
    epoch_ns: u64,
    progress: Progress,
    /// By topic and publisher.
    losses: BTreeMap<String, String>,
    losses_are_new: bool,
    /// Memory was too small, which was told.
    short: bool,
    notes: Vec<String>,
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
    ros: Ros,
    sources: HashMap<PublisherId, Publisher>,
    left_out: u64,
}

/// A publisher.
#[derive(Debug)]
struct Publisher {
    ordinal: usize,
    source: Source,
    lost: u64,
}

impl Recorder {
    /// Begins `path` and joins all topics of `selection` that are there.
    ///
    /// # Errors
    /// [`Error::Io`] when the file exists and is not to be replaced, or cannot be made; the
    /// domain's own.
    pub fn start(
        node: &Node,
        selection: Selection,
        path: &Path,
        options: Options,
    ) -> Result<Self, Error> {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let since_epoch = since_epoch.map_or(0, |d| d.as_nanos() as u64);
        let now = outlive::now_ns();
        let epoch_ns = since_epoch.saturating_sub(now);
        let about = BTreeMap::from([
            ("version".into(), env!("CARGO_PKG_VERSION").into()),
            // For those who want the publishers' own time stamps back.
            ("monotonic_to_epoch_ns".into(), epoch_ns.to_string()),
        ]);
        let sink = match options.last {
            None => Sink::Files(Box::new(Files::create(path, &options, about)?)),
            Some(last) => Sink::Ring(Box::new(Ring::new(path, &options, last, about))),
        };
        let mut recorder = Self {
            domain: Domain::of_node(node),
            node: node.clone(),
            selection,
            sink,
            topics: Vec::new(),
            joined: HashSet::new(),
            wait: WaitSet::new(),
            look_at_ns: now + LOOK_NS,
            flush_at_ns: now,
            epoch_ns,
            progress: Progress::default(),
            losses: BTreeMap::new(),
            losses_are_new: false,
            short: false,
            notes: Vec::new(),
            options,
        };
        recorder.look(recorder.options.history)?;
        recorder.schedule_flush(now);
        Ok(recorder)
    }

    /// Records what comes until an instant of CLOCK_MONOTONIC in ns, or until something came.
    ///
    /// # Errors
    /// [`Error::Io`] when the disk is full or fails; what was handed over before stays readable.
    pub fn step(&mut self, deadline_ns: u64) -> Result<(), Error> {
        if outlive::now_ns() >= self.look_at_ns {
            self.look(u64::MAX)?;
            self.look_at_ns = outlive::now_ns() + LOOK_NS;
        }
        let until = deadline_ns.min(self.look_at_ns).min(self.flush_at_ns);
        if self.topics.is_empty() {
            let left = until.saturating_sub(outlive::now_ns());
            std::thread::sleep(Duration::from_nanos(left));
        } else {
            let mut members: Vec<&mut dyn Waitable> =
                self.topics.iter_mut().map(|t| &mut t.subscriber as &mut dyn Waitable).collect();
            let ready: Vec<usize> = self.wait.wait_until(&mut members, until)?.collect();
            for topic in ready {
                self.take(topic, TURN_MESSAGES, u64::MAX)?;
            }
        }
        let now = outlive::now_ns();
        if now >= self.flush_at_ns {
            self.flush()?;
            self.schedule_flush(now);
        }
        Ok(())
    }

    /// What was recorded so far.
    pub fn progress(&self) -> Progress {
        let topics = self.topics.len();
        let (file_bytes, memory_bytes) = match &self.sink {
            Sink::Files(files) => (files.bytes(), 0),
            Sink::Ring(ring) => (ring.saved().1, ring.bytes()),
        };
        Progress { topics, file_bytes, memory_bytes, ..self.progress }
    }

    /// What happened since the last call that a person may want to know: topics joined, losses,
    /// deaths of publishers.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Begins to write what is in memory into the next file, if [`Options::last`] is given: the
    /// path with the first number that no file has. All that was published before is in it. `why`
    /// is stored in it. False if a file is being written, or nothing is kept in memory.
    ///
    /// # Errors
    /// As [`Recorder::step`].
    pub fn save(&mut self, why: &str) -> Result<bool, Error> {
        if self.options.last.is_none() || self.is_saving() {
            return Ok(false);
        }
        self.take_all()?;
        let now = self.epoch_ns + outlive::now_ns();
        Ok(if let Sink::Ring(ring) = &mut self.sink { ring.save(now, why) } else { false })
    }

    /// Whether a file is being written after [`Recorder::save`].
    pub fn is_saving(&self) -> bool {
        if let Sink::Ring(ring) = &self.sink { ring.is_saving() } else { false }
    }

    /// What became of [`Recorder::save`], once, when it is known. Never waits.
    pub fn take_saved(&mut self) -> Option<Result<Saved, Error>> {
        if let Sink::Ring(ring) = &mut self.sink { ring.take_saved(false) } else { None }
    }

    /// Records what is there now, leaves the topics and finishes the file; what is only in memory
    /// is lost, but a file that is being saved is waited for.
    ///
    /// # Errors
    /// As [`Recorder::step`].
    pub fn finish(mut self) -> Result<Progress, Error> {
        self.take_all()?;
        self.flush()?;
        let mut done = self.progress();
        match self.sink {
            Sink::Files(files) => (done.file_bytes, done.files) = files.finish()?,
            Sink::Ring(mut ring) => {
                ring.take_saved(true).transpose()?;
                (done.files, done.file_bytes) = ring.saved();
            }
        }
        Ok(done)
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
        let losses = std::mem::take(&mut self.losses_are_new).then_some(&self.losses);
        match &mut self.sink {
            Sink::Files(files) => files.flush(losses),
            Sink::Ring(ring) => {
                if std::mem::take(&mut ring.is_short) && !std::mem::replace(&mut self.short, true) {
                    let most = self.options.memory_bytes_max;
                    self.notes.push(format!("not all of it fits into {most} bytes of memory"));
                }
                Ok(())
            }
        }
    }

    /// Joins topics that are asked for and not joined yet.
    fn look(&mut self, history: u64) -> Result<(), Error> {
        for info in self.domain.topics()? {
            if self.joined.contains(&info.name) || !self.selection.matches(&info.name) {
                continue;
            }
            let topic = self.node.topic::<[u8]>(&info.name)?.reliable(self.options.reliable);
            match topic.history(history.min(info.depth)).subscriber_of_any_type() {
                Ok(subscriber) => self.join(subscriber),
                // Left in between; it may come again.
                Err(e) if e.kind() == ErrorKind::NotFound => continue,
                Err(e) => self.notes.push(format!("{} is left out: {e}", info.name)),
            }
            self.joined.insert(info.name);
        }
        Ok(())
    }

    fn join(&mut self, subscriber: Subscriber<[u8]>) {
        let (name, of) = (subscriber.topic(), subscriber.payload_type());
        let ros = match self.options.profile {
            Profile::Outlive => Ros::No,
            Profile::Ros2 => match ToRos::of(&of, self.epoch_ns) {
                Some(to) => Ros::To(Arc::new(to)),
                None => {
                    let of = of.name();
                    self.notes.push(format!("{name} is left out: ROS has no message like {of}"));
                    return;
                }
            },
        };
        self.notes.push(format!("recording {name}"));
        self.topics.push(Topic { subscriber, ros, sources: HashMap::new(), left_out: 0 });
    }

    /// Records what one topic has, up to the first message that was published after `until_ns`.
    fn take(&mut self, index: usize, most: usize, until_ns: u64) -> Result<(), Error> {
        let mut bytes = 0;
        for _ in 0..most {
            let topic = &mut self.topics[index];
            let Some(sample) = topic.subscriber.receive()? else { break };
            let meta = *sample.meta();
            let ordinal = topic.sources.len();
            let from = topic.sources.entry(meta.publisher).or_insert_with(|| {
                let source = source(&topic.subscriber, meta.publisher, topic.ros.clone());
                Publisher { ordinal, source, lost: 0 }
            });
            // Without a time stamp it is as old as we know it.
            let log_ns = self.epoch_ns + outlive::now_ns();
            let publish_ns = match meta.timestamp_ns {
                0 => log_ns,
                then => self.epoch_ns + then,
            };
            let stamp = Stamp { seq: meta.seq, log_ns, publish_ns };
            match from.source.message(&sample) {
                Ok((form, data)) => {
                    let key = Key { topic: index, source: from.ordinal, form };
                    match &mut self.sink {
                        Sink::Files(files) => files.write(key, &from.source, stamp, &data)?,
                        Sink::Ring(ring) => ring.write(key, &from.source, stamp, &data),
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
            if meta.lost_before > 0 {
                from.lost += meta.lost_before;
                let lost = from.lost;
                drop(sample);
                self.lost(index, meta.publisher, meta.lost_before, lost);
            }
            let late = meta.timestamp_ns > until_ns;
            if late || bytes >= TURN_BYTES && until_ns == u64::MAX {
                break;
            }
        }
        self.events(index);
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
                Event::PublisherCorrupt { publisher, why } => {
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
        let by = format!("{name} {publisher}");
        if let Sink::Ring(ring) = &mut self.sink {
            ring.lost(self.epoch_ns + outlive::now_ns(), by.clone(), now);
        }
        self.losses.insert(by, total.to_string());
        self.losses_are_new = true;
    }
}

fn source(of: &Subscriber<[u8]>, publisher: PublisherId, ros: Ros) -> Source {
    Source {
        topic: of.topic().into(),
        payload_type: of.payload_type(),
        depth: Some(of.depth()),
        attributes: of.attributes(),
        publisher: publisher.to_string(),
        ros,
    }
}
