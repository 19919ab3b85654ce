//! Which topics there are, which of them are joined, and how often they are read.
//!
//! A topic is joined while somebody looks at it, and read at its rate: what was published in
//! between is skipped. Nothing is waited for, so publishers do not even have to wake us.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;
use std::fmt::Write;
use std::time::{Duration, Instant};

use outlive::topic::{self, Event};
use outlive::{Domain, Encoding, ErrorKind, Node, NodeId, PayloadType, Sample, Subscriber};
use outlive_record::Selection;
use outlive_record::ros2::epoch_moved;

use crate::shared::{Failed, Rarely, say};

/// The name of every view's node.
pub(crate) const NODE_NAME: &str = "outlive-view";

/// How often topics that come and go are looked for.
const LOOK: Duration = Duration::from_millis(200);
/// How often topics are read of which every message is shown.
const EVERY: Duration = Duration::from_millis(5);
/// The same while nothing is joined: how late the end is noticed.
const IDLE: Duration = Duration::from_millis(100);
/// A topic that could not be read is tried again after so long.
const RETRY: Duration = Duration::from_secs(1);
/// Numbers of Linux for what others may have back in a while: no memory, no descriptors.
const SHORT: [i32; 3] = [12, 23, 24];
/// Messages taken of one topic before the others have their turn.
const TURN_MESSAGES: usize = 4096;

/// What is known of a topic.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) payload_type: PayloadType,
    pub(crate) attributes: BTreeMap<String, String>,
}

/// Where messages are shown.
pub(crate) trait Output {
    /// A topic is there; one of its messages, if it has any.
    fn open(&mut self, name: &str, topic: &Shown, example: Option<&[u8]>);
    /// It is gone.
    fn close(&mut self, name: &str);
    /// Whether anybody looks at it.
    fn wanted(&self, name: &str) -> bool;
    /// A message, for everybody or only for one who came late.
    fn show(&mut self, name: &str, to: Option<u64>, time_ns: u64, payload: &[u8]);
    /// What to add to CLOCK_MONOTONIC inside messages from now on: the time of day was set.
    fn set_epoch(&mut self, _epoch_ns: u64) {}
    /// Waits at most so long; who looks at what since the last call.
    fn wait(&mut self, until: Instant) -> Vec<(String, u64)>;
    /// Messages that could not be shown.
    fn left_out(&self, name: &str) -> u64;
    /// Lines with figures of its own.
    fn figures(&self) -> String;
    /// Nothing comes any more.
    fn end(&mut self) -> Result<(), Failed>;
}

/// How often topics are shown; the last rule that matches holds.
#[derive(Debug, Default)]
pub(crate) struct Rates(Vec<(Option<Selection>, f64)>);

impl Rates {
    /// Adds `HZ` or `TOPICS=HZ`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn add(&mut self, text: &str) -> Result<(), String> {
        let (topics, hz) = match text.rsplit_once('=') {
            Some((topics, hz)) => (Some(topics), hz),
            None => (None, text),
        };
        let rate = hz.parse::<f64>().ok().filter(|rate| *rate >= 1e-3);
        let rate = rate.ok_or_else(|| {
            format!("--rate {text}: '{hz}' is not a valid rate: write 10, '/camera/*=2.5' or inf")
        })?;
        let topics = topics.map(|topics| Selection::new(&[topics], false));
        self.0.push((topics.transpose().map_err(|e| e.to_string())?, rate));
        Ok(())
    }

    /// `None`: every message.
    fn period(&self, topic: &str) -> Option<Duration> {
        let holds = |of: &Option<Selection>| of.as_ref().is_none_or(|of| of.matches(topic));
        let rate = self.0.iter().rev().find(|(of, _)| holds(of)).map_or(30.0, |(_, rate)| *rate);
        rate.is_finite().then(|| Duration::from_secs_f64((1.0 / rate).max(1e-4)))
    }
}

/// What became of a topic's messages.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    shown: u64,
    skipped: u64,
    lost: u64,
}

#[derive(Debug)]
struct Topic {
    shown: Shown,
    period: Option<Duration>,
    /// ns of CLOCK_MONOTONIC.
    next_ns: u64,
    subscriber: Option<Subscriber<[u8]>>,
    counts: Counts,
    /// It could not be read, and is not tried before.
    retry_at: Option<Instant>,
    trouble: Rarely,
}

/// From topics to an [`Output`].
#[derive(Debug)]
pub(crate) struct View {
    node: Node,
    domain: Domain,
    selection: Selection,
    rates: Rates,
    /// What to add to CLOCK_MONOTONIC for the time since the epoch, ns.
    epoch_ns: u64,
    topics: BTreeMap<String, Topic>,
    look_at: Instant,
    trouble: Rarely,
}

impl View {
    pub(crate) fn new(node: Node, selection: Selection, rates: Rates, epoch_ns: u64) -> Self {
        let (domain, topics) = (Domain::of_node(&node), BTreeMap::new());
        let (look_at, trouble) = (Instant::now(), Rarely::default());
        Self { node, domain, selection, rates, epoch_ns, topics, look_at, trouble }
    }

    /// Shows what is due, and waits a while.
    pub(crate) fn step(&mut self, out: &mut dyn Output) -> Result<(), Failed> {
        if Instant::now() >= self.look_at {
            if let Some(now) = epoch_moved(self.epoch_ns) {
                self.epoch_ns = now;
                out.set_epoch(now);
            }
            match self.look(out) {
                Err(e) if is_short(&e) => {
                    self.trouble.say(format_args!("new topics wait for descriptors or memory: {e}"))
                }
                done => done?,
            }
            self.look_at = Instant::now() + LOOK;
        }
        let mut until = self.look_at.min(Instant::now() + IDLE);
        for (name, topic) in &mut self.topics {
            let may = topic.retry_at.is_none_or(|at| Instant::now() >= at);
            match (out.wanted(name) && may, topic.subscriber.is_some()) {
                (true, false) => topic.join(&self.node, name),
                (false, true) => topic.leave(),
                _ => {}
            }
            let now = outlive::now_ns();
            if topic.subscriber.is_some() && now >= topic.next_ns {
                if let Err(e) = topic.take(name, self.epoch_ns, out) {
                    topic.fails(name, &e);
                }
                let period = topic.period.unwrap_or(EVERY).as_nanos() as u64;
                // All of one rate in one go.
                topic.next_ns = (now / period + 1) * period;
            }
            if topic.subscriber.is_some() {
                let left = Duration::from_nanos(topic.next_ns.saturating_sub(outlive::now_ns()));
                until = until.min(Instant::now() + left);
            }
        }
        for (name, client) in out.wait(until) {
            // Those who came before have what is there.
            let Some(topic) = self.topics.get_mut(&name) else { continue };
            if topic.subscriber.is_some() {
                for sample in newest(&self.node, &name) {
                    topic.counts.shown += 1;
                    out.show(&name, Some(client), stamp(self.epoch_ns, &sample), &sample);
                }
            }
        }
        Ok(())
    }

    /// A line for each topic that was looked at, and the figures of `out`.
    pub(crate) fn figures(&self, out: &dyn Output) -> String {
        let mut text = String::new();
        for (name, topic) in &self.topics {
            let Counts { shown, skipped, lost } = topic.now();
            let left_out = out.left_out(name);
            if shown + skipped + lost + left_out > 0 {
                let _ = writeln!(
                    text,
                    "topic {name} shown {shown} skipped {skipped} lost {lost} left out {left_out}"
                );
            }
        }
        text + &out.figures()
    }

    fn look(&mut self, out: &mut dyn Output) -> outlive::Result<()> {
        let (mut there, mut views) = (BTreeSet::new(), None);
        for info in self.domain.topics()? {
            if !self.selection.matches(&info.name) {
                continue;
            }
            // Of nobody but views and those who left in order: then views are what keeps it.
            if info.publishers.iter().all(|publisher| publisher.closed) {
                let views = match &mut views {
                    Some(views) => views,
                    none => none.insert(self.views()?),
                };
                if info.subscribers.iter().all(|id| views.contains(id)) {
                    continue;
                }
            }
            there.insert(info.name.clone());
            let of = info.payload_type();
            if self.topics.get(&info.name).is_some_and(|t| t.shown.payload_type == of) {
                continue;
            }
            self.forget(&info.name, out);
            self.open(info, of, out);
        }
        let gone: Vec<_> = self.topics.keys().filter(|n| !there.contains(*n)).cloned().collect();
        for name in &gone {
            // What was published at last.
            let last = self.topics.get_mut(name).map(|t| t.take(name, self.epoch_ns, out));
            if let Some(Err(e)) = last {
                say(format_args!("{name}: {e}"));
            }
            self.forget(name, out);
        }
        Ok(())
    }

    /// The nodes of all views; ours is one.
    fn views(&self) -> outlive::Result<Vec<NodeId>> {
        let nodes = self.domain.nodes()?.into_iter();
        Ok(nodes.filter(|node| node.name == NODE_NAME).map(|node| node.id).collect())
    }

    fn open(&mut self, info: topic::Info, payload_type: PayloadType, out: &mut dyn Output) {
        use Encoding::{Arrow, Headed, MessagePack};
        // Types that do not say all of their messages.
        let open = matches!(info.encoding, MessagePack | Headed | Arrow);
        let example = if open { newest(&self.node, &info.name).pop() } else { None };
        let shown = Shown { payload_type, attributes: info.attributes };
        out.open(&info.name, &shown, example.as_deref());
        let topic = Topic {
            shown,
            period: self.rates.period(&info.name),
            next_ns: 0,
            subscriber: None,
            counts: Counts::default(),
            retry_at: None,
            trouble: Rarely::default(),
        };
        self.topics.insert(info.name, topic);
    }

    fn forget(&mut self, name: &str, out: &mut dyn Output) {
        if self.topics.remove(name).is_some() {
            out.close(name);
        }
    }
}

impl Topic {
    fn join(&mut self, node: &Node, name: &str) {
        match subscribe(node, name) {
            Ok(subscriber) => (self.subscriber, self.next_ns) = (Some(subscriber), 0),
            // It will be seen to be gone.
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => self.fails(name, &e),
        }
    }

    /// Somebody may mend it, or have back what it lacks.
    fn fails(&mut self, name: &str, e: &outlive::Error) {
        let after = RETRY.as_secs();
        self.trouble.say(format_args!("{name} is not shown, and tried again after {after} s: {e}"));
        self.leave();
        self.retry_at = Some(Instant::now() + RETRY);
    }

    fn leave(&mut self) {
        self.counts = self.now();
        self.subscriber = None;
    }

    fn now(&self) -> Counts {
        let mut counts = self.counts;
        if let Some(subscriber) = &self.subscriber {
            counts.skipped += subscriber.skipped();
            counts.lost += subscriber.lost();
        }
        counts
    }

    /// Shows the newest message of each publisher, or all.
    fn take(&mut self, name: &str, epoch_ns: u64, out: &mut dyn Output) -> outlive::Result<()> {
        let Some(subscriber) = &mut self.subscriber else { return Ok(()) };
        let counts = &mut self.counts;
        let mut show = |sample: &Sample<[u8]>| {
            counts.shown += 1;
            out.show(name, None, stamp(epoch_ns, sample), sample);
        };
        let mut skipped = 0;
        if self.period.is_none() {
            for sample in subscriber.drain().take(TURN_MESSAGES) {
                show(&sample?);
            }
        } else if subscriber.publishers().len() == 1 {
            if let Some(sample) = subscriber.latest()? {
                show(&sample);
            }
        } else {
            let mut newest = HashMap::new();
            for _ in 0..TURN_MESSAGES {
                match subscriber.receive() {
                    Ok(Some(sample)) => {
                        let older = newest.insert(sample.meta().publisher, sample);
                        skipped += u64::from(older.is_some());
                    }
                    Ok(None) => break,
                    // More publishers than samples can be held.
                    Err(e) if e.kind() == ErrorKind::TooManyBorrows => {
                        newest.drain().for_each(|(_, sample)| show(&sample));
                    }
                    Err(e) => return Err(e),
                }
            }
            newest.into_values().for_each(|sample| show(&sample));
        }
        while let Some(event) = subscriber.next_event() {
            if let Event::PublisherCorrupt { publisher, why } = event {
                say(format_args!("{name}: publisher {publisher} is corrupt: {why}"));
            }
        }
        self.counts.skipped += skipped;
        Ok(())
    }
}

fn is_short(e: &outlive::Error) -> bool {
    let system = e.source().and_then(|e| e.downcast_ref::<std::io::Error>());
    system.and_then(std::io::Error::raw_os_error).is_some_and(|number| SHORT.contains(&number))
}

fn subscribe(node: &Node, name: &str) -> outlive::Result<Subscriber<[u8]>> {
    // Also what was published before anybody looked: maps, calibrations.
    node.topic::<[u8]>(name)?.history(1).subscriber_of_any_type()
}

/// The topic's last message; of one that cannot be read none.
fn newest(node: &Node, name: &str) -> Vec<Sample<[u8]>> {
    let Ok(mut subscriber) = subscribe(node, name) else { return Vec::new() };
    subscriber.drain().map_while(Result::ok).take(TURN_MESSAGES).collect()
}

fn stamp(epoch_ns: u64, sample: &Sample<[u8]>) -> u64 {
    match sample.meta().timestamp_ns {
        // Its publisher does not say.
        0 => epoch_ns + outlive::now_ns(),
        then => epoch_ns + then,
    }
}

#[cfg(test)]
mod tests {
    use outlive_record::ros2::epoch_ns;

    use super::*;

    /// What was shown, and the epoch that it was told.
    #[derive(Default)]
    struct Seen {
        times: Vec<u64>,
        epoch_ns: Option<u64>,
    }

    impl Output for Seen {
        fn open(&mut self, _: &str, _: &Shown, _: Option<&[u8]>) {}
        fn close(&mut self, _: &str) {}
        fn wanted(&self, _: &str) -> bool {
            true
        }
        fn show(&mut self, _: &str, _: Option<u64>, time_ns: u64, _: &[u8]) {
            self.times.push(time_ns);
        }
        fn set_epoch(&mut self, epoch_ns: u64) {
            self.epoch_ns = Some(epoch_ns);
        }
        fn wait(&mut self, until: Instant) -> Vec<(String, u64)> {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            Vec::new()
        }
        fn left_out(&self, _: &str) -> u64 {
            0
        }
        fn figures(&self) -> String {
            String::new()
        }
        fn end(&mut self) -> Result<(), Failed> {
            Ok(())
        }
    }

    struct Dir(std::path::PathBuf);

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// It was looked at once: after a time server had set the clock, all stamps stayed wrong.
    #[test]
    fn stamps_follow_the_time_of_day() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        let dir = format!("/dev/shm/outlive-test-view-epoch-{}", std::process::id());
        let dir = Dir(dir.into());
        let node = Node::builder().root(&dir.0).open().expect("a node");
        let publisher = node.topic::<u32>("/n").expect("a name").publisher().expect("a publisher");
        let begun = epoch_ns();
        let (all, mut seen) = (Selection::all(), Seen::default());
        let viewer = Node::builder().root(&dir.0).open().expect("a node");
        // As it was found while the clock was behind.
        let mut view = View::new(viewer, all, Rates::default(), begun - HOUR_NS);
        publisher.publish(&1).expect("published");
        let until = Instant::now() + Duration::from_secs(60);
        while seen.times.is_empty() && Instant::now() < until {
            view.step(&mut seen).expect("a step");
        }
        let now = begun + outlive::now_ns();
        let apart = seen.times.first().expect("the message").abs_diff(now);
        assert!(apart < HOUR_NS / 2, "{apart} ns apart");
        let told = seen.epoch_ns.expect("it is set, too");
        assert!(told.abs_diff(begun) < HOUR_NS / 2, "{told}");
    }

    /// Each took the other for somebody who wants it.
    #[test]
    fn two_views_keep_no_topic_that_all_others_have_left() {
        let dir = format!("/dev/shm/outlive-test-view-two-{}", std::process::id());
        let dir = Dir(dir.into());
        let node = || Node::builder().root(&dir.0);
        let talker = node().open().expect("a node");
        let publisher = talker.topic::<u32>("/n").expect("a name").publisher().expect("one");
        publisher.publish(&1).expect("published");
        let mut views = [(); 2].map(|()| {
            let node = node().name(NODE_NAME).open().expect("a node");
            (View::new(node, Selection::all(), Rates::default(), epoch_ns()), Seen::default())
        });
        let mut until = |what: &str, done: fn(&View) -> bool| {
            let end = Instant::now() + Duration::from_secs(60);
            while !views.iter().all(|(view, _)| done(view)) {
                assert!(Instant::now() < end, "never came: {what}");
                views.iter_mut().for_each(|(view, seen)| view.step(seen).expect("a step"));
            }
        };
        until("the topic", |view| view.topics.values().any(|topic| topic.subscriber.is_some()));
        drop(publisher);
        until("its end", |view| view.topics.is_empty());
    }

    #[test]
    fn the_last_rate_that_matches_holds_and_without_any_it_is_30() {
        let mut rates = Rates::default();
        let ms = |rates: &Rates, topic| rates.period(topic).map(|p| p.as_secs_f64() * 1e3);
        assert_eq!(ms(&rates, "/a").map(f64::round), Some(33.0));
        for text in ["10", "/camera/*=2", "/camera/rear=inf", "/imu=1000000"] {
            rates.add(text).unwrap();
        }
        assert_eq!((ms(&rates, "/a"), ms(&rates, "/camera/front")), (Some(100.0), Some(500.0)));
        assert_eq!((ms(&rates, "/camera/rear"), ms(&rates, "/imu")), (None, Some(0.1)));
        for wrong in ["", "fast", "0", "-1", "nan", "/a=", "/a=x"] {
            let why = rates.add(wrong).unwrap_err();
            assert!(why.contains(&format!("--rate {wrong}: ")) && why.contains("inf"), "{why}");
        }
    }
}
