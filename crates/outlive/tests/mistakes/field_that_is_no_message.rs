// says: `Force` is not a message: it has no fixed layout that all programs agree on
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
