//! `outlive bridge`: hands over to `outlive-bridge`, which has the network library inside.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::exit::Outcome;
use crate::options::DomainOptions;
use crate::program;

const PROGRAM: &str = "outlive-bridge";

/// Carry topics, queues and services to other machines.
///
/// Runs outlive-bridge, found beside this program or in PATH. It is a separate program, so that
/// nothing else depends on Zenoh.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  outlive bridge robot-bridge.toml --check        check the file
  outlive bridge robot-bridge.toml --stats        with statistics

A file:
  namespace = \"fleet\"
  connect = [\"tcp/10.0.0.1:7447\"]
  [[topic]]
  pattern = \"/camera/**\"
  rate_hz = 10.0

All keys: docs/book/bridge.md")]
pub(crate) struct BridgeArgs {
    /// What to carry, where, and how.
    file: PathBuf,
    /// Only check the file.
    #[arg(long)]
    check: bool,
    /// Print statistics regularly.
    #[arg(long)]
    stats: bool,
    /// .msg and .srv files of your own types for ROS 2, or their directory; may be repeated.
    #[arg(long, value_name = "PATH")]
    types: Vec<PathBuf>,
}

pub(crate) fn run(args: &BridgeArgs, options: &DomainOptions) -> Outcome {
    let mut command = Command::new(program::find(PROGRAM));
    command.arg(&args.file);
    for (wanted, option) in [(args.check, "--check"), (args.stats, "--stats")] {
        if wanted {
            command.arg(option);
        }
    }
    for path in &args.types {
        command.arg("--types").arg(path);
    }
    Err(program::become_it(PROGRAM, command, "cargo install --path apps/bridge", options))
}
