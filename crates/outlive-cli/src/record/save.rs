//! `outlive record`: messages of any topics into an MCAP file.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, value_parser};
use outlive_record::{Error, Profile, Progress, RecordOptions, Recorder, Selection};

use super::How;
use super::last::Asking;
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::options::{DomainOptions, seconds, slice_of};
use crate::os;
use crate::output::bytes;
use outlive::Deadline;

const EXAMPLES: &str = "\
Examples:
  outlive record --output run.mcap --all            everything, until Ctrl-C
  outlive record --output run.mcap /camera/front '/arm/*'
  outlive record --output run.mcap --regex '/camera/(front|rear)'
  outlive record --output run.mcap --all --split-seconds 600
                                                    run_000.mcap, run_001.mcap, ...
  outlive record --output run.mcap --reliable /arm/state
                                                    publishers wait rather than we lose
  outlive record --output run.mcap --all --profile ros2
                                                    for the tools of ROS 2
  outlive record --output box.mcap --all --last 30  the last 30 s, in memory, until asked for:
  outlive service call /record/save 'it fell'       into box_000.mcap; so does SIGUSR1
  outlive info run.mcap
  outlive play run.mcap

A name may have * (not over a /), ** and ?. Topics that appear later are recorded too. Files open in
every program that knows MCAP; one whose recorder was killed is readable up to its last second.";

/// Record topics into an MCAP file, until a signal.
///
/// Holds nobody up unless --reliable is given: what was overwritten before it could be read is
/// counted, told, and written into the file.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct RecordArgs {
    /// Topics, like /camera/front or '/arm/*'.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    topics: Vec<String>,
    /// Every topic.
    #[arg(long)]
    all: bool,
    /// But not these, patterns like TOPICS; may be given several times.
    #[arg(long, value_name = "TOPIC")]
    exclude: Vec<String>,
    /// Read TOPICS as regular expressions for the whole name.
    #[arg(long)]
    regex: bool,
    /// File to write.
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Replace the file if it is there.
    #[arg(long)]
    overwrite: bool,
    /// Let publishers wait for the recorder instead of losing messages.
    #[arg(long)]
    reliable: bool,
    /// Also so many messages of each publisher from before, at most the topic's depth.
    #[arg(long, value_name = "N", default_value_t = 0)]
    history: u64,
    /// In whose form: ros2 writes messages of ROS 2 for its tools, and leaves out topics that it
    /// has no message for.
    #[arg(long, value_name = "WHOSE", default_value = "outlive")]
    profile: Whose,
    /// How to compress: zstd takes somewhat less room and several times more of a processor.
    #[arg(long, value_name = "HOW", default_value = "lz4")]
    compression: How,
    /// Begin another file after so many bytes.
    #[arg(long, value_name = "BYTES", value_parser = value_parser!(u64).range(1..))]
    split_bytes: Option<u64>,
    /// Begin another file after so long.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    split_seconds: Option<Duration>,
    /// Keep so many files of a split recording: the oldest is removed when another one begins.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    keep_files: Option<u64>,
    /// Keep so many bytes of them, besides the one that is being written.
    #[arg(long, value_name = "BYTES")]
    keep_bytes: Option<u64>,
    /// Remove the oldest of them while less of the disk is free.
    #[arg(long, value_name = "BYTES")]
    free_bytes: Option<u64>,
    /// Keep the last so long in memory, and write them into the next numbered file whenever that is
    /// asked for, by SIGUSR1 or the service.
    #[arg(long, value_name = "SECONDS", value_parser = seconds,
          conflicts_with_all = ["split_bytes", "split_seconds", "count"])]
    last: Option<Duration>,
    /// Most memory for --last, bytes; while a file is being saved twice as much.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, requires = "last")]
    memory_bytes: u64,
    /// Service that saves; its request is text that is stored in the file.
    #[arg(long, value_name = "NAME", default_value = "/record/save", requires = "last")]
    save_service: String,
    /// End after so long.
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds, default_value = "inf")]
    how_long: Duration,
    /// End after so many messages.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Whose {
    Outlive,
    Ros2,
}

pub(crate) fn run(args: &RecordArgs, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals();
    let selection = match args.all {
        true => Selection::all(),
        false => Selection::new(&args.topics, args.regex)?,
    };
    let selection = selection.except(&args.exclude, args.regex)?;
    let record_options = RecordOptions {
        reliable: args.reliable,
        history: args.history,
        profile: match args.profile {
            Whose::Outlive => Profile::Outlive,
            Whose::Ros2 => Profile::Ros2,
        },
        compression: args.compression.into(),
        split_bytes: args.split_bytes,
        split_after: args.split_seconds,
        keep_files: args.keep_files,
        keep_bytes: args.keep_bytes,
        free_bytes: args.free_bytes,
        last: args.last,
        memory_bytes_max: args.memory_bytes,
        overwrite: args.overwrite,
        ..RecordOptions::default()
    };
    let node = options.node("record")?;
    let mut recorder = Recorder::start(&node, selection, &args.output, record_options)?;
    let mut asking = match args.last {
        Some(_) => Some(Asking::new(&node, &args.save_service)?),
        None => None,
    };
    let mut line = Line::new();
    let until = Deadline::after(args.how_long);
    let enough = |p: Progress| args.count.is_some_and(|count| p.messages >= count);
    while !os::stop_asked() && !until.has_passed() && !enough(recorder.progress()) {
        if let Err(e) = recorder.step(slice_of(until)) {
            line.clear();
            return Err(cut_short(&recorder, e));
        }
        for text in recorder.take_notes() {
            line.clear();
            note(text);
        }
        if let Some(asking) = &mut asking {
            asking.look(&mut recorder)?;
        }
        line.show(recorder.progress());
    }
    line.clear();
    let so_far = recorder.progress();
    let done = recorder.finish().map_err(|e| cut_short_at(so_far, e))?;
    let mut lost = if done.lost > 0 { format!(", {} lost", done.lost) } else { String::new() };
    if done.left_out > 0 {
        lost += &format!(", {} left out", done.left_out);
    }
    if done.missed > 0 {
        lost += &format!(", {} topics gone too soon", done.missed);
    }
    let files = match (done.files, args.last) {
        (0, _) => "no file".into(),
        (1, _) => "a file".into(),
        (n, _) => format!("{n} files"),
    };
    note(format_args!(
        "recorded {} messages of {} topics ({}){lost} into {files} of {}",
        done.messages,
        done.topics,
        bytes(done.payload_bytes),
        bytes(done.file_bytes),
    ));
    Ok(if done.lost + done.left_out + done.missed > 0 { Code::Loss } else { Code::Done })
}

/// Says what there is, before the failure is told.
fn cut_short(recorder: &Recorder, error: Error) -> Failure {
    cut_short_at(recorder.progress(), error)
}

fn cut_short_at(done: Progress, error: Error) -> Failure {
    note(format_args!(
        "had taken {} messages of {} topics ({}), {} lost; the files have {} of them and lack an \
         index: 'outlive recover' writes one",
        done.messages,
        done.topics,
        bytes(done.payload_bytes),
        done.lost,
        bytes(done.file_bytes),
    ));
    error.into()
}

/// A line at a terminal that says how far we are, once a second.
struct Line {
    at_terminal: bool,
    shown: bool,
    before: Progress,
    since_ns: u64,
}

impl Line {
    fn new() -> Self {
        let at_terminal = std::io::stderr().is_terminal();
        Self { at_terminal, shown: false, before: Progress::default(), since_ns: outlive::now_ns() }
    }

    fn show(&mut self, now: Progress) {
        let passed = outlive::now_ns().saturating_sub(self.since_ns);
        if !self.at_terminal || passed < 1_000_000_000 {
            return;
        }
        let per_s = |n: u64| (n as f64 * 1e9 / passed as f64) as u64;
        let text = format!(
            "\r\x1b[K{} messages ({}/s), {} ({}/s) into {}, {} lost",
            now.messages,
            per_s(now.messages - self.before.messages),
            bytes(now.payload_bytes),
            bytes(per_s(now.payload_bytes - self.before.payload_bytes)),
            match now.memory_bytes {
                0 => bytes(now.file_bytes),
                memory => format!("{} of memory", bytes(memory)),
            },
            now.lost,
        );
        let _ = std::io::stderr().write_all(text.as_bytes());
        (self.shown, self.before, self.since_ns) = (true, now, outlive::now_ns());
    }

    fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = std::io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
