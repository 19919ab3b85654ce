//! `outlive topic hz` and `outlive topic bw`: rates from the publishers' counters and time stamps,
//! without subscribing. Nobody notices, and the size of a message does not matter.

use std::collections::HashMap;
use std::time::Duration;

use clap::Args;
use outlive::topic::{self, PublisherId, PublisherInfo};
use outlive::{Deadline, Domain};
use serde::Serialize;

use super::gaps::{self, Gaps};
use super::named::missing;
use crate::complete;
use crate::exit::{CODES_HELP, Code, Failure, Outcome};
use crate::options::{DomainOptions, seconds, sleep_until};
use crate::os;
use crate::output::{Halt, Output, bytes, count, json_line};

const EXAMPLES: &str = "\
Examples:
  outlive topic hz /camera/front                  a line every second, until Ctrl-C
  outlive topic hz /camera/front /imu             two topics
  outlive topic hz /imu --for 10 --window 10      one figure over ten seconds
  outlive topic bw /lidar --for 5 --json | tail -n 1

A window reaches from the newest message before it to the newest message in it, by the publisher's
own time stamps, so it is exact however few messages there are. A window without any is shown as
0 and left out of min and max. The mean is over the whole time, and so are the gaps (hz only): mean,
standard deviation, shortest and longest time between two messages of the same publisher. The ring
is looked at often enough for its depth; at very high rates some gaps are not seen.";

/// Show how many messages per second are published, without subscribing.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct RateArgs {
    /// Topics, like /camera/front.
    #[arg(value_name = "NAME", required = true, add = complete::topics())]
    names: Vec<String>,
    /// End after this time.
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds, default_value = "inf")]
    duration: Duration,
    /// Length of a window, 0.01 to 86400 seconds.
    #[arg(long, value_name = "SECONDS", value_parser = window, default_value = "1")]
    window: Duration,
    /// Print a JSON object per window and topic.
    #[arg(long)]
    json: bool,
}

pub(super) fn window(text: &str) -> Result<Duration, String> {
    let window = seconds(text)?;
    let fits = window >= Duration::from_millis(10) && window <= Duration::from_secs(86_400);
    if fits { Ok(window) } else { Err("use 0.01 to 86400 seconds".into()) }
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Messages,
    Bytes,
}

/// Counters of a publisher, and when they were right.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    messages: u64,
    payload_bytes: u64,
    at_ns: u64,
}

impl Point {
    /// Without a time stamp (nothing sent yet, withdrawn, or left out) they are right now.
    fn of(info: &PublisherInfo, now_ns: u64) -> Self {
        Self {
            messages: info.messages,
            payload_bytes: info.payload_bytes,
            at_ns: info.newest_ns.map_or(now_ns, |newest| newest.min(now_ns)),
        }
    }

    fn counted(&self, of: Of) -> u64 {
        match of {
            Of::Messages => self.messages,
            Of::Bytes => self.payload_bytes,
        }
    }

    /// Counts per second since `earlier`; 0 if there were none.
    fn rate_since(&self, earlier: &Self, of: Of) -> f64 {
        let n = self.counted(of).saturating_sub(earlier.counted(of)) as f64;
        let ns = self.at_ns.saturating_sub(earlier.at_ns) as f64;
        if n > 0.0 && ns > 0.0 { n * 1e9 / ns } else { 0.0 }
    }
}

/// First, previous and newest look at one publisher.
#[derive(Clone, Copy, Debug)]
struct Track {
    first: Point,
    before: Point,
    last: Point,
    state: &'static str,
}

#[derive(Debug)]
struct Rates {
    of: Of,
    topic: String,
    gaps: Gaps,
    tracks: HashMap<PublisherId, Track>,
    min: f64,
    max: f64,
    windows: u64,
}

/// What one window says; the totals are since the beginning.
#[derive(Debug, Serialize)]
struct Report<'a> {
    topic: &'a str,
    unit: &'static str,
    now: f64,
    min: f64,
    mean: f64,
    max: f64,
    windows: u64,
    messages: u64,
    payload_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<gaps::Report>,
    publishers: Vec<PublisherReport>,
}

#[derive(Debug, Serialize)]
struct PublisherReport {
    node: u64,
    port: u64,
    state: &'static str,
    mean: f64,
    /// Counted since the first look.
    messages: u64,
    payload_bytes: u64,
    /// The publisher's own count at the last look.
    messages_total: u64,
}

impl Rates {
    fn new(of: Of, topic: &topic::Info) -> Self {
        let (topic, gaps) = (topic.name.clone(), Gaps::default());
        Self { of, topic, gaps, tracks: HashMap::new(), min: f64::INFINITY, max: 0.0, windows: 0 }
    }

    /// Takes in a look at all publishers.
    fn look(&mut self, publishers: &[PublisherInfo], now_ns: u64, first: bool) {
        for info in publishers {
            let point = Point::of(info, now_ns);
            // One that came later began at nothing, a window ago at most.
            let begin =
                if first { point } else { Point { messages: 0, payload_bytes: 0, ..point } };
            let track = self.tracks.entry(info.id).or_insert(Track {
                first: begin,
                before: begin,
                last: begin,
                state: "",
            });
            track.before = track.last;
            if point.messages != track.last.messages {
                track.last = point;
            }
            track.state = super::list::state(info);
        }
        // The gone send no more.
        for (id, track) in &mut self.tracks {
            if !publishers.iter().any(|p| p.id == *id) {
                (track.before, track.state) = (track.last, "gone");
            }
        }
    }

    fn report(&mut self) -> Report<'_> {
        let of = self.of;
        let now = self.tracks.values().map(|t| t.last.rate_since(&t.before, of)).sum::<f64>();
        if now > 0.0 {
            self.min = self.min.min(now);
            self.max = self.max.max(now);
        }
        self.windows += 1;
        let mut publishers: Vec<_> = self
            .tracks
            .iter()
            .map(|(id, t)| PublisherReport {
                node: id.node.get(),
                port: id.port,
                state: t.state,
                mean: t.last.rate_since(&t.first, of),
                messages: t.last.messages - t.first.messages,
                payload_bytes: t.last.payload_bytes - t.first.payload_bytes,
                messages_total: t.last.messages,
            })
            .collect();
        publishers.sort_by_key(|p| (p.node, p.port));
        Report {
            topic: &self.topic,
            gap: self.gaps.report(),
            unit: if of == Of::Bytes { "B/s" } else { "Hz" },
            now,
            min: if self.min.is_finite() { self.min } else { 0.0 },
            mean: publishers.iter().map(|p| p.mean).sum(),
            max: self.max,
            windows: self.windows,
            messages: publishers.iter().map(|p| p.messages).sum(),
            payload_bytes: publishers.iter().map(|p| p.payload_bytes).sum(),
            publishers,
        }
    }
}

impl Report<'_> {
    fn text(&self) -> String {
        let figure = |value: f64| match self.unit {
            "Hz" => format!("{value:.2} Hz"),
            _ => format!("{}/s", bytes(value as u64)),
        };
        let [now, min, mean, max] = [self.now, self.min, self.mean, self.max].map(figure);
        let gap = self.gap.map_or(String::new(), |gap| format!("   {}", gap.text()));
        let counted = format!("{}, {}", count(self.messages, "message"), bytes(self.payload_bytes));
        format!("{now:>12}   min {min}  mean {mean}  max {max}{gap}   {counted}")
    }
}

/// Between two looks at the rings, ns: short enough to see each message, not so short as to be
/// felt.
const LOOK_NS: std::ops::RangeInclusive<u64> = 1_000_000..=100_000_000;

/// A topic that is measured, with what is known of it.
struct Watched {
    rates: Rates,
    depth: u64,
}

impl Watched {
    fn new(of: Of, domain: &Domain, name: &str) -> Result<Self, Failure> {
        let topic = domain.find_topic(name)?.ok_or_else(|| missing(domain, name))?;
        let mut rates = Rates::new(of, &topic);
        rates.look(&topic.publishers, outlive::now_ns(), true);
        let mut watched = Self { rates, depth: topic.depth };
        watched.look_at_gaps(domain);
        Ok(watched)
    }

    fn look_at_gaps(&mut self, domain: &Domain) {
        let Rates { topic, gaps, tracks, of, .. } = &mut self.rates;
        if *of == Of::Messages {
            tracks.keys().for_each(|id| gaps.look(domain, topic, *id));
        }
    }

    fn look(&mut self, domain: &Domain) -> Result<(), Failure> {
        let Some(now) = domain.find_topic(&self.rates.topic)? else {
            let message = format!("topic {} is gone", self.rates.topic);
            return Err(Failure::new(Code::NotFound, message));
        };
        self.rates.look(&now.publishers, outlive::now_ns(), false);
        self.depth = now.depth;
        Ok(())
    }

    /// How soon the ring may be full of new messages, halved, ns.
    fn look_again_ns(&self) -> u64 {
        let gap_ns = self.rates.gaps.report().map_or(1_000_000, |gap| gap.mean_ns());
        (gap_ns.saturating_mul(self.depth) / 2).clamp(*LOOK_NS.start(), *LOOK_NS.end())
    }
}

pub(crate) fn run(args: &RateArgs, of: Of, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals()?;
    let domain = options.domain()?;
    let watch = |name: &String| Watched::new(of, &domain, name);
    let mut watched: Vec<Watched> = args.names.iter().map(watch).collect::<Result<_, _>>()?;
    let width = args.names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let mut output = Output::standard()?;
    let end = Deadline::after(args.duration);
    let mut next_ns = outlive::now_ns();
    while !end.has_passed() && !os::stop_asked() {
        next_ns = next_ns.saturating_add(args.window.as_nanos() as u64);
        wait(&domain, &mut watched, of, end.min(Deadline::at_ns(next_ns)));
        let mut lines = String::new();
        for topic in &mut watched {
            topic.look(&domain)?;
            topic.look_at_gaps(&domain);
            let report = topic.rates.report();
            let name = if args.names.len() > 1 { report.topic } else { "" };
            lines += &match (args.json, name) {
                (true, _) => json_line(&report),
                (false, "") => report.text(),
                (false, name) => format!("{name:<width$} {}", report.text()),
            };
            lines.push('\n');
        }
        match output.write(lines.as_bytes()).and_then(|()| output.flush()) {
            Ok(()) => {}
            Err(Halt::Quiet) => break,
            Err(Halt::Failed(failure)) => return Err(failure),
        }
    }
    Ok(Code::Done)
}

/// Sleeps until an instant, or until a signal; looks at the rings meanwhile.
fn wait(domain: &Domain, watched: &mut [Watched], of: Of, until: Deadline) {
    while !until.has_passed() && !os::stop_asked() {
        let soon = watched.iter().map(Watched::look_again_ns).min().unwrap_or(*LOOK_NS.end());
        let soon = Deadline::after(Duration::from_nanos(soon));
        sleep_until(if of == Of::Messages { until.min(soon) } else { until });
        watched.iter_mut().for_each(|topic| topic.look_at_gaps(domain));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(messages: u64, at_ms: u64) -> Point {
        Point { messages, payload_bytes: messages * 6_220_800, at_ns: at_ms * 1_000_000 }
    }

    #[test]
    fn a_rate_is_from_stamp_to_stamp_whenever_one_looked() {
        assert_eq!(point(40, 2000).rate_since(&point(10, 1000), Of::Messages), 30.0);
        assert_eq!(point(40, 2000).rate_since(&point(10, 1000), Of::Bytes), 30.0 * 6_220_800.0);
        assert_eq!(point(10, 2000).rate_since(&point(10, 1000), Of::Messages), 0.0);
        assert_eq!(point(11, 1000).rate_since(&point(10, 1000), Of::Messages), 0.0);
    }
}
