//! A topic on its way from ROS: Zenoh's thread hands over, ours decodes and publishes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use outlive::{Error, ErrorKind, PayloadType};
use outlive_record::ros2::FromRos;
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::liveliness::LivelinessToken;
use zenoh::pubsub::Subscriber;
use zenoh::query::{ConsolidationMode, Reply};
use zenoh::sample::{Locality, Sample};

use super::Member;
use super::config::{Becomes, Ros2Rule};
use super::names::{self, ATTACHMENT_BYTES, Attachment, Port, Topic};
use super::qos::Qos;
use crate::incoming::{WAITING_BYTES_MAX, WAITING_MAX, ends};
use crate::log::say;
use crate::port;
use crate::stats::Counted;
use crate::wire::{PAYLOAD_BYTES_MAX, wall_now_ns};
use crate::worker::{Failed, Job, News, QUIET, Rests, Slot, Stop, Turn, Worker};

/// Publishers whose numbers are followed at most.
const FOLLOWED_MAX: usize = 1024;
/// Depth of a topic whose publishers there keep more than that.
const DEPTH_MAX: u64 = 256;
const LOOK_EVERY: Duration = Duration::from_millis(100);

type Item = (Attachment, ZBytes);

/// Begins to publish `topic` of ROS as `here`. Its end comes after what has come.
pub(super) fn start(
    member: &Arc<Member>,
    topic: &Topic,
    here: &str,
    rule: &Ros2Rule,
    qos: Qos,
) -> Worker {
    let (to, from) = sync_channel(WAITING_MAX);
    let (asked, to_ask) = channel();
    let counted = member.shared.stats.of(false, &format!("ros2:{}", topic.name));
    let slot = Arc::<Slot>::default();
    let intake = Intake {
        to,
        slot: slot.clone(),
        waiting_bytes: Arc::default(),
        counted,
        expected: Arc::new(Mutex::new(HashMap::new())),
    };
    let route = Route {
        member: member.clone(),
        topic: topic.clone(),
        here: here.to_owned(),
        becomes: rule.becomes,
        depth: rule.depth.unwrap_or_else(|| qos.depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX)),
        qos,
    };
    let what = format!("topic {} of ROS 2 is not published as {here}", topic.name);
    let begin = move |_: &Stop| route.begin(intake, from, to_ask);
    Worker::start(&member.shared, "from-ros", what, begin).hearing(move |news| {
        if let News::Keeps(session) = news {
            let _ = asked.send(session);
        }
        slot.wake();
    })
}

/// Zenoh's side.
#[derive(Clone)]
struct Intake {
    to: SyncSender<Item>,
    /// Where our side lies while nothing comes.
    slot: Arc<Slot>,
    waiting_bytes: Arc<AtomicU64>,
    counted: Counted,
    /// The next number of each publisher.
    expected: Arc<Mutex<HashMap<[u8; 16], i64>>>,
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
        let before = self.waiting_bytes.fetch_add(bytes, Relaxed);
        let room = before == 0 || before + bytes <= WAITING_BYTES_MAX;
        let taken = room && self.to.try_send((attachment, sample.payload().clone())).is_ok();
        match taken {
            true => self.slot.wake(),
            false => drop(self.waiting_bytes.fetch_sub(bytes, Relaxed)),
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
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        if expected.len() >= FOLLOWED_MAX && !expected.contains_key(&attachment.gid) {
            expected.clear();
        }
        let (seq, gid) = (attachment.seq, attachment.gid);
        let before = expected.get(&gid).copied();
        if kept && before.is_some_and(|before| seq < before) {
            return None;
        }
        expected.insert(gid, seq.saturating_add(1));
        // What it has kept is the end of what it has sent.
        Some(
            before.filter(|before| seq > *before && !kept).map_or(0, |before| seq.abs_diff(before)),
        )
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
        let session = &self.member.shared.session;
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
            shared: shared.clone(),
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
        let left = self.next.take().into_iter().chain(self.from.try_iter()).count() as u64;
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
            let item = self.next.take().map_or_else(|| self.from.recv_timeout(LOOK_EVERY), Ok);
            let empty = item.is_err();
            match item {
                Ok(item) => {
                    busy = Instant::now();
                    self.publish(&item);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Turn::Ended),
            }
            if self.asked.is_some_and(|asked| ends(asked, empty)) && stop.ends() {
                return Ok(Turn::Ended);
            }
            if self.asked.is_none() && busy.elapsed() > QUIET {
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
    /// Asks a session for what its publishers keep.
    fn ask(&self, of: &str) -> Result<(), Failed> {
        let taker = self.intake.clone();
        let took = move |reply: Reply| {
            reply.result().into_iter().for_each(|sample| taker.take(sample, true));
        };
        // All of them: by default only the last of a key.
        let get = self.route.member.shared.session.get(names::kept_selector(&self.key, of));
        get.consolidation(ConsolidationMode::None).callback(took).wait()
    }

    fn publish(&mut self, (attachment, message): &Item) {
        self.intake.waiting_bytes.fetch_sub(message.len() as u64, Relaxed);
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
