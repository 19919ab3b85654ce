//! A topic on its way from another machine: Zenoh's thread hands over, ours publishes.
//!
//! Zenoh's thread never waits: what this machine cannot take is dropped and counted.

use std::collections::HashMap;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use outlive::{Error, ErrorKind, Node, NodeId, PayloadType};
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::pubsub::Subscriber;
use zenoh::sample::Sample;

use crate::link::notes::ask;
use crate::link::wire::{Header, TopicNote, wall_now_ns};
use crate::local::port::{Port, Topic};
use crate::report::Failed;
use crate::report::stats::Counted;
use crate::shared::Shared;
use crate::work::{Job, News, QUIET, Rests, Slot, Stop, Turn, Worker};

/// Messages that wait for our thread at most, or the topic's depth if that is more: a burst that
/// fits into the rings is not dropped in between.
pub(crate) const WAITING_MAX: usize = 1024;
/// Their bytes, unless it is a single one.
const WAITING_BYTES_MAX: u64 = 64 << 20;
/// How long messages may come after their topic's token went: it overtakes them.
const LINGER: Duration = Duration::from_millis(300);
/// How long what has come may take to be published then.
const DRAIN_MAX: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long a topic waits until it tries again to open a publisher of a node.
const OPEN_AGAIN: Duration = Duration::from_secs(30);
/// How long the last messages of a node that is gone are waited for while none comes.
const LAST_WAIT: Duration = Duration::from_secs(3);

/// Where the numbers of a topic of a bridge go on, also after a broken link.
pub(crate) type Expected = Arc<Mutex<Option<u64>>>;

#[derive(Debug)]
enum Item {
    Message(Header, ZBytes),
    /// That node has no publisher there any more.
    Last(u64),
    /// No more comes.
    BridgeGone,
}

/// Begins to publish the topic `name` of `bridge`. Its end comes after what has come.
pub(crate) fn start(shared: &Arc<Shared>, bridge: &str, name: &str, expected: Expected) -> Worker {
    let (to, from) = channel();
    let counted = shared.stats.of(false, name);
    let (slot, again) = (Arc::<Slot>::default(), Arc::new(AtomicBool::new(false)));
    let intake =
        Intake { to: to.clone(), slot: slot.clone(), waiting: Arc::default(), counted, expected };
    let route = Arc::new(Route {
        shared: shared.clone(),
        bridge: bridge.to_owned(),
        name: name.to_owned(),
        again: again.clone(),
    });
    let what = format!("topic {name} of {bridge} is not published here");
    let begin = move |stop: &Stop| Route::begin(route, intake, from, stop);
    Worker::start(&shared.workers, "incoming", what, begin).hearing(move |news| {
        match news {
            News::BridgeGone => drop(to.send(Item::BridgeGone)),
            News::Again => again.store(true, Relaxed),
            News::NodeGone | News::Keeps(_) | News::Stop => {}
        }
        slot.wake();
    })
}

/// What waits for our thread, between it and Zenoh's.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    messages: AtomicU64,
    bytes: AtomicU64,
    depth: AtomicU64,
}

impl Waiting {
    /// The topic's depth, once it is known: what another bridge claims, and the most that its rings
    /// may have here.
    pub(crate) fn set_depth(&self, claimed: u64, most: u64) {
        self.depth.store(claimed.min(most), Relaxed);
    }

    /// One more; false, and it is not, where there is no room.
    #[must_use]
    pub(crate) fn enter(&self, bytes: u64) -> bool {
        let messages = self.messages.fetch_add(1, Relaxed);
        let before = self.bytes.fetch_add(bytes, Relaxed);
        let has_room = messages < self.depth.load(Relaxed).max(WAITING_MAX as u64)
            && (before == 0 || before + bytes <= WAITING_BYTES_MAX);
        if !has_room {
            self.leave(bytes);
        }
        has_room
    }

    pub(crate) fn leave(&self, bytes: u64) {
        self.messages.fetch_sub(1, Relaxed);
        self.bytes.fetch_sub(bytes, Relaxed);
    }
}

/// Zenoh's side.
#[derive(Clone)]
struct Intake {
    to: Sender<Item>,
    /// Where our side lies while nothing comes.
    slot: Arc<Slot>,
    waiting: Arc<Waiting>,
    counted: Counted,
    expected: Expected,
}

impl Intake {
    fn take(&self, sample: &Sample) {
        let header = sample.attachment().and_then(|a| Header::parse(&a.to_bytes()));
        let Some(header) = header else { return self.counted.with(|c| c.bad += 1) };
        if header.last {
            // No room: the node is let go of a little later.
            if self.waiting.enter(0) {
                let _ = self.to.send(Item::Last(header.node));
            }
            return self.slot.wake();
        }
        let lost = {
            let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
            // A lower one than before: its counters have begun again.
            let lost = expected.map_or(0, |e| header.seq.saturating_sub(e));
            *expected = Some(header.seq.wrapping_add(1));
            lost
        };
        let item = || Item::Message(header, sample.payload().clone());
        let taken =
            self.waiting.enter(sample.payload().len() as u64) && self.to.send(item()).is_ok();
        if taken {
            self.slot.wake();
        }
        if lost > 0 || !taken {
            self.counted.with(|c| {
                c.lost = c.lost.saturating_add(lost);
                c.dropped += u64::from(!taken);
            });
        }
    }
}

struct Route {
    shared: Arc<Shared>,
    bridge: String,
    name: String,
    /// It has been announced once more.
    again: Arc<AtomicBool>,
}

impl Route {
    fn begin(
        route: Arc<Self>,
        intake: Intake,
        from: Receiver<Item>,
        stop: &Stop,
    ) -> Result<Option<Box<dyn Job>>, Failed> {
        route.again.store(false, Relaxed);
        // The topic is there from now on, whoever speaks first.
        let Some(note) = route.note(stop)? else { return Ok(None) };
        intake.waiting.set_depth(note.depth, route.shared.room.limits.depth);
        let ports = Ports::new(route.clone(), note)?;
        let key = route.shared.link.keys.of(&route.bridge, "data", &route.name);
        let taker = intake.clone();
        let subscriber = route.shared.link.session.declare_subscriber(key);
        let subscriber = subscriber.callback(move |sample| taker.take(&sample)).wait()?;
        let (subscriber, next, asked) = (Some(subscriber), None, None);
        Ok(Some(Box::new(Coming { subscriber, intake, from, next, ports, asked })))
    }

    fn note(&self, stop: &Stop) -> Result<Option<TopicNote>, Failed> {
        let note = ask(&self.shared.link, &self.bridge, "note/topic", &self.name, stop)?;
        Ok(note.map(|note| serde_json::from_str(&note)).transpose()?)
    }

    /// A port of `node`; of our own for none.
    fn port(&self, note: &TopicNote, of: &PayloadType, node: Option<Node>) -> Result<Port, Error> {
        Port::open(Topic {
            room: self.shared.room.clone(),
            node: node.unwrap_or_else(|| self.shared.node.clone()),
            name: self.name.clone(),
            of: of.clone(),
            attributes: note.attributes.clone(),
            depth: note.depth,
        })
    }
}

/// A topic on its way in.
struct Coming {
    /// None at its end.
    subscriber: Option<Subscriber<()>>,
    intake: Intake,
    from: Receiver<Item>,
    /// What was found when it was to rest.
    next: Option<Item>,
    ports: Ports,
    /// When it was asked to end.
    asked: Option<Instant>,
}

impl Drop for Coming {
    /// What it leaves behind is counted.
    fn drop(&mut self) {
        drop(self.subscriber.take());
        let left = self.next.take().into_iter().chain(self.from.try_iter());
        let left = left.filter(|item| matches!(item, Item::Message(..))).count() as u64;
        self.intake.counted.with(|c| c.dropped += left);
    }
}

/// Whether a topic ends now that was asked to then; `empty`: nothing that has come waits.
pub(crate) fn ends(asked: Instant, empty: bool) -> bool {
    let since = asked.elapsed();
    since >= DRAIN_MAX || (empty && since >= LINGER)
}

impl Job for Coming {
    fn run(&mut self, stop: &Stop) -> Result<Turn, Failed> {
        let mut busy = Instant::now();
        loop {
            match (stop.is_asked(), self.asked) {
                (true, None) => self.asked = Some(Instant::now()),
                (false, Some(_)) => self.asked = None,
                _ => {}
            }
            self.ports.let_go();
            if !self.ports.renew(stop)? {
                if self.asked.is_some_and(|asked| ends(asked, false)) && stop.ends() {
                    return Ok(Turn::Ended);
                }
                thread::sleep(LOOK_EVERY);
                continue;
            }
            let item = match self.next.take() {
                Some(item) => Ok(item),
                None => self.from.recv_timeout(LOOK_EVERY),
            };
            let empty = item.is_err();
            match item {
                Ok(Item::Message(header, payload)) => {
                    busy = Instant::now();
                    self.intake.waiting.leave(payload.len() as u64);
                    self.ports.publish(&header, &payload, &self.intake.counted);
                }
                Ok(Item::Last(node)) => {
                    self.intake.waiting.leave(0);
                    self.ports.tell(node, |of| of.finished = true);
                }
                Ok(Item::BridgeGone) => {
                    self.ports.look();
                    self.ports.of_nodes.retain(|_, of| of.gone.is_none());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Turn::Ended),
            }
            if self.asked.is_some_and(|asked| ends(asked, empty)) && stop.ends() {
                return Ok(Turn::Ended);
            }
            if self.asked.is_none() && !self.ports.waits() && busy.elapsed() > QUIET {
                return Ok(Turn::Quiet);
            }
        }
    }

    fn rests(&mut self) -> Rests<'_> {
        self.next = self.next.take().or_else(|| self.from.try_recv().ok());
        // Who was told of a node's end while it still worked was told in vain.
        self.ports.look();
        let again = self.ports.route.again.load(Relaxed);
        match self.next.is_some() || again || self.ports.waits() {
            true => Rests::Not,
            false => Rests::UntilWoken(self.intake.slot.clone()),
        }
    }
}

/// The local publishers of a remote topic: one for each remote node.
struct Ports {
    route: Arc<Route>,
    note: TopicNote,
    of: PayloadType,
    /// For nodes that nobody speaks for yet, or any more.
    own: Port,
    of_nodes: HashMap<u64, OfNode>,
    /// When they are looked at next.
    look_at: Instant,
    /// When a publisher that could not be opened is tried again.
    open_again: Instant,
}

/// The publisher of a remote node.
struct OfNode {
    port: Port,
    /// Whose it is here.
    stand_in: NodeId,
    /// Its last message has come.
    finished: bool,
    /// Since when the node is gone, or when a message of it came after that.
    gone: Option<Instant>,
}

impl Ports {
    fn new(route: Arc<Route>, note: TopicNote) -> Result<Self, Failed> {
        let of = note.of.payload_type()?;
        let own = route.port(&note, &of, None)?;
        let now = Instant::now();
        Ok(Self { route, note, of, own, of_nodes: HashMap::new(), look_at: now, open_again: now })
    }

    /// Looks whether the topic is another one, where it was announced once more. False while that
    /// is not known: what comes may be of another type.
    fn renew(&mut self, stop: &Stop) -> Result<bool, Failed> {
        if !self.route.again.swap(false, Relaxed) {
            return Ok(true);
        }
        match self.route.note(stop) {
            Ok(Some(note)) if note == self.note => return Ok(true),
            Ok(Some(note)) => {
                *self = Self::new(self.route.clone(), note)?;
                return Ok(true);
            }
            Ok(None) => {}
            Err(e) => {
                let Route { shared, name, bridge, .. } = &*self.route;
                let what = "it was announced again, and waits until its type is known";
                shared.say_failed(format_args!("topic {name} of {bridge}: {what}: {e}"));
            }
        }
        self.route.again.store(true, Relaxed);
        Ok(false)
    }

    fn publish(&mut self, header: &Header, payload: &ZBytes, counted: &Counted) {
        let done = self.try_publish(header, payload);
        let latency_us = (wall_now_ns() as i64).saturating_sub(header.wall_ns as i64) / 1000;
        counted.with(|c| match &done {
            Ok(()) => {
                c.received += 1;
                c.bytes += header.payload_bytes;
                c.wire_bytes += payload.len() as u64 + crate::link::wire::HEADER_BYTES as u64;
                c.latency(latency_us);
            }
            Err(e) if e.kind() == ErrorKind::Corrupt => c.bad += 1,
            Err(_) => c.dropped += 1,
        });
        if let Err(e) = done {
            let Route { shared, name, bridge, .. } = &*self.route;
            match e.kind() {
                ErrorKind::Corrupt => {
                    shared.say_failed(format_args!("topic {name} of {bridge}: {e}"));
                }
                // By a reliable subscriber that does not read, or who keeps the topic's directory.
                ErrorKind::Timeout | ErrorKind::WouldBlock => {
                    shared.say_failed(format_args!("what comes in is dropped: {e}"));
                }
                // Which topics: their counters say.
                kind => shared.say_failed(format_args!(
                    "what comes in is dropped ({kind:?}): the RAM disk is full, or publisher_bytes \
                     and total_bytes in [limits] allow no more"
                )),
            }
        }
    }

    fn try_publish(&mut self, header: &Header, payload: &ZBytes) -> Result<(), Error> {
        let bytes = header.payload_bytes as usize;
        if !self.of.fits(bytes) || !header.is_possible(payload.len()) {
            let why =
                "its length does not match the topic's type, or it was not compressed by a bridge";
            return Err(Error::new(ErrorKind::Corrupt, "receiving", &*self.route.name, why));
        }
        self.port(header.node).publish(bytes, |to| match header.compressed {
            true => {
                lz4_flex::block::decompress_into(&payload.to_bytes(), to).is_ok_and(|n| n == bytes)
            }
            false => payload.reader().read_exact(to).is_ok(),
        })
    }

    fn tell(&mut self, node: u64, what: impl FnOnce(&mut OfNode)) {
        self.of_nodes.get_mut(&node).map(what);
    }

    /// Whether the last messages of a node that is gone are to come.
    fn waits(&self) -> bool {
        self.of_nodes.values().any(|of| of.gone.is_some())
    }

    /// Which nodes are gone. What says so may be lost where no more is taken in.
    fn look(&mut self) {
        let now = Instant::now();
        self.look_at = now + LOOK_EVERY;
        let Route { shared, bridge, .. } = &*self.route;
        for (node, of) in self.of_nodes.iter_mut().filter(|(_, of)| of.gone.is_none()) {
            // Another one, where it was out of reach for less than between two looks.
            let is_there = shared.proxy(bridge, *node).is_some_and(|n| n.id() == of.stand_in);
            of.gone = (!is_there).then_some(now);
        }
    }

    /// Lets go of nodes that are gone and have nothing more on the way: what goes on by another
    /// publisher is in no order with what they said.
    fn let_go(&mut self) {
        if Instant::now() >= self.look_at {
            self.look();
        }
        let ends = |since: Instant| since.elapsed() > LAST_WAIT;
        self.of_nodes.retain(|_, of| !of.gone.is_some_and(|since| of.finished || ends(since)));
    }

    fn port(&mut self, node: u64) -> &mut Port {
        let route = &self.route;
        if let Some(of) = self.of_nodes.get_mut(&node) {
            of.finished = false;
            of.gone = of.gone.map(|_| Instant::now());
            // It was out of reach, and is there again.
            if of.gone.is_some() && route.shared.proxy(&route.bridge, node).is_some() {
                self.of_nodes.remove(&node);
            }
        }
        if !self.of_nodes.contains_key(&node)
            && Instant::now() >= self.open_again
            && let Some(proxy) = route.shared.proxy(&route.bridge, node)
        {
            let stand_in = proxy.id();
            match route.port(&self.note, &self.of, Some(proxy)) {
                Ok(port) => {
                    let of = OfNode { port, stand_in, finished: false, gone: None };
                    self.of_nodes.insert(node, of);
                }
                // A try may take 10 s, as long as a stopped process keeps the topic's directory.
                Err(e) => {
                    self.open_again = Instant::now() + OPEN_AGAIN;
                    let Route { shared, name, bridge, .. } = &**route;
                    shared.say_failed(format_args!(
                        "topic {name} of {bridge}: its node {node} is not told from others: {e}"
                    ));
                }
            }
        }
        self.of_nodes.get_mut(&node).map_or(&mut self.own, |of| &mut of.port)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::fixture::Alone;
    use crate::link::wire::TypeNote;

    const BRIDGE: &str = "there";
    /// A node of that bridge.
    const NODE: u64 = 7;

    /// The topic `/n` of numbers of a bridge elsewhere, and its intake.
    fn coming(shared: &Arc<Shared>) -> (Coming, Intake) {
        let (to, from) = channel();
        let intake = Intake {
            to,
            slot: Arc::default(),
            waiting: Arc::default(),
            counted: shared.stats.of(false, "/n"),
            expected: Expected::default(),
        };
        let route = Arc::new(Route {
            shared: shared.clone(),
            bridge: BRIDGE.to_owned(),
            name: "/n".to_owned(),
            again: Arc::default(),
        });
        let of = TypeNote::of(&PayloadType::of::<u64>());
        let note = TopicNote { of, depth: 4, attributes: BTreeMap::new() };
        let ports = Ports::new(route, note).expect("a publisher");
        let key = shared.link.keys.of(BRIDGE, "data", "/n");
        let subscriber = shared.link.session.declare_subscriber(key).callback(drop).wait();
        let coming = Coming {
            subscriber: Some(subscriber.expect("a subscriber")),
            intake: intake.clone(),
            from,
            next: None,
            ports,
            asked: None,
        };
        (coming, intake)
    }

    /// A message of the node.
    fn message(n: u64) -> (Header, ZBytes) {
        let header = Header {
            compressed: false,
            last: false,
            node: NODE,
            seq: n,
            wall_ns: wall_now_ns(),
            payload_bytes: 8,
        };
        (header, ZBytes::from(n.to_ne_bytes().to_vec()))
    }

    /// Shows the node by a stand-in, or no more.
    fn stand_in(shared: &Shared, node: Option<Node>) {
        let mut proxies = shared.proxies.lock().expect("sound");
        let key = (BRIDGE.to_owned(), NODE);
        match node {
            Some(node) => drop(proxies.insert(key, node)),
            None => drop(proxies.remove(&key)),
        }
    }

    /// Whether somebody stands in for the node of that name.
    fn is_shown(shared: &Shared, name: &str) -> bool {
        shared.domain.nodes().expect("a domain").iter().any(|n| n.alive && n.name == name)
    }

    /// It lay down just then, and its stand-in lived until the topic's next message.
    #[test]
    fn a_topic_does_not_rest_while_a_node_of_it_is_gone() {
        let alone = Alone::new("rests");
        let shared = alone.bridge();
        let (mut coming, _) = coming(&shared);
        stand_in(&shared, Some(alone.node("outlive-bridge.h1.goes")));
        let (header, payload) = message(0);
        coming.ports.publish(&header, &payload, &coming.intake.counted.clone());
        assert_eq!(coming.ports.of_nodes.len(), 1);
        assert!(matches!(coming.rests(), Rests::UntilWoken(_)));
        stand_in(&shared, None);
        assert!(is_shown(&shared, "outlive-bridge.h1.goes"), "its publisher keeps it");
        assert!(matches!(coming.rests(), Rests::Not), "somebody is to let go of it");
        coming.ports.tell(NODE, |of| of.finished = true);
        coming.ports.let_go();
        assert!(!is_shown(&shared, "outlive-bridge.h1.goes"));
        assert!(matches!(coming.rests(), Rests::UntilWoken(_)));
    }

    /// Both lived on, where the link was broken for less time than between two looks.
    #[test]
    fn a_node_that_was_out_of_reach_for_an_instant_has_one_stand_in() {
        let alone = Alone::new("flap");
        let shared = alone.bridge();
        let (mut coming, _) = coming(&shared);
        let counted = coming.intake.counted.clone();
        stand_in(&shared, Some(alone.node("outlive-bridge.h1.before")));
        let (header, payload) = message(0);
        coming.ports.publish(&header, &payload, &counted);
        stand_in(&shared, None);
        stand_in(&shared, Some(alone.node("outlive-bridge.h1.after")));
        coming.ports.look();
        assert!(coming.ports.waits(), "its publisher is that of a stand-in that is gone");
        // The next message is the new one's.
        let (header, payload) = message(1);
        coming.ports.publish(&header, &payload, &counted);
        assert!(!is_shown(&shared, "outlive-bridge.h1.before"));
        assert!(is_shown(&shared, "outlive-bridge.h1.after") && !coming.ports.waits());
    }

    /// It went on under the type that it had before.
    #[test]
    fn a_topic_that_may_be_another_one_is_not_published_as_it_was() {
        let alone = Alone::new("again");
        let shared = alone.bridge();
        let (mut coming, intake) = coming(&shared);
        // Announced again, and nobody says as what.
        let again = coming.ports.route.again.clone();
        again.store(true, Relaxed);
        let (header, payload) = message(0);
        assert!(intake.waiting.enter(8));
        intake.to.send(Item::Message(header, payload)).expect("it lives");
        assert_eq!(coming.run(&Stop::asked()).expect("no failure"), Turn::Ended);
        assert!(again.load(Relaxed), "it asks again");
        drop(coming);
        assert_eq!(intake.counted.with(|c| (c.received, c.dropped)), (0, 1));
    }

    /// A burst that the rings of both ends had room for lost what came behind 1024 messages.
    #[test]
    fn a_burst_that_fits_into_the_rings_has_room_in_between() {
        let waiting = Waiting::default();
        let enter = |n: u64, bytes| (0..n).filter(|_| waiting.enter(bytes)).count();
        assert_eq!(enter(5000, 8), WAITING_MAX);
        waiting.set_depth(u64::MAX, 4096);
        assert_eq!(enter(5000, 8), 4096 - WAITING_MAX, "another bridge only claims its depth");
        waiting.leave(8);
        assert_eq!(enter(2, 8), 1);
        (0..4096).for_each(|_| waiting.leave(8));
        assert_eq!(enter(3, 40 << 20), 1, "bytes are bounded as well");
    }

    /// What was not published within 0.3 s was lost, and in no counter.
    #[test]
    fn what_waits_at_the_end_is_published_or_counted() {
        const MESSAGES: u64 = 50;
        let alone = Alone::new("end");
        let (member, shared) = (alone.node("member"), alone.bridge());
        let (mut coming, intake) = coming(&shared);
        let topic = member.topic::<u64>("/n").expect("a name").reliable(true);
        let mut slow = topic.subscriber().expect("a subscriber");
        for n in 0..MESSAGES {
            let (header, payload) = message(n);
            assert!(intake.waiting.enter(8));
            intake.to.send(Item::Message(header, payload)).expect("it lives");
        }
        let ending = std::thread::spawn(move || coming.run(&Stop::asked()).expect("no failure"));
        std::thread::sleep(LINGER + Duration::from_millis(100));
        let mut got = 0;
        while !ending.is_finished() {
            got += u64::from(slow.receive().expect("a sample").is_some());
            std::thread::yield_now();
        }
        assert_eq!(ending.join().expect("no panic"), Turn::Ended);
        got += slow.drain().count() as u64;
        let (received, dropped) = intake.counted.with(|c| (c.received, c.dropped));
        assert_eq!((received, received + dropped), (got, MESSAGES));
        // Each took an instant, once there was room.
        assert!(got > 10, "{got} messages");
    }
}
