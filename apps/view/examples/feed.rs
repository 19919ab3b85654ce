//! Publishes messages whose contents follow from their numbers, for the tests:
//! `feed KIND:HZ:COUNT...` on topics `/KIND`. Says `KIND published N median_ns T` when all are
//! published, and stays until its standard input ends.
//!
//! Kinds: picture jpeg lidar pose imu joints number state pairs plan odd bytes count big. `odd` is
//! MessagePack that claims to be a message of ROS and is none.

use std::error::Error;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

use outlive::Node;
use outlive::msg::{
    Header, Image, Imu, Joint, JointState, JointStateHeader, PixelFormat, PointCloud,
    PointCloudHeader, PointXyzi, Pose, Quaternion, Text, Vector3,
};
use serde::{Deserialize, Serialize};

/// More than the tests send of what they count: a reader that gets no core for a while loses none.
const DEPTH: u64 = 64;

type Done = Result<(), Box<dyn Error>>;
type Publish = Box<dyn FnMut(u64) -> Done>;

#[outlive::message("example/State")]
#[derive(Clone, Copy, Debug)]
struct State {
    seq: u64,
    volts: f32,
    cells: [f32; 3],
    matrix: [[f64; 2]; 2],
    data: [u8; 40],
    name: [u8; 8],
}

#[derive(Serialize, Deserialize, Debug)]
struct Plan {
    seq: u64,
    goal: String,
    path: Vec<[f64; 2]>,
}

fn header(frame: &str) -> Header {
    Header::now(frame)
}

/// What publishes message `n`.
fn publisher(node: &Node, kind: &str) -> Result<Publish, Box<dyn Error>> {
    let name = format!("/{kind}");
    let vector = |n: u64| Vector3 { x: n as f64, y: 0.5, z: -1.0 };
    Ok(match kind {
        "picture" | "big" => {
            let publisher = node.topic::<Image>(&name)?.publisher()?;
            let (width, height) = if kind == "big" { (1920, 1080) } else { (64, 48) };
            Box::new(move |n| {
                let format = PixelFormat::RGB8;
                let mut image = publisher.loan_image(header("camera"), width, height, format)?;
                for (i, byte) in image.tail_mut().iter_mut().take(64 * 48 * 3).enumerate() {
                    *byte = (i as u64 + n) as u8;
                }
                image.publish()?;
                Ok(())
            })
        }
        "jpeg" => {
            let publisher = node.topic::<Image>(&name)?.publisher()?;
            Box::new(move |n| {
                let mut head =
                    outlive::msg::ImageHeader { width: 64, height: 48, ..Default::default() };
                (head.header, head.format) = (header("camera"), PixelFormat::JPEG);
                let mut image = publisher.loan_headed(head, 10)?;
                image.tail_mut().copy_from_slice(&[0xff, 0xd8, n as u8, 3, 4, 5, 6, 7, 8, 9]);
                image.publish()?;
                Ok(())
            })
        }
        "lidar" => {
            let publisher = node.topic::<PointCloud>(&name)?.publisher()?;
            Box::new(move |n| {
                let mut cloud =
                    publisher.loan_headed(PointCloudHeader::row(header("lidar"), 100), 100)?;
                for (i, point) in cloud.tail_mut().iter_mut().enumerate() {
                    *point = PointXyzi { x: i as f32, y: n as f32, z: -1.0, intensity: 0.25 };
                }
                cloud.publish()?;
                Ok(())
            })
        }
        "pose" => {
            let publisher = node.topic::<Pose>(&name)?.publisher()?;
            Box::new(move |n| {
                let (position, orientation) = (vector(n), Quaternion::IDENTITY);
                publisher.publish(&Pose { header: header("map"), position, orientation })?;
                Ok(())
            })
        }
        "imu" => {
            let publisher = node.topic::<Imu>(&name)?.publisher()?;
            Box::new(move |n| {
                let linear_acceleration = vector(n);
                publisher.publish(&Imu {
                    header: header("imu"),
                    linear_acceleration,
                    ..Imu::default()
                })?;
                Ok(())
            })
        }
        "joints" => {
            let publisher = node.topic::<JointState>(&name)?.depth(DEPTH).publisher()?;
            Box::new(move |n| {
                let joint =
                    |name, n| Joint { name: Text::cut(name), position: n, ..Joint::default() };
                let joints = [joint("elbow", n as f64), joint("wrist", 0.5)];
                publisher.publish_headed(JointStateHeader { header: header("base") }, &joints)?;
                Ok(())
            })
        }
        "number" => {
            let publisher = node.topic::<f64>(&name)?.depth(DEPTH).publisher()?;
            Box::new(move |n| Ok(publisher.publish(&(n as f64 + 0.5)).map(drop)?))
        }
        "count" => {
            let publisher = node.topic::<u64>(&name)?.depth(4096).publisher()?;
            Box::new(move |n| Ok(publisher.publish(&n).map(drop)?))
        }
        "state" => {
            let publisher =
                node.topic::<State>(&name)?.depth(DEPTH).attribute("unit", "V").publisher()?;
            Box::new(move |seq| {
                let cells = [0.1, seq as f32, f32::NAN];
                let matrix = [[1.0, 2.0], [3.0, seq as f64]];
                let (data, name) = ([seq as u8; 40], *b"base\0\0\0\0");
                publisher.publish(&State { seq, volts: 24.1, cells, matrix, data, name })?;
                Ok(())
            })
        }
        "pairs" => {
            let publisher = node.topic::<[[u16; 2]]>(&name)?.publisher()?;
            Box::new(move |n| Ok(publisher.publish(&[[n as u16, 1], [2, 3]]).map(drop)?))
        }
        "plan" => {
            let publisher = node.msgpack::<Plan>(&name)?.type_name("example/Plan").publisher()?;
            Box::new(move |seq| {
                let path = vec![[seq as f64, 0.5], [1.0, 2.0]];
                publisher.publish_value(&Plan { seq, goal: "döck".into(), path })?;
                Ok(())
            })
        }
        "odd" => {
            let of = "geometry_msgs/msg/Pose";
            let publisher = node.msgpack::<Plan>(&name)?.type_name(of).publisher()?;
            Box::new(move |seq| {
                publisher.publish_value(&Plan { seq, goal: String::new(), path: Vec::new() })?;
                Ok(())
            })
        }
        "bytes" => {
            let publisher = node.topic::<[u8]>(&name)?.publisher()?;
            Box::new(move |n| Ok(publisher.publish(&[n as u8, 1, 2]).map(drop)?))
        }
        _ => return Err(format!("no kind {kind}").into()),
    })
}

fn main() -> Done {
    let node = Node::builder().name("feed").open()?;
    let mut feeds = Vec::new();
    for arg in std::env::args().skip(1) {
        let mut parts = arg.split(':');
        let mut part = || parts.next().ok_or_else(|| format!("{arg} is not KIND:HZ:COUNT"));
        let (kind, hz, count) = (part()?, part()?.parse::<f64>()?, part()?.parse::<u64>()?);
        let publish = publisher(&node, kind)?;
        let period = Duration::from_secs_f64(1.0 / hz);
        feeds.push((kind.to_owned(), period, count, publish, Vec::new(), Instant::now()));
    }
    while let Some(next) =
        feeds.iter_mut().filter(|f| (f.4.len() as u64) < f.2).min_by_key(|feed| feed.5)
    {
        std::thread::sleep(next.5.saturating_duration_since(Instant::now()));
        let (kind, period, count, publish, took, at) = next;
        let before = Instant::now();
        publish(took.len() as u64)?;
        took.push(before.elapsed().as_nanos());
        // A machine that stood still is no reason for a burst.
        *at = (*at + *period).max(before);
        if took.len() as u64 == *count {
            let mut sorted = took.clone();
            sorted.sort_unstable();
            println!("{kind} published {count} median_ns {}", sorted[sorted.len() / 2]);
            std::io::stdout().flush()?;
        }
    }
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
