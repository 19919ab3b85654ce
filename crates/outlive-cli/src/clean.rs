//! `outlive clean`: remove what dead processes left behind.

use clap::Args;
use outlive::CleanReport;
use serde::Serialize;

use crate::exit::Outcome;
use crate::options::DomainOptions;
use crate::output::{bytes, count, print, print_json};

/// Remove files that dead processes left behind and no live one needs.
///
/// Safe at any time. It leaves alone what a live or stopped process uses, and what a dead publisher
/// sent while its topic has live members. When nobody is left, the domain's directory goes too.
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
    queue_files: usize,
    queues: usize,
    service_files: usize,
    services: usize,
    locks: usize,
    realtime_files: usize,
    bytes: u64,
    live_nodes: usize,
    domain_removed: bool,
}

pub(crate) fn run(args: &CleanArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    // Of another version while its nodes live: then it stays, and with them what cannot be read.
    let version = domain.layout_version().ok().flatten();
    let strange = version.filter(|version| *version != outlive::LAYOUT_VERSION);
    let done = domain.clean()?;
    if args.json {
        return print_json(&Report {
            node_files: done.node_files,
            topic_files: done.topic_files,
            topics: done.topics,
            queue_files: done.queue_files,
            queues: done.queues,
            service_files: done.service_files,
            services: done.services,
            locks: done.locks,
            realtime_files: done.realtime_files,
            bytes: done.bytes,
            live_nodes: done.live_nodes,
            domain_removed: done.domain_removed,
        });
    }
    let removed = removed(&done);
    let left = match (done.domain_removed, done.live_nodes) {
        (true, _) => format!("nobody is left, {} is gone", domain.dir().display()),
        (false, 0) if !domain.dir().exists() => "there is no such domain".into(),
        (false, 0) => format!("nobody is left, but {} is not empty", domain.dir().display()),
        (false, n) => format!("{} left alone", count(n as u64, "live node")),
    };
    let strange = strange.map_or_else(String::new, |version| {
        let ours = outlive::LAYOUT_VERSION;
        let remedy = match done.live_nodes {
            0 => "removed as a whole",
            _ => {
                "its topics, queues and locks cannot be read here: stop its nodes and clean again, \
                 or use the `outlive` of that version"
            }
        };
        format!("it has layout version {version}, this program {ours}: {remedy}\n")
    });
    print(&format!("{removed}; {left}\n{strange}"))
}

/// What went, kind by kind.
fn removed(done: &CleanReport) -> String {
    let kinds = [
        (done.node_files, "node file"),
        (done.topic_files, "topic file"),
        (done.topics, "topic"),
        (done.queue_files, "queue file"),
        (done.queues, "queue"),
        (done.service_files, "service file"),
        (done.services, "service"),
        (done.locks, "lock"),
        (done.realtime_files, "real-time file"),
    ];
    let went = kinds.iter().filter(|(count, _)| *count > 0);
    let went =
        went.map(|(count, kind)| format!("{count} {kind}{}", if *count == 1 { "" } else { "s" }));
    let went: Vec<_> = went.collect();
    match went.is_empty() && done.bytes == 0 {
        true => "nothing to remove".into(),
        false if went.is_empty() => format!("removed {}", bytes(done.bytes)),
        false => format!("removed {}: {}", went.join(", "), bytes(done.bytes)),
    }
}
