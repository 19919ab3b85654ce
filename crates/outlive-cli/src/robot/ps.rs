//! `outlive ps`: the processes of a robot.

use std::time::Duration;

use clap::Args;
use outlive_run::config::{Kind, Orphan};
use outlive_run::{Answer, Identity, Request, RunDir, State, Status, ask};
use serde::Serialize;

use super::{PATIENCE, last_state};
use crate::exit::{Code, Failure, Outcome, note};
use crate::options::DomainOptions;
use crate::output::{bytes, print, print_json, table};

/// List the processes of the robot that `outlive run` runs in this domain.
///
/// Code 1 when the supervisor is dead, 4 when no robot runs.
#[derive(Args, Debug)]
pub(crate) struct PsArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    robot: &'a str,
    file: &'a std::path::Path,
    supervisor: Option<i32>,
    ending: bool,
    processes: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    kind: Kind,
    state: &'static str,
    pid: Option<i32>,
    up_s: Option<f64>,
    restarts: u64,
    restart_in_ms: Option<u64>,
    last_end: Option<&'a str>,
    memory_bytes: Option<u64>,
    cpu_s: Option<f64>,
    log: &'a std::path::Path,
}

/// Who said a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// The live supervisor, just now.
    Now,
    /// One that lives and does not answer, some time ago.
    BySilent,
    /// A dead one.
    ByDead,
}

/// The state as the live supervisor says it within `patience`, or as it was said last.
pub(super) fn look(
    dir: &RunDir,
    options: &DomainOptions,
    patience: Duration,
) -> Result<(State, Said), Failure> {
    match ask(dir, &Request::Ps, patience) {
        Ok(Answer::Done(state)) => Ok((state, Said::Now)),
        Ok(Answer::Refused(why)) => Err(Failure::new(Code::Failed, why)),
        Err(e) => {
            let state = last_state(dir, options)?;
            let refuses = e.kind() == std::io::ErrorKind::ConnectionRefused;
            let silent = state.is_supervised() && !refuses;
            Ok((state, if silent { Said::BySilent } else { Said::ByDead }))
        }
    }
}

/// The same for who wants to know only how it is; what is not of just now is noted.
pub(super) fn state(dir: &RunDir, options: &DomainOptions) -> Result<(State, Said), Failure> {
    let (state, said) = look(dir, options, PATIENCE)?;
    if said == Said::BySilent {
        let pid = state.supervisor.pid;
        note(format_args!("the supervisor (pid {pid}) does not answer; this is its last report"));
    }
    Ok((state, said))
}

pub(crate) fn run(args: &PsArgs, options: &DomainOptions) -> Outcome {
    let (state, said) = self::state(&RunDir::of(&options.domain()?), options)?;
    let answered = said == Said::Now;
    // In another container it lives and cannot be seen: its pids are not of this one.
    let supervised = answered || state.is_supervised();
    let live = |s: &Status| s.process.filter(|identity| answered || identity.is_alive());
    let orphans = state.running().count();
    let now_ns = outlive::now_ns();
    let report = Report {
        robot: &state.robot,
        file: &state.file,
        supervisor: supervised.then_some(state.supervisor.pid),
        ending: state.ending,
        processes: state.processes.iter().map(|s| row(s, live(s), supervised, now_ns)).collect(),
    };
    if args.json {
        print_json(&report)?
    } else {
        print(&text(&report))?
    };
    if supervised {
        return Ok(Code::Done);
    }
    let file = state.file.display();
    let (still_run, them) = match orphans {
        1 => ("process still runs", "it"),
        _ => ("processes still run", "them"),
    };
    note(format_args!(
        "its supervisor is dead, {orphans} {still_run}: 'outlive run {file}' takes {them} over, \
         'outlive stop' ends {them}"
    ));
    Ok(Code::Failed)
}

fn row(status: &Status, live: Option<Identity>, supervised: bool, now_ns: u64) -> Row<'_> {
    let state = match (supervised, live) {
        // The supervisor has not seen it yet.
        (true, None) if status.process.is_some() => "ended",
        (true, _) => status.phase.name(),
        (false, Some(_)) if status.on_supervisor_death == Orphan::Adopt => "orphan",
        (false, Some(_)) => "left",
        (false, None) => "gone",
    };
    let up_ns = live.map(|_| now_ns.saturating_sub(status.since_ns));
    Row {
        name: &status.name,
        kind: status.kind,
        state,
        pid: live.map(|identity| identity.pid),
        up_s: up_ns.map(|ns| (ns / 1_000_000) as f64 / 1e3),
        restarts: status.restarts,
        restart_in_ms: status.wait_ms,
        last_end: status.last_end.as_deref(),
        memory_bytes: status.memory_bytes,
        cpu_s: status.cpu_s,
        log: &status.log,
    }
}

fn text(report: &Report<'_>) -> String {
    const HEAD: [&str; 8] =
        ["NAME", "KIND", "STATE", "PID", "UP", "RESTARTS", "MEMORY", "LAST END"];
    let mut cells = vec![HEAD.map(String::from).to_vec()];
    cells.extend(report.processes.iter().map(|row| {
        let none = || "-".to_owned();
        let kind = if row.kind == Kind::Core { "core" } else { "service" };
        vec![
            row.name.to_owned(),
            kind.into(),
            row.state.into(),
            row.pid.map_or_else(none, |pid| pid.to_string()),
            row.up_s.map_or_else(none, |s| format!("{s:.1} s")),
            row.restarts.to_string(),
            row.memory_bytes.map_or_else(none, bytes),
            row.last_end.unwrap_or("-").to_owned(),
        ]
    }));
    table(&cells, &[3, 4, 5, 6])
}
