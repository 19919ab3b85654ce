//! One voice of the conversation test; see crates/outlive-py/tests/test_conversation.py.

use std::io::{BufRead, stdin};
use std::time::Duration;

use outlive::lock::LockError;
use outlive::zerocopy::IntoBytes;
use outlive::{Message, Node};

#[outlive::message("test/Reading")]
#[derive(Clone, Copy)]
struct Reading {
    stamp_ns: u64,
    sender: u32,
    number: u32,
    values: [f64; 3],
    grid: [[i16; 2]; 2],
}

/// What travels as MessagePack.
#[derive(serde::Serialize, serde::Deserialize)]
struct Plan {
    goal: String,
    number: u32,
    speeds: Vec<f64>,
}

fn make(number: u32) -> Reading {
    let (values, grid) = ([1.5, 2.5, 3.5], [[1, 2], [3, 4]]);
    Reading { stamp_ns: 1, sender: 2, number, values, grid }
}

fn sum(r: &Reading) -> f64 {
    let grid: i16 = r.grid.iter().flatten().sum();
    r.values.iter().sum::<f64>() + f64::from(grid)
}

fn show(r: &Reading) {
    println!("{} {}", r.number, sum(r));
}

fn numbers() -> impl Iterator<Item = u32> {
    stdin().lock().lines().map_while(|line| line.ok()?.trim().parse().ok())
}

fn main() -> outlive::Result<()> {
    let role = std::env::args().nth(1).unwrap_or_default();
    if role == "layout" {
        println!("{}", Reading::describe().to_text().replace('\n', "|"));
        let hex: String = make(3).as_bytes().iter().map(|b| format!("{b:02x}")).collect();
        println!("{hex}");
        return Ok(());
    }
    let node = Node::open("rust")?;
    match role.as_str() {
        "publish" => {
            let publisher = node.topic::<Reading>("/c/topic")?.depth(64).publisher()?;
            println!("ready");
            for number in numbers() {
                publisher.publish(&make(number))?;
                println!("ok");
            }
        }
        "plan" => {
            let publisher = node.msgpack::<Plan>("/c/plan")?.type_name("test/Plan").publisher()?;
            println!("ready");
            for number in numbers() {
                let speeds = vec![0.5, 0.25];
                publisher.publish_value(&Plan { goal: "dock".into(), number, speeds })?;
                println!("ok");
            }
        }
        "follow" => {
            let topic = node.msgpack::<Plan>("/c/plan")?.type_name("test/Plan");
            let mut subscriber = topic.subscriber()?;
            println!("ready");
            loop {
                let Some(plan) = subscriber.receive_value_timeout(Duration::from_secs(1))? else {
                    continue;
                };
                println!("{} {} {}", plan.goal, plan.number, plan.speeds.iter().sum::<f64>());
            }
        }
        "subscribe" => {
            let mut subscriber = node.topic::<Reading>("/c/topic")?.subscriber()?;
            println!("ready");
            loop {
                if let Some(sample) = subscriber.receive_until(u64::MAX)? {
                    show(&sample);
                }
            }
        }
        "produce" => {
            let mut producer = node.queue::<Reading>("/c/queue")?.producer()?;
            println!("ready");
            for number in numbers() {
                match producer.send(&make(number)) {
                    Ok(()) => println!("ok"),
                    Err(e) => println!("{}", e.kind()),
                }
            }
        }
        "consume" => {
            let mut consumer = node.queue::<Reading>("/c/queue")?.consumer()?;
            println!("ready");
            loop {
                if let Some(message) = consumer.receive_until(u64::MAX)? {
                    show(&message);
                }
            }
        }
        "serve" => {
            let mut server = node.service::<Reading, f64>("/c/service")?.server()?;
            println!("ready");
            loop {
                if let Some(request) = server.receive_until(u64::MAX)? {
                    let answer = sum(&request) + f64::from(request.number);
                    let _ = server.respond(request, &answer);
                }
            }
        }
        "call" => {
            let mut client = node.service::<Reading, f64>("/c/service")?.client()?;
            println!("ready");
            for number in numbers() {
                match client.call(&make(number)) {
                    Ok(answer) => println!("{}", *answer),
                    Err(e) => println!("{}", e.kind()),
                }
            }
        }
        "lock" => {
            let mutex = node.mutex::<Reading>("/c/lock")?;
            println!("ready");
            for number in numbers() {
                let (mut guard, how) = match mutex.lock() {
                    Ok(guard) => (guard, "ok"),
                    Err(LockError::OwnerDied(left)) => (left.mark_consistent(), "owner died"),
                    Err(e) => return Err(e.into()),
                };
                let before = guard.number;
                guard.number = number;
                println!("{how} {before}");
                std::mem::forget(guard); // keeps the lock
            }
        }
        _ => eprintln!("no such role: {role}"),
    }
    Ok(())
}
