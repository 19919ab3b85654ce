//! Topics and their rivals: half a round trip of 64 bytes, both sides awake, and streams to one
//! subscriber for whom the publisher waits.

use std::hint::black_box;
use std::time::Duration;

use iceoryx2::prelude::*;

use crate::queues::{Root, fresh};
use crate::stage::{self, Failed, race};

const DEPTH: u64 = 1024;

type Words = [u64; 8];

pub fn one_way(count: u64) -> Result<f64, Failed> {
    let root = Root::new();
    let open = |name: &str, to: &str, from: &str| -> Result<_, Failed> {
        let node = root.node(name)?;
        let from = node.topic::<Words>(from)?.subscriber()?;
        Ok((node.topic::<Words>(to)?.publisher()?, from))
    };
    stage::one_way(
        count,
        |ready| {
            let (to, mut from) = open("peer", "/pong", "/ping")?;
            ready();
            loop {
                if let Some(sample) = from.receive()? {
                    to.publish(&sample)?;
                }
            }
        },
        || open("bench", "/ping", "/pong"),
        |(to, from), i| {
            to.publish(black_box(&[i; 8]))?;
            loop {
                if let Some(sample) = from.receive()? {
                    return if sample[7] == i { Ok(()) } else { Err("another answer".into()) };
                }
            }
        },
    )
}

/// A reliable subscriber with as many messages of room as iceoryx2's has.
pub fn stream<const W: usize>(count: u64) -> Result<f64, Failed> {
    let root = Root::new();
    race(
        count,
        |ready| {
            let topic = root.node("subscriber")?.topic::<[u64; W]>("/stream")?.depth(DEPTH);
            let mut subscriber = topic.reliable(true).subscriber()?;
            ready();
            let (mut sum, mut got) = (0, 0);
            while got < count {
                if let Some(sample) = subscriber.receive()? {
                    sum += sample[W - 1];
                    got += 1;
                }
            }
            Ok(sum)
        },
        || {
            let topic = root.node("publisher")?.topic::<[u64; W]>("/stream")?.depth(DEPTH);
            Ok(topic.reliable_timeout(Duration::from_secs(10)).publisher()?)
        },
        |publisher| {
            for i in 1..=count {
                publisher.publish(&[i; W])?;
            }
            Ok(())
        },
    )
}

pub fn iceoryx2(count: u64) -> Result<f64, Failed> {
    let (ping, pong) = (fresh("ping"), fresh("pong"));
    let open = |to: &str, from: &str| -> Result<_, Failed> {
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let service = |name: &str| -> Result<_, Failed> {
            let builder = node.service_builder(&name.try_into()?);
            Ok(builder.publish_subscribe::<Words>().open_or_create()?)
        };
        let from = service(from)?.subscriber_builder().create()?;
        let to = service(to)?.publisher_builder().create()?;
        Ok((node, to, from))
    };
    stage::one_way(
        count,
        |ready| {
            let (_node, to, from) = open(&pong, &ping)?;
            ready();
            loop {
                if let Some(sample) = from.receive()? {
                    to.send_copy(*sample)?;
                }
            }
        },
        || open(&ping, &pong),
        |(_, to, from), i| {
            to.send_copy(black_box([i; 8]))?;
            loop {
                if let Some(sample) = from.receive()? {
                    return if sample[7] == i { Ok(()) } else { Err("another answer".into()) };
                }
            }
        },
    )
}
