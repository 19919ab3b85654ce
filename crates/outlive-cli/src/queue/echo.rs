//! `outlive queue echo`: what a queue holds, without receiving it.

use std::collections::HashMap;
use std::time::Duration;

use clap::{Args, value_parser};
use outlive::Domain;
use outlive::queue::{ProducerId, Unread};
use serde_json::json;

use super::named::find;
use crate::clock::local;
use crate::complete;
use crate::exit::{CODES_HELP, Code, Failure, Outcome};
use crate::options::{DomainOptions, sleep_until};
use crate::os;
use crate::output::{Halt, Output, bytes, json_line};
use crate::topic::decode::Decoder;

const EXAMPLES: &str = "\
Examples:
  outlive queue echo /robot/commands              what waits there
  outlive queue echo /jobs --count 3 --json
  outlive queue echo /jobs --follow               and what comes, until Ctrl-C

A line: producer (node.port), local time in a queue with time stamps, size, payload; producer by
producer, oldest first.";

/// Print the unread messages of a queue without receiving them.
///
/// Looks from outside: the consumer still gets each of them. --follow does not show messages that
/// the consumer receives within 50 ms.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct EchoArgs {
    /// Queue, like /robot/commands.
    #[arg(add = complete::queues())]
    name: String,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
    /// Show whole payloads, not only their start.
    #[arg(long)]
    full: bool,
    /// Keep printing new messages, until a signal.
    #[arg(long, short)]
    follow: bool,
    /// End after N messages.
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Between two looks.
const EVERY: Duration = Duration::from_millis(50);
/// Messages of one look.
const LOOK_MAX: usize = 100_000;

pub(super) fn run(args: &EchoArgs, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals()?;
    let domain = options.domain()?;
    domain.unread(&args.name, 0)?;
    let queue = find(&domain, &args.name)?;
    let decoder = Decoder::of_type(&queue.payload_type(), args.full);
    let mut echo = Echo {
        args,
        decoder,
        output: Output::standard()?,
        shown: HashMap::new(),
        left: args.count,
    };
    match echo.pump(&domain) {
        Ok(()) | Err(Halt::Quiet) => Ok(Code::Done),
        Err(Halt::Failed(failure)) => Err(failure),
    }
}

struct Echo<'a> {
    args: &'a EchoArgs,
    decoder: Decoder,
    output: Output,
    /// The place of the newest message of each producer that was shown.
    shown: HashMap<ProducerId, (u64, u64)>,
    left: Option<u64>,
}

impl Echo<'_> {
    fn pump(&mut self, domain: &Domain) -> Result<(), Halt> {
        loop {
            let Some(unread) = domain.unread(&self.args.name, LOOK_MAX)? else {
                let message = format!("queue {} is gone", self.args.name);
                return Err(Failure::new(Code::NotFound, message).into());
            };
            for message in &unread {
                if self.is_new(message) && self.left != Some(0) {
                    self.show(message)?;
                }
            }
            self.output.flush()?;
            if !self.args.follow || self.left == Some(0) || os::stop_asked() {
                return Ok(());
            }
            sleep_until(outlive::Deadline::after(EVERY));
        }
    }

    /// Whether it lies behind all that was shown of its producer.
    fn is_new(&self, message: &Unread) -> bool {
        self.shown.get(&message.producer).is_none_or(|shown| message.place > *shown)
    }

    fn show(&mut self, message: &Unread) -> Result<(), Halt> {
        let Unread { producer, place, timestamp_ns, payload, .. } = message;
        self.shown.insert(*producer, *place);
        self.left = self.left.map(|left| left - 1);
        let size = payload.len();
        let line = if self.args.json {
            let (key, value, whole) = self.decoder.json(payload);
            json_line(&json!({
                "producer": { "node": producer.node.get(), "port": producer.port },
                "timestamp_ns": timestamp_ns, "bytes": size, key: value, "whole": whole
            }))
        } else {
            let time = timestamp_ns.map_or(String::new(), |ns| local(ns) + "  ");
            let (size, text) = (bytes(size as u64), self.decoder.text(payload));
            format!("{producer}  {time}{size}  {text}")
        };
        self.output.write(line.as_bytes())?;
        self.output.write(b"\n")
    }
}
