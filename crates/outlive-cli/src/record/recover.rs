//! `outlive recover`: a whole file out of what can be read of a damaged or unfinished one.

use std::path::{Path, PathBuf};

use clap::Args;
use outlive_record::{Recording, recover_watched};

use super::{Believed, How};
use crate::exit::{CODES_HELP, Code, Outcome, note};
use crate::output::count;
use crate::status::{Status, bar};

const EXAMPLES: &str = "\
Examples:
  outlive recover run.mcap                           into run.recovered.mcap
  outlive recover run.mcap --output whole.mcap
  outlive recover run.mcap --output small.mcap --compression zstd";

/// Write the readable part of a damaged or unfinished recording to a new, complete file.
///
/// Code 3 if something could not be read: it says what.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct RecoverArgs {
    /// MCAP file, or directory of a ROS 2 bag.
    file: PathBuf,
    /// File to write [default: FILE with .recovered before its extension].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file.
    #[arg(long)]
    overwrite: bool,
    /// Compression; zstd is somewhat smaller and several times slower.
    #[arg(long, value_name = "HOW", default_value = "lz4")]
    compression: How,
    #[command(flatten)]
    believed: Believed,
}

/// `run.recovered.mcap`, and `bag.recovered.mcap` for a directory.
fn beside(path: &Path) -> PathBuf {
    // `.` has no name of its own.
    let named = path.file_name().is_none().then(|| path.canonicalize().ok()).flatten();
    let path = named.as_deref().unwrap_or(path);
    let (stem, ending) = match path.is_dir() {
        true => (path.file_name(), Some("mcap".as_ref())),
        false => (path.file_stem(), path.extension()),
    };
    let mut name = stem.unwrap_or_default().to_owned();
    name.push(".recovered");
    if let Some(ending) = ending {
        name.push(".");
        name.push(ending);
    }
    path.with_file_name(name)
}

pub(crate) fn run(args: &RecoverArgs) -> Outcome {
    let recording = Recording::open_within(&args.file, args.believed.limits(), true)?;
    let output = args.output.clone().unwrap_or_else(|| beside(&recording.path));
    let (all, mut status) = (recording.messages, Status::new());
    let watch = |done| {
        status.show([done, 0], |[rate, _]| {
            format!("{}  {done} of {all} messages ({rate}/s)", bar(done, all))
        });
    };
    let how = args.compression.into();
    let done = recover_watched(&recording, &output, how, args.overwrite, watch)?;
    drop(status);
    note(format_args!("{} into {}", count(done.messages, "message"), output.display()));
    if done.damage.is_some() {
        note(&done.damage);
    }
    Ok(if done.damage.is_loss() { Code::Loss } else { Code::Done })
}
