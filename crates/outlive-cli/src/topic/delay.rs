//! `outlive topic delay`: how old messages are when a subscriber has them.

use std::time::Duration;

use clap::{Args, value_parser};
use outlive::{Deadline, Error, ErrorKind, Sample, Subscriber};
use serde::Serialize;

use super::named::missing;
use super::rate::window;
use crate::clock::duration_ns;
use crate::complete;
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::options::{DomainOptions, seconds, slice_of};
use crate::os;
use crate::output::{Halt, Output, json_line};

const EXAMPLES: &str = "\
Examples:
  outlive topic delay /camera/front               a line every second, until Ctrl-C
  outlive topic delay /imu --count 1000 --json

The age of a message is the time from its publication to the moment this command has it; includes
wake-up latency.";

/// Show how old messages are on arrival; subscribes.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct DelayArgs {
    /// Topic, like /camera/front.
    #[arg(add = complete::topics())]
    name: String,
    /// End after this time.
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds, default_value = "inf")]
    duration: Duration,
    /// End after N messages.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Length of a window, 0.01 to 86400 seconds.
    #[arg(long, value_name = "SECONDS", value_parser = window, default_value = "1")]
    window: Duration,
    /// Print a JSON object per window.
    #[arg(long)]
    json: bool,
}

/// Ages of the messages of one window, ns.
#[derive(Debug, Serialize)]
struct Report {
    messages: u64,
    min_ns: u64,
    mean_ns: u64,
    p99_ns: u64,
    max_ns: u64,
    lost: u64,
}

impl Report {
    fn of(ages: &mut [u64], lost: u64) -> Self {
        ages.sort_unstable();
        let messages = ages.len() as u64;
        let at = |part: f64| ages.get((messages as f64 * part) as usize).or(ages.last());
        Self {
            messages,
            min_ns: ages.first().copied().unwrap_or(0),
            mean_ns: ages.iter().sum::<u64>().checked_div(messages).unwrap_or(0),
            p99_ns: at(0.99).copied().unwrap_or(0),
            max_ns: ages.last().copied().unwrap_or(0),
            lost,
        }
    }

    fn text(&self) -> String {
        if self.messages == 0 {
            return "no messages".into();
        }
        let [min, mean, p99, max] =
            [self.min_ns, self.mean_ns, self.p99_ns, self.max_ns].map(duration_ns);
        format!("min {min}  mean {mean}  p99 {p99}  max {max}   {} messages", self.messages)
    }
}

pub(crate) fn run(args: &DelayArgs, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals()?;
    let domain = options.domain()?;
    domain.find_topic(&args.name)?.ok_or_else(|| missing(&domain, &args.name))?;
    let node = options.node("topic-delay")?;
    let mut subscriber = node.topic::<[u8]>(&args.name)?.subscriber_of_any_type()?;
    let mut output = Output::standard()?;
    let counted = match watch(args, &mut subscriber, &mut output) {
        Ok(counted) => counted,
        Err(Halt::Quiet) => return Ok(Code::Done),
        Err(Halt::Failed(failure)) => return Err(failure),
    };
    if args.count.is_some_and(|count| counted < count) && !os::stop_asked() {
        let message = format!("timed out after {counted} messages");
        return Err(Failure::new(Code::NotFound, message));
    }
    if subscriber.lost() > 0 {
        note(format_args!("{counted} messages received, {} lost", subscriber.lost()));
        return Ok(Code::Loss);
    }
    Ok(Code::Done)
}

fn no_time_stamps(sample: &Sample<[u8]>, args: &DelayArgs) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "measure the delay on",
        &args.name,
        format!("publisher {} does not stamp its messages: timestamps(true)", sample.publisher()),
    )
}

/// Receives and reports, window by window; answers how many came.
fn watch(
    args: &DelayArgs,
    subscriber: &mut Subscriber<[u8]>,
    output: &mut Output,
) -> Result<u64, Halt> {
    let end = Deadline::after(args.duration);
    let most = args.count.unwrap_or(u64::MAX);
    let mut counted = 0;
    let mut next_ns = outlive::now_ns();
    let mut ages = Vec::new();
    while !end.has_passed() && !os::stop_asked() && counted < most {
        next_ns = next_ns.saturating_add(args.window.as_nanos() as u64);
        let next = end.min(Deadline::at_ns(next_ns));
        ages.clear();
        loop {
            if next.has_passed() || os::stop_asked() || counted >= most {
                break;
            }
            if let Some(sample) = subscriber.receive_until(slice_of(next))? {
                if sample.timestamp_ns() == 0 {
                    return Err(Halt::Failed(no_time_stamps(&sample, args).into()));
                }
                ages.push(outlive::now_ns().saturating_sub(sample.timestamp_ns()));
                counted += 1;
            }
            while subscriber.next_event().is_some() {}
        }
        let report = Report::of(&mut ages, subscriber.lost());
        let line = if args.json { json_line(&report) } else { report.text() };
        output.write(format!("{line}\n").as_bytes())?;
        output.flush()?;
    }
    Ok(counted)
}
