//! `outlive info`: what a file of messages has in it.

use clap::Args;
use serde::Serialize;
use std::collections::BTreeMap;

use super::Input;
use crate::clock::duration_ns;
use crate::exit::{CODES_HELP, Code, Outcome, note, one_line};
use crate::output::{bytes, count, print, print_json, table};

const EXAMPLES: &str = "\
Examples:
  outlive info run.mcap
  outlive info run.mcap --json | jq .topics
  outlive info run.mcap --check                      look for damage";

/// Show the contents of a recording, including an unfinished one.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct InfoArgs {
    #[command(flatten)]
    input: Input,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Read the whole file, even with an index, and report damage.
    #[arg(long)]
    check: bool,
}

#[derive(Serialize)]
struct Info {
    file: String,
    /// In order.
    files: Vec<String>,
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
    damage: Option<String>,
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
    let recording = args.input.open(args.check)?;
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
        file: args.input.path().display().to_string(),
        files: recording.files.iter().map(|file| file.display().to_string()).collect(),
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
        damage: recording.damage.is_some().then(|| recording.damage.to_string()),
        topics: recording.sources.iter().map(topic).collect(),
    };
    let code = if info.damage.is_some() { Code::Corrupt } else { Code::Done };
    if args.json {
        return print_json(&info).map(|_| code);
    }
    let end = match info.finished {
        true => "finished",
        false => "unfinished: its recorder was killed, or is still writing",
    };
    let lost = if info.lost > 0 { format!(", {} lost", info.lost) } else { String::new() };
    let files = match info.files.len() {
        1 => String::new(),
        n => format!(" in {n} files"),
    };
    let mut text = format!(
        "{}: {}{files}, {end}\nby {}\n{}{lost} in {}\n\n",
        info.file,
        bytes(info.file_bytes),
        one_line(&info.library),
        count(info.messages, "message"),
        duration_ns(recording.duration_ns()),
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
    print(&text)?;
    if let Some(damage) = &info.damage {
        note(damage);
    }
    Ok(code)
}
