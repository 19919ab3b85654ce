//! A camera for `scripts/bench-record`: frames that do not shrink, at a fixed rate.
//!
//! `large_images BYTES HERTZ FRAMES`, once /camera has a subscriber.

use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let &[bytes, hertz, frames] = args.as_slice() else {
        return Err("usage: large_images BYTES HERTZ FRAMES".into());
    };
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let noise: Vec<u8> = (0..bytes)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        })
        .collect();
    let node = outlive::Node::open("camera")?;
    let publisher =
        node.topic::<[u8]>("/camera")?.depth(16).memory_bytes_max(1 << 30).publisher()?;
    while publisher.subscribers()? == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // It begins with the next message only when it has had a look.
    std::thread::sleep(Duration::from_millis(500));
    let begin = outlive::now_ns();
    let mut late_ns = 0;
    for n in 0..frames {
        let due = begin + n * 1_000_000_000 / hertz;
        std::thread::sleep(Duration::from_nanos(due.saturating_sub(outlive::now_ns())));
        let mut frame = publisher.loan_slice(bytes as usize)?;
        frame.copy_from_slice(&noise);
        frame[..8].copy_from_slice(&n.to_le_bytes());
        frame.publish()?;
        late_ns = outlive::now_ns() - due;
    }
    println!("{frames} frames, the last {:.1} ms late", late_ns as f64 / 1e6);
    Ok(())
}
