//! `outlive lock`: locks, semaphores, sets and segments, who holds them, and removing one.

use clap::{Args, Subcommand};
use outlive::lock::{LockInfo, LockKind, LockState};
use serde::Serialize;

use crate::absent::{missing, note_if_nobody};
use crate::complete;
use crate::exit::{Code, Outcome};
use crate::options::DomainOptions;
use crate::output::{bytes, print, print_json, table};

#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    List(ListArgs),
    Remove(RemoveArgs),
}

/// List all locks: kind, holder, state, waiters.
///
/// A holder is node.thread; thread is its number in the domain. USERS counts readers, permits taken
/// or members of a set. Which thread waits is not recorded.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  outlive lock list\n  \
    outlive lock list --json | jq '.[] | select(.state == \"held\" and .holder.alive == false)'")]
pub(crate) struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Remove a lock, semaphore, set or segment that nobody has open.
///
/// An unrecoverable lock is removed even while programs have it open: they get `Unrecoverable`
/// until they open it again. The data goes with it; opening the name creates it again.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  outlive lock remove /map")]
pub(crate) struct RemoveArgs {
    /// Its name.
    #[arg(add = complete::locks())]
    name: String,
}

#[derive(Serialize)]
struct Row {
    name: String,
    kind: &'static str,
    r#type: String,
    data_bytes: usize,
    state: &'static str,
    holder: Option<Holder>,
    waiters: bool,
    users: usize,
    count: usize,
}

#[derive(Serialize)]
struct Holder {
    node: u64,
    thread: u64,
    alive: bool,
}

impl Row {
    fn of(info: LockInfo) -> Self {
        let (state, holder) = match info.state {
            LockState::Held { node, thread, alive } => {
                ("held", Some(Holder { node: node.get(), thread, alive }))
            }
            LockState::Abandoned => ("abandoned", None),
            LockState::Unrecoverable => ("unrecoverable", None),
            _ if info.kind == LockKind::RwLock && info.users > 0 => ("read", None),
            _ => ("free", None),
        };
        Self {
            name: info.name,
            kind: info.kind.as_str(),
            r#type: info.type_name,
            data_bytes: info.data_bytes,
            state,
            holder,
            waiters: info.waiters,
            users: info.users,
            count: info.count,
        }
    }

    fn cells(&self) -> Vec<String> {
        let holder = self.holder.as_ref().map_or("-".into(), |h| {
            let dead = if h.alive { "" } else { " dead" };
            format!("{}.{}{dead}", h.node, h.thread)
        });
        let users = match self.count {
            0 => self.users.to_string(),
            count => format!("{}/{count}", self.users),
        };
        vec![
            self.name.clone(),
            self.kind.into(),
            if self.r#type.is_empty() { "-".into() } else { self.r#type.clone() },
            bytes(self.data_bytes as u64),
            self.state.into(),
            holder,
            if self.waiters { "yes" } else { "no" }.into(),
            users,
        ]
    }
}

const HEAD: [&str; 8] = ["LOCK", "KIND", "TYPE", "DATA", "STATE", "HOLDER", "WAITERS", "USERS"];

pub(crate) fn run(command: &LockCommand, options: &DomainOptions) -> Outcome {
    match command {
        LockCommand::List(args) => list(args, options),
        LockCommand::Remove(args) => remove(args, options),
    }
}

fn remove(args: &RemoveArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    if domain.remove_lock(&args.name)? {
        return Ok(Code::Done);
    }
    let names = domain.locks()?.into_iter().map(|lock| lock.name);
    Err(missing(&domain, "lock", &args.name, names))
}

fn list(args: &ListArgs, options: &DomainOptions) -> Outcome {
    let domain = options.domain()?;
    note_if_nobody(&domain);
    let rows: Vec<_> = domain.locks()?.into_iter().map(Row::of).collect();
    if args.json {
        return print_json(&rows);
    }
    let mut cells = vec![HEAD.map(String::from).to_vec()];
    cells.extend(rows.iter().map(Row::cells));
    print(&table(&cells, &[3, 7]))
}
