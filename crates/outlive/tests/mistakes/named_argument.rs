// says: write #[outlive::message("package/Type")]
// errors: 1
#[outlive::message(name = "robot/Pose")]
struct Pose {
    x: f64,
}

fn main() {}
