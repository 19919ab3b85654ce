// says: use outlive::msg::Optional<f64>
// errors: 1
#[outlive::message("robot/Gripper")]
struct Gripper {
    force_n: Option<f64>,
}

fn main() {}
