//! Many ends that are opened one after the other: they stay, or live for one message.

use super::fails::{Fails, refusal};
use super::messages::content;
use super::names::{payload_type, queue, topic};
use super::shared::Shared;
use super::things::Thing;
use crate::history::reply::{Reply, Seen};
use crate::history::step::{CROWD_DEPTH, Handle, Step};

const WORDS: u64 = 4;

/// Opens them until one is refused; what each sent is told.
pub(super) fn come(shared: &Shared, step: &Step, reply: &mut Reply) -> Result<(), Fails> {
    let (new, count) = (step.arg("new"), step.arg("count"));
    for handle in new..new + count {
        let (end, sent) = match open(shared, step, handle, count) {
            Ok((end, seen)) => {
                let sent = seen.n;
                reply.seen.push(seen);
                (end, sent)
            }
            Err(e) => {
                let refused = e.downcast::<outlive::Error>()?;
                (reply.outcome, reply.text) = refusal(&refused);
                return Ok(());
            }
        };
        if step.arg("keep") == 1 {
            shared.put(handle, end);
            shared.sent.lock().unwrap().insert(handle, sent);
        }
    }
    Ok(())
}

fn open(shared: &Shared, step: &Step, handle: Handle, count: u64) -> Result<(Thing, Seen), Fails> {
    let node = shared.node(step.arg("node"));
    let (name, type_) = (step.arg("name"), payload_type(step.arg("type")));
    let mut seen = Seen { from: handle, ..Seen::default() };
    let body = content(handle, 0, WORDS);
    let end = match step.arg("what") {
        0 => {
            let topic = node.topic::<[u8]>(&topic(name))?.of_type(&type_).depth(CROWD_DEPTH);
            let publisher = topic.publisher()?;
            seen.id = (publisher.id().node.get(), publisher.id().port);
            seen.n = u64::from(publisher.publish(&body).is_ok());
            Thing::Publisher(Box::new(publisher))
        }
        1 => {
            let mut producer = node.queue::<[u8]>(&queue(name))?.of_type(&type_).producer()?;
            seen.id = (producer.id().node.get(), producer.id().port);
            seen.n = u64::from(producer.try_send(&body).is_ok());
            Thing::Producer(Box::new(producer))
        }
        2 => {
            let mut client = super::services::client(shared, step)?;
            if let Ok(ticket) = client.send(&content(handle, handle + count, WORDS)) {
                (seen.n, seen.seq) = (1, ticket.get());
            }
            Thing::Client(Box::new(client))
        }
        _ => {
            let topic = node.topic::<[u8]>(&topic(name))?.of_type(&type_);
            Thing::Subscriber(Box::new(topic.subscriber()?))
        }
    };
    Ok((end, seen))
}
