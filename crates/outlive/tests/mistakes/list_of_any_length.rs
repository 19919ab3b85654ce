// says: use an array [f64; N]; a list of any length: [f64] as the type of the topic
// errors: 1
#[outlive::message("robot/Path")]
struct Path {
    points: Vec<f64>,
}

fn main() {}
