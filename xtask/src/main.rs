//! Checks of the tree that no compiler makes: `cargo run -p xtask -- tidy`.

mod tidy;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    match task.as_str() {
        "tidy" => tidy::run(root()),
        _ => {
            eprintln!("usage: xtask tidy    check sizes, labels, crash points, borders, links");
            ExitCode::from(2)
        }
    }
}

/// The workspace folder: the parent of this crate's.
fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}
