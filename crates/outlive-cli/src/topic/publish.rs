//! `outlive topic pub`: frames from standard input, read straight into shared memory, or values.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, value_parser};
use outlive::topic::{MEMORY_BYTES_DEFAULT, Waited};
use outlive::{Deadline, Publisher};

use crate::clock::duration;
use crate::complete;
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::input::{Filled, Input};
use crate::options::{DomainOptions, seconds, sleep_until};
use crate::os;
use crate::output::{bytes, count};

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
    value: Option<String>,
    /// The same, always JSON.
    #[arg(long, hide = true, value_name = "VALUE", allow_hyphen_values = true)]
    pub(super) json: Option<String>,
    /// Publish standard input in pieces of --frame-bytes.
    #[arg(long, requires = "frame_bytes", conflicts_with = "json")]
    from_stdin: bool,
    /// Size of each message, bytes.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..=1 << 40))]
    #[arg(requires = "from_stdin")]
    frame_bytes: Option<u64>,
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
    wait_for_subscribers: usize,
    /// Time to wait for them.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "inf")]
    timeout: Duration,
    /// Time a message may wait for a slow reliable subscriber; 0: none.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    pub(super) reliable_timeout: Duration,
    /// Stay this long after the last message, for late joiners; inf: until a signal.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    pub(super) linger: Duration,
    /// Publish a shorter last message instead of failing.
    #[arg(long)]
    allow_partial: bool,
    /// Limit on shared memory.
    #[arg(long, value_name = "BYTES", default_value_t = MEMORY_BYTES_DEFAULT)]
    pub(super) memory_bytes: u64,
}

fn rate(text: &str) -> Result<f64, String> {
    let hz: f64 = text.parse().map_err(|_| "write it like 30 or 29.97".to_owned())?;
    if (1e-3..=1e6).contains(&hz) { Ok(hz) } else { Err("use 0.001 to 1000000".into()) }
}

pub(crate) fn run(args: &PubArgs, options: &DomainOptions) -> Outcome {
    match args.value.as_ref().or(args.json.as_ref()) {
        Some(text) => super::publish_json::run(args, text, options),
        None => publish_frames(args, options),
    }
}

fn publish_frames(args: &PubArgs, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals()?;
    let node = options.node("topic-pub")?;
    let mut topic = node
        .topic::<[u8]>(&args.name)?
        .memory_bytes_max(args.memory_bytes)
        .reliable_timeout(args.reliable_timeout);
    if let Some(depth) = args.depth {
        topic = topic.depth(depth);
    }
    let publisher = topic.publisher()?;
    wait_for_subscribers(|| publisher.subscribers(), args)?;
    let ended = feed(&publisher, args);
    let (messages, size) = (publisher.published(), args.frame_bytes.unwrap_or(0));
    let waited = back_pressure(publisher.waited());
    note(format_args!("published {} of {}{waited}", count(messages, "message"), bytes(size)));
    let code = ended?;
    sleep_until(Deadline::after(args.linger));
    Ok(code)
}

/// What is said of the time spent waiting for reliable subscribers, if there was any.
pub(super) fn back_pressure(waited: Waited) -> String {
    let Waited { messages, total, .. } = waited;
    if messages == 0 {
        return String::new();
    }
    format!("; {messages} waited for reliable subscribers, {} in all", duration(total))
}

pub(super) fn wait_for_subscribers(
    mut count: impl FnMut() -> outlive::Result<usize>,
    args: &PubArgs,
) -> Result<(), Failure> {
    let deadline = Deadline::after(args.timeout);
    loop {
        let there = count()?;
        if there >= args.wait_for_subscribers || os::stop_asked() {
            return Ok(());
        }
        if deadline.has_passed() {
            let wanted = args.wait_for_subscribers;
            let message = format!("timed out with {there} of {wanted} subscribers");
            return Err(Failure::new(Code::NotFound, message));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Publishes frame after frame until input, count or patience of the user ends.
fn feed(publisher: &Publisher<[u8]>, args: &PubArgs) -> Outcome {
    let mut input = Input::standard()?;
    let mut pace = args.rate.map(Pace::new);
    let frame_bytes = args.frame_bytes.unwrap_or(0) as usize;
    while args.count.is_none_or(|count| publisher.published() < count) {
        let mut loan = publisher.loan_slice(frame_bytes)?;
        let filled = input.fill(&mut loan)?;
        if filled == Filled::Stopped || filled == Filled::End(0) {
            break;
        }
        if let Some(pace) = &mut pace {
            pace.wait();
        }
        match filled {
            Filled::End(n) if args.allow_partial => publisher.publish(&loan[..n])?,
            Filled::End(n) => {
                note(format_args!(
                    "standard input ended after {n} of {frame_bytes} bytes of message {}; \
                     --allow-partial publishes it as it is",
                    publisher.published()
                ));
                return Ok(Code::Partial);
            }
            _ => loan.publish()?,
        };
    }
    Ok(Code::Done)
}

/// Releases messages at a fixed rate: on a schedule, so that errors do not add up.
#[derive(Debug)]
pub(super) struct Pace {
    period_ns: u64,
    next_ns: u64,
}

impl Pace {
    pub(super) fn new(hz: f64) -> Self {
        Self { period_ns: (1e9 / hz) as u64, next_ns: outlive::now_ns() }
    }

    /// Sleeps until the next release, or until a signal.
    pub(super) fn wait(&mut self) {
        sleep_until(Deadline::at_ns(self.next_ns));
        // Who is late starts a new schedule; frames are not released in a burst.
        self.next_ns = outlive::now_ns().saturating_sub(self.period_ns).max(self.next_ns);
        self.next_ns += self.period_ns;
    }
}
