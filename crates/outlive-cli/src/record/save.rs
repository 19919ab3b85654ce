//! `outlive record`: messages of any topics into an MCAP file.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Args, ValueEnum, value_parser};
use outlive_record::ros2::Definitions;
use outlive_record::{Error, Profile, Progress, RecordOptions, Recorder, Selection};

use super::How;
use super::asked::Asked;
use super::last::Asking;
use crate::clock::file_stamp;
use crate::complete;
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::options::{DomainOptions, seconds, slice_of};
use crate::os;
use crate::output::{bytes, count};
use crate::status::{Status, bar};
use outlive::{Deadline, Domain};

const EXAMPLES: &str = "\
Examples:
  outlive record -a                                 everything, until Ctrl-C
  outlive record -o run.mcap /camera/front '/arm/*'
  outlive record -o run.mcap --regex '/camera/(front|rear)'
  outlive record -o run.mcap -a --split-seconds 600
                                                    run_000.mcap, run_001.mcap, ...
  outlive record -o run.mcap --reliable /arm/state
                                                    publishers wait, nothing is lost
  outlive record -o run.mcap -a --profile ros2      for the tools of ROS 2
  outlive record -o run.mcap -a --profile ros2 --types src/my_msgs
                                                    with types of your own packages
  outlive record -o box.mcap -a --last 30           keep the last 30 s in memory until requested:
  outlive service call /record/save 'it fell'       into box_000.mcap; SIGUSR1 does the same
  outlive info run.mcap
  outlive play run.mcap

A name may have * (not over a /), ** and ?. Topics that appear later are recorded too. Any program
that reads MCAP opens the files, including one whose recorder was killed, up to its last second.";

/// Record topics into an MCAP file, until a signal.
///
/// Delays no publisher unless --reliable is given: messages overwritten before they were read are
/// counted, reported, and noted in the file.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
#[command(group = ArgGroup::new("split").args(["split_bytes", "split_seconds"]).multiple(true))]
pub(crate) struct RecordArgs {
    /// Topics, like /camera/front or '/arm/*'.
    #[arg(required_unless_present = "all", conflicts_with = "all", add = complete::topics())]
    topics: Vec<String>,
    /// Record every topic.
    #[arg(long, short)]
    all: bool,
    /// Leave out these topics; patterns like TOPICS; may be repeated.
    #[arg(long, value_name = "TOPIC")]
    exclude: Vec<String>,
    /// Read TOPICS as regular expressions for the whole name.
    #[arg(long)]
    regex: bool,
    /// File to write [default: record_DATE_TIME.mcap].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file; never one of --last.
    #[arg(long)]
    overwrite: bool,
    /// Make publishers wait for the recorder instead of losing messages.
    #[arg(long)]
    reliable: bool,
    /// Also record the N newest earlier messages of each topic, across all its publishers.
    #[arg(long, value_name = "N", default_value_t = 0)]
    history: u64,
    /// Message format: outlive loses nothing; ros2 writes standard ROS 2 types where there are any
    /// and leaves out MessagePack of other types.
    #[arg(long, value_name = "FORMAT", default_value = "outlive")]
    profile: Whose,
    /// With --profile ros2: .msg and .action files of types from 'outlive types import', or their
    /// directory; may be repeated.
    #[arg(long, value_name = "PATH")]
    types: Vec<PathBuf>,
    /// Compression; zstd is somewhat smaller and several times slower.
    #[arg(long, value_name = "HOW", default_value = "lz4")]
    compression: How,
    /// End after this time.
    #[arg(long = "for", value_name = "SECONDS", value_parser = seconds, default_value = "inf")]
    how_long: Duration,
    /// End after N messages.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Start a new file after this many bytes, at least 4096.
    #[arg(long, value_name = "BYTES", value_parser = value_parser!(u64).range(4096..),
          help_heading = SPLIT)]
    split_bytes: Option<u64>,
    /// Start a new file after this time, at least 0.1 s.
    #[arg(long, value_name = "SECONDS", value_parser = split_seconds, help_heading = SPLIT)]
    split_seconds: Option<Duration>,
    /// Keep N files, those of earlier runs included: a new one removes the oldest.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..),
          help_heading = SPLIT, requires = "split")]
    keep_files: Option<u64>,
    /// Keep this many bytes of them besides the current file.
    #[arg(long, value_name = "BYTES", help_heading = SPLIT, requires = "split")]
    keep_bytes: Option<u64>,
    /// Remove the oldest while less of the disk is free.
    #[arg(long, value_name = "BYTES", help_heading = SPLIT, requires = "split")]
    free_bytes: Option<u64>,
    /// Keep this time in memory and write it into the next numbered file on request, by SIGUSR1 or
    /// the service.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = LAST,
          conflicts_with_all = ["split_bytes", "split_seconds", "keep_files", "keep_bytes",
                                "free_bytes", "count"])]
    last: Option<Duration>,
    /// Limit on memory for --last; twice that while a file is written.
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 30, requires = "last",
          help_heading = LAST)]
    memory_bytes: u64,
    /// Service that writes the file; its request is text that is stored in it.
    #[arg(long, value_name = "NAME", default_value = "/record/save", requires = "last",
          help_heading = LAST)]
    save_service: String,
}

const SPLIT: &str = "Split files";
const LAST: &str = "The last seconds";

/// Shorter, each message would have a file of its own.
fn split_seconds(text: &str) -> Result<Duration, String> {
    let time = seconds(text)?;
    if time >= Duration::from_millis(100) { Ok(time) } else { Err("use 0.1 or more".into()) }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Whose {
    Outlive,
    Ros2,
}

pub(crate) fn run(args: &RecordArgs, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals()?;
    let selection = match args.all {
        true => Selection::all(),
        false => Selection::new(&args.topics, args.regex)?,
    };
    let selection = selection.except(&args.exclude, args.regex)?;
    let mut asked = Asked::of(&args.topics, args.regex, &selection);
    if !args.types.is_empty() && !matches!(args.profile, Whose::Ros2) {
        return Err(Failure::new(Code::Usage, "--types is for --profile ros2"));
    }
    let record_options = RecordOptions {
        reliable: args.reliable,
        history: args.history,
        profile: match args.profile {
            Whose::Outlive => Profile::Outlive,
            Whose::Ros2 => Profile::Ros2,
        },
        definitions: Definitions::read(&args.types)?,
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
    asked.must_be_names(&Domain::of_node(&node))?;
    let output = args.output.clone();
    let output = output.unwrap_or_else(|| format!("record_{}.mcap", file_stamp()).into());
    let mut recorder = Recorder::start(&node, selection, &output, record_options)?;
    asked.note_waiting(&recorder, &Domain::of_node(&node));
    let mut asking = match args.last {
        Some(_) => Some(Asking::new(&node, &args.save_service)?),
        None => None,
    };
    let is_last = args.last.is_some();
    let mut status = Status::new();
    let begun_ns = outlive::now_ns();
    let until = Deadline::after(args.how_long);
    let enough = |p: Progress| args.count.is_some_and(|count| p.messages >= count);
    while !os::stop_asked() && !until.has_passed() && !enough(recorder.progress()) {
        if let Err(e) = recorder.step(slice_of(until)) {
            return Err(cut_short(recorder.leave(), e, is_last));
        }
        for text in recorder.take_notes() {
            note(text);
        }
        if let Some(asking) = &mut asking {
            asking.look(&mut recorder)?;
        }
        let now = recorder.progress();
        let bar = match args.count {
            Some(count) => bar(now.messages, count) + "  ",
            None if args.how_long < Duration::MAX => {
                bar(outlive::now_ns() - begun_ns, args.how_long.as_nanos() as u64) + "  "
            }
            None => String::new(),
        };
        status.show([now.messages, now.payload_bytes], |rates| bar + &line(now, rates));
    }
    drop(status);
    if let Some(asking) = &mut asking {
        let written = asking.finish(&mut recorder);
        if let Err(e) = written {
            return Err(cut_short(recorder.leave(), e, is_last));
        }
    }
    let absent = asked.absent(&recorder);
    let done = recorder.finish_or_count().map_err(|(e, done)| cut_short(*done, e, is_last))?;
    let mut lost = if done.lost > 0 { format!(", {} lost", done.lost) } else { String::new() };
    if done.left_out > 0 {
        lost += &format!(", {} left out", done.left_out);
    }
    if done.topics_left_out > 0 {
        lost += &format!(", {} left out", count(done.topics_left_out, "topic"));
    }
    if done.missed > 0 {
        lost += &format!(", {} never joined", count(done.missed, "topic"));
    }
    if done.unread > 0 {
        lost += &format!(", {} with publishers not read", count(done.unread, "topic"));
    }
    if done.corrupt > 0 {
        lost += &format!(", {} corrupt", count(done.corrupt, "publisher"));
    }
    let files = match (done.files, args.last) {
        (0, _) => "no file".into(),
        (1, None) if args.output.is_none() => output.display().to_string(),
        (1, _) => "a file".into(),
        (n, _) => format!("{n} files"),
    };
    note(format_args!(
        "recorded {} of {} ({}){lost} into {files} of {}",
        count(done.messages, "message"),
        count(done.topics as u64, "topic"),
        bytes(done.payload_bytes),
        bytes(done.file_bytes),
    ));
    asked.note_end(&absent, &done);
    Ok(code(&done, !absent.is_empty()))
}

/// As of `topic echo`: corrupt comes before absent, and absent before lost.
fn code(done: &Progress, is_absent: bool) -> Code {
    let lost = done.lost + done.left_out + done.topics_left_out + done.missed + done.unread;
    match lost {
        _ if done.corrupt > 0 => Code::Corrupt,
        _ if is_absent => Code::NotFound,
        0 => Code::Done,
        _ => Code::Loss,
    }
}

/// Says what is in the files before the failure.
fn cut_short(done: Progress, error: Error, is_last: bool) -> Failure {
    let unwritten = match done.unwritten {
        0 => String::new(),
        n => format!(", {n} not written"),
    };
    note(format_args!(
        "recorded {} of {}, {} lost{unwritten}; the files have {} and no index: \
         'outlive recover' writes one",
        count(done.messages, "message"),
        count(done.topics as u64, "topic"),
        done.lost,
        bytes(done.file_bytes),
    ));
    match error {
        Error::Io { ref source, .. } if source.kind() == ErrorKind::FileTooLarge => {
            let remedy = match is_last {
                true => "a shorter --last or a smaller --memory-bytes makes a smaller file",
                false => "--split-bytes begins the next file before that",
            };
            Failure::new(Code::NoRoom, format!("{error}: {remedy}"))
        }
        error => error.into(),
    }
}

fn line(now: Progress, [messages_per_s, bytes_per_s]: [u64; 2]) -> String {
    format!(
        "{} ({messages_per_s}/s), {} ({}/s) into {}, {} lost",
        count(now.messages, "message"),
        bytes(now.payload_bytes),
        bytes(bytes_per_s),
        match now.memory_bytes {
            0 => bytes(now.file_bytes),
            memory => format!("{} of memory", bytes(memory)),
        },
        now.lost,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It named an option that --last excludes.
    #[test]
    fn a_file_at_its_limit_of_size_names_options_that_help() {
        let told = |last: bool| {
            let (what, path) = ("write", "box_000.mcap".into());
            let error = Error::Io { what, path, source: ErrorKind::FileTooLarge.into() };
            cut_short(Progress::default(), error, last).to_string()
        };
        assert!(told(false).contains("--split-bytes"), "{}", told(false));
        let last = told(true);
        assert!(last.contains("--last") && last.contains("--memory-bytes"), "{last}");
        assert!(!last.contains("--split-bytes"), "{last}");
    }

    #[test]
    fn what_is_not_in_the_file_is_in_the_code() {
        let ends = |change: fn(&mut Progress)| {
            let mut done = Progress::default();
            change(&mut done);
            code(&done, false)
        };
        assert_eq!(ends(|_| ()), Code::Done);
        let losses: [fn(&mut Progress); 3] = [|p| p.missed = 1, |p| p.unread = 1, |p| p.lost = 1];
        for change in losses {
            assert_eq!(ends(change), Code::Loss);
        }
        assert_eq!(ends(|p| (p.corrupt, p.lost) = (1, 1)), Code::Corrupt);
        let mut done = Progress::default();
        done.lost = 1;
        assert_eq!(code(&done, true), Code::NotFound);
        done.corrupt = 1;
        assert_eq!(code(&done, true), Code::Corrupt);
    }
}
