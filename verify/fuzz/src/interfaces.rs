//! Interface files of ROS, and the same text as the definition of a recorded message.

use outlive_record::ros2::{FromRos, Interface};

/// A file, then a message by it.
pub fn run(data: &[u8]) {
    match Interface::parse(data) {
        Ok(parts) => {
            for item in parts.iter().flat_map(|part| &part.fields) {
                let text = format!("{} {}\n", item.of, item.name);
                let again = Interface::parse(text.as_bytes()).expect("what was read is written");
                assert_eq!(again[0].fields[0].of, item.of, "{text}");
            }
        }
        Err(faults) => {
            assert!(faults.iter().all(|f| f.line > 0 && !f.why.is_empty()) && !faults.is_empty());
        }
    }
    let text = String::from_utf8_lossy(data);
    if let Ok((from, _)) = FromRos::of("a/msg/A", &text, None) {
        let _ = from.payload(data);
    }
}
