//! `outlive topic echo`: messages of a topic of any type, as lines, as JSON or unmodified.

use std::time::Duration;

use clap::{Args, value_parser};
use outlive::topic::{Event, Meta};
use outlive::{Deadline, Encoding, ErrorKind, Node, Sample, Subscriber};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::decode::Decoder;
use super::missing;
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::options::{DomainOptions, seconds, slice_of};
use crate::os;
use crate::output::{self, Halt, Output, bytes};
use crate::tree::{Tree, quoted};

const EXAMPLES: &str = "\
Examples:
  outlive topic echo /scan                        one line per message, until Ctrl-C
  outlive topic echo /pose --json --count 1       the next one, for a script
  outlive topic echo /imu --field gyro[2] --field accel.x
                                                  some parts of each
  outlive topic echo /imu --csv >imu.csv          a table for a spreadsheet
  outlive topic echo /log --history 100           also what was sent before, even by the dead
  outlive topic echo /camera --raw --until-left |
    ffplay -f rawvideo -pixel_format rgb24 -video_size 1920x1080 -

A line of text: publisher (node.port), number, time (seconds of CLOCK_MONOTONIC), size, payload.
Described types and MessagePack are shown with the names of their fields, numbers as numbers,
everything else in hexadecimal.
Losses, arrivals, departures and deaths are told on standard error.";

/// Print the messages of a topic, whatever its type; waits for a topic that is not there yet.
///
/// Ends when --count messages came, when --timeout seconds passed without one, with --until-left
/// when the last publisher went, when standard output is closed, or on SIGINT or SIGTERM.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct EchoArgs {
    /// Topic, like /camera/front.
    name: String,
    /// Write payloads to standard output unmodified, one after the other.
    #[arg(long, conflicts_with_all = ["json", "full", "csv", "field"])]
    raw: bool,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
    /// Print a table of comma-separated values; its first line names the columns.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Show only this part of each payload, like pose.position[1]; may be given several times.
    #[arg(long, value_name = "PATH")]
    field: Vec<String>,
    /// Show all of each payload instead of its beginning.
    #[arg(long)]
    full: bool,
    /// End after so many messages.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Also so many messages of each publisher from before, at most the topic's depth.
    #[arg(long, value_name = "N", default_value_t = 0)]
    history: u64,
    /// Let publishers wait for this reader instead of overwriting what it has not read.
    #[arg(long)]
    reliable: bool,
    /// End after so long without a message.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "inf")]
    timeout: Duration,
    /// End when there were publishers and all of them have left or died.
    #[arg(long)]
    until_left: bool,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Counted,
    TimedOut,
    Left,
    /// Signal, or standard output closed.
    Asked,
}

pub(crate) fn run(args: &EchoArgs, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals();
    let node = options.node("topic-echo")?;
    let Some(subscriber) = join(&node, args)? else { return Ok(Code::Done) };
    let decoder = decoder(options, &subscriber, args)?;
    let output = Output::standard()?;
    for path in &args.field {
        if let Err(why) = decoder.check_path(path) {
            return Err(Failure::new(Code::Usage, format!("--field {path}: {why}")));
        }
    }
    let mut echo = Echo {
        args,
        subscriber,
        decoder,
        output,
        columns: None,
        printed: 0,
        met_one: false,
        corrupt: false,
    };
    let end = match echo.pump() {
        Ok(end) => end,
        Err(Halt::Quiet) => End::Asked,
        Err(Halt::Failed(failure)) => return Err(failure),
    };
    Ok(echo.code(end))
}

/// Joins the topic once it is there; `None` when a signal came first.
fn join(node: &Node, args: &EchoArgs) -> Result<Option<Subscriber<[u8]>>, Failure> {
    let deadline = Deadline::after(args.timeout);
    let mut told = false;
    loop {
        let topic = node.topic::<[u8]>(&args.name)?.history(args.history).reliable(args.reliable);
        match topic.subscriber_of_any_type() {
            Ok(subscriber) => return Ok(Some(subscriber)),
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e.into()),
            Err(_) if deadline.has_passed() => return Err(missing(&args.name)),
            Err(_) if os::stop_asked() => return Ok(None),
            Err(_) if !told => {
                note(format_args!("waiting for topic {}", args.name));
                told = true;
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// The topic's type, which a subscriber of any type does not know.
fn decoder(
    options: &DomainOptions,
    subscriber: &Subscriber<[u8]>,
    args: &EchoArgs,
) -> Result<Decoder, Failure> {
    let topic = options.domain()?.find_topic(subscriber.topic())?;
    // A table has all of each payload. Unknown when the topic went in between: bytes then.
    let whole = args.full || args.csv;
    let bytes = || Decoder::new("", Encoding::Bytes, 1, whole);
    Ok(topic.map_or_else(bytes, |topic| Decoder::of(&topic, whole)))
}

#[derive(Debug)]
struct Echo<'a> {
    args: &'a EchoArgs,
    subscriber: Subscriber<[u8]>,
    decoder: Decoder,
    output: Output,
    /// Of a table: paths of the payload's parts, once its head is printed.
    columns: Option<Vec<String>>,
    printed: u64,
    met_one: bool,
    corrupt: bool,
}

impl From<outlive::Error> for Halt {
    fn from(error: outlive::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl Echo<'_> {
    fn pump(&mut self) -> Result<End, Halt> {
        let mut idle_until = Deadline::after(self.args.timeout);
        while !os::stop_asked() {
            let mut sample = self.subscriber.receive()?;
            if sample.is_none() {
                self.output.flush()?;
                self.tell_events();
                if self.args.until_left && self.met_one && self.subscriber.publishers().is_empty() {
                    return Ok(End::Left);
                }
                if idle_until.has_passed() {
                    return Ok(End::TimedOut);
                }
                sample = self.subscriber.receive_until(slice_of(idle_until))?;
            }
            // Borrowed until it is written: no copy but the one into the pipe.
            let Some(sample) = sample else { continue };
            self.message(&sample)?;
            if self.args.count == Some(self.printed) {
                self.output.flush()?;
                return Ok(End::Counted);
            }
            idle_until = Deadline::after(self.args.timeout);
        }
        self.output.flush()?;
        Ok(End::Asked)
    }

    fn message(&mut self, sample: &Sample<[u8]>) -> Result<(), Halt> {
        let meta = *sample.meta();
        if meta.lost_before > 0 {
            note(format_args!(
                "lost {} messages of publisher {} before number {}",
                meta.lost_before, meta.publisher, meta.seq
            ));
        }
        self.printed += 1;
        if self.args.raw {
            return self.output.write(sample);
        }
        if self.args.csv {
            return self.row(&meta, sample);
        }
        let fields = self.args.field.iter().map(|path| (path, self.decoder.field(sample, path)));
        let line = if self.args.json {
            let body = if self.args.field.is_empty() {
                let (key, value, whole) = self.decoder.json(sample);
                Body::Payload { key, value, whole }
            } else {
                Body::Fields(fields.map(|(k, v)| (k.clone(), v)).collect())
            };
            json_line(&meta, sample.len(), &body)
        } else {
            let payload = if self.args.field.is_empty() {
                self.decoder.text(sample)
            } else {
                let shown = |v: Option<Tree>| v.map_or("-".into(), |v| v.to_string());
                fields.map(|(_, v)| shown(v)).collect::<Vec<_>>().join("  ")
            };
            format!(
                "{} #{}  {:.6} s  {}  {payload}",
                meta.publisher,
                meta.seq,
                meta.timestamp_ns as f64 / 1e9,
                bytes(sample.len() as u64),
            )
        };
        self.output.write(line.as_bytes())?;
        self.output.write(b"\n")
    }

    /// A line of the table, after the head if it is the first.
    fn row(&mut self, meta: &Meta, sample: &[u8]) -> Result<(), Halt> {
        let columns = match self.columns.take() {
            Some(columns) => columns,
            None => {
                let columns = match self.args.field.as_slice() {
                    [] => self.decoder.columns(sample),
                    fields => fields.to_vec(),
                };
                let mut head = "node,port,seq,timestamp_ns,lost_before,bytes".to_owned();
                let named = columns.iter().map(|c| if c.is_empty() { "value" } else { c });
                // Of what is not known there is one column, in hexadecimal.
                let named = named.chain(columns.is_empty().then_some("hex"));
                named.for_each(|name| head += &format!(",{}", quoted(name)));
                self.output.write(head.as_bytes())?;
                self.output.write(b"\n")?;
                columns
            }
        };
        let Meta { publisher: id, seq, timestamp_ns, lost_before, .. } = meta;
        let bytes = sample.len();
        let mut line =
            format!("{},{},{seq},{timestamp_ns},{lost_before},{bytes}", id.node, id.port);
        for path in &columns {
            line.push(',');
            line += &self.decoder.field(sample, path).map_or(String::new(), |v| v.cell());
        }
        if columns.is_empty() {
            line.push(',');
            line += &self.decoder.json(sample).1.cell();
        }
        line.push('\n');
        self.columns = Some(columns);
        self.output.write(line.as_bytes())
    }

    fn tell_events(&mut self) {
        while let Some(event) = self.subscriber.next_event() {
            match event {
                Event::PublisherJoined(id) => {
                    self.met_one = true;
                    note(format_args!("publisher {id} is there"));
                }
                Event::PublisherLeft(id) => note(format_args!("publisher {id} left")),
                Event::PublisherDied { publisher, unfinished, lost } => {
                    let how = if unfinished { " while it wrote a message" } else { "" };
                    note(format_args!("publisher {publisher} died{how}"));
                    if lost > 0 {
                        note(format_args!("lost {lost} messages of publisher {publisher} at last"));
                    }
                }
                Event::PublisherCorrupt { publisher, why } => {
                    self.corrupt = true;
                    note(format_args!("publisher {publisher} is corrupt: {why}"));
                }
                other => note(format_args!("{other:?}")),
            }
        }
    }

    fn code(&mut self, end: End) -> Code {
        self.tell_events();
        let lost = self.subscriber.lost();
        if lost > 0 {
            note(format_args!("{} messages printed, {lost} lost", self.printed));
        }
        match end {
            _ if self.corrupt => Code::Corrupt,
            End::TimedOut if self.args.count.is_some() || self.printed == 0 => {
                note(format_args!("no message for {:?}", self.args.timeout));
                Code::NotFound
            }
            _ if lost > 0 => Code::Loss,
            _ => Code::Done,
        }
    }
}

/// What a JSON object says of the payload.
enum Body {
    Payload { key: &'static str, value: Tree, whole: bool },
    Fields(Vec<(String, Option<Tree>)>),
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        match self {
            Self::Payload { key, value, whole } => {
                map.serialize_entry(key, value)?;
                map.serialize_entry("whole", whole)?;
            }
            Self::Fields(fields) => map.serialize_entry("fields", &Fields(fields))?,
        }
        map.end()
    }
}

struct Fields<'a>(&'a [(String, Option<Tree>)]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(path, value)| (path, value)))
    }
}

fn json_line(meta: &Meta, bytes: usize, body: &Body) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        publisher: Publisher,
        seq: u64,
        timestamp_ns: u64,
        lost_before: u64,
        bytes: usize,
        #[serde(flatten)]
        body: &'a Body,
    }
    #[derive(Serialize)]
    struct Publisher {
        node: u64,
        port: u64,
    }
    let line = Line {
        publisher: Publisher { node: meta.publisher.node.get(), port: meta.publisher.port },
        seq: meta.seq,
        timestamp_ns: meta.timestamp_ns,
        lost_before: meta.lost_before,
        bytes,
        body,
    };
    output::json_line(&line)
}
