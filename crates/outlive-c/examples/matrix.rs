//! A writer or a reader of every type; see crates/outlive-py/tests/test_matrix.py.

use std::fs;
use std::io::{BufRead, stdin};

use outlive::msg::{Optional, Text};
use outlive::{Deadline, Encoding, Node, Payload, PayloadType, Sample, Subscriber};

#[outlive::message("matrix/Own")]
#[derive(Clone, Copy)]
struct Own {
    limit: Optional<f64>,
    real: f64,
    big: u64,
    at: [Spot; 2],
    grid: [[i16; 3]; 2],
    name: Text<8>,
    mode: Mode,
    on: bool,
    small: i8,
    bytes: [u8; 1],
}

/// Its alignment is that of what may be absent.
#[outlive::message("matrix/Climate")]
struct Climate {
    celsius: Optional<f64>,
    humidity: Optional<f64>,
}

#[outlive::message]
#[derive(Clone, Copy)]
struct Spot {
    x: f32,
    y: f32,
}

#[outlive::message]
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
#[allow(dead_code, reason = "nothing is idle")]
enum Mode {
    Idle,
    Hold = 2,
}

/// What is carried as it is: encoding, type.
const FOREIGN: [(&str, &str); 5] = [
    ("protobuf", "matrix.Plan"),
    ("json", "matrix/Goal"),
    ("cdr", "matrix_msgs/msg/Part"),
    ("flatbuffer", "robot.Plan"),
    ("arrow", "table"),
];

fn make(number: u32) -> Own {
    let spot = |y| Spot { x: number as f32, y };
    Own {
        limit: Some(2.5).into(),
        real: number.into(),
        big: u64::MAX,
        at: [spot(0.5), spot(-1.5)],
        grid: [[1, 2, 3], [-4, 5, 6]],
        name: Text::cut("grüß"),
        mode: Mode::Hold,
        on: true,
        small: -7,
        bytes: [number as u8],
    }
}

fn next<T: Payload + ?Sized>(from: &mut Subscriber<T>) -> outlive::Result<Sample<T>> {
    loop {
        if let Some(sample) = from.receive_until(Deadline::NEVER)? {
            return Ok(sample);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args().collect();
    let [_, dir, role] = args.as_slice() else { return Err("matrix DIR write|read".into()) };
    let node = Node::open("rust")?;
    let own = node.topic::<Own>("/x/own")?;
    // Open, so that all agree on it.
    let _climate = node.topic::<Climate>("/x/climate")?.subscriber()?;
    let mut foreign = Vec::new();
    for (encoding, name) in FOREIGN {
        let schema = fs::read(format!("{dir}/{encoding}.schema"))?;
        let of = Encoding::from_name(encoding).ok_or("an encoding")?;
        let of = PayloadType::encoded(of, name, &schema)?;
        foreign.push((encoding, node.topic::<[u8]>(&format!("/x/{encoding}"))?.of_type(&of)));
    }
    if role == "write" {
        let own = own.publisher()?;
        let mut publishers = Vec::new();
        for (encoding, topic) in foreign {
            let payload = fs::read(format!("{dir}/{encoding}.payload"))?;
            publishers.push((topic.publisher()?, payload));
        }
        println!("ready");
        for line in stdin().lock().lines() {
            own.publish(&make(line?.trim().parse()?))?;
            for (publisher, payload) in &publishers {
                publisher.publish(payload)?;
            }
            println!("ok");
        }
        return Ok(());
    }
    let mut own = own.subscriber()?;
    let topics = foreign.into_iter().map(|(_, topic)| topic.subscriber());
    let mut subscribers = topics.collect::<Result<Vec<_>, _>>()?;
    println!("ready");
    loop {
        let m = next(&mut own)?;
        println!(
            "{} {} {} {} {} {} {} {} {} {} {} {}",
            m.limit.get().unwrap_or(0.0),
            m.real,
            m.big,
            m.at[1].x,
            m.at[1].y,
            m.grid[1][0],
            m.name.as_str(),
            m.mode as u8,
            u8::from(m.on),
            m.small,
            m.bytes[0],
            u8::from(m.limit.get().is_some()),
        );
        for subscriber in &mut subscribers {
            let sample = next(subscriber)?;
            println!("{}", sample.iter().map(|b| format!("{b:02x}")).collect::<String>());
        }
    }
}
