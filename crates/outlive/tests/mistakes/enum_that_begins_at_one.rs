// says: give a variant the number 0, such as `Unknown = 0`
// errors: 1
#[outlive::message]
#[repr(u8)]
enum Mode {
    Idle = 1,
    Driving,
}

fn main() {}
