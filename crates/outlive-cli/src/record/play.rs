//! `outlive play`: a file of messages into topics, in the original time.

use std::time::Duration;

use clap::Args;
use outlive::Deadline;
use outlive::topic::MEMORY_BYTES_DEFAULT;
use outlive_record::{PlayOptions, Player, Selection, Turn};

use super::Input;
use super::control::{Control, factor};
use super::pace::Pace;
use crate::clock::duration_ns;
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::options::{DomainOptions, seconds};
use crate::os;
use crate::output::count;

const EXAMPLES: &str = "\
Examples:
  outlive play run.mcap                              as it was recorded
  outlive play run.mcap --rate 0.5 --start 10 --end 12.5
                                                     two and a half seconds of it, slowly
  outlive play run.mcap --loop --topic '/camera/*'   some topics, over and over
  outlive play run.mcap --remap /camera:=/test/camera
  outlive play run.mcap --clock                      with its time on topic /clock
  outlive play run.mcap --control                    under remote control:
  outlive service call /play pause                   pause, resume, toggle, next, state, stop
  outlive service call /play 'seek 12.5'             seconds from the start
  outlive service call /play 'rate 0.5'              half as fast

At a terminal the space bar pauses and resumes; n or the right arrow plays one message.";

/// Republish a recording, with the types and depths that its topics had.
///
/// Each publisher of the file becomes one publisher here. A topic that exists with another type is
/// an error that names the difference; --remap plays it elsewhere. Subscribers present at the end
/// still receive what is in the rings.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct PlayArgs {
    #[command(flatten)]
    input: Input,
    /// Play this many times as fast as recorded, 0.001 to 1000.
    #[arg(long, value_name = "FACTOR", value_parser = factor, default_value = "1")]
    rate: f64,
    /// Skip this time at the start.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    start: Duration,
    /// End this time after the start of the recording.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    end: Option<Duration>,
    /// Repeat until a signal.
    #[arg(long = "loop")]
    again: bool,
    /// Only these topics, like '/camera/*'; may be repeated.
    #[arg(long, value_name = "TOPIC")]
    topic: Vec<String>,
    /// Play topic A as B; may be repeated.
    #[arg(long, value_name = "A:=B", value_parser = remap)]
    remap: Vec<(String, String)>,
    /// Play nothing before each topic has N subscribers.
    #[arg(long, value_name = "N", default_value_t = 0)]
    wait_for_subscribers: usize,
    /// Time to wait for them.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "inf")]
    timeout: Duration,
    /// Time a message may wait for a slow reliable subscriber; 0: none.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    reliable_timeout: Duration,
    /// Stay this long after the last message, for late joiners; inf: until a signal.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    linger: Duration,
    /// Limit on shared memory of each publisher.
    #[arg(long, value_name = "BYTES", default_value_t = MEMORY_BYTES_DEFAULT)]
    memory_bytes: u64,
    /// Start paused; needs a terminal or --control.
    #[arg(long, help_heading = REMOTE)]
    paused: bool,
    /// Let others pause, resume, seek and change the rate by this service; its answer is the state:
    /// paused, rate, at and of (seconds).
    #[arg(long, value_name = "SERVICE", num_args = 0..=1, default_missing_value = "/play",
          help_heading = REMOTE)]
    control: Option<String>,
    /// Publish the time of the recording, u64 ns since 1970, before each message and this often
    /// per second.
    #[arg(long, value_name = "HERTZ", value_parser = hertz, num_args = 0..=1,
          default_missing_value = "100", help_heading = REMOTE)]
    clock: Option<f64>,
    /// Topic for it.
    #[arg(long, value_name = "TOPIC", default_value = "/clock", requires = "clock",
          help_heading = REMOTE)]
    clock_topic: String,
}

const REMOTE: &str = "Control and clock";

/// Shortest pause between two rounds, ns. Messages within it are of one instant, and each of them
/// asks for as much: over and over they are no flood.
const ROUND_NS_MIN: f64 = 1e6;

fn hertz(text: &str) -> Result<f64, String> {
    let hertz: f64 = text.parse().map_err(|_| "write it like 100".to_owned())?;
    if (0.1..=1e5).contains(&hertz) { Ok(hertz) } else { Err("use 0.1 to 100000".into()) }
}

fn remap(text: &str) -> Result<(String, String), String> {
    let (from, to) = text.split_once(":=").ok_or("write it like /camera:=/test/camera")?;
    Ok((from.into(), to.into()))
}

pub(crate) fn run(args: &PlayArgs, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals()?;
    let recording = args.input.open(false)?;
    if !recording.finished {
        note(format_args!("{} is unfinished: playing what it has", args.input.path().display()));
    }
    let selection = match args.topic.is_empty() {
        true => Selection::all(),
        false => Selection::new(&args.topic, false)?,
    };
    let play_options = PlayOptions {
        rate: args.rate,
        start: args.start,
        end: args.end,
        selection,
        remap: args.remap.clone(),
        reliable_timeout: args.reliable_timeout,
        memory_bytes_max: args.memory_bytes,
    };
    let damage = recording.damage.clone();
    let node = options.node("play")?;
    let mut player = Player::open(&node, recording, play_options)?;
    if player.topics().is_empty() {
        return Err(args.input.without(&damage, "such topic"));
    }
    let mut pace = Pace::new(args.paused, args.rate, player.recording());
    if let Some(service) = &args.control {
        let of = Duration::from_nanos(player.recording().duration_ns());
        pace.set_control(Control::new(&node, service, of)?);
    }
    if args.paused && !pace.can_go_on() {
        let message = "--paused needs a terminal as standard input, for the key that resumes, or \
                       --control";
        return Err(Failure::new(Code::Usage, message));
    }
    if let Some(hertz) = args.clock {
        let topic = &args.clock_topic;
        let same = |name: &String| name.trim_start_matches('/') == topic.trim_start_matches('/');
        if player.topics().iter().any(same) {
            let message = format!(
                "{} has a topic {topic} of its own: use --remap or --clock-topic",
                args.input.path().display()
            );
            return Err(Failure::new(Code::Usage, message));
        }
        pace.set_clock(&node, topic, hertz)?;
    }
    let deadline = Deadline::after(args.timeout);
    while player.subscribers_min()? < args.wait_for_subscribers && !os::stop_asked() {
        if deadline.has_passed() {
            let message =
                format!("timed out with less than {} subscribers", args.wait_for_subscribers);
            return Err(Failure::new(Code::NotFound, message));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut before = 0;
    loop {
        let mut failed = None;
        pace.begin();
        let (mut ended, mut first_ns, mut last_ns) = (false, None, 0);
        player.play_controlled(|due| {
            let turn = pace.wait(due).unwrap_or_else(|e| {
                failed = Some(e);
                Turn::End
            });
            ended = turn == Turn::End;
            if let Turn::Play(_) = turn {
                (first_ns, last_ns) = (first_ns.or(Some(due.time_ns)), due.time_ns);
            }
            turn
        })?;
        if let Some(failure) = failed {
            return Err(failure);
        }
        let round = player.played().messages - before;
        if !args.again || ended || os::stop_asked() || round == 0 {
            break;
        }
        let round_ns = first_ns.map_or(0, |first_ns| last_ns.saturating_sub(first_ns));
        let pause_ns = pause_ns(round, round_ns, player.rate());
        if !pace.rest(Deadline::after(Duration::from_nanos(pause_ns)))? {
            break;
        }
        before = player.played().messages;
    }
    pace.hide_status();
    let played = player.played();
    note(format_args!(
        "played {} of {}, at most {} late",
        count(played.messages, "message"),
        count(player.topics().len() as u64, "topic"),
        duration_ns(played.late_ns_max),
    ));
    pace.rest(Deadline::after(args.linger))?;
    if played.invalid > 0 {
        let message = format!(
            "{} messages do not fit their topics' types and were left out: {} is damaged",
            played.invalid,
            args.input.path().display()
        );
        return Err(Failure::new(Code::Corrupt, message));
    }
    if player.damage().is_some() {
        let message = format!("{}: {}", args.input.path().display(), player.damage());
        return Err(Failure::new(Code::Corrupt, message));
    }
    Ok(Code::Done)
}

/// The pause after a round of `messages`, which are within `round_ns` of the recording.
fn pause_ns(messages: u64, round_ns: u64, rate: f64) -> u64 {
    // As far apart as its messages are on average; of one alone nothing is known.
    let round_ns = round_ns as f64;
    let (apart_ns, least_ns) = match messages {
        1 => (1e9, ROUND_NS_MIN),
        n if round_ns < ROUND_NS_MIN => (0.0, n as f64 * ROUND_NS_MIN),
        n => (round_ns / (n - 1) as f64, ROUND_NS_MIN),
    };
    (apart_ns / rate).max(least_ns) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_follow_at_the_mean_interval_and_messages_of_one_instant_are_no_flood() {
        const S: u64 = 1_000_000_000;
        const MS: u64 = 1_000_000;
        assert_eq!(pause_ns(11, S, 1.0), S / 10);
        assert_eq!(pause_ns(11, S, 2.0), S / 20);
        assert_eq!((pause_ns(1, 0, 1.0), pause_ns(1, 0, 0.5)), (S, 2 * S));
        assert_eq!(pause_ns(10_001, S, 1.0), MS, "that many come in each second anyway");
        for (round_ns, rate) in [(0, 1.0), (0, 1000.0), (MS - 1, 1.0)] {
            assert_eq!(pause_ns(185, round_ns, rate), 185 * MS, "{round_ns} ns");
        }
    }
}
