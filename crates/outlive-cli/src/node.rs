//! `outlive node`: the processes of a domain, and what each of them does there.

use std::fmt::Write;

use clap::{Args, Subcommand};
use outlive::Domain;
use serde::Serialize;

use crate::absent::{missing, note_if_nobody};
use crate::clock::{duration_ns, local};
use crate::complete;
use crate::exit::{CODES_HELP, Code, Failure, Outcome};
use crate::look::{Look, Node};
use crate::options::DomainOptions;
use crate::output::{Paint, bytes, print, print_json, table};

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    List(ListArgs),
    Info(InfoArgs),
}

/// List all nodes of the domain, including dead ones that nobody has cleaned up yet.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Show one node: its process, topics, queues, services and locks.
#[derive(Args, Debug)]
#[command(after_help = format!("{EXAMPLES}\n\n{CODES_HELP}"))]
pub(crate) struct InfoArgs {
    /// Name of the node, or its number.
    #[arg(value_name = "NODE", add = complete::nodes())]
    node: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  outlive node info camera
  outlive node info 3 --json | jq .publishes";

#[derive(Serialize)]
struct Row {
    id: u64,
    name: String,
    pid: u32,
    alive: bool,
    started_ns: u64,
}

pub(crate) fn run(command: &NodeCommand, options: &DomainOptions) -> Outcome {
    match command {
        NodeCommand::List(args) => list(args, options),
        NodeCommand::Info(args) => info(args, options),
    }
}

fn list(args: &ListArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    note_if_nobody(&domain);
    let rows: Vec<Row> = domain
        .nodes()?
        .into_iter()
        .map(|n| Row {
            id: n.id.get(),
            name: n.name,
            pid: n.pid,
            alive: n.alive,
            started_ns: n.started_ns,
        })
        .collect();
    if args.json { print_json(&rows) } else { print(&text(&rows, outlive::now_ns())) }
}

fn text(rows: &[Row], now_ns: u64) -> String {
    let head = ["NODE", "NAME", "PID", "STATE", "STARTED", "AGE"];
    let mut cells = vec![head.map(String::from).to_vec()];
    cells.extend(rows.iter().map(|row| {
        let state = if row.alive { "alive" } else { "dead" };
        vec![
            row.id.to_string(),
            row.name.clone(),
            row.pid.to_string(),
            state.into(),
            local(row.started_ns),
            duration_ns(now_ns.saturating_sub(row.started_ns)),
        ]
    }));
    table(&cells, &[0, 2, 5])
}

/// What is said of one node.
#[derive(Serialize)]
struct Info {
    #[serde(flatten)]
    node: Node,
    /// Queues that it sends on, and receives from.
    sends: Vec<String>,
    receives: Vec<String>,
    /// Services that it serves, and calls.
    serves: Vec<String>,
    calls: Vec<String>,
}

impl Info {
    fn of(node: Node, look: &Look) -> Self {
        let id = node.id;
        let queues = |is: &dyn Fn(&outlive::queue::Info) -> bool| {
            look.queues.iter().filter(|q| is(q)).map(|q| q.name.clone()).collect()
        };
        let services = |is: &dyn Fn(&outlive::service::Info) -> bool| {
            look.services.iter().filter(|s| is(s)).map(|s| s.name.clone()).collect()
        };
        Self {
            sends: queues(&|q| q.lanes.iter().any(|l| l.producer.node.get() == id && !l.closed)),
            receives: queues(&|q| q.consumer.is_some_and(|node| node.get() == id)),
            serves: services(&|s| s.server.is_some_and(|node| node.get() == id)),
            calls: services(&|s| s.clients.iter().any(|node| node.get() == id)),
            node,
        }
    }

    fn text(&self, paint: Paint) -> String {
        let Node { id, name, pid, life, started_ns, holds, memory_bytes, .. } = &self.node;
        let age = duration_ns(outlive::now_ns().saturating_sub(*started_ns));
        let mut out = format!("{}\n", paint.bold(name));
        let mut line = |key: &str, value: &str| {
            let _ = writeln!(out, "{key:<11} {value}");
        };
        line("node", &format!("{id}, pid {pid}, {}", life.name()));
        line("started", &format!("{}, {age} ago", local(*started_ns)));
        line("memory", &bytes(*memory_bytes));
        for (key, names) in [
            ("publishes", &self.node.publishes),
            ("subscribes", &self.node.reads),
            ("sends", &self.sends),
            ("receives", &self.receives),
            ("serves", &self.serves),
            ("calls", &self.calls),
            ("locks held", &self.node.locks),
        ] {
            if !names.is_empty() {
                line(key, &names.join(", "));
            }
        }
        if *holds > 0 {
            line("samples", &format!("{holds} held"));
        }
        out
    }
}

fn info(args: &InfoArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    let look = Look::whole(&domain, None)?;
    let node = find(&domain, &look, &args.node)?;
    let info = Info::of(node, &look);
    if args.json { print_json(&info) } else { print(&info.text(Paint::standard())) }
}

/// By its number, or by its name if one node alone has that; the living go first.
fn find(domain: &Domain, look: &Look, wanted: &str) -> Result<Node, Failure> {
    let number = wanted.parse::<u64>().ok();
    let mut found: Vec<&Node> = look.nodes.iter().filter(|n| n.name == wanted).collect();
    if found.is_empty() {
        found = look.nodes.iter().filter(|n| Some(n.id) == number).collect();
    }
    let dead = |node: &&&Node| node.life == crate::look::Life::Dead;
    if found.iter().filter(|n| !dead(n)).count() == 1 {
        found.retain(|n| !dead(&n));
    }
    match found.as_slice() {
        [] => {
            let names = look.nodes.iter().map(|n| n.name.clone());
            Err(missing(domain, "node", wanted, names))
        }
        [node] => Ok((*node).clone()),
        many => {
            let ids: Vec<_> = many.iter().map(|n| n.id.to_string()).collect();
            let message = format!("nodes {} are named {wanted}: give a number", ids.join(", "));
            Err(Failure::new(Code::Usage, message))
        }
    }
}
