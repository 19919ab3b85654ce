//! ns per round of calls through the Rust crate, for `scripts/bench-cpp`: see `bench/calls.cpp`.

use std::hint::black_box;

use outlive::Node;

#[outlive::message("bench/Small")]
#[derive(Clone, Copy)]
struct Small {
    values: [f64; 8],
}

#[outlive::message("bench/Block")]
#[derive(Clone, Copy)]
struct Block {
    values: [f64; 512],
}

const BLOCKS: usize = 201;
const ROUNDS: u32 = 1000;

fn measure(
    name: &str,
    calls: u32,
    mut round: impl FnMut(u32) -> outlive::Result<()>,
) -> outlive::Result<()> {
    let mut times = [0.0; BLOCKS];
    for time in &mut times {
        let start = outlive::now_ns();
        (0..ROUNDS).try_for_each(&mut round)?;
        *time = (outlive::now_ns() - start) as f64 / f64::from(ROUNDS);
    }
    times.sort_by(f64::total_cmp);
    let ns = times[BLOCKS / 2];
    println!("{name} {calls} {ns:.3}");
    Ok(())
}

fn main() -> outlive::Result<()> {
    let node = Node::open("bench-rust")?;
    let mut message = Small { values: [0.0; 8] };

    let lone = node.topic::<Small>("/bench/rust/lone")?.publisher()?;
    measure("publish_64B", 1, |i| {
        message.values[0] = f64::from(i);
        lone.publish(&message).map(drop)
    })?;
    let publisher = node.topic::<Small>("/bench/rust/small")?.publisher()?;
    let mut subscriber = node.topic::<Small>("/bench/rust/small")?.subscriber()?;
    publisher.subscribers()?;
    measure("receive_nothing", 1, |_| {
        assert!(subscriber.receive()?.is_none());
        Ok(())
    })?;
    measure("publish+receive_64B", 2, |i| {
        message.values[0] = f64::from(i);
        publisher.publish(&message)?;
        let sample = subscriber.receive()?.expect("sent just now");
        assert!(sample.values[0] == f64::from(i));
        Ok(())
    })?;
    let large = node.topic::<Block>("/bench/rust/block")?.publisher()?;
    let mut blocks = node.topic::<Block>("/bench/rust/block")?.subscriber()?;
    large.subscribers()?;
    measure("loan+publish+receive_4KiB", 3, |i| {
        let mut loan = large.loan()?;
        loan.values[0] = f64::from(i);
        loan.publish()?;
        assert!(blocks.receive()?.expect("sent just now").values[0] == f64::from(i));
        Ok(())
    })?;
    let mut consumer = node.queue::<u64>("/bench/rust/queue")?.consumer()?;
    let mut producer = node.queue::<u64>("/bench/rust/queue")?.producer()?;
    measure("try_send+receive_8B", 2, |i| {
        producer.try_send(&u64::from(i))?;
        assert!(*consumer.receive()?.expect("sent just now") == u64::from(i));
        Ok(())
    })?;
    let mutex = node.mutex::<u64>("/bench/rust/mutex")?;
    measure("lock+unlock", 2, |_| {
        *mutex.lock().map_err(outlive::Error::from)? += 1;
        Ok(())
    })?;
    let shared = node.rwlock::<u64>("/bench/rust/shared")?;
    measure("lock_shared+unlock_shared", 2, |_| {
        assert!(black_box(*shared.read().map_err(outlive::Error::from)?) == 0);
        Ok(())
    })
}
