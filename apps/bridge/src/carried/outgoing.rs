//! A topic on its way to other machines: what the pump lets pass is given to Zenoh.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use outlive::Sample;
use zenoh::Wait;
use zenoh::bytes::ZBytes;
use zenoh::pubsub::Publisher;
use zenoh::qos::{CongestionControl, Priority};
use zenoh::sample::Locality;

use super::pump::{Carried, Pump, Sends, heard, reader, wall_ns};
use crate::config::{TopicRule, Urgency};
use crate::link::notes::Note;
use crate::link::wire::{HEADER_BYTES, Header, TopicNote, TypeNote};
use crate::report::Failed;
use crate::report::stats::Counted;
use crate::shared::Shared;
use crate::work::{Job, Stop, Worker};

/// Begins to carry the topic `name`. At its end what is in the ring is sent, then others are told.
pub(crate) fn start(shared: &Arc<Shared>, name: &str, rule: &TopicRule) -> Worker {
    let (by, of, rule) = (shared.clone(), name.to_owned(), rule.clone());
    let what = format!("topic {name} is not carried");
    let workers = shared.workers.clone();
    let begin = move |_: &Stop| begin(&by, &of, rule);
    Worker::start(&shared.workers, "outgoing", what, begin).hearing(move |_| workers.look())
}

fn begin(
    shared: &Arc<Shared>,
    name: &str,
    rule: TopicRule,
) -> Result<Option<Box<dyn Job>>, Failed> {
    let Some(info) = shared.domain.find_topic(name)? else { return Ok(None) };
    let subscriber = reader(shared, name)?.subscriber_of_any_type()?;
    let note = TopicNote {
        of: TypeNote::of(&info.payload_type()),
        depth: info.depth,
        attributes: info.attributes.clone(),
    };
    let note = Note::show(&shared.link, "topic", name, &note)?;

    let congestion = if rule.reliable { CongestionControl::Block } else { CongestionControl::Drop };
    let publisher = shared
        .link
        .session
        .declare_publisher(shared.link.own_key("data", name))
        .congestion_control(congestion)
        .priority(priority(rule.priority))
        .allowed_destination(Locality::Remote)
        .wait()?;
    let heard = heard(&publisher)?;
    let token_key = shared.link.own_key("live/topic", name);
    let token = shared.link.session.liveliness().declare_token(token_key).wait()?;

    let counted = shared.stats.of(true, name);
    let pump = Pump::new(shared, subscriber, rule.rate_hz, heard, counted.clone())?;
    let pump = pump.newest_first(!rule.reliable);
    let (shared, spoke) = (shared.clone(), HashSet::new());
    let sends = Route { shared, rule, publisher, counted, spoke, _note: note };
    Ok(Some(Box::new(Carried { pump, sends, _token: token })))
}

fn priority(urgency: Urgency) -> Priority {
    match urgency {
        Urgency::RealTime => Priority::RealTime,
        Urgency::InteractiveHigh => Priority::InteractiveHigh,
        Urgency::InteractiveLow => Priority::InteractiveLow,
        Urgency::DataHigh => Priority::DataHigh,
        Urgency::Data => Priority::Data,
        Urgency::DataLow => Priority::DataLow,
        Urgency::Background => Priority::Background,
    }
}

struct Route {
    shared: Arc<Shared>,
    rule: TopicRule,
    publisher: Publisher<'static>,
    counted: Counted,
    /// Nodes of which a message is on its way, and no last one yet.
    spoke: HashSet<u64>,
    _note: Note,
}

impl Sends for Route {
    fn send(&mut self, sample: Sample<[u8]>, now: u64, _: bool) -> Result<(), Failed> {
        let bytes = sample.len() as u64;
        let node = sample.publisher().node.get();
        let packed = self.rule.compress_over.filter(|over| bytes > *over).and_then(|_| {
            let packed = lz4_flex::block::compress(&sample);
            // What does not shrink by an eighth is not worth the work of unpacking it.
            (packed.len() as u64 <= bytes - bytes / 8).then_some(packed)
        });
        // The number lives as long as the counters do: over all publishers of the topic.
        let seq = self.counted.with(|c| {
            c.sent += 1;
            c.sent - 1
        });
        self.spoke.insert(node);
        let header = Header {
            compressed: packed.is_some(),
            last: false,
            node,
            seq,
            wall_ns: wall_ns(&sample, now),
            payload_bytes: bytes,
        };
        let payload = match packed {
            Some(packed) => ZBytes::from(packed),
            // Zenoh reads the chunk itself; it is let go once it is on its way.
            None => ZBytes::from(Bytes::from_owner(Held(sample))),
        };
        let wire = payload.len() as u64;
        self.publisher.put(payload).attachment(header.to_bytes()).wait()?;
        self.counted.with(|c| {
            c.bytes += bytes;
            c.wire_bytes += wire + HEADER_BYTES as u64;
        });
        Ok(())
    }

    /// On the same way as the messages, which its token overtakes; never dropped.
    fn last_of(&mut self, node: u64) -> Result<(), Failed> {
        if self.spoke.remove(&node) {
            self.shared
                .link
                .session
                .put(self.publisher.key_expr(), ZBytes::new())
                .attachment(Header::last_of(node).to_bytes())
                .congestion_control(CongestionControl::Block)
                .priority(priority(self.rule.priority))
                .allowed_destination(Locality::Remote)
                .wait()?;
        }
        Ok(())
    }

    fn last_of_all(&mut self) -> Result<(), Failed> {
        let nodes: Vec<u64> = self.spoke.iter().copied().collect();
        nodes.into_iter().try_for_each(|node| self.last_of(node))
    }
}

/// A sample as the owner of its bytes.
struct Held(Sample<[u8]>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
