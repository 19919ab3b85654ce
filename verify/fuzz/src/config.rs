//! `robot.toml`, read and checked; what is wrong with it is told with line and column.

use std::path::Path;

use outlive_run::config::Config;

use crate::input::Input;

/// A file as it is, or one process with these lines.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let whole = input.byte() % 2 == 0;
    let text = String::from_utf8_lossy(input.0);
    let text = if whole { text } else { format!("[process.a]\ncommand = [\"a\"]\n{text}").into() };
    match Config::parse(Path::new("/robot/robot.toml"), &text) {
        Ok(config) => {
            for process in &config.processes {
                assert!(config.process(&process.name).is_some(), "{} is not there", process.name);
            }
        }
        Err(e) => assert!(!e.to_string().is_empty(), "an error that says nothing"),
    }
}
