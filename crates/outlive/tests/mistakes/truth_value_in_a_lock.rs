// says: data of locks and real-time channels have no bool, char or enum in them
// says: use outlive::msg::Bool, or an integer
// errors: 1
#[outlive::message]
struct State {
    enabled: bool,
}

fn main() -> outlive::Result<()> {
    let node = outlive::Node::open("state")?;
    let state = node.mutex::<State>("/state")?;
    state.lock()?.enabled = true;
    Ok(())
}
