//! The queue with another way to know whether the consumer lives in each send: what a queue that
//! has only that way would pay.

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Instant;

use measure::cores::{Cores, Pinned};
use measure::stats::{Samples, Target, interleave};
use outlive::{Node, Result};

use super::ours::child;
use super::sizes::LANE_BYTES;
use crate::liveness::{self, Method, Stage};
use crate::pair::Peer;
use crate::report::{Row, Unit};
use crate::topic::same;

/// A row for each way of the liveness table.
pub(super) fn rows(cores: Cores, rounds: usize, count: u64) -> Result<Vec<Row>> {
    let mut rows = Rows { cores, rounds, count, rows: Vec::new() };
    liveness::each(&mut rows)?;
    Ok(rows.rows)
}

struct Rows {
    cores: Cores,
    rounds: usize,
    /// Sends of a run.
    count: u64,
    rows: Vec<Row>,
}

impl liveness::Visit for Rows {
    fn visit<M: Method>(&mut self) -> Result<()> {
        // Fewer of the slow ones: no run takes much longer than a plain one.
        let count = self.count.min(10 * M::CHECKS);
        let c = interleave(
            self.rounds,
            || stream::<liveness::Dummy>(self.cores, self.count),
            || stream::<M>(self.cores, count),
        )?;
        let name = format!("send with {}", M::NAME);
        let limit = "queue 8 B, no further check";
        self.rows.push(Row::compared(&name, Unit::PerSecond, limit, &c, Target::None));
        Ok(())
    }
}

fn stream<M: Method>(cores: Cores, count: u64) -> Result<Samples> {
    let stage = Stage::new()?;
    let root = stage.queue_root()?;
    let open = |name: &str| Node::builder().root(&root).name(name).open();
    let [ready, sum_seen] = stage.words();
    let mut method = M::new(&stage)?;
    let peer = Peer::spawn(cores.peers, || {
        child(|| {
            method.live(&stage)?;
            let mut consumer = open("consumer")?.queue::<u64>("/q")?.consumer()?;
            ready.store(1, Release);
            let (mut sum, mut got) = (0u64, 0);
            while got < count {
                if let Some(message) = consumer.receive()? {
                    sum = sum.wrapping_add(*message);
                    got += 1;
                }
            }
            sum_seen.store(sum, Relaxed);
            ready.store(2, Release);
            loop {
                std::thread::park();
            }
        });
    })?;
    peer.spin_until(|| ready.load(Acquire) == 1)?;
    method.watch(&stage, peer.pid())?;
    let _pinned = Pinned::to(cores.ours)?;
    let queue = open("producer")?.queue::<u64>("/q")?;
    let mut producer = queue.first_bytes(LANE_BYTES).bound_bytes(LANE_BYTES).producer()?;
    let start = Instant::now();
    for i in 1..=count {
        same(method.is_alive())?;
        producer.send(black_box(&i))?;
    }
    peer.spin_until(|| ready.load(Acquire) == 2)?;
    let seconds = start.elapsed().as_secs_f64();
    same(sum_seen.load(Relaxed) == count * (count + 1) / 2)?;
    Ok(Samples::new(vec![count as f64 / seconds]))
}
