// says: outlive::msg::Text<N>, text of at most N bytes
// errors: 1
#[outlive::message("robot/Goal")]
struct Goal {
    name: String,
}

fn main() {}
