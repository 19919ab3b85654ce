// says: `Pose` cannot travel: it has no fixed layout that all programs agree on
// says: write `#[outlive::message]` above it
// errors: 2
struct Pose {
    x: f64,
}

fn main() -> outlive::Result<()> {
    let node = outlive::Node::open("pose")?;
    let _poses = node.topic::<Pose>("/pose")?.publisher()?;
    Ok(())
}
