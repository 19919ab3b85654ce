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

use super::kept::Kept;
use crate::carried::pump::{Carried, Pump, Sends, heard, reader, wall_ns};
use crate::config::ros2::Ros2Rule;
use crate::report::Failed;
use crate::report::stats::Counted;
use crate::ros2::known::Known;
use crate::ros2::member::{Epoch, Member};
use crate::ros2::names::{self, Attachment, Port, Topic};
use crate::ros2::qos::Qos;
use crate::work::{Job, Stop, Worker};

/// What a topic becomes there.
pub(in crate::ros2) struct Way {
    /// Its name here.
    name: String,
    to_ros: ToRos,
    epoch: Epoch,
    /// The one of its messages that is meant.
    which: usize,
    topic: Topic,
}

impl Way {
    /// `Err` says why ROS has no message for it, or not that of the rule.
    pub(in crate::ros2) fn new(
        info: &topic::Info,
        rule: &Ros2Rule,
        there: &str,
        epoch: Epoch,
        known: &Known,
    ) -> Result<Self, String> {
        let of = info.payload_type();
        let wanted = rule.of.as_deref();
        let none =
            || format!("{} cannot be sent as {}", of.name(), wanted.unwrap_or("a ROS message"));
        let to_ros = ToRos::among(&of, epoch.ns(), known.definitions())?.ok_or_else(none)?;
        let names = (0..).map_while(|which| Some((which, to_ros.name(which)?)));
        let mut fitting = names.filter(|(_, of)| wanted.is_none_or(|want| want == *of));
        let (which, name) = fitting.next().ok_or_else(none)?;
        let hash = names::hash(&to_ros.type_description(which).ok_or_else(none)?);
        let topic = Topic { name: there.into(), of: name.into(), hash };
        drop(fitting);
        Ok(Self { name: info.name.clone(), to_ros, epoch, which, topic })
    }

    /// What a payload becomes; `None` for another message than is meant (a compressed image among
    /// others), and for what ROS has no word for.
    fn message(&self, payload: &[u8]) -> Option<Vec<u8>> {
        self.to_ros.set_epoch(self.epoch.ns());
        let (which, message) = self.to_ros.message(payload).ok()?;
        (which == self.which).then_some(message)
    }

    pub(in crate::ros2) fn start(self, member: &Arc<Member>, depth: u64, rule: Ros2Rule) -> Worker {
        let by = member.clone();
        let what = format!("topic {} of ROS 2 is not carried", self.topic.name);
        let workers = member.shared.workers.clone();
        let begin = move |_: &Stop| self.begin(&by, depth, &rule);
        Worker::start(&member.shared.workers, "outgoing", what, begin)
            .hearing(move |_| workers.look())
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
            true => Some(Kept::new(&shared.link.session, &key, depth)?),
            false => None,
        };
        let publisher = shared
            .link
            .session
            .declare_publisher(key)
            .congestion_control(congestion)
            .allowed_destination(Locality::Remote)
            .wait()?;
        let heard = heard(&publisher)?;
        let qos = Qos { reliable: rule.reliable, keeps: rule.keeps, depth: Some(depth) };
        let token_key = member.port_token(Port::Publisher, &self.topic, qos);
        let gid = names::gid(&token_key);
        let token = shared.link.session.liveliness().declare_token(token_key).wait()?;

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
        let Some(message) = self.way.message(&sample) else {
            self.counted.with(|c| c.bad += 1);
            return Ok(());
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

#[cfg(test)]
mod tests {
    use outlive::msg::{Header, Imu};
    use outlive::zerocopy::{FromZeros, IntoBytes};
    use outlive::{Domain, Node};

    use super::*;
    use crate::config::Config;

    struct Dir(std::path::PathBuf);

    impl Drop for Dir {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Each route had looked at the clocks when it began, and stamped by that to its end.
    #[test]
    fn stamps_of_headers_follow_the_time_of_day() {
        const HOUR_S: u64 = 3600;
        let dir = format!("/dev/shm/outlive-test-bridge-epoch-{}", std::process::id());
        let dir = Dir(dir.into());
        let node = Node::builder().root(&dir.0).open().expect("a node");
        let _publisher = node.topic::<Imu>("/imu").expect("a name").publisher().expect("it");
        let info = Domain::of_node(&node).find_topic("/imu").expect("topics").expect("it");
        let text = "namespace = \"n\"\nconnect = [\"tcp/127.0.0.1:7447\"]\n\
            [[ros2.topic]]\npattern = \"/**\"\n";
        let config = Config::parse("b.toml", text, Known::default()).expect("a good file");
        let config = config.ros2.expect("its section");
        let (rule, there) = config.goes_out("/imu").expect("carried");

        let now_ns = Epoch::new().ns();
        // The route begins while the clock is behind.
        let epoch = Epoch::at_ns(now_ns - HOUR_S * 1_000_000_000);
        let way = Way::new(&info, rule, &there, epoch.clone(), &config.known).expect("a way");
        let imu = Imu { header: Header::now("base"), ..Imu::new_zeroed() };
        let second = || {
            let message = way.message(imu.as_bytes()).expect("a message");
            // After the head of CDR.
            u64::from(u32::from_le_bytes(message[4..8].try_into().expect("four bytes")))
        };
        let right = (now_ns + imu.header.stamp_ns) / 1_000_000_000;
        assert!(second().abs_diff(right - HOUR_S) < 2, "{} s", second());
        epoch.look();
        assert!(second().abs_diff(right) < 2, "{} s instead of {right} s", second());
    }
}
