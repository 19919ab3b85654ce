//! `outlive service`: services, who is there, and asking one.

use std::time::Duration;

use clap::{Args, Subcommand};
use outlive::service;
use outlive::{Deadline, ErrorKind, PayloadType};
use serde::Serialize;
use serde_json::json;

use crate::absent::{missing, note_if_nobody};
use crate::complete;
use crate::exit::{CODES_HELP, Code, Failure, Outcome, note};
use crate::options::{DomainOptions, seconds};
use crate::output::{bytes, json_line, print, print_json, table};
use crate::topic::decode::Decoder;
use crate::value::{input, payload, type_text};

#[derive(Debug, Subcommand)]
pub(crate) enum ServiceCommand {
    List(ListArgs),
    Call(CallArgs),
}

/// List all services: types, server, clients, unread requests.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  outlive service list\n  \
    outlive service list --json | jq '.[] | select(.server == null)'")]
pub(crate) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Call a service and print its response, a line for each part.
#[derive(Args, Debug)]
#[command(after_help = format!("{CALL_EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct CallArgs {
    /// Service, like /planner/plan.
    #[arg(add = complete::services())]
    name: String,
    /// Request: text for a service that takes bytes, else JSON: a number, an array, an object with
    /// all fields of a described type [default: standard input].
    #[arg(allow_hyphen_values = true)]
    value: Option<String>,
    /// Time to wait for a server and its response.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    timeout: Duration,
    /// Print a JSON object for each part.
    #[arg(long)]
    json: bool,
    /// Print whole parts, not only their start.
    #[arg(long)]
    full: bool,
}

const CALL_EXAMPLES: &str = "\
Examples:
  outlive service call /planner/plan '{\"start\": [0, 0], \"goal\": [1, 2.5]}'
  outlive service call /arm/stop null --timeout 0.5
  outlive service call /ocr --json <page.png";

/// What is said of a service.
#[derive(Serialize)]
pub(crate) struct Row {
    name: String,
    request: Payload,
    response: Payload,
    server: Option<u64>,
    clients: Vec<u64>,
    unread: u64,
    memory_bytes: u64,
}

#[derive(Serialize)]
struct Payload {
    r#type: String,
    encoding: &'static str,
    element_bytes: usize,
}

impl Payload {
    fn of(of: &PayloadType) -> Self {
        let encoding = of.encoding().as_str();
        Self { r#type: type_text(of), encoding, element_bytes: of.size() }
    }
}

impl Row {
    pub(crate) fn of(info: service::Info) -> Self {
        Self {
            request: Payload::of(&info.request),
            response: Payload::of(&info.response),
            name: info.name,
            server: info.server.map(|node| node.get()),
            clients: info.clients.iter().map(|node| node.get()).collect(),
            unread: info.unread,
            memory_bytes: info.memory_bytes,
        }
    }

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.request.r#type.clone(),
            self.response.r#type.clone(),
            self.server.map_or("-".into(), |node| node.to_string()),
            self.clients.len().to_string(),
            self.unread.to_string(),
            bytes(self.memory_bytes),
        ]
    }
}

const HEAD: [&str; 7] = ["SERVICE", "REQUEST", "RESPONSE", "SERVER", "CLIENTS", "UNREAD", "MEMORY"];

pub(crate) fn run(command: &ServiceCommand, options: &DomainOptions) -> Outcome {
    match command {
        ServiceCommand::List(args) => list(args, options),
        ServiceCommand::Call(args) => call(args, options),
    }
}

fn list(args: &ListArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    note_if_nobody(&domain);
    let rows: Vec<_> = domain.services()?.into_iter().map(Row::of).collect();
    if args.json {
        return print_json(&rows);
    }
    let mut cells = vec![HEAD.map(String::from).to_vec()];
    cells.extend(rows.iter().map(Row::cells));
    print(&table(&cells, &[3, 4, 5, 6]))
}

fn call(args: &CallArgs, options: &DomainOptions) -> Outcome {
    let node = options.node("service-call")?;
    // An illegal name is one thing, a service that nobody has made another.
    let builder = node.service::<[u8], [u8]>(&args.name)?;
    let domain = options.domain()?;
    let services = domain.services()?;
    // The same name with and without its leading slash.
    let bare = |name: &str| name.trim_start_matches('/').to_owned();
    let Some(info) = services.iter().find(|s| bare(&s.name) == bare(&args.name)) else {
        let names = services.iter().map(|s| s.name.clone());
        return Err(missing(&domain, "service", &args.name, names));
    };
    let request = payload(&info.request, input(args.value.as_ref())?)?;
    let shown = &info.response;
    let decoder = Decoder::of_type(shown, args.full);
    let deadline = Deadline::after(args.timeout);
    let mut client = builder.of_types(&info.request, shown).client()?;
    if !client.wait_for_server(args.timeout)? {
        let message = format!("service {} has no server", info.name);
        return Err(Failure::new(Code::NotFound, message));
    }
    let ticket = client.send_until(&request, deadline)?;
    loop {
        let reply = client.receive_for(ticket, deadline)?;
        let last = reply.is_last();
        let response = match reply.into_response() {
            Ok(response) => response,
            // The server's own words, without ours around them.
            Err(e) if e.kind() == ErrorKind::Refused => {
                return Err(Failure::new(Code::Failed, e.remedy()));
            }
            Err(e) => return Err(e.into()),
        };
        if args.json {
            let (key, value, whole) = decoder.json(&response);
            let line = json!({ "bytes": response.len(), "last": last, key: value, "whole": whole });
            print(&(json_line(&line) + "\n"))?;
        } else {
            print(&format!("{}\n", decoder.text(&response)))?;
        }
        if last {
            break;
        }
    }
    note(format_args!("service {} answered", info.name));
    Ok(Code::Done)
}
