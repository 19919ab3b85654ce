//! `outlive topic echo`: messages of topics of any type, as lines, as JSON or unmodified.

use std::collections::HashSet;
use std::fmt::Display;
use std::time::Duration;

use clap::{Args, value_parser};
use outlive::topic::{Event, Meta};
use outlive::{Deadline, Domain, Encoding, ErrorKind, Node, Sample, Subscriber, WaitSet, Waitable};
use outlive_record::decode::{Path, Tree};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::decode::Decoder;
use super::named::{missing, note_waiting};
use crate::absent::{nobody, note_if_nobody};
use crate::clock::{duration, local};
use crate::complete;
use crate::csv::{cell, head};
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::options::{DomainOptions, seconds, slice_of};
use crate::os;
use crate::output::{self, Halt, Output, bytes, count};

const EXAMPLES: &str = "\
Examples:
  outlive topic echo /scan                        one line per message, until Ctrl-C
  outlive topic echo /scan /odom                  of two topics, with the topic in front
  outlive topic echo /pose --json --count 1       the next one, for a script
  outlive topic echo /imu --field gyro[2] --field accel.x
                                                  some parts of each
  outlive topic echo /imu --csv >imu.csv          a table for a spreadsheet
  outlive topic echo /log --history 100           include earlier messages, also from dead
                                                  publishers
  outlive topic echo /camera --raw --until-left |
    ffplay -f rawvideo -pixel_format rgb24 -video_size 1920x1080 -

A line: publisher (node.port), number, local time, size, payload. Described types and MessagePack
are shown with the names of their fields, numbers as numbers, everything else in hexadecimal.
Losses, arrivals, departures and deaths are reported on standard error.";

/// Print the messages of topics of any type; waits for topics that do not exist yet.
///
/// Ends after --count messages, after --timeout without one, with --until-left when the last
/// publisher has left, when standard output is closed, or on SIGINT or SIGTERM.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct EchoArgs {
    /// Topics, like /camera/front.
    #[arg(value_name = "NAME", required = true, add = complete::topics())]
    names: Vec<String>,
    /// Print one JSON object per line.
    #[arg(long, help_heading = FORM)]
    json: bool,
    /// Print comma-separated values; the first line names the columns.
    #[arg(long, conflicts_with = "json", help_heading = FORM)]
    csv: bool,
    /// Write payloads unmodified, back to back.
    #[arg(long, conflicts_with_all = ["json", "full", "csv", "field"], help_heading = FORM)]
    raw: bool,
    /// Show only this part of each payload, like pose.position[1]; may be repeated.
    #[arg(long, value_name = "PATH", help_heading = FORM)]
    field: Vec<String>,
    /// Show whole payloads, not only their start.
    #[arg(long, help_heading = FORM)]
    full: bool,
    /// Also print the N newest earlier messages of each topic, across all its publishers.
    #[arg(long, value_name = "N", default_value_t = 0)]
    history: u64,
    /// Make publishers wait for this reader instead of overwriting what it has not read.
    #[arg(long)]
    reliable: bool,
    /// End after N messages.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..), help_heading = END)]
    count: Option<u64>,
    /// End after this time without a message.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "inf",
          help_heading = END)]
    timeout: Duration,
    /// End once there has been a publisher and all have left or died.
    #[arg(long, help_heading = END)]
    until_left: bool,
}

const FORM: &str = "Output format";
const END: &str = "When to stop";

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
    os::catch_stop_signals()?;
    let mut pending: Vec<String> = Vec::new();
    for name in &args.names {
        if !pending.contains(name) {
            pending.push(name.clone());
        }
    }
    if pending.len() > 1 && (args.raw || args.csv) {
        let form = if args.raw { "--raw" } else { "--csv" };
        return Err(Failure::new(Code::Usage, format!("{form} prints one topic at a time")));
    }
    let typed = |path: &String| {
        Path::typed(path).map_err(|why| Failure::new(Code::Usage, wrong_field(path, &why)))
    };
    let mut echo = Echo {
        args,
        fields: args.field.iter().map(typed).collect::<Result<_, _>>()?,
        domain: options.domain()?,
        node: options.node("topic-echo")?,
        width: pending.iter().map(|name| name.chars().count()).max().unwrap_or(0),
        many: pending.len() > 1,
        pending,
        streams: Vec::new(),
        told: false,
        output: Output::standard()?,
        columns: None,
        printed: 0,
        misfits: 0,
        corrupt: false,
    };
    let end = match echo.pump() {
        Ok(end) => end,
        Err(Halt::Quiet) => End::Asked,
        Err(Halt::Failed(failure)) => return Err(failure),
    };
    Ok(echo.code(end))
}

/// One of the topics.
#[derive(Debug)]
struct Stream {
    subscriber: Subscriber<[u8]>,
    decoder: Decoder,
    met_one: bool,
    /// What kept us from reading all of it, each told once.
    troubles: HashSet<ErrorKind>,
}

impl Stream {
    /// `None`: there is no such topic yet.
    fn join(
        name: &str,
        node: &Node,
        domain: &Domain,
        args: &EchoArgs,
        fields: &[Path],
    ) -> Result<Option<Self>, Failure> {
        let topic = node.topic::<[u8]>(name)?.history(args.history).reliable(args.reliable);
        let subscriber = match topic.subscriber_of_any_type() {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            subscriber => subscriber?,
        };
        // A table has all of each payload. Unknown when the topic went in between: bytes then.
        let whole = args.full || args.csv;
        let bytes = || Decoder::new("", Encoding::Bytes, 1, whole);
        let topic = domain.find_topic(subscriber.topic())?;
        let decoder = topic.map_or_else(bytes, |topic| Decoder::of(&topic, whole));
        for path in fields {
            if let Err(why) = decoder.check_path(path) {
                return Err(Failure::new(Code::Usage, wrong_field(path, &why)));
            }
        }
        Ok(Some(Self { subscriber, decoder, met_one: false, troubles: HashSet::new() }))
    }

    /// Tells what kept us from reading it, unless that ends the command: the subscriber goes on
    /// with the publishers that it has, and tries again.
    fn trouble(&mut self, e: outlive::Error) -> Result<(), Failure> {
        use ErrorKind::{Io, NoSpace, OutOfMemory, Permission, TooManyMembers};
        if !matches!(e.kind(), Io | NoSpace | OutOfMemory | Permission | TooManyMembers) {
            return Err(e.into());
        }
        if self.troubles.insert(e.kind()) {
            note(format_args!("{} cannot all be read for now: {e}", self.subscriber.topic()));
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Echo<'a> {
    args: &'a EchoArgs,
    /// `--field`.
    fields: Vec<Path>,
    domain: Domain,
    node: Node,
    /// Topics that do not exist yet.
    pending: Vec<String>,
    streams: Vec<Stream>,
    /// It was said that some do not exist yet.
    told: bool,
    /// Whether lines name their topic, and the length of the longest name.
    many: bool,
    width: usize,
    output: Output,
    /// Of a table: paths of the payload's parts, once its head is printed.
    columns: Option<Vec<Path>>,
    printed: u64,
    /// Messages without a row, as they are not of the topic's type.
    misfits: u64,
    corrupt: bool,
}

/// Between two looks for a topic that does not exist yet, ns.
const JOIN: Duration = Duration::from_millis(20);
/// After a topic could not be read.
const REST: Duration = Duration::from_millis(10);

impl From<outlive::Error> for Halt {
    fn from(error: outlive::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Echo<'_> {
    fn pump(&mut self) -> Result<End, Halt> {
        let mut idle_until = Deadline::after(self.args.timeout);
        let mut set = WaitSet::new();
        while !os::stop_asked() {
            if !self.pending.is_empty() && self.join()? {
                idle_until = Deadline::after(self.args.timeout);
            }
            let (mut met, mut failed) = (false, false);
            for i in 0..self.streams.len() {
                // Borrowed until it is written: no copy but the one into the pipe.
                let sample = match self.streams[i].subscriber.receive() {
                    Ok(Some(sample)) => sample,
                    Ok(None) => continue,
                    Err(e) => {
                        self.streams[i].trouble(e)?;
                        failed = true;
                        continue;
                    }
                };
                self.message(i, &sample)?;
                met = true;
                if self.args.count == Some(self.printed) {
                    self.output.flush()?;
                    return Ok(End::Counted);
                }
            }
            if met {
                idle_until = Deadline::after(self.args.timeout);
                continue;
            }
            self.output.flush()?;
            self.tell_events();
            if self.args.until_left && self.have_left() {
                return Ok(End::Left);
            }
            match self.pending.first() {
                Some(name) if idle_until.has_passed() && self.streams.is_empty() => {
                    // The first look has already said that nobody is here.
                    let failure = match nobody(&self.domain) {
                        Some(_) => Failure::new(Code::NotFound, format!("no topic {name} came")),
                        None => missing(&self.domain, name),
                    };
                    return Err(failure.into());
                }
                _ if idle_until.has_passed() => return Ok(End::TimedOut),
                _ => {}
            }
            if failed {
                // Its next try may fail, too.
                std::thread::sleep(REST);
                continue;
            }
            let soon = match self.pending.is_empty() {
                true => slice_of(idle_until),
                false => idle_until.min(Deadline::after(JOIN)),
            };
            let subscribers =
                self.streams.iter_mut().map(|s| &mut s.subscriber as &mut dyn Waitable);
            set.wait_until(&mut subscribers.collect::<Vec<_>>(), soon)?;
        }
        self.output.flush()?;
        Ok(End::Asked)
    }

    /// Joins the topics that exist by now; whether there was one.
    fn join(&mut self) -> Result<bool, Failure> {
        let mut left = Vec::new();
        let before = self.streams.len();
        for name in std::mem::take(&mut self.pending) {
            match Stream::join(&name, &self.node, &self.domain, self.args, &self.fields)? {
                Some(stream) => self.streams.push(stream),
                None => left.push(name),
            }
        }
        self.pending = left;
        if !self.told && !self.args.timeout.is_zero() {
            note_waiting(&self.domain, &self.pending);
            if !self.pending.is_empty() {
                note_if_nobody(&self.domain);
            }
            self.told = true;
        }
        Ok(self.streams.len() > before)
    }

    fn have_left(&self) -> bool {
        let left = |s: &Stream| s.met_one && s.subscriber.publishers().is_empty();
        self.pending.is_empty() && self.streams.iter().all(left)
    }

    fn message(&mut self, stream: usize, sample: &Sample<[u8]>) -> Result<(), Halt> {
        let meta = *sample.meta();
        let Stream { subscriber, decoder, .. } = &self.streams[stream];
        let topic = self.many.then(|| subscriber.topic());
        if meta.lost_before > 0 {
            note(format_args!(
                "lost {} of publisher {}{} before number {}",
                count(meta.lost_before, "message"),
                meta.publisher,
                of_topic(topic),
                meta.seq
            ));
        }
        if self.args.csv {
            return self.row(stream, &meta, sample);
        }
        self.printed += 1;
        if self.args.raw {
            return self.output.write(sample);
        }
        let fields = || {
            let read = decoder.read(sample);
            let part = |path: &Path| read.as_ref().and_then(|read| read.part(path));
            self.fields.iter().map(|path| (path.to_string(), part(path))).collect::<Vec<_>>()
        };
        let line = if self.args.json {
            let body = if self.fields.is_empty() {
                let (key, value, whole) = decoder.json(sample);
                Body::Payload { key, value, whole }
            } else {
                Body::Fields(fields())
            };
            json_line(topic, &meta, sample.len(), &body)
        } else {
            let payload = if self.fields.is_empty() {
                decoder.text(sample)
            } else {
                let shown = |v: Option<Tree>| v.map_or("-".into(), |v| v.to_string());
                fields().into_iter().map(|(_, v)| shown(v)).collect::<Vec<_>>().join("  ")
            };
            let topic =
                topic.map_or(String::new(), |t| format!("{t:<width$}  ", width = self.width));
            format!(
                "{topic}{} #{}  {}  {}  {payload}",
                meta.publisher,
                meta.seq,
                local(meta.timestamp_ns),
                bytes(sample.len() as u64),
            )
        };
        self.output.write(line.as_bytes())?;
        self.output.write(b"\n")
    }

    /// A line of the table, after the head if it is the first.
    fn row(&mut self, stream: usize, meta: &Meta, sample: &[u8]) -> Result<(), Halt> {
        let decoder = &self.streams[stream].decoder;
        let Some(read) = decoder.read(sample) else {
            self.misfits += 1;
            return Ok(());
        };
        self.printed += 1;
        let columns = match self.columns.take() {
            Some(columns) => columns,
            None => {
                let columns = match self.fields.as_slice() {
                    [] => decoder.columns(&read),
                    fields => fields.to_vec(),
                };
                let common = "node,port,seq,timestamp_ns,lost_before,bytes";
                self.output.write(format!("{common}{}\n", head(&columns)).as_bytes())?;
                columns
            }
        };
        let Meta { publisher: id, seq, timestamp_ns, lost_before, .. } = meta;
        let bytes = sample.len();
        let mut line =
            format!("{},{},{seq},{timestamp_ns},{lost_before},{bytes}", id.node, id.port);
        for path in &columns {
            line.push(',');
            line += &read.part(path).map_or(String::new(), |v| cell(&v));
        }
        if columns.is_empty() {
            line.push(',');
            line += &cell(&decoder.json(sample).1);
        }
        line.push('\n');
        self.columns = Some(columns);
        self.output.write(line.as_bytes())
    }

    fn tell_events(&mut self) {
        for Stream { subscriber, met_one, .. } in &mut self.streams {
            while let Some(event) = subscriber.next_event() {
                let topic = of_topic(self.many.then(|| subscriber.topic()));
                *met_one |= matches!(event, Event::PublisherJoined(_));
                self.corrupt |= matches!(event, Event::PublisherCorrupt { .. });
                tell(&event, &topic);
            }
        }
    }

    fn code(&mut self, end: End) -> Code {
        self.tell_events();
        let lost: u64 = self.streams.iter().map(|s| s.subscriber.lost()).sum();
        if lost > 0 {
            note(format_args!("{} printed, {lost} lost", count(self.printed, "message")));
        }
        if self.misfits > 0 {
            let left_out = count(self.misfits, "message");
            note(format_args!("left out {left_out}: not of the topic's type"));
        }
        let too_many = |s: &Stream| s.troubles.contains(&ErrorKind::TooManyMembers);
        let unread = self.streams.iter().any(too_many);
        match end {
            _ if self.corrupt || self.misfits > 0 => Code::Corrupt,
            End::TimedOut if self.args.count.is_some() || self.printed == 0 => {
                note(format_args!("no message for {}", duration(self.args.timeout)));
                Code::NotFound
            }
            _ if lost > 0 || unread => Code::Loss,
            _ => Code::Done,
        }
    }
}

fn wrong_field(path: impl Display, why: &str) -> String {
    format!("--field {path}: {why}")
}

fn of_topic(topic: Option<&str>) -> String {
    topic.map_or(String::new(), |topic| format!(" of {topic}"))
}

fn tell(event: &Event, topic: &str) {
    match event {
        Event::PublisherJoined(id) => note(format_args!("publisher {id}{topic} is there")),
        Event::PublisherLeft(id) => note(format_args!("publisher {id}{topic} left")),
        Event::PublisherDied { publisher, unfinished, lost } => {
            let how = if *unfinished { " while writing a message" } else { "" };
            let lost = match lost {
                0 => String::new(),
                lost => format!(", {lost} of its messages were lost"),
            };
            note(format_args!("publisher {publisher}{topic} died{how}{lost}"));
        }
        Event::PublisherCorrupt { publisher, why } => {
            note(format_args!("publisher {publisher}{topic} is corrupt: {why}"));
        }
        other => note(format_args!("{other:?}{topic}")),
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

fn json_line(topic: Option<&str>, meta: &Meta, bytes: usize, body: &Body) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        topic: Option<&'a str>,
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
        topic,
        publisher: Publisher { node: meta.publisher.node.get(), port: meta.publisher.port },
        seq: meta.seq,
        timestamp_ns: meta.timestamp_ns,
        lost_before: meta.lost_before,
        bytes,
        body,
    };
    output::json_line(&line)
}
