// says: `Gripper` has 7 bytes of padding before field `opening_m`: order the fields from large
// says: add a field `reserved: [u8; 7]` there and set it to zero
// errors: 1
#[outlive::message("robot/Gripper")]
struct Gripper {
    holds: bool,
    opening_m: f64,
}

fn main() {}
