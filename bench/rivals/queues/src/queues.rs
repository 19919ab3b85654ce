//! One way to send messages of `W` words each, and its rivals.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

use iceoryx2::prelude::*;

use crate::stage::{self, Failed, Shared, await_word, race, race_threads};

/// Memory of each ring of ours, of rtrb and of crossbeam: 4 MiB.
const RING_BYTES: usize = 4 << 20;

/// A name that no other run has.
pub fn fresh(what: &str) -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("outlive-peers-{what}-{}-{}", std::process::id(), NEXT.fetch_add(1, Relaxed))
}

/// A directory on the RAM disk, removed at the end.
pub struct Root(pub PathBuf);

impl Root {
    pub fn new() -> Self {
        Self(PathBuf::from("/dev/shm").join(fresh("root")))
    }

    pub fn node(&self, name: &str) -> outlive::Result<outlive::Node> {
        outlive::Node::builder().root(&self.0).name(name).open()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// outlive's queue, each message sent alone, liveness checked.
pub fn outlive<const W: usize>(count: u64) -> Result<f64, Failed> {
    let root = Root::new();
    race(
        count,
        |ready| {
            let mut consumer = root.node("consumer")?.queue::<[u64; W]>("/q")?.consumer()?;
            ready();
            let (mut sum, mut got) = (0, 0);
            while got < count {
                if let Some(message) = consumer.receive()? {
                    sum += message[W - 1];
                    got += 1;
                }
            }
            Ok(sum)
        },
        || {
            let queue = root.node("producer")?.queue::<[u64; W]>("/q")?;
            Ok(queue.first_bytes(RING_BYTES as u64).bound_bytes(RING_BYTES as u64).producer()?)
        },
        |producer| {
            for i in 0..count {
                producer.send(&[i + 1; W])?;
            }
            Ok(())
        },
    )
}

/// outlive's queues, one there and one back: 64 B, both sides awake.
pub fn one_way(count: u64) -> Result<f64, Failed> {
    let root = Root::new();
    let open = |name: &str, to: &str, from: &str| -> Result<_, Failed> {
        let node = root.node(name)?;
        let from = node.queue::<[u64; 8]>(from)?.consumer()?;
        Ok((node.queue::<[u64; 8]>(to)?.producer()?, from))
    };
    stage::one_way(
        count,
        |ready| {
            let (mut to, mut from) = open("peer", "/pong", "/ping")?;
            ready();
            to.wait_for_consumer(Duration::from_secs(10))?;
            loop {
                let next = from.receive()?.map(|message| *message);
                if let Some(message) = next {
                    to.send(&message)?;
                }
            }
        },
        || open("bench", "/ping", "/pong"),
        |(to, from), i| {
            to.send(black_box(&[i; 8]))?;
            loop {
                if let Some(message) = from.receive()? {
                    return if message[7] == i { Ok(()) } else { Err("another answer".into()) };
                }
            }
        },
    )
}

/// Between threads of one process: nothing of it survives a crash, and nobody else can read it.
pub fn crossbeam<const W: usize>(count: u64) -> Result<f64, Failed> {
    let (to, from) = crossbeam_channel::bounded::<[u64; W]>(RING_BYTES / (8 * W));
    race_threads(
        count,
        move || (0..count).filter_map(|_| from.recv().ok()).map(|m| m[W - 1]).sum(),
        || {
            for i in 1..=count {
                let _ = to.send([i; W]);
            }
        },
    )
}

/// Between threads of one process.
pub fn rtrb<const W: usize>(count: u64) -> Result<f64, Failed> {
    let (mut to, mut from) = rtrb::RingBuffer::<[u64; W]>::new(RING_BYTES / (8 * W));
    race_threads(
        count,
        move || {
            let (mut sum, mut got) = (0, 0);
            while got < count {
                if let Ok(message) = from.pop() {
                    sum += message[W - 1];
                    got += 1;
                }
            }
            sum
        },
        || {
            for i in 1..=count {
                while to.push([i; W]).is_err() {}
            }
        },
    )
}

/// iceoryx2: publish/subscribe that blocks instead of overwriting.
///
/// A subscriber notices a new publisher in `receive`. Until it has, the publisher drops what does
/// not fit the buffer, although it is to retry; so the two meet before the clock runs.
pub fn iceoryx2<const W: usize>(count: u64) -> Result<f64, Failed> {
    let name = fresh("stream");
    let met = Shared::new(4096)?;
    let open = || -> Result<_, Failed> {
        let node = NodeBuilder::new().create::<ipc::Service>()?;
        let service = node
            .service_builder(&name.as_str().try_into()?)
            .publish_subscribe::<[u64; W]>()
            .subscriber_max_buffer_size(1024)
            .enable_safe_overflow(false)
            .open_or_create()?;
        Ok((node, service))
    };
    race(
        count,
        |ready| {
            let (_node, service) = open()?;
            let subscriber = service.subscriber_builder().buffer_size(1024).create()?;
            ready();
            while subscriber.receive()?.is_none() {}
            met.word(0).store(1, Release);
            let (mut sum, mut got) = (0, 0);
            while got < count {
                if let Some(message) = subscriber.receive()? {
                    sum += message[W - 1];
                    got += 1;
                }
            }
            Ok(sum)
        },
        || {
            let (node, service) = open()?;
            let how = BackpressureStrategy::RetryUntilDelivered;
            let publisher = service.publisher_builder().backpressure_strategy(how).create()?;
            publisher.send_copy([0; W])?;
            await_word(&met, 1)?;
            Ok((node, service, publisher))
        },
        |(_, _, publisher)| {
            for i in 1..=count {
                publisher.send_copy([i; W])?;
            }
            Ok(())
        },
    )
}

/// ZeroMQ: PUSH and PULL over a Unix socket.
pub fn zeromq<const W: usize>(count: u64) -> Result<f64, Failed> {
    let at = format!("ipc:///dev/shm/{}", fresh("zmq"));
    let made = race(
        count,
        |ready| {
            let socket = zmq::Context::new().socket(zmq::PULL)?;
            socket.bind(&at)?;
            ready();
            let (mut sum, mut bytes) = (0, [0; 512]);
            for _ in 0..count {
                let got = socket.recv_into(&mut bytes, 0)?;
                sum += u64::from_ne_bytes(bytes[got - 8..got].try_into()?);
            }
            Ok(sum)
        },
        || {
            let socket = zmq::Context::new().socket(zmq::PUSH)?;
            socket.connect(&at)?;
            Ok(socket)
        },
        |socket| {
            for i in 1..=count {
                let words = [i; W];
                // SAFETY: plain integers as bytes.
                let bytes = unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), 8 * W) };
                socket.send::<&[u8]>(bytes, 0)?;
            }
            Ok(())
        },
    );
    let _ = std::fs::remove_file(at.trim_start_matches("ipc://"));
    made
}
