// says: `Gripper` has 4 total byte(s) of padding
// says: `Gripper` has 4 bytes of padding before field `opening_m`: order the fields from large
// errors: 3
#[outlive::message]
struct Force {
    n: f32,
}

#[outlive::message("robot/Gripper")]
struct Gripper {
    force: Force,
    opening_m: f64,
}

fn main() {}
