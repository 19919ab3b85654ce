//! A topic on its way from ROS: Zenoh's thread hands over, ours decodes and publishes.
//!
//! What publishers there have kept comes first: what is new waits until who was asked for it has
//! answered, but not for long.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outlive::{Error, ErrorKind, PayloadType};
use outlive_record::ros2::FromRos;
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::handlers::CallbackDrop;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::query::{ConsolidationMode, Reply};
use zenoh::sample::{Locality, Sample};

use crate::carried::incoming::{WAITING_MAX, Waiting, ends};
use crate::config::ros2::{Becomes, Ros2Rule};
use crate::link::wire::{PAYLOAD_BYTES_MAX, wall_now_ns};
use crate::local::port;
use crate::report::stats::Counted;
use crate::report::{Failed, say};
use crate::ros2::member::Member;
use crate::ros2::names::{self, ATTACHMENT_BYTES, Attachment, Port, Topic};
use crate::ros2::qos::Qos;
use crate::work::{Job, News, QUIET, Rests, Slot, Stop, Turn, Worker};

/// Publishers whose numbers are followed at most.
const FOLLOWED_MAX: usize = 1024;
/// Depth of a topic whose publishers there keep more than that.
const DEPTH_MAX: u64 = 256;
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How soon answers are looked for that new messages wait for.
const SOON: Duration = Duration::from_millis(5);
/// How long new messages wait for those that were kept.
const KEPT_WAIT: Duration = Duration::from_secs(3);

#[derive(Debug)]
struct Item {
    attachment: Attachment,
    message: ZBytes,
    /// Its publisher has kept it; else it is new.
    kept: bool,
}

/// Begins to publish `topic` of ROS as `here`. Its end comes after what has come.
pub(in crate::ros2) fn start(
    member: &Arc<Member>,
    topic: &Topic,
    here: &str,
    rule: &Ros2Rule,
    qos: Qos,
) -> Worker {
    let (to, from) = channel();
    let (asked, to_ask) = channel();
    let counted = member.shared.stats.of(false, &format!("ros2:{}", topic.name));
    let slot = Arc::<Slot>::default();
    let intake = Intake {
        to,
        slot: slot.clone(),
        waiting: Arc::default(),
        counted,
        followed: Arc::default(),
    };
    let route = Route {
        member: member.clone(),
        topic: topic.clone(),
        here: here.to_owned(),
        becomes: rule.becomes,
        depth: rule.depth.unwrap_or_else(|| qos.depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX)),
        qos,
    };
    intake.waiting.set_depth(route.depth, member.shared.room.limits.depth);
    let what = format!("topic {} of ROS 2 is not published as {here}", topic.name);
    let begin = move |_: &Stop| route.begin(intake, from, to_ask);
    Worker::start(&member.shared.workers, "from-ros", what, begin).hearing(move |news| {
        if let News::Keeps(session) = news {
            let _ = asked.send(session);
        }
        slot.wake();
    })
}

/// Zenoh's side.
#[derive(Clone)]
struct Intake {
    to: Sender<Item>,
    /// Where our side lies while nothing comes.
    slot: Arc<Slot>,
    waiting: Arc<Waiting>,
    counted: Counted,
    followed: Arc<Mutex<HashMap<[u8; 16], Followed>>>,
}

/// Numbers of a publisher.
#[derive(Clone, Copy, Debug, Default)]
struct Followed {
    /// The one after the last that came, and after the last of those that were kept.
    next: Option<i64>,
    next_kept: Option<i64>,
    /// The first that was new when it came: all later ones come by themselves.
    first_new: Option<i64>,
    /// One that was new is published: what was kept comes too late.
    is_past: bool,
}

impl Followed {
    /// How many messages before this one never came; none if it has come already.
    fn take(&mut self, seq: i64, kept: bool) -> Option<u64> {
        let after = seq.saturating_add(1);
        let has_come = self.next_kept.is_some_and(|next| seq < next);
        if kept {
            if has_come || self.first_new.is_some_and(|first| seq >= first) {
                return None;
            }
            self.next_kept = Some(after);
            self.next = self.next.max(Some(after));
            // What was kept is the end of what was sent.
            return Some(0);
        }
        self.first_new.get_or_insert(seq);
        let before = self.next.replace(after).filter(|before| seq > *before);
        (!has_come).then(|| before.map_or(0, |before| seq.abs_diff(before)))
    }
}

impl Intake {
    /// A message that is new, or that its publisher has kept.
    fn take(&self, sample: &Sample, kept: bool) {
        let bytes = sample.payload().len() as u64;
        let attachment = sample.attachment().and_then(|a| Attachment::parse(&a.to_bytes()));
        let Some(attachment) = attachment.filter(|_| bytes <= PAYLOAD_BYTES_MAX) else {
            return self.counted.with(|c| c.bad += 1);
        };
        let Some(lost) = self.follow(&attachment, kept) else { return };
        let item = || Item { attachment, message: sample.payload().clone(), kept };
        let taken = self.waiting.enter(bytes) && self.to.send(item()).is_ok();
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

    /// How many of its publisher's messages before it never came; none if it has come already.
    fn follow(&self, attachment: &Attachment, kept: bool) -> Option<u64> {
        let mut all = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= FOLLOWED_MAX && !all.contains_key(&attachment.gid) {
            all.clear();
        }
        all.entry(attachment.gid).or_default().take(attachment.seq, kept)
    }

    /// Whether a message may be published now: none that was kept, behind one that was new.
    fn is_in_order(&self, item: &Item) -> bool {
        let mut all = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(of) = all.get_mut(&item.attachment.gid) else { return true };
        of.is_past |= !item.kept;
        !(item.kept && of.is_past)
    }
}

struct Route {
    member: Arc<Member>,
    topic: Topic,
    here: String,
    becomes: Option<Becomes>,
    depth: u64,
    /// What the publishers there give.
    qos: Qos,
}

impl Route {
    fn begin(
        self,
        intake: Intake,
        from: Receiver<Item>,
        to_ask: Receiver<String>,
    ) -> Result<Option<Box<dyn Job>>, Failed> {
        let (from_ros, of) = self.coding()?;
        // The topic is there from now on.
        let port = self.port(&of)?;
        let session = &self.member.shared.link.session;
        let taker = intake.clone();
        let key = self.topic.key(self.member.participant.domain);
        let subscriber = session
            .declare_subscriber(&key)
            .allowed_origin(Locality::Remote)
            .callback(move |sample| taker.take(&sample, false))
            .wait()?;
        let qos = Qos { depth: Some(self.depth), ..self.qos };
        let token = self.member.port_token(Port::Subscription, &self.topic, qos);
        let token = session.liveliness().declare_token(token).wait()?;
        Ok(Some(Box::new(Coming {
            _token: token,
            subscriber: Some(subscriber),
            route: self,
            key,
            intake,
            from,
            next: None,
            to_ask,
            ask_next: None,
            asking: Arc::default(),
            holds: None,
            held: VecDeque::new(),
            from_ros,
            port,
            told: false,
            asked: None,
        })))
    }

    /// What messages become: what the topic here has, if somebody has made it already.
    fn coding(&self) -> Result<(FromRos, PayloadType), Failed> {
        let (of, own) = (&self.topic.of, self.member.known.definitions());
        let here = self.member.shared.domain.find_topic(&self.here)?;
        let here = match (here, self.becomes) {
            (Some(here), _) => Some(here.payload_type()),
            (None, Some(Becomes::Cdr)) => own.payload_type(of)?,
            (None, Some(Becomes::Fixed)) => {
                let what = format!("nobody here has made it, so the layout of {of} is not known");
                return Err(format!("{what}: start a subscriber of the imported type").into());
            }
            (None, None) => None,
        };
        Ok(FromRos::among(of, own, here.as_ref())?)
    }

    fn port(&self, of: &PayloadType) -> Result<port::Port, Error> {
        let shared = &self.member.shared;
        port::Port::open(port::Topic {
            room: shared.room.clone(),
            node: shared.node.clone(),
            name: self.here.clone(),
            of: of.clone(),
            attributes: BTreeMap::new(),
            depth: self.depth,
        })
    }
}

/// A topic on its way from there.
struct Coming {
    _token: LivelinessToken,
    /// None at its end.
    subscriber: Option<Subscriber<()>>,
    route: Route,
    key: String,
    intake: Intake,
    from: Receiver<Item>,
    /// Sessions whose publishers keep messages.
    to_ask: Receiver<String>,
    /// What was found of both when it was to rest.
    next: Option<Item>,
    ask_next: Option<String>,
    /// How many of them have not answered to the end.
    asking: Arc<AtomicU64>,
    /// Since when what is new waits for their answers, and what waits.
    holds: Option<Instant>,
    held: VecDeque<Item>,
    from_ros: FromRos,
    port: port::Port,
    /// That a message was bad.
    told: bool,
    /// When it was asked to end.
    asked: Option<Instant>,
}

impl Drop for Coming {
    /// What it leaves behind is counted.
    fn drop(&mut self) {
        drop(self.subscriber.take());
        let left = self.next.take().into_iter().chain(self.from.try_iter());
        let left = (self.held.len() + left.count()) as u64;
        self.intake.counted.with(|c| c.dropped += left);
    }
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
            while let Some(session) = self.ask_next.take().or_else(|| self.to_ask.try_recv().ok()) {
                self.ask(&session)?;
            }
            self.release();
            let wait = if self.holds.is_some() { SOON } else { LOOK_EVERY };
            let item = self.next.take().map_or_else(|| self.from.recv_timeout(wait), Ok);
            let empty = item.is_err();
            match item {
                Ok(item) => {
                    busy = Instant::now();
                    self.pass(item);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Turn::Ended),
            }
            if self.asked.is_some_and(|asked| ends(asked, empty)) && stop.ends() {
                return Ok(Turn::Ended);
            }
            if self.asked.is_none() && self.holds.is_none() && busy.elapsed() > QUIET {
                return Ok(Turn::Quiet);
            }
        }
    }

    fn rests(&mut self) -> Rests<'_> {
        self.next = self.next.take().or_else(|| self.from.try_recv().ok());
        self.ask_next = self.ask_next.take().or_else(|| self.to_ask.try_recv().ok());
        match self.next.is_some() || self.ask_next.is_some() {
            true => Rests::Not,
            false => Rests::UntilWoken(self.intake.slot.clone()),
        }
    }
}

impl Coming {
    /// Asks a session for what its publishers keep; what is new waits.
    fn ask(&mut self, of: &str) -> Result<(), Failed> {
        self.holds.get_or_insert_with(Instant::now);
        self.asking.fetch_add(1, Relaxed);
        let (taker, asking) = (self.intake.clone(), self.asking.clone());
        let callback = move |reply: Reply| {
            reply.result().into_iter().for_each(|sample| taker.take(sample, true));
        };
        // Release: who reads it finds what was taken before.
        let drop = move || {
            asking.fetch_sub(1, Release);
        };
        // All of them: by default only the last of a key.
        let get = self.route.member.shared.link.session.get(names::kept_selector(&self.key, of));
        get.consolidation(ConsolidationMode::None).with(CallbackDrop { callback, drop }).wait()
    }

    fn pass(&mut self, item: Item) {
        match self.holds.is_some() && !item.kept {
            true => self.held.push_back(item),
            false => self.publish(&item),
        }
    }

    /// Publishes what waits, once there are answers, or no more time.
    fn release(&mut self) {
        let Some(since) = self.holds else { return };
        let is_late = since.elapsed() >= KEPT_WAIT || self.held.len() >= WAITING_MAX;
        if self.asking.load(Acquire) > 0 && !is_late && self.asked.is_none() {
            return;
        }
        // What was kept may lie behind what is new.
        for _ in 0..WAITING_MAX {
            let Some(item) = self.next.take().or_else(|| self.from.try_recv().ok()) else { break };
            self.pass(item);
        }
        self.holds = None;
        while let Some(item) = self.held.pop_front() {
            self.publish(&item);
        }
    }

    fn publish(&mut self, item: &Item) {
        let Item { attachment, message, .. } = item;
        self.intake.waiting.leave(message.len() as u64);
        if !self.intake.is_in_order(item) {
            return self.intake.counted.with(|c| c.lost += 1);
        }
        let message = message.to_bytes();
        let done = match self.from_ros.payload(&message) {
            Ok(payload) => publish(&mut self.port, &payload),
            Err(why) => Err(Error::new(ErrorKind::Corrupt, "receiving", &*self.route.here, &*why)),
        };
        if let Err(e) = &done
            && !self.told
        {
            say(format_args!("topic {} of ROS 2: {e}", self.route.topic.name));
            self.told = true;
        }
        count(&self.intake.counted, attachment, message.len(), done);
    }
}

fn publish(port: &mut port::Port, payload: &[u8]) -> Result<u64, Error> {
    port.publish(payload.len(), |to| {
        to.copy_from_slice(payload);
        true
    })?;
    Ok(payload.len() as u64)
}

fn count(counted: &Counted, attachment: &Attachment, wire: usize, done: Result<u64, Error>) {
    let latency_us = (wall_now_ns() as i64).saturating_sub(attachment.wall_ns) / 1000;
    counted.with(|c| match done {
        Ok(bytes) => {
            c.received += 1;
            c.bytes += bytes;
            c.wire_bytes += (wire + ATTACHMENT_BYTES) as u64;
            c.latency(latency_us);
        }
        Err(e) if e.kind() == ErrorKind::Corrupt => c.bad += 1,
        Err(_) => c.dropped += 1,
    });
}

#[cfg(test)]
mod tests {
    use outlive::MsgPack;
    use serde_json::Value;

    use super::*;
    use crate::fixture::Alone;
    use crate::ros2::known::Known;
    use crate::ros2::names::Participant;

    const STRING: &str = "std_msgs/msg/String";

    /// The topic `/n` of texts.
    fn route(shared: &Arc<crate::shared::Shared>) -> Route {
        let known = Known::default();
        let topic = known.topic("/n", STRING).expect("a known type");
        let session = shared.link.own.clone();
        let participant =
            Participant { domain: 0, session, namespace: "/r".into(), name: "outlive".into() };
        let member = Arc::new(Member::new(shared.clone(), participant, known));
        let qos = Qos { reliable: true, keeps: true, depth: Some(16) };
        Route { member, topic, here: "/n".into(), becomes: None, depth: 16, qos }
    }

    #[test]
    fn what_is_new_waits_for_what_was_kept_and_none_comes_behind_it() {
        let alone = Alone::new("kept");
        let (member, shared) = (alone.node("member"), alone.bridge());
        let topic = member.msgpack::<Value>("/n").expect("a name").type_name(STRING).depth(16);
        let mut came: outlive::Subscriber<MsgPack<Value>> = topic.subscriber().expect("one");
        let (to, from) = channel();
        let (asked, to_ask) = channel();
        let intake = Intake {
            to,
            slot: Arc::default(),
            waiting: Arc::default(),
            counted: shared.stats.of(false, "ros2:/n"),
            followed: Arc::default(),
        };
        let takes = |of: u8, seq: i64, kept| {
            let attachment = Attachment { seq, wall_ns: 0, gid: [of; 16] };
            let text = format!("{seq:02}\0");
            let message = ZBytes::from([&[0, 1, 0, 0, 3, 0, 0, 0], text.as_bytes()].concat());
            if intake.follow(&attachment, kept).is_some() {
                assert!(intake.waiting.enter(message.len() as u64));
                intake.to.send(Item { attachment, message, kept }).expect("it lives");
            }
        };
        let mut job = route(&shared).begin(intake.clone(), from, to_ask).expect("it begins");
        let mut turn = || job.as_mut().expect("a job").run(&Stop::default()).expect("no failure");
        // A session that has no publishers answers at once, with nothing.
        asked.send("nobody".to_owned()).expect("it listens");
        [(10, false), (8, true), (9, true), (10, true), (11, false)]
            .into_iter()
            .for_each(|(n, k)| takes(1, n, k));
        assert_eq!(turn(), Turn::Quiet);
        // What comes too late for another's new message.
        [(14, false), (12, true), (13, true)].into_iter().for_each(|(n, k)| takes(2, n, k));
        assert_eq!(turn(), Turn::Quiet);
        let texts = std::iter::from_fn(|| came.receive().expect("a sample"));
        let texts = texts.map(|s| s.decode().expect("a text")["data"].to_string());
        assert_eq!(
            Vec::from_iter(texts),
            ["08", "09", "10", "11", "14"].map(|t| format!("\"{t}\""))
        );
        assert_eq!(intake.counted.with(|c| (c.received, c.lost)), (5, 2));
    }

    /// All that was kept counted as come once one new message had, and was in no counter.
    #[test]
    fn what_was_kept_comes_once_also_behind_a_new_message() {
        let mut of = Followed::default();
        assert_eq!(of.take(10, false), Some(0));
        let kept = Vec::from_iter((7..=11).map(|seq| of.take(seq, true)));
        assert_eq!(kept, [Some(0), Some(0), Some(0), None, None], "10 has come, and 11 will");
        assert_eq!((of.take(8, true), of.take(11, false)), (None, Some(0)), "asked once more");
        assert_eq!(of.take(14, false), Some(2));
        // The other way round.
        let mut of = Followed::default();
        assert_eq!((of.take(7, true), of.take(8, true)), (Some(0), Some(0)));
        assert_eq!((of.take(8, false), of.take(11, false)), (None, Some(2)));
        assert_eq!(of.take(9, true), None);
    }
}
