//! A topic that goes out, to other bridges or to ROS 2: one thread reads the ring, and lets pass
//! what is to go.
//!
//! No local publisher waits for it: a link that is too slow costs messages, which are counted. Of a
//! topic that is not reliable the newest goes next: what has waited in the ring gives way to it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use outlive::topic::{self, Event, PublisherId, PublisherInfo};
use outlive::{Error, ErrorKind, Sample, Subscriber, now_ns};
use zenoh::Wait;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Publisher;

use crate::link::wire::wall_now_ns;
use crate::local::speakers::Speaker;
use crate::report::Failed;
use crate::report::stats::Counted;
use crate::shared::Shared;
use crate::work::{Job, QUIET, Rests, Stop, Turn};

/// How soon a stop is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A message that has waited so long in the ring gives way to a newer one of its publisher.
const LATE: Duration = Duration::from_millis(50);
/// Publishers whose newest message is in hand at once, at most: each is a borrowed sample.
const IN_HAND_MAX: usize = 16;
/// How long what was in the ring at a stop may take to be sent.
const DRAIN_MAX: Duration = Duration::from_secs(3);
/// Publishers whose place in the ring is known at most, unless more are there.
const PLACES_MAX: usize = 1024;

/// For a pump: with a sample for Zenoh, one for us and those in hand.
pub(crate) fn reader(shared: &Shared, name: &str) -> outlive::Result<topic::Builder<[u8]>> {
    Ok(shared.node.topic::<[u8]>(name)?.borrows(IN_HAND_MAX + 2))
}

/// What becomes of the messages of a topic.
pub(crate) trait Sends: Send {
    /// A sample that passes, the time, and whether somebody hears it.
    fn send(&mut self, sample: Sample<[u8]>, now: u64, heard: bool) -> Result<(), Failed>;

    /// `node` has no publisher any more, and all that it sent went before this.
    fn last_of(&mut self, _node: u64) -> Result<(), Failed> {
        Ok(())
    }

    /// The same of all nodes.
    fn last_of_all(&mut self) -> Result<(), Failed> {
        Ok(())
    }
}

/// A topic on its way out.
pub(crate) struct Carried<S> {
    /// Gone first: who hears of the end asks for nothing more.
    pub(crate) _token: LivelinessToken,
    pub(crate) pump: Pump,
    pub(crate) sends: S,
}

impl<S: Sends> Job for Carried<S> {
    fn run(&mut self, stop: &Stop) -> Result<Turn, Failed> {
        let turn = self.pump.run(stop, &mut self.sends)?;
        if turn == Turn::Ended {
            self.sends.last_of_all()?;
        }
        Ok(turn)
    }

    fn rests(&mut self) -> Rests<'_> {
        Rests::ForLocal(&mut self.pump.from)
    }

    /// A publisher that came is no reason; a message behind it is the next.
    fn wakes(&mut self) -> bool {
        !self.pump.had_events() || !self.pump.gone.is_empty()
    }
}

/// Whether somebody elsewhere wants what goes out there; kept up to date.
pub(crate) fn heard(publisher: &Publisher<'_>) -> Result<Arc<AtomicBool>, Failed> {
    let heard = Arc::new(AtomicBool::new(publisher.matching_status().wait()?.matching()));
    let to = heard.clone();
    publisher
        .matching_listener()
        .callback(move |status| to.store(status.matching(), Relaxed))
        .background()
        .wait()?;
    Ok(heard)
}

/// Reads a topic's ring, and lets pass what is to go out.
pub(crate) struct Pump {
    shared: Arc<Shared>,
    from: Subscriber<[u8]>,
    rate_hz: Option<f64>,
    heard: Arc<AtomicBool>,
    counted: Counted,
    /// What nobody hears passes too.
    keeps: bool,
    /// What has waited gives way to what is newer.
    newest_first: bool,
    /// Of each publisher the newest that was there at the last look, in the order in which they
    /// came.
    in_hand: VecDeque<Sample<[u8]>>,
    /// When there was nothing in the ring.
    empty_ns: u64,
    /// The rate limit lets nothing pass before.
    next_ns: u64,
    /// The next message of each publisher.
    places: HashMap<PublisherId, u64>,
    /// Publishers from before, of which nobody knows any more whether they stood for remote ones.
    strangers: HashSet<PublisherId>,
    /// Nodes of which a publisher has gone, whose last message may have passed.
    gone: HashSet<u64>,
    /// Set once it is to end.
    rest: Option<Rest>,
}

impl Pump {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        from: Subscriber<[u8]>,
        rate_hz: Option<f64>,
        heard: Arc<AtomicBool>,
        counted: Counted,
    ) -> Result<Self, Failed> {
        let (places, strangers) = Default::default();
        let mut pump = Self {
            shared: shared.clone(),
            from,
            rate_hz,
            heard,
            counted,
            keeps: false,
            newest_first: false,
            in_hand: VecDeque::new(),
            empty_ns: 0,
            next_ns: 0,
            places,
            strangers,
            gone: HashSet::new(),
            rest: None,
        };
        for PublisherInfo { id, messages, .. } in pump.heads()? {
            pump.places.insert(id, messages);
            if shared.speakers.of(id.node)? == Speaker::Gone {
                pump.strangers.insert(id);
            }
        }
        Ok(pump)
    }

    /// Lets pass what nobody hears, too: it is kept.
    pub(crate) fn keeping(self, keeps: bool) -> Self {
        Self { keeps, ..self }
    }

    /// Skips to what is newer, where something has waited.
    pub(crate) fn newest_first(self, newest_first: bool) -> Self {
        Self { newest_first, ..self }
    }

    /// Until there was nothing for a while, or it is to stop: each sample that passes, and the last
    /// of each node.
    fn run(&mut self, stop: &Stop, sends: &mut impl Sends) -> Result<Turn, Failed> {
        let mut busy = Instant::now();
        let mut was_bad = false;
        self.empty_ns = now_ns();
        loop {
            // Asked first: what was committed before the stop is still sent.
            let last = stop.is_asked();
            match (last, &self.rest) {
                (true, None) => self.rest = Some(self.rest()),
                (false, Some(_)) => self.rest = None,
                _ => {}
            }
            self.had_events();
            for node in self.finished() {
                sends.last_of(node)?;
            }
            match self.next(if last { Duration::ZERO } else { LOOK_EVERY }) {
                Ok(Some(sample)) => {
                    (busy, was_bad) = (Instant::now(), false);
                    let now = now_ns();
                    self.read(sample.publisher(), sample.seq());
                    if let Some(heard) = self.passes(&sample, now) {
                        sends.send(sample, now, heard)?;
                    }
                }
                Ok(None) => {
                    self.had_events();
                    if last && stop.ends() {
                        return Ok(Turn::Ended);
                    }
                    if !last && busy.elapsed() > QUIET {
                        return Ok(Turn::Quiet);
                    }
                }
                // A bad message is skipped; what comes again is no message.
                Err(e) if e.kind() == ErrorKind::Corrupt && !was_bad => {
                    was_bad = true;
                    self.counted.with(|c| c.bad += 1);
                }
                // Nothing is there of those who can be read.
                Err(e) if self.is_short(&e) => {
                    if last && stop.ends() {
                        let left = self.rest.as_ref().map_or(0, Rest::left);
                        self.counted.with(|c| c.overrun += left);
                        return Ok(Turn::Ended);
                    }
                    thread::sleep(LOOK_EVERY);
                }
                Err(e) => return Err(e.into()),
            }
            if let Some(left) = self.rest.as_ref().and_then(Rest::is_over)
                && stop.ends()
            {
                self.counted.with(|c| c.overrun += left);
                return Ok(Turn::Ended);
            }
        }
    }

    /// The message that is to go next, if there is one within `wait`.
    fn next(&mut self, wait: Duration) -> outlive::Result<Option<Sample<[u8]>>> {
        if self.in_hand.is_empty() {
            let Some(first) = self.from.receive()? else {
                let first = self.from.receive_timeout(wait);
                self.empty_ns = now_ns();
                return first;
            };
            if !self.newest_first || !self.is_late(&first) {
                return Ok(Some(first));
            }
            self.in_hand.push_back(first);
        }
        match self.look_for_newer() {
            // What is in hand goes all the same.
            Err(e) if self.is_short(&e) => {}
            looked => looked?,
        }
        Ok(self.in_hand.pop_front())
    }

    fn is_short(&self, e: &Error) -> bool {
        self.shared.is_short(&format!("topic {}", self.from.topic()), e)
    }

    fn is_late(&self, sample: &Sample<[u8]>) -> bool {
        let since = match sample.timestamp_ns() {
            0 => self.empty_ns,
            at => at,
        };
        now_ns().saturating_sub(since) > LATE.as_nanos() as u64
    }

    /// Takes what is there now, and lets go of what it is newer than.
    fn look_for_newer(&mut self) -> outlive::Result<()> {
        let begun = Instant::now();
        // Who publishes faster than we look keeps nobody here.
        while self.in_hand.len() < IN_HAND_MAX && begun.elapsed() < LATE {
            let Some(newer) = self.from.receive()? else {
                self.empty_ns = now_ns();
                return Ok(());
            };
            let of = newer.publisher();
            if let Some(i) = self.in_hand.iter().position(|sample| sample.publisher() == of)
                && let Some(older) = self.in_hand.remove(i)
            {
                self.skip(&older);
            }
            self.in_hand.push_back(newer);
        }
        Ok(())
    }

    fn skip(&mut self, sample: &Sample<[u8]>) {
        self.read(sample.publisher(), sample.seq());
        if !self.shared.speakers.is_bridge(sample.publisher().node) {
            self.counted.with(|c| {
                c.overrun += sample.lost_before();
                c.skipped += 1;
            });
        }
    }

    /// Whether publishers have come or gone.
    fn had_events(&mut self) -> bool {
        let mut had = false;
        while let Some(event) = self.from.next_event() {
            had = true;
            if let Event::PublisherLeft(id) | Event::PublisherDied { publisher: id, .. } = event {
                self.gone.insert(id.node.get());
            }
        }
        if had {
            self.shared.topics_changed.store(true, Relaxed);
        }
        had
    }

    /// Nodes from which nothing more comes: without a publisher here, or a message in hand.
    fn finished(&mut self) -> Vec<u64> {
        if self.gone.is_empty() {
            return Vec::new();
        }
        let (there, in_hand) = (self.from.publishers(), &self.in_hand);
        self.gone.retain(|node| there.iter().all(|id| id.node.get() != *node));
        let held = |node: &u64| in_hand.iter().any(|s| s.publisher().node.get() == *node);
        self.gone.extract_if(|node| !held(node)).collect()
    }

    /// A message of that publisher was read.
    fn read(&mut self, id: PublisherId, seq: u64) {
        if let Some(rest) = &mut self.rest {
            rest.read(id, seq);
        }
        if self.places.len() > PLACES_MAX && !self.places.contains_key(&id) {
            let there = self.from.publishers();
            self.places.retain(|id, _| there.contains(id));
        }
        self.places.insert(id, seq + 1);
    }

    /// What there is to send now.
    fn rest(&self) -> Rest {
        let left = |PublisherInfo { id, messages: end, alive, .. }| {
            let next = self.places.get(&id).copied().unwrap_or(0);
            (next < end).then_some((id, Left { next, end, alive }))
        };
        let heads = self.heads().inspect_err(|e| {
            self.shared.say_failed(format_args!(
                "topic {} ends with whatever is there: how much that is cannot be read: {e}",
                self.from.topic()
            ));
        });
        let left = heads.ok().map(|heads| heads.into_iter().filter_map(left).collect());
        Rest { left, until: Instant::now() + DRAIN_MAX }
    }

    /// How much each publisher has published.
    fn heads(&self) -> Result<Vec<PublisherInfo>, Failed> {
        let topic = self.shared.domain.find_topic(self.from.topic())?;
        let mut publishers = topic.map(|topic| topic.publishers).unwrap_or_default();
        publishers.retain(|p| !self.shared.speakers.is_bridge(p.id.node));
        Ok(publishers)
    }

    /// Whether somebody hears it; none if it does not pass.
    fn passes(&mut self, sample: &Sample<[u8]>, now: u64) -> Option<bool> {
        let id = sample.publisher();
        let speaker = self.shared.speakers.of(id.node);
        // It came from elsewhere: sent again, it would go round for ever. So may what a bridge has
        // left that was killed.
        if matches!(speaker, Ok(Speaker::Bridge)) || self.strangers.contains(&id) {
            return None;
        }
        let overrun = sample.lost_before();
        if overrun > 0 {
            self.counted.with(|c| c.overrun += overrun);
        }
        if speaker.is_err() {
            self.counted.with(|c| c.dropped += 1);
            return None;
        }
        let heard = self.heard.load(Relaxed);
        if !heard && !self.keeps {
            self.counted.with(|c| c.unheard += 1);
            return None;
        }
        if let Some(rate) = self.rate_hz {
            if now < self.next_ns {
                self.counted.with(|c| c.dropped += 1);
                return None;
            }
            let period = (1e9 / rate) as u64;
            // On the grid, so that the mean is the rate; never more than one message saved up.
            self.next_ns = (self.next_ns + period).max(now.saturating_sub(period) + period);
        }
        if !heard {
            self.counted.with(|c| c.unheard += 1);
        }
        Some(heard)
    }
}

/// What was in the ring at a stop: it is sent, and not what comes later, of which there may be no
/// end.
struct Rest {
    /// None if that could not be read: all that is found there.
    left: Option<HashMap<PublisherId, Left>>,
    until: Instant,
}

/// Of a publisher: its next message, and the number of them at the stop. A dead one may have left
/// one more, and surely no more than that.
struct Left {
    next: u64,
    end: u64,
    alive: bool,
}

impl Rest {
    fn read(&mut self, id: PublisherId, seq: u64) {
        let Some(all) = &mut self.left else { return };
        if let Some(left) = all.get_mut(&id) {
            left.next = seq + 1;
            if left.alive && left.next >= left.end {
                all.remove(&id);
            }
        }
    }

    /// How many messages stay behind, once nothing more is to be sent.
    fn is_over(&self) -> Option<u64> {
        let all_sent = self.left.as_ref().is_some_and(HashMap::is_empty);
        (all_sent || Instant::now() >= self.until).then(|| self.left())
    }

    /// How many messages of those that are known are not sent.
    fn left(&self) -> u64 {
        let left = self.left.iter().flatten();
        left.map(|(_, left)| left.end.saturating_sub(left.next)).sum()
    }
}

/// When a sample was published, ns since 1970.
pub(crate) fn wall_ns(sample: &Sample<[u8]>, now: u64) -> u64 {
    let age_ns = match sample.timestamp_ns() {
        0 => 0,
        at => now.saturating_sub(at),
    };
    wall_now_ns().saturating_sub(age_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Alone;

    /// Keeps the numbers that it is to send.
    struct Kept(Vec<u64>);

    impl Sends for Kept {
        fn send(&mut self, sample: Sample<[u8]>, _: u64, _: bool) -> Result<(), Failed> {
            self.0.push(number(&sample));
            Ok(())
        }
    }

    fn number(sample: &Sample<[u8]>) -> u64 {
        u64::from_ne_bytes(sample[..].try_into().expect("a u64"))
    }

    fn topic(node: &outlive::Node) -> topic::Builder<u64> {
        node.topic::<u64>("/t").expect("a name").depth(8)
    }

    /// Of the topic `/t`, with so much of what was sent before; somebody hears it.
    fn pump(shared: &Arc<Shared>, history: u64) -> Pump {
        let from = reader(shared, "/t").expect("a name").history(history).subscriber_of_any_type();
        let heard = Arc::new(AtomicBool::new(true));
        let counted = shared.stats.of(true, "/t");
        Pump::new(shared, from.expect("a subscriber"), None, heard, counted).expect("a pump")
    }

    /// The route failed, and what was in the ring was lost uncounted.
    #[test]
    fn what_is_in_the_ring_at_the_end_is_sent_where_the_domain_cannot_be_read() {
        let alone = Alone::new("rest");
        let (member, shared) = (alone.node("member"), alone.bridge());
        let from = topic(&member).publisher().expect("a publisher");
        let mut pump = pump(&shared, 0);
        for n in 1..=5 {
            from.publish(&n).expect("published");
        }
        let mut sent = Kept(Vec::new());
        alone.without(&shared.domain.dir().join("topics"), || {
            let ended = pump.run(&Stop::asked(), &mut sent);
            assert_eq!(ended.expect("no failure"), Turn::Ended);
        });
        assert_eq!(sent.0, [1, 2, 3, 4, 5]);
    }

    /// Its route was told so again and again, at once, and sent nothing for ever.
    #[test]
    fn a_route_whose_subscriber_was_removed_ends_so_that_it_begins_anew() {
        let alone = Alone::new("removed");
        let (member, shared) = (alone.node("member"), alone.bridge());
        let _from = topic(&member).publisher().expect("a publisher");
        let mut pump = pump(&shared, 0);
        let files = shared.domain.dir().join("topics/t").read_dir().expect("the topic");
        let is_own = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("sub.");
        let own = files.flatten().find(|file| is_own(&file.file_name())).expect("the subscriber");
        std::fs::remove_file(own.path()).expect("our own");
        let _newcomer = topic(&alone.node("newcomer")).publisher().expect("a publisher");
        let (told, ended) = std::sync::mpsc::channel();
        thread::spawn(move || told.send(pump.run(&Stop::default(), &mut Kept(Vec::new()))));
        let ended = ended.recv_timeout(Duration::from_secs(60)).expect("its end");
        assert!(ended.expect_err("a failure").to_string().contains("open the subscriber again"));
    }

    /// What it had sent was taken for that of a stand-in from before this bridge.
    #[test]
    fn what_a_program_has_sent_that_was_there_for_an_instant_goes_out() {
        let alone = Alone::new("instant");
        let shared = alone.bridge();
        // It keeps the topic.
        let mut all = topic(&alone.node("member")).subscriber().expect("a subscriber");
        let brief = alone.node("brief");
        let from = topic(&brief).publisher().expect("a publisher");
        from.publish(&7).expect("published");
        assert_eq!(*all.receive().expect("no error").expect("a sample"), 7);
        drop((from, brief));
        let mut sent = Kept(Vec::new());
        let ended = pump(&shared, 8).run(&Stop::asked(), &mut sent);
        assert_eq!((ended.expect("no failure"), sent.0), (Turn::Ended, vec![7]));
    }

    #[test]
    fn what_stood_in_here_before_the_bridge_began_is_not_sent_and_what_is_unclear_is_dropped() {
        let alone = Alone::new("pump");
        let member = alone.node("member");
        let publish = |node: &outlive::Node, n: u64| {
            let publisher = topic(node).publisher().expect("a publisher");
            publisher.publish(&n).expect("published");
            publisher
        };
        let _from = publish(&member, 1);
        // Its bridge has been killed since, and somebody has removed its node's file.
        let stand_in = alone.node("outlive-bridge.h1.other");
        drop((publish(&stand_in, 2), stand_in));
        let mut all = topic(&member).history(8).subscriber().expect("a subscriber");
        let mut seen = [0; 2].map(|_| all.receive().expect("no error").map_or(0, |n| *n));
        seen.sort_unstable();
        assert_eq!(seen, [1, 2]);

        let shared = alone.bridge();
        let mut pump = pump(&shared, 8);
        let counted = shared.stats.of(true, "/t");
        let next = |pump: &mut Pump| {
            let sample = pump.next(Duration::ZERO).expect("a sample")?;
            Some((number(&sample), sample))
        };
        let mut sent = Vec::new();
        while let Some((n, sample)) = next(&mut pump) {
            sent.extend(pump.passes(&sample, now_ns()).map(|_| n));
        }
        assert_eq!((sent, counted.with(|c| c.dropped)), (vec![1], 0));

        let late = alone.node("late");
        let _late = publish(&late, 3);
        let (n, sample) = next(&mut pump).expect("a sample");
        assert_eq!(n, 3);
        alone.without(&shared.domain.dir().join("nodes"), || {
            assert_eq!(pump.passes(&sample, now_ns()), None);
        });
        assert_eq!(counted.with(|c| c.dropped), 1);
        assert_eq!(pump.passes(&sample, now_ns()), Some(true));
    }
}
