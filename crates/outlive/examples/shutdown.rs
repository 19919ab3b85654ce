//! A program that ends in order when it is sent SIGTERM, as `outlive stop` does.

use std::time::Duration;

use outlive::topic::Event;
use outlive::{Node, Shutdown, Timer, WaitSet};

fn main() -> outlive::Result<()> {
    let watcher = Node::open("watcher")?; // another process, in earnest
    let mut numbers = watcher.topic::<u64>("/numbers")?.subscriber()?;

    let count = work(|| drop(numbers.receive()))?;

    while numbers.receive()?.is_some() {}
    let left = std::iter::from_fn(|| numbers.next_event())
        .any(|event| matches!(event, Event::PublisherLeft(_)));
    let how = if left { "left" } else { "died" };
    println!("shutdown: after {count} messages the worker {how}");
    Ok(())
}

/// Publishes until it is asked to end; what it has opened is dropped then.
fn work(mut meanwhile: impl FnMut()) -> outlive::Result<u64> {
    let mut shutdown = Shutdown::on_signals()?;
    let node = Node::open("worker")?;
    let publisher = node.topic::<u64>("/numbers")?.publisher()?;
    let mut tick = Timer::every(Duration::from_millis(10));
    let mut set = WaitSet::new();
    let mut count = 0;
    while !shutdown.is_asked() {
        set.wait(&mut [&mut shutdown, &mut tick], Duration::from_secs(1))?;
        if tick.fired() > 0 {
            publisher.publish(&count)?;
            count += 1;
        }
        meanwhile();
        if count == 3 {
            shutdown.ask(); // stands for SIGTERM
        }
    }
    Ok(count)
}
