// says: a pointer means nothing in another process
// errors: 1
#[outlive::message("robot/Goal")]
struct Goal {
    name: &'static str,
}

fn main() {}
