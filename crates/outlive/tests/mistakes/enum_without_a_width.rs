// says: add #[repr(u8)]
// errors: 1
#[outlive::message]
enum Mode {
    Idle,
    Driving,
}

fn main() {}
