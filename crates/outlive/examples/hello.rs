//! A publisher and a subscriber of a described type, in one program for brevity.

use std::time::Duration;

#[outlive::message("example/Pose")]
#[derive(Clone, Copy)]
struct Pose {
    /// m
    x: f64,
    /// m
    y: f64,
    /// rad
    heading: f64,
}

fn main() -> outlive::Result<()> {
    let node = outlive::Node::open("hello")?;
    let publisher = node.topic::<Pose>("/robot/pose")?.publisher()?;
    let mut subscriber = node.topic::<Pose>("/robot/pose")?.subscriber()?;

    publisher.publish(&Pose { x: 1.0, y: 2.0, heading: 0.5 })?;

    if let Some(pose) = subscriber.receive_timeout(Duration::from_secs(1))? {
        println!("hello: x {:.1} m, y {:.1} m, heading {:.1} rad", pose.x, pose.y, pose.heading);
    }
    Ok(())
}
