// says: `Vec<f64>` cannot travel
// says: a list: `[T]`
// says: anything of serde, with strings, lists and maps: `outlive::MsgPack<T>`
// errors: 2
fn main() -> outlive::Result<()> {
    let node = outlive::Node::open("scan")?;
    let _scans = node.topic::<Vec<f64>>("/scan")?.publisher()?;
    Ok(())
}
