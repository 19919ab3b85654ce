// says: `Force` has no fixed layout that all programs agree on: it is no message
// says: write `#[outlive::message]` above it
// errors: 6
struct Force {
    n: f64,
}

#[outlive::message("robot/Gripper")]
struct Gripper {
    force: Force,
}

fn main() {}
