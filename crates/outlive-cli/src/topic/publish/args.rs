//! What `outlive topic pub` is asked.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};
use outlive::topic::MEMORY_BYTES_DEFAULT;

use crate::complete;
use crate::exit::CODES_HELP;
use crate::options::seconds;

const EXAMPLES: &str = r#"Examples:
  A value, of the type that the topic has:
    outlive topic pub /speed 1.5
    outlive topic pub /arm/goal '{"position": [0.1, 0.2, 0.3], "frame": "base"}'
  Each line of standard input, ten a second:
    plan | outlive topic pub /arm/goal - --rate 10
  A topic that does not exist yet, kept until Ctrl-C:
    outlive topic pub /mode '{"name": "idle"}' --type msgpack --linger inf
  A video, decoded by ffmpeg at its own rate, after waiting for two subscribers:
    ffmpeg -re -i clip.mp4 -f rawvideo -pix_fmt rgb24 - |
      outlive topic pub /camera --from-stdin --frame-bytes 6220800 --wait-for-subscribers 2
  A file as 4 KiB messages, kept for late joiners until Ctrl-C:
    outlive topic pub /blob --from-stdin --frame-bytes 4096 --depth 1024 --allow-partial \
      --linger inf <file"#;

/// Publish a value, or standard input, on a topic.
///
/// VALUE is read as the topic's type: a number, text, or JSON with all fields of a described type.
/// On a topic of raw bytes it is sent as it is. With --from-stdin standard input is read in pieces
/// of one size, straight into shared memory. A message is readable while the topic has live
/// members: --linger keeps this publisher alive.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct PubArgs {
    /// Topic, like /camera/front.
    #[arg(add = complete::topics())]
    pub(super) name: String,
    /// Value to publish; -: each line of standard input.
    #[arg(allow_negative_numbers = true, required_unless_present_any = ["json", "from_stdin"])]
    #[arg(conflicts_with_all = ["json", "from_stdin"])]
    pub(super) value: Option<String>,
    /// The same, always JSON.
    #[arg(long, hide = true, value_name = "VALUE", allow_hyphen_values = true)]
    pub(super) json: Option<String>,
    /// Publish standard input in pieces of --frame-bytes.
    #[arg(long, requires = "frame_bytes", conflicts_with = "json")]
    from_stdin: bool,
    /// Size of each message, bytes.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1 << 40))]
    #[arg(requires = "from_stdin")]
    pub(super) frame_bytes: Option<u64>,
    /// Create the topic if it does not exist: msgpack, u8 to f64, f64[] for any number of them,
    /// u8[] for bytes; of other encodings protobuf:robot.Plan, json:NAME, cdr:my_msgs/msg/Goal.
    #[arg(long, value_name = "TYPE", conflicts_with = "from_stdin")]
    pub(super) r#type: Option<String>,
    /// Schema of such a TYPE: a descriptor set of protoc, JSON Schema, a definition of ROS.
    #[arg(long, value_name = "FILE", requires = "type")]
    pub(super) schema: Option<PathBuf>,
    /// Messages per second; a single VALUE is repeated [default: as fast as the input comes].
    #[arg(long, value_name = "HZ", value_parser = rate)]
    pub(super) rate: Option<f64>,
    /// Messages that stay readable, rounded up to a power of two [default: 16].
    #[arg(long, value_name = "N")]
    pub(super) depth: Option<u64>,
    /// Stop after N messages.
    #[arg(long, value_name = "N")]
    pub(super) count: Option<u64>,
    /// Publish nothing before there are N subscribers.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) wait_for_subscribers: usize,
    /// Time to wait for them.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "inf")]
    pub(super) timeout: Duration,
    /// Time a message may wait for a slow reliable subscriber; 0: none.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    pub(super) reliable_timeout: Duration,
    /// Stay this long after the last message, for late joiners; inf: until a signal.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    pub(super) linger: Duration,
    /// Publish a shorter last message instead of failing.
    #[arg(long)]
    pub(super) allow_partial: bool,
    /// Limit on shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = MEMORY_BYTES_DEFAULT)]
    pub(super) memory_bytes: u64,
}

fn rate(text: &str) -> Result<f64, String> {
    let hz: f64 = text.parse().map_err(|_| "write it like 30 or 29.97".to_owned())?;
    if (1e-3..=1e6).contains(&hz) { Ok(hz) } else { Err("use 0.001 to 1000000".into()) }
}
