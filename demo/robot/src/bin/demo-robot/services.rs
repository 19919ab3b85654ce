//! What is beside the core: a camera, perception in two steps, a dashboard. Any of them may die.

use std::time::Duration;

use outlive::{Node, Result};

pub(crate) const CAMERA: &str = "/camera";
pub(crate) const OBJECTS: &str = "/objects";
pub(crate) const TRACKS: &str = "/tracks";

/// 640 x 480, one byte each.
const FRAME_BYTES: usize = 640 * 480;
const WAIT: Duration = Duration::from_millis(200);

/// 30 frames per second with a bright spot that wanders.
pub(crate) fn camera(node: &Node) -> Result<()> {
    let publisher = node.topic::<[u8]>(CAMERA)?.depth(4).publisher()?;
    let mut frame = vec![0u8; FRAME_BYTES];
    for n in 0usize.. {
        let at = n * 997 % FRAME_BYTES;
        frame[at] = 255;
        publisher.publish(&frame)?;
        frame[at] = 0;
        std::thread::sleep(Duration::from_millis(33));
    }
    Ok(())
}

/// Frames in, the place of the brightest point out.
pub(crate) fn detector(node: &Node) -> Result<()> {
    let publisher = node.topic::<[u64; 2]>(OBJECTS)?.publisher()?;
    let mut frames = node.topic::<[u8]>(CAMERA)?.depth(4).subscriber()?;
    loop {
        let Some(frame) = frames.receive_timeout(WAIT)? else { continue };
        let brightest = frame.iter().enumerate().max_by_key(|(_, v)| **v);
        let at = brightest.map_or(0, |(at, _)| at) as u64;
        publisher.publish(&[at % 640, at / 640])?;
    }
}

/// Places in, their mean over time out.
pub(crate) fn tracker(node: &Node) -> Result<()> {
    let publisher = node.topic::<[f64; 2]>(TRACKS)?.publisher()?;
    let mut objects = node.topic::<[u64; 2]>(OBJECTS)?.subscriber()?;
    let mut mean = [0.0; 2];
    loop {
        let Some(object) = objects.receive_timeout(WAIT)? else { continue };
        for (mean, place) in mean.iter_mut().zip(*object) {
            *mean += 0.1 * (place as f64 - *mean);
        }
        publisher.publish(&mean)?;
    }
}

/// Says now and then where the object is.
pub(crate) fn dashboard(node: &Node) -> Result<()> {
    let mut tracks = node.topic::<[f64; 2]>(TRACKS)?.subscriber()?;
    for n in 0u64.. {
        let Some(track) = tracks.receive_timeout(WAIT)? else { continue };
        if n % 60 == 0 {
            println!("object at {:.0}, {:.0}", track[0], track[1]);
        }
    }
    Ok(())
}
