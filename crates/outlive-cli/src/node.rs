//! `outlive node list`: the processes of a domain.

use clap::{Args, Subcommand};
use serde::Serialize;

use crate::exit::Outcome;
use crate::options::DomainOptions;
use crate::output::{print, print_json, table};

#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    List(ListArgs),
}

/// List all nodes of the domain, also dead ones that nobody has cleaned up yet.
#[derive(Args, Debug)]
pub(crate) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    id: u64,
    name: String,
    pid: u32,
    alive: bool,
    started_ns: u64,
}

pub(crate) fn run(command: &NodeCommand, options: &DomainOptions) -> Outcome {
    let NodeCommand::List(args) = command;
    let nodes = options.domain()?.nodes()?;
    let rows: Vec<Row> = nodes
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
    let mut cells = vec![["NODE", "NAME", "PID", "STATE", "SINCE"].map(String::from).to_vec()];
    cells.extend(rows.iter().map(|row| {
        let seconds = now_ns.saturating_sub(row.started_ns) as f64 / 1e9;
        let state = if row.alive { "alive" } else { "dead" };
        let since = format!("{seconds:.1} s");
        vec![row.id.to_string(), row.name.clone(), row.pid.to_string(), state.into(), since]
    }));
    table(&cells, &[0, 2, 4])
}
