//! A camera that writes its frames into shared memory, and a viewer that reads them there.

use outlive::Headed;

#[outlive::message("example/Frame")]
#[derive(Clone, Copy)]
struct FrameHeader {
    stamp_ns: u64,
    width: u32,
    height: u32,
}

/// A header and its pixels, three bytes each.
type Frame = Headed<FrameHeader, u8>;

fn main() -> outlive::Result<()> {
    let (width, height) = (1280, 720);
    let node = outlive::Node::open("camera")?;
    let camera = node.topic::<Frame>("/camera/front")?.publisher()?;
    let mut viewer = node.topic::<Frame>("/camera/front")?.subscriber()?;

    for shade in 1..=3 {
        let header = FrameHeader { stamp_ns: outlive::now_ns(), width, height };
        let mut frame = camera.loan_headed(header, 3 * (width * height) as usize)?;
        frame.tail_mut().fill(shade); // what a driver would do
        frame.publish()?;
    }

    let (mut frames, mut in_place) = (0, true);
    while let Some(frame) = viewer.receive()? {
        let size = 3 * (frame.header().width * frame.header().height) as usize;
        in_place &= frame.is_borrowed() && frame.tail().len() == size;
        frames += 1;
    }
    let how = if in_place { "without a copy" } else { "copied" };
    println!("camera: {frames} frames, {how}");
    Ok(())
}
