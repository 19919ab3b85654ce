//! One voice of the conversation test; see crates/outlive-py/tests/test_conversation.py.

use std::io::{BufRead, stdin};
use std::ops::DerefMut;
use std::time::Duration;

use outlive::lock::{Guard, Inherited, LockError, LockResult};
use outlive::msg::{
    Header, Image, ImageHeader, Imu, Joint, JointState, JointStateHeader, PixelFormat, PointCloud,
    PointCloudHeader, PointXyzi, Pose, Quaternion, Text, Twist, Vector3,
};
use outlive::rt::{Board, BoardView, LatestReader, LatestWriter, SpscReader, SpscWriter};
use outlive::zerocopy::IntoBytes;
use outlive::{Deadline, Message, Node, NodeId, Payload, Sample, Subscriber};

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

fn described() {
    let show = |name: &str, text: String| println!("{name} {}", text.replace('\n', "|"));
    show(Pose::TYPE_NAME, Pose::describe().to_text());
    show(Twist::TYPE_NAME, Twist::describe().to_text());
    show(Imu::TYPE_NAME, Imu::describe().to_text());
    show(JointStateHeader::TYPE_NAME, JointStateHeader::describe().to_text());
    show(Joint::TYPE_NAME, Joint::describe().to_text());
    show(ImageHeader::TYPE_NAME, ImageHeader::describe().to_text());
    show(PointCloudHeader::TYPE_NAME, PointCloudHeader::describe().to_text());
    show(PointXyzi::TYPE_NAME, PointXyzi::describe().to_text());
    for format in (0..256).map(PixelFormat).filter(|f| f.as_str() != "unknown") {
        let bytes = format.bytes_per_pixel().unwrap_or(0);
        println!("{} {} {bytes}", format.0, format.as_str());
    }
}

/// The ready-made messages with this number in them.
fn send(node: &Node) -> outlive::Result<()> {
    let poses = node.topic::<Pose>("/m/pose")?.publisher()?;
    let twists = node.topic::<Twist>("/m/twist")?.publisher()?;
    let imus = node.topic::<Imu>("/m/imu")?.publisher()?;
    let joints = node.topic::<JointState>("/m/joints")?.publisher()?;
    let clouds = node.topic::<PointCloud>("/m/cloud")?.publisher()?;
    let images = node.topic::<Image>("/m/image")?.publisher()?;
    println!("ready");
    let header = Header { stamp_ns: 7, frame_id: Text::cut("map") };
    for number in numbers() {
        let n = f64::from(number);
        poses.publish(&Pose {
            header,
            position: Vector3 { x: 1.0, y: 2.0, z: n },
            orientation: Quaternion::IDENTITY,
        })?;
        let (linear, angular) =
            (Vector3 { x: n, ..Default::default() }, Vector3 { z: 0.5, ..Default::default() });
        twists.publish(&Twist { header, linear, angular })?;
        let mut imu = Imu { header, ..Imu::default() };
        (imu.linear_acceleration.z, imu.orientation_covariance[0]) = (9.75, -1.0);
        imus.publish(&imu)?;
        let elbow = Joint { name: Text::cut("elbow"), position: n, velocity: 0.5, effort: -1.5 };
        joints.publish_headed(JointStateHeader { header }, &[elbow])?;
        let point = |x, y, intensity| PointXyzi { x, y, z: 0.0, intensity };
        let points = [point(n as f32, 0.0, 0.5), point(0.0, n as f32, 0.25)];
        clouds.publish_headed(PointCloudHeader::row(header, 2), &points)?;
        let mut image = images.loan_image(header, 2, 2, PixelFormat::RGB8)?;
        let (head, pixels) = image.split_mut();
        pixels.iter_mut().zip(number as u8..).for_each(|(pixel, value)| *pixel = value);
        match number {
            2 => head.height = 9,
            3 => head.format = PixelFormat(77),
            _ => {}
        }
        image.publish()?;
        println!("ok");
    }
    Ok(())
}

fn next<T: Payload + ?Sized>(from: &mut Subscriber<T>) -> outlive::Result<Sample<T>> {
    loop {
        if let Some(sample) = from.receive_until(Deadline::NEVER)? {
            return Ok(sample);
        }
    }
}

/// What came, field by field, and the bytes of it.
fn see(node: &Node) -> outlive::Result<()> {
    let mut poses = node.topic::<Pose>("/m/pose")?.subscriber()?;
    let mut twists = node.topic::<Twist>("/m/twist")?.subscriber()?;
    let mut imus = node.topic::<Imu>("/m/imu")?.subscriber()?;
    let mut joints = node.topic::<JointState>("/m/joints")?.subscriber()?;
    let mut clouds = node.topic::<PointCloud>("/m/cloud")?.subscriber()?;
    let mut images = node.topic::<Image>("/m/image")?.subscriber()?;
    println!("ready");
    loop {
        let (pose, twist, imu) = (next(&mut poses)?, next(&mut twists)?, next(&mut imus)?);
        let (state, cloud, image) = (next(&mut joints)?, next(&mut clouds)?, next(&mut images)?);
        let elbow = state.joint("elbow").expect("an elbow");
        print!("{} {} {} ", pose.header.frame_id, pose.header.stamp_ns, pose.position.z);
        print!("{} {} ", twist.linear.x, twist.angular.z);
        print!("{} {} ", imu.linear_acceleration.z, imu.orientation_covariance[0]);
        print!("{} {} ", elbow.position, elbow.effort);
        print!("{} {} ", cloud.points()[1].y, cloud.points()[1].intensity);
        match image.check() {
            Ok(()) => println!("{}", image.row(1).expect("a row")[5]),
            Err(e) => println!("{e}"),
        }
        let all = [
            pose.as_bytes(),
            twist.as_bytes(),
            imu.as_bytes(),
            state.as_bytes(),
            cloud.as_bytes(),
            image.as_bytes(),
        ];
        let hex: String = all.concat().iter().map(|b| format!("{b:02x}")).collect();
        println!("{hex}");
    }
}

fn numbers() -> impl Iterator<Item = u32> {
    stdin().lock().lines().map_while(|line| line.ok()?.trim().parse().ok())
}

/// Answers each number by what `take` says, and keeps what that took.
fn holds(mut take: impl FnMut(u32) -> outlive::Result<String>) -> outlive::Result<()> {
    println!("ready");
    for number in numbers() {
        println!("{}", take(number)?);
    }
    Ok(())
}

/// How the lock was taken and what it held before; `number` from now on. It is kept.
fn changed<G: Guard + DerefMut<Target = Reading>>(
    taken: LockResult<G, Inherited<G>>,
    number: u32,
) -> outlive::Result<String> {
    let (mut guard, how) = match taken {
        Ok(guard) => (guard, "ok"),
        Err(LockError::OwnerDied(left)) => (left.mark_consistent(), "owner died"),
        Err(e) => return Err(e.into()),
    };
    let before = std::mem::replace(&mut guard.number, number);
    std::mem::forget(guard);
    Ok(format!("{how} {before}"))
}

fn main() -> outlive::Result<()> {
    let role = std::env::args().nth(1).unwrap_or_default();
    if role == "layout" {
        println!("{}", Reading::describe().to_text().replace('\n', "|"));
        let hex: String = make(3).as_bytes().iter().map(|b| format!("{b:02x}")).collect();
        println!("{hex}");
        described();
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
                if let Some(sample) = subscriber.receive_until(Deadline::NEVER)? {
                    show(&sample);
                }
            }
        }
        "send" => send(&node)?,
        "see" => see(&node)?,
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
                if let Some(message) = consumer.receive_until(Deadline::NEVER)? {
                    show(&message);
                }
            }
        }
        "serve" => {
            let mut server = node.service::<Reading, f64>("/c/service")?.server()?;
            println!("ready");
            loop {
                if let Some(request) = server.receive_until(Deadline::NEVER)? {
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
            holds(|number| changed(mutex.lock(), number))?;
        }
        "write" => {
            let lock = node.rwlock::<Reading>("/c/rwlock")?;
            holds(|number| changed(lock.write(), number))?;
        }
        "read" => {
            let lock = node.rwlock::<Reading>("/c/rwlock")?;
            holds(|_| {
                let guard = lock.read().map_err(outlive::Error::from)?;
                let seen = format!("ok {}", guard.number);
                std::mem::forget(guard);
                Ok(seen)
            })?;
        }
        "pi" => {
            let mutex = node.pi_mutex::<Reading>("/c/pi")?;
            holds(|number| changed(mutex.lock(), number))?;
        }
        "segment" => {
            let segment = node.segment::<[u64; 512]>("/c/segment")?;
            let mutex = segment.mutex::<Reading>(1024)?;
            holds(|number| changed(mutex.lock(), number))?;
        }
        "permit" => {
            let semaphore = node.semaphore("/c/semaphore", 2)?;
            holds(|_| match semaphore.acquire_timeout(Duration::ZERO) {
                Ok(permit) => {
                    let how = if permit.owner_died() { "owner died" } else { "ok" };
                    std::mem::forget(permit);
                    Ok(how.into())
                }
                Err(e) => Ok(e.kind().to_string()),
            })?;
        }
        "set" => {
            let set = node.lockless_set("/c/set", 64)?;
            holds(|number| {
                let new = set.insert(number.into())?;
                let mut ids = set.ids();
                ids.sort_unstable();
                Ok(format!("{new} {ids:?}"))
            })?;
        }
        "await" => {
            let (mutex, condvar) = (node.mutex::<Reading>("/c/told")?, node.condvar("/c/call")?);
            holds(|number| {
                let mut guard = mutex.lock().map_err(outlive::Error::from)?;
                println!("waits");
                while guard.number != number {
                    guard = condvar.wait(guard).map_err(outlive::Error::from)?;
                }
                Ok("came".into())
            })?;
        }
        "tell" => {
            let (mutex, condvar) = (node.mutex::<Reading>("/c/told")?, node.condvar("/c/call")?);
            holds(|number| {
                mutex.lock().map_err(outlive::Error::from)?.number = number;
                condvar.notify_all();
                Ok("ok".into())
            })?;
        }
        "set_newest" => {
            let opening = LatestWriter::<Reading>::open(&node, "/c/latest")?;
            println!("ready");
            let mut writer = opening.connect(Duration::MAX)?;
            for number in numbers() {
                // A killed reader is not reported by a write.
                while !writer.seems_alive() || writer.write(&make(number)).is_err() {
                    writer.reconnect(Duration::MAX)?;
                }
                println!("ok");
            }
        }
        "get_newest" => {
            let opening = LatestReader::<Reading>::open(&node, "/c/latest")?;
            println!("ready");
            let mut reader = opening.connect(Duration::MAX)?;
            for number in numbers() {
                let value = loop {
                    match reader.read() {
                        Ok(Some(newest)) if newest.value.number == number => break newest.value,
                        Ok(_) if reader.seems_alive() => std::thread::yield_now(),
                        _ => reader.reconnect(Duration::MAX)?,
                    }
                };
                show(&value);
            }
        }
        "push" => {
            let opening = SpscWriter::<Reading>::open(&node, "/c/ring", 8)?;
            println!("ready");
            let mut writer = opening.connect(Duration::MAX)?;
            for number in numbers() {
                // As there; what a killed reader left is its successor's.
                while !writer.seems_alive() || writer.push(&make(number)).is_err() {
                    writer.reconnect(Duration::MAX)?;
                }
                println!("ok");
            }
        }
        "pop" => {
            let opening = SpscReader::<Reading>::open(&node, "/c/ring", 8)?;
            println!("ready");
            let mut reader = opening.connect(Duration::MAX)?;
            for number in numbers() {
                loop {
                    match reader.pop() {
                        Ok(Some(oldest)) => {
                            show(&oldest.value);
                            if oldest.value.number == number {
                                break;
                            }
                        }
                        Ok(None) if reader.seems_alive() => std::thread::yield_now(),
                        _ => reader.reconnect(Duration::MAX)?,
                    }
                }
            }
        }
        "move" => {
            let board = Board::create(&node, "/c/board")?;
            println!("ready");
            for number in numbers() {
                board.moved(number.into());
                println!("ok");
            }
        }
        "see_moves" => {
            println!("ready");
            let mut board = BoardView::open(&node, "/c/board", Duration::MAX)?;
            for number in numbers() {
                while board.moved_ns() != u64::from(number) {
                    if board.is_dead() {
                        board = BoardView::open(&node, "/c/board", Duration::MAX)?;
                    }
                    std::thread::yield_now();
                }
                println!("{number}");
            }
        }
        "publish_sizes" => {
            let publisher = node.topic::<[u64]>("/c/sizes")?.publisher()?;
            println!("ready");
            for number in numbers() {
                publisher.publish(&vec![number.into(); number as usize])?;
                println!("ok");
            }
        }
        "subscribe_sizes" => {
            let mut subscriber = node.topic::<[u64]>("/c/sizes")?.subscriber()?;
            println!("ready");
            loop {
                let sample = next(&mut subscriber)?;
                println!("{} {}", sample.len(), sample.iter().sum::<u64>());
            }
        }
        "watch" => {
            println!("ready");
            for number in numbers() {
                let watch = node.watch(NodeId::from_raw(number.into()))?;
                println!("{}", if watch.is_alive() { "alive" } else { "dead" });
                while !watch.wait(Duration::from_secs(1)) {}
                println!("dead");
            }
        }
        _ => eprintln!("no such role: {role}"),
    }
    Ok(())
}
