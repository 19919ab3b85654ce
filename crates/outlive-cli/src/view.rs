//! `outlive view`: hands over to `outlive-view`, which has the server for Foxglove inside.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::exit::Outcome;
use crate::options::DomainOptions;
use crate::program;

const PROGRAM: &str = "outlive-view";

/// Show topics live in Foxglove, or write them into a file for Rerun.
///
/// Foxglove connects to ws://127.0.0.1:8765 (Open connection, Foxglove WebSocket). A topic is read
/// only while it is viewed, and never delays its publisher. Runs outlive-view, found beside this
/// program or in PATH.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  outlive view                                    every topic, for viewers on this machine
  outlive view '/camera/*' /arm/state --rate 10   these, ten messages a second
  outlive view --rate '/camera/*=5' --rate /arm/state=inf
  outlive view --bind 0.0.0.0                     for viewers on other machines: no password!
  outlive view --rerun run.rrd                    write a file for the Rerun viewer

A name may have * (not over a /), ** and ?. More: docs/book/viewing.md")]
pub(crate) struct ViewArgs {
    /// Topics, like /camera/front or '/arm/*'; without any, every topic.
    topics: Vec<String>,
    /// Read TOPICS as regular expressions for the whole name.
    #[arg(long, requires = "topics")]
    regex: bool,
    /// Maximum rate per publisher, newest first, inf for all; may be repeated for other topics
    /// [default: 30].
    #[arg(long, value_name = "[TOPICS=]HZ")]
    rate: Vec<String>,
    /// Address to listen at [default: 127.0.0.1].
    #[arg(long, value_name = "ADDRESS")]
    bind: Option<IpAddr>,
    /// Port to listen at; 0 takes a free one [default: 8765].
    #[arg(long)]
    port: Option<u16>,
    /// Also admit pages of this origin; may be repeated, '*' for all.
    #[arg(long, value_name = "URL")]
    origin: Vec<String>,
    /// Write a file for Rerun instead.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bind", "port", "origin"])]
    rerun: Option<PathBuf>,
    /// Replace an existing FILE.
    #[arg(long, requires = "rerun")]
    overwrite: bool,
    /// Print statistics every second.
    #[arg(long)]
    stats: bool,
}

pub(crate) fn run(args: &ViewArgs, options: &DomainOptions) -> Outcome {
    let mut command = Command::new(program::find(PROGRAM));
    command.args(&args.topics);
    let flags = [(args.regex, "--regex"), (args.stats, "--stats"), (args.overwrite, "--overwrite")];
    command.args(flags.iter().filter(|(wanted, _)| *wanted).map(|(_, option)| option));
    command.args(args.rate.iter().flat_map(|rate| ["--rate", rate]));
    command.args(args.origin.iter().flat_map(|origin| ["--origin", origin]));
    let (bind, port) = (args.bind.map(|b| b.to_string()), args.port.map(|p| p.to_string()));
    for (option, value) in [("--bind", bind), ("--port", port)] {
        command.args(value.iter().flat_map(|value| [option, value]));
    }
    if let Some(file) = &args.rerun {
        command.arg("--rerun").arg(file);
    }
    Err(program::become_it(PROGRAM, command, "cargo install --path apps/view", options))
}
