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
use zenoh::query::{ConsolidationMode, Reply};
use zenoh::sample::{Locality, Sample};

use super::Member;
use super::names::{self, ATTACHMENT_BYTES, Attachment, Port, Topic};
use super::qos::Qos;
use crate::incoming::{LINGER, WAITING_BYTES_MAX, WAITING_MAX};
use crate::port;
use crate::shared::say;
use crate::stats::Counted;
use crate::wire::{PAYLOAD_BYTES_MAX, wall_now_ns};
use crate::worker::{Failed, News, Stop, Worker};

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
    depth: Option<u64>,
    qos: Qos,
) -> Worker {
    let (to, from) = sync_channel(WAITING_MAX);
    let (asked, to_ask) = channel();
    let counted = member.shared.stats.of(false, &format!("ros2:{}", topic.name));
    let intake = Intake {
        to,
        waiting_bytes: Arc::default(),
        counted,
        expected: Arc::new(Mutex::new(HashMap::new())),
    };
    let route = Route {
        member: member.clone(),
        topic: topic.clone(),
        here: here.to_owned(),
        depth: depth.unwrap_or_else(|| qos.depth.unwrap_or(DEPTH_MAX).min(DEPTH_MAX)),
        qos,
        to_ask,
    };
    let what = format!("topic {} of ROS 2 is not published as {here}", topic.name);
    let run = move |stop: &Stop| route.carry(&intake, &from, stop).map(|()| None);
    Worker::start(&member.shared, "from-ros", what, run).hearing(move |news| {
        if let News::Keeps(session) = news {
            let _ = asked.send(session);
        }
    })
}

/// Zenoh's side.
#[derive(Clone)]
struct Intake {
    to: SyncSender<Item>,
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
        if !taken {
            self.waiting_bytes.fetch_sub(bytes, Relaxed);
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
    depth: u64,
    /// What the publishers there give.
    qos: Qos,
    /// Sessions whose publishers keep messages.
    to_ask: Receiver<String>,
}

impl Route {
    /// Until it is to stop.
    fn carry(&self, intake: &Intake, from: &Receiver<Item>, stop: &Stop) -> Result<(), Failed> {
        let (from_ros, of) = FromRos::of(&self.topic.of, "", None)?;
        // The topic is there from now on.
        let mut port = self.port(&of)?;
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
        let mut told = false;
        let mut until = None;
        loop {
            match (stop.is_asked(), until) {
                (true, None) => until = Some(Instant::now() + LINGER),
                (false, Some(_)) => until = None,
                _ => {}
            }
            for of in self.to_ask.try_iter() {
                let taker = intake.clone();
                let took = move |reply: Reply| {
                    reply.result().into_iter().for_each(|sample| taker.take(sample, true));
                };
                // All of them: by default only the last of a key.
                let get = session.get(names::kept_selector(&key, &of));
                get.consolidation(ConsolidationMode::None).callback(took).wait()?;
            }
            match from.recv_timeout(LOOK_EVERY) {
                Ok((attachment, message)) => {
                    intake.waiting_bytes.fetch_sub(message.len() as u64, Relaxed);
                    let message = message.to_bytes();
                    let done = match from_ros.payload(&message) {
                        Ok(payload) => publish(&mut port, &payload),
                        Err(why) => {
                            Err(Error::new(ErrorKind::Corrupt, "receiving", &*self.here, &*why))
                        }
                    };
                    if let Err(e) = &done
                        && !told
                    {
                        say(format_args!("topic {} of ROS 2: {e}", self.topic.name));
                        told = true;
                    }
                    count(&intake.counted, &attachment, message.len(), done);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if until.is_some_and(|until| Instant::now() >= until) && stop.ends() {
                break;
            }
        }
        token.undeclare().wait()?;
        subscriber.undeclare().wait()?;
        Ok(())
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
