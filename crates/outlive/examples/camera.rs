//! A camera that writes its frames into shared memory, and a viewer that reads them there.

use outlive::msg::{Header, Image, PixelFormat};

fn main() -> outlive::Result<()> {
    let node = outlive::Node::open("camera")?;
    let camera = node.topic::<Image>("/camera/front")?.publisher()?;
    let mut viewer = node.topic::<Image>("/camera/front")?.subscriber()?;

    for shade in 1..=3 {
        let header = Header::now("front_optical");
        let mut image = camera.loan_image(header, 1280, 720, PixelFormat::RGB8)?;
        image.tail_mut().fill(shade); // what a driver would do
        image.publish()?;
    }

    let (mut frames, mut in_place) = (0, true);
    while let Some(image) = viewer.receive()? {
        image.check()?; // any program may publish here
        frames += 1;
        in_place &= image.is_borrowed() && image.row(719).is_some_and(|row| row[0] == frames);
    }
    let how = if in_place { "without a copy" } else { "copied" };
    println!("camera: {frames} frames, {how}");
    Ok(())
}
