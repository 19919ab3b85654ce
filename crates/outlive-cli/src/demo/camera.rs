//! The camera: 1080p at 30 Hz, written straight into shared memory.

use std::time::Duration;

use outlive::Publisher;

use super::frame::{self, Frame};
use super::protocol::{Order, Report};
use super::role::{DEPTH, OrderListener, RoleArgs, TOPIC, ready, report};
use crate::exit::{Code, Failure, Outcome};
use crate::options::DomainOptions;

/// Frames in the ring, one that each of three receivers holds, and the one being written: not
/// one to spare, so that a dead viewer's frame that did not come back would stop the camera.
const FRAMES_MAX: u64 = DEPTH + 3 + 1;
/// Bound on a camera's shared memory; each of its two segments has a page of its own.
pub(super) const MEMORY_BYTES_MAX: u64 = FRAMES_MAX * frame::BYTES.next_multiple_of(4096) + 8192;

pub(super) fn run(args: &RoleArgs, options: &DomainOptions) -> Outcome {
    let node = options.node(&args.name)?;
    let topic = node.topic::<Frame>(TOPIC)?.depth(DEPTH).memory_bytes_max(MEMORY_BYTES_MAX);
    let publisher = topic.publisher()?;
    let orders = OrderListener::listen(&node);
    ready(&node)?;
    let period_ns = 1_000_000_000 / frame::HZ;
    let mut next_ns = outlive::now_ns();
    loop {
        match orders.next() {
            Some(Order::Quit) => break,
            Some(Order::Stall) => return stall(&publisher),
            _ => {}
        }
        let late = outlive::now_ns().saturating_sub(next_ns) > period_ns;
        next_ns = if late { outlive::now_ns() } else { next_ns } + period_ns;
        let wait_ns = next_ns.saturating_sub(outlive::now_ns());
        std::thread::sleep(Duration::from_nanos(wait_ns));

        let seq = publisher.published();
        let mut image = publisher.loan()?;
        frame::fill(&mut image[..], 0, publisher.id().node.get(), seq);
        if args.tear == Some(seq) {
            image[frame::WORDS / 2] ^= 1;
        }
        image.publish()?;
    }
    let (frames, memory_bytes) = (publisher.published(), publisher.memory_bytes());
    report(&Report::Published { frames, memory_bytes })?;
    drop(publisher);
    orders.close();
    Ok(Code::Done)
}

/// Writes half a frame and waits for the end.
fn stall(publisher: &Publisher<Frame>) -> Outcome {
    let seq = publisher.published();
    let mut image = publisher.loan()?;
    frame::fill(&mut image[..frame::WORDS / 2], 0, publisher.id().node.get(), seq);
    report(&Report::MidFrame { seq })?;
    std::thread::sleep(Duration::from_secs(600));
    Err(Failure::new(Code::Failed, "the camera stalled in mid-frame and nobody killed it"))
}
