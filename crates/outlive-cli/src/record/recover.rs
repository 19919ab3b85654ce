//! `outlive recover`: a whole file out of what can be read of a damaged or unfinished one.

use std::path::PathBuf;

use clap::Args;
use outlive_record::{Recording, recover};

use super::{Believed, How};
use crate::exit::{CODES_HELP, Code, Outcome, note};

const EXAMPLES: &str = "\
Examples:
  outlive recover run.mcap                           into run.recovered.mcap
  outlive recover run.mcap --output whole.mcap
  outlive recover run.mcap --output small.mcap --compression zstd";

/// Write what can be read of a damaged or unfinished recording into a new, whole file.
///
/// Code 3 when something could not be read: it says what.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct RecoverArgs {
    /// MCAP file, or the directory of a bag of ROS 2.
    file: PathBuf,
    /// File to write [default: FILE with .recovered before its ending].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it is there.
    #[arg(long)]
    overwrite: bool,
    /// How to compress: zstd takes somewhat less room and several times more of a processor.
    #[arg(long, value_name = "HOW", default_value = "lz4")]
    compression: How,
    #[command(flatten)]
    believed: Believed,
}

pub(crate) fn run(args: &RecoverArgs) -> Outcome {
    let recording = Recording::open_within(&args.file, args.believed.limits(), true)?;
    let output = args.output.clone().unwrap_or_else(|| {
        let ending = recording.path.extension().unwrap_or_default().to_string_lossy().into_owned();
        recording.path.with_extension(format!("recovered.{ending}"))
    });
    let done = recover(&recording, &output, args.compression.into(), args.overwrite)?;
    note(format_args!("{} messages into {}", done.messages, output.display()));
    if done.damage.is_some() {
        note(&done.damage);
        return Ok(Code::Loss);
    }
    Ok(Code::Done)
}
