//! `outlive clean`: remove what dead processes left behind.

use clap::Args;
use serde::Serialize;

use crate::exit::Outcome;
use crate::output::{print, print_json};
use crate::settings::Settings;

/// Remove everything that dead processes left behind and no live one needs.
///
/// Safe at any time: what a live or stopped process uses is left alone, and so is what a dead
/// publisher sent while a topic has live members that may still read it. When nobody is left the
/// domain itself goes.
#[derive(Args, Debug)]
pub(crate) struct CleanArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    node_files: usize,
    topic_files: usize,
    topics: usize,
    live_nodes: usize,
    domain_removed: bool,
}

pub(crate) fn run(args: &CleanArgs, settings: &Settings) -> Outcome {
    let domain = settings.domain()?;
    let done = domain.clean()?;
    if args.json {
        return print_json(&Report {
            node_files: done.node_files,
            topic_files: done.topic_files,
            topics: done.topics,
            live_nodes: done.live_nodes,
            domain_removed: done.domain_removed,
        });
    }
    let removed = match done.node_files + done.topic_files {
        0 => "nothing to remove".into(),
        _ => format!(
            "removed {} node files and {} files of topics, {} whole topics",
            done.node_files, done.topic_files, done.topics
        ),
    };
    let left = match (done.domain_removed, done.live_nodes) {
        (true, _) => format!("nobody is left, {} is gone", domain.dir().display()),
        (false, 0) if !domain.dir().exists() => "there is no such domain".into(),
        (false, 0) => format!("nobody is left, yet {} is not empty", domain.dir().display()),
        (false, n) => format!("{n} live nodes go on"),
    };
    print(&format!("{removed}; {left}\n"))
}
