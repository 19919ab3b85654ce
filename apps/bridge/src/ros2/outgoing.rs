//! A topic on its way to ROS: each payload becomes a message in CDR.

use std::sync::Arc;

use outlive::Sample;
use outlive::topic;
use outlive_record::ros2::ToRos;
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::pubsub::Publisher;
use zenoh::qos::CongestionControl;
use zenoh::sample::Locality;

use super::Member;
use super::config::Ros2Rule;
use super::kept::Kept;
use super::known::Known;
use super::names::{self, Attachment, Port, Topic};
use super::qos::Qos;
use crate::outgoing::{Carried, Pump, Sends, heard, reader, wall_ns};
use crate::stats::Counted;
use crate::worker::{Failed, Job, Stop, Worker};

/// What a topic becomes there.
pub(super) struct Way {
    /// Its name here.
    name: String,
    to_ros: ToRos,
    /// The one of its messages that is meant.
    which: usize,
    topic: Topic,
}

impl Way {
    /// `Err` says why ROS has no message for it, or not that of the rule.
    pub(super) fn new(
        info: &topic::Info,
        rule: &Ros2Rule,
        there: &str,
        epoch_ns: u64,
        known: &Known,
    ) -> Result<Self, String> {
        let of = info.payload_type();
        let wanted = rule.of.as_deref();
        let none = || format!("{} is no {} there", of.name(), wanted.unwrap_or("that type"));
        let to_ros = ToRos::among(&of, epoch_ns, known.definitions())?.ok_or_else(none)?;
        let names = (0..).map_while(|which| Some((which, to_ros.name(which)?)));
        let mut fitting = names.filter(|(_, of)| wanted.is_none_or(|want| want == *of));
        let (which, name) = fitting.next().ok_or_else(none)?;
        let hash = names::hash(&to_ros.type_description(which).ok_or_else(none)?);
        let topic = Topic { name: there.into(), of: name.into(), hash };
        drop(fitting);
        Ok(Self { name: info.name.clone(), to_ros, which, topic })
    }

    pub(super) fn start(self, member: &Arc<Member>, depth: u64, rule: Ros2Rule) -> Worker {
        let by = member.clone();
        let what = format!("topic {} of ROS 2 is not carried", self.topic.name);
        let silent = member.shared.silent.clone();
        let begin = move |_: &Stop| self.begin(&by, depth, &rule);
        Worker::start(&member.shared, "outgoing", what, begin).hearing(move |_| silent.look())
    }

    fn begin(
        self,
        member: &Member,
        depth: u64,
        rule: &Ros2Rule,
    ) -> Result<Option<Box<dyn Job>>, Failed> {
        let shared = &member.shared;
        let builder = reader(shared, &self.name)?;
        // What is kept begins with what the topic has kept.
        let history = if rule.keeps { depth } else { 0 };
        let subscriber = builder.history(history).subscriber_of_any_type()?;
        let congestion =
            if rule.reliable { CongestionControl::Block } else { CongestionControl::Drop };
        let key = self.topic.key(member.participant.domain);
        let kept = match rule.keeps {
            true => Some(Kept::new(&shared.session, &key, depth)?),
            false => None,
        };
        let publisher = shared
            .session
            .declare_publisher(key)
            .congestion_control(congestion)
            .allowed_destination(Locality::Remote)
            .wait()?;
        let heard = heard(&publisher)?;
        let qos = Qos { reliable: rule.reliable, keeps: rule.keeps, depth: Some(depth) };
        let token_key = member.port_token(Port::Publisher, &self.topic, qos);
        let gid = names::gid(&token_key);
        let token = shared.session.liveliness().declare_token(token_key).wait()?;

        let counted = shared.stats.of(true, &format!("ros2:{}", self.topic.name));
        let pump = Pump::new(shared, subscriber, rule.rate_hz, heard, counted.clone())?;
        let sends = Route { way: self, publisher, kept, counted, seq: 1, gid };
        let pump = pump.keeping(rule.keeps).newest_first(!rule.reliable && !rule.keeps);
        Ok(Some(Box::new(Carried { pump, sends, _token: token })))
    }
}

struct Route {
    way: Way,
    publisher: Publisher<'static>,
    kept: Option<Kept>,
    counted: Counted,
    /// Number of the next message: ROS counts from 1.
    seq: i64,
    gid: [u8; 16],
}

impl Sends for Route {
    fn send(&mut self, sample: Sample<[u8]>, now: u64, heard: bool) -> Result<(), Failed> {
        let message = match self.way.to_ros.message(&sample) {
            Ok((which, message)) if which == self.way.which => message,
            // A compressed image among others, or what ROS has no word for.
            Ok(_) | Err(_) => {
                self.counted.with(|c| c.bad += 1);
                return Ok(());
            }
        };
        let wall_ns = wall_ns(&sample, now) as i64;
        let attachment = Attachment { seq: self.seq, wall_ns, gid: self.gid };
        let wire = message.len() as u64;
        let message = ZBytes::from(message);
        // Kept first: who asks afterwards is one that hears it, or finds it there.
        let at = self.kept.as_mut().map(|kept| kept.keep(&message, attachment));
        self.seq += 1;
        self.publisher.put(message).attachment(attachment.to_bytes()).timestamp(at).wait()?;
        if !heard {
            // Whoever has been found meanwhile has it all the same.
            return Ok(());
        }
        self.counted.with(|c| {
            c.sent += 1;
            c.bytes += sample.len() as u64;
            c.wire_bytes += wire + names::ATTACHMENT_BYTES as u64;
        });
        Ok(())
    }
}
