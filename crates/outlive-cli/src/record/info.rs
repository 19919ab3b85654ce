//! `outlive info`: what a file of messages has in it.

use std::path::PathBuf;

use clap::Args;
use outlive_record::Recording;
use serde::Serialize;
use std::collections::BTreeMap;

use super::seconds_text;
use crate::exit::{CODES_HELP, Outcome};
use crate::output::{bytes, print, print_json, table};

const EXAMPLES: &str = "\
Examples:
  outlive info run.mcap
  outlive info run.mcap --json | jq .topics";

/// Show what a recording has in it, also one that nobody finished.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct InfoArgs {
    /// MCAP file, or the directory of a bag of ROS 2.
    file: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Info {
    file: String,
    file_bytes: u64,
    finished: bool,
    library: String,
    profile: String,
    start_ns: u64,
    end_ns: u64,
    chunks: u64,
    messages: u64,
    lost: u64,
    losses: BTreeMap<String, u64>,
    topics: Vec<Topic>,
}

#[derive(Serialize)]
struct Topic {
    name: String,
    r#type: String,
    encoding: &'static str,
    ros: Option<String>,
    depth: Option<u64>,
    publisher: String,
    messages: u64,
}

pub(crate) fn run(args: &InfoArgs) -> Outcome {
    let recording = Recording::open(&args.file)?;
    let topic = |s: &outlive_record::RecordedSource| Topic {
        name: s.source.topic.clone(),
        r#type: s.source.payload_type.name().into(),
        encoding: s.source.payload_type.encoding().as_str(),
        ros: s.source.ros_name().map(String::from),
        depth: s.source.depth,
        publisher: s.source.publisher.clone(),
        messages: s.messages,
    };
    let info = Info {
        file: args.file.display().to_string(),
        file_bytes: recording.file_bytes,
        finished: recording.finished,
        library: recording.library.clone(),
        profile: recording.profile.clone(),
        start_ns: recording.start_ns,
        end_ns: recording.end_ns,
        chunks: recording.chunks,
        messages: recording.messages,
        lost: recording.lost(),
        losses: recording.losses.clone(),
        topics: recording.sources.iter().map(topic).collect(),
    };
    if args.json {
        return print_json(&info);
    }
    let end = match info.finished {
        true => "finished",
        false => "not finished: its recorder was killed, or still writes",
    };
    let lost = if info.lost > 0 { format!(", {} lost", info.lost) } else { String::new() };
    let mut text = format!(
        "{}: {}, {end}\nby {}\n{} messages{lost} in {}\n\n",
        info.file,
        bytes(info.file_bytes),
        info.library,
        info.messages,
        seconds_text(recording.duration_ns()),
    );
    let head = ["TOPIC", "TYPE", "ENCODING", "DEPTH", "PUBLISHER", "MESSAGES", "LOST"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for t in &info.topics {
        let lost = info.losses.get(&format!("{} {}", t.name, t.publisher)).copied().unwrap_or(0);
        rows.push(vec![
            t.name.clone(),
            t.ros.as_ref().unwrap_or(&t.r#type).clone(),
            if t.ros.is_some() { "cdr".into() } else { t.encoding.into() },
            t.depth.map_or("-".into(), |d| d.to_string()),
            if t.publisher.is_empty() { "-".into() } else { t.publisher.clone() },
            t.messages.to_string(),
            lost.to_string(),
        ]);
    }
    text += &table(&rows, &[3, 5, 6]);
    print(&text)
}
