// says: or send it as outlive::MsgPack<T>
// errors: 1
#[outlive::message]
#[repr(u8)]
enum Goal {
    Stop,
    Reach(f64),
}

fn main() {}
