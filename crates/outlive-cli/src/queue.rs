//! `outlive queue`: queues, their lanes, sending on one, and what is in it.

mod echo;
mod named;

use std::time::Duration;

use clap::{Args, Subcommand};
use outlive::queue;
use serde::Serialize;

use crate::absent::note_if_nobody;
use crate::complete;
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::options::{DomainOptions, seconds};
use crate::output::{bytes, print, print_json, table};
use crate::value::{input, payload};
use named::find;

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    List(ListArgs),
    Send(SendArgs),
    Echo(echo::EchoArgs),
}

/// List all queues: type, consumer, producers, unread messages.
///
/// Producers are counted as alive, closed (left cleanly) and dead; the lanes of the latter two stay
/// until they are drained.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  outlive queue list\n  \
    outlive queue list --json | jq '.[] | select(.consumer == null and .unread > 0)'")]
pub(crate) struct ListArgs {
    /// Print JSON, with every producer's lane.
    #[arg(long)]
    json: bool,
}

/// Send a message on an existing queue.
#[derive(Args, Debug)]
#[command(after_help = format!("{SEND_EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct SendArgs {
    /// Queue, like /robot/commands.
    #[arg(add = complete::queues())]
    name: String,
    /// Message: text for a queue of bytes, else JSON: a number, an array, an object with all fields
    /// of a described type [default: standard input].
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    /// Time to wait for a consumer and for room.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0")]
    timeout: Duration,
}

const SEND_EXAMPLES: &str = "\
Examples:
  outlive queue send /robot/commands 'go home'
  outlive queue send /setpoints '[0.1, 0.2, 0.3]'
  outlive queue send /goals '{\"position\": [1, 2], \"id\": 7}' --timeout 1
  outlive queue send /firmware <image.bin";

/// What is said of a queue.
#[derive(Serialize)]
pub(crate) struct Row {
    name: String,
    r#type: String,
    encoding: &'static str,
    element_bytes: usize,
    stamped: bool,
    consumer: Option<u64>,
    unread: u64,
    memory_bytes: u64,
    lanes: Vec<Lane>,
}

#[derive(Serialize)]
struct Lane {
    node: u64,
    port: u64,
    state: &'static str,
    unread: u64,
    received: u64,
    memory_bytes: u64,
}

impl Row {
    pub(crate) fn of(info: queue::Info) -> Self {
        let lanes: Vec<_> = info
            .lanes
            .iter()
            .map(|lane| Lane {
                node: lane.producer.node.get(),
                port: lane.producer.port,
                state: match (lane.closed, lane.alive) {
                    (true, _) => "closed",
                    (false, true) => "alive",
                    (false, false) => "dead",
                },
                unread: lane.unread,
                received: lane.received,
                memory_bytes: lane.memory_bytes,
            })
            .collect();
        Self {
            r#type: crate::topic::type_text(&info.type_name, info.encoding),
            name: info.name,
            encoding: info.encoding.as_str(),
            element_bytes: info.element_bytes,
            stamped: info.stamped,
            consumer: info.consumer.map(|node| node.get()),
            unread: lanes.iter().map(|l| l.unread).sum(),
            memory_bytes: lanes.iter().map(|l| l.memory_bytes).sum(),
            lanes,
        }
    }

    fn cells(&self) -> Vec<String> {
        let count = |state| self.lanes.iter().filter(|l| l.state == state).count();
        vec![
            self.name.clone(),
            self.r#type.clone(),
            if self.stamped { "yes" } else { "no" }.into(),
            self.consumer.map_or("-".into(), |node| node.to_string()),
            format!("{}/{}/{}", count("alive"), count("closed"), count("dead")),
            self.unread.to_string(),
            bytes(self.memory_bytes),
        ]
    }
}

const HEAD: [&str; 7] =
    ["QUEUE", "TYPE", "STAMPED", "CONSUMER", "PRODUCERS a/c/d", "UNREAD", "MEMORY"];

pub(crate) fn run(command: &QueueCommand, options: &DomainOptions) -> Outcome {
    match command {
        QueueCommand::List(args) => list(args, options),
        QueueCommand::Send(args) => send(args, options),
        QueueCommand::Echo(args) => echo::run(args, options),
    }
}

fn list(args: &ListArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    note_if_nobody(&domain);
    let rows: Vec<_> = domain.queues()?.into_iter().map(Row::of).collect();
    if args.json {
        return print_json(&rows);
    }
    let mut cells = vec![HEAD.map(String::from).to_vec()];
    cells.extend(rows.iter().map(Row::cells));
    print(&table(&cells, &[3, 5, 6]))
}

fn send(args: &SendArgs, options: &DomainOptions) -> Outcome {
    let node = options.node("queue-send")?;
    // An illegal name is one thing, a queue that nobody has made another.
    let builder = node.queue::<[u8]>(&args.name)?;
    let queue = find(&options.domain()?, &args.name)?;
    let of = queue.payload_type();
    let message = payload(&of, input(args.value.as_ref())?)?;
    let mut producer = builder.of_type(&of).producer()?;
    // Without a consumer there is nobody to send to.
    if !producer.wait_for_consumer(args.timeout)? {
        let message = format!("queue {} has no consumer", queue.name);
        return Err(Failure::new(Code::NotFound, message));
    }
    producer.send_timeout(&message, args.timeout)?;
    note("sent 1 message");
    Ok(Code::Done)
}
