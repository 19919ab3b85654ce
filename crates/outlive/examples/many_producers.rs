//! Producers in processes of their own, one consumer; without it a send says that nobody listens.

use std::process::Command;
use std::time::Duration;

use outlive::{Deadline, Node};

const PRODUCERS: usize = 3;
const MESSAGES: u32 = 100;

fn produce(me: u32) -> outlive::Result<()> {
    let mut commands = Node::open("producer")?.queue::<[u32; 2]>("/commands")?.producer()?;
    commands.wait_for_consumer(Duration::MAX)?;
    (0..MESSAGES).try_for_each(|number| commands.send(&[me, number]))
}

fn main() -> outlive::Result<()> {
    if let Some(me) = std::env::args().nth(1) {
        return produce(me.parse().unwrap_or(0));
    }
    let program = std::env::current_exe().expect("this program");
    let start = |i: usize| Command::new(&program).arg(i.to_string()).spawn().expect("a producer");
    let producers: Vec<_> = (0..PRODUCERS).map(start).collect();

    let node = Node::open("consumer")?;
    let mut early = node.queue::<u32>("/nobody")?.producer()?;
    if let Err(e) = early.send(&0) {
        println!("without a consumer: {e}");
    }

    let mut commands = node.queue::<[u32; 2]>("/commands")?.consumer()?;
    let (mut received, mut next) = (0, [0; PRODUCERS]);
    while received < PRODUCERS as u32 * MESSAGES {
        // None: an event, a producer joined or left.
        if let Some(command) = commands.receive_until(Deadline::NEVER)? {
            let [producer, number] = *command;
            assert_eq!(number, next[producer as usize], "in order");
            next[producer as usize] += 1;
            received += 1;
        }
    }
    for mut producer in producers {
        let _ = producer.wait();
    }
    println!("many producers: {received} messages of {PRODUCERS} producers, each in order");
    Ok(())
}
