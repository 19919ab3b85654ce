//! `outlive run` and those that speak to it: `ps`, `restart`, `stop`, `logs`.

mod logs;
mod ps;
mod requests;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use outlive::{Domain, Node};
use outlive_run::config::Config;
use outlive_run::{Outcome as Ended, RunDir, StartError, State, Supervisor, SupervisorOptions};

use crate::exit::{Code, Failure, Outcome};
use crate::options::DomainOptions;
use crate::output::print;

pub(crate) use logs::{LogsArgs, run as logs};
pub(crate) use ps::{PsArgs, run as ps};
pub(crate) use requests::{RestartArgs, StopArgs, restart, stop};

/// A supervisor that has not answered for so long hangs.
const PATIENCE: Duration = Duration::from_secs(5);

/// Start the processes of a robot and keep them running.
///
/// A file names the processes. Services are restarted when they die or hang, with growing delays
/// and a limit; the end of a core stops the robot. Ctrl-C stops all in reverse order. If this
/// supervisor is killed, the next one takes over what runs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  outlive run robot.toml                          until Ctrl-C
  outlive run robot.toml --check                  check the file
  kill -HUP PID                                   read the file again

A file:
  [robot]
  logs = \"logs\"
  [process.core]
  kind = \"core\"
  command = [\"./arm-core\"]
  fifo = 80
  [process.camera]
  command = [\"./camera\", \"--hz\", \"30\"]
  after = [\"core\"]
  ready = { topics = [\"/camera\"] }

All keys: docs/book/running.md")]
pub(crate) struct RunArgs {
    /// The file.
    file: PathBuf,
    /// Only check the file.
    #[arg(long)]
    check: bool,
    /// Do not print the processes' output; the logs have it.
    #[arg(long, short)]
    quiet: bool,
    /// End processes that a killed supervisor left instead of taking them over.
    #[arg(long)]
    fresh: bool,
}

pub(crate) fn run(args: &RunArgs, options: &DomainOptions) -> Outcome {
    let config = Config::load(&args.file).map_err(|e| Failure::new(Code::Usage, e.to_string()))?;
    if args.check {
        let names: Vec<_> = config.processes.iter().map(|p| p.name.as_str()).collect();
        return print(&format!("{} is valid: starts {}\n", config.name, names.join(", ")));
    }
    let domain = config.domain.clone().or_else(|| options.domain.clone());
    let options = DomainOptions { domain, ..options.clone() };
    let how =
        SupervisorOptions { quiet: args.quiet, fresh: args.fresh, ..SupervisorOptions::default() };
    let supervisor = Supervisor::start(config, options.domain()?, how);
    match supervisor.map_err(start_failure)?.run() {
        Ended::Stopped => Ok(Code::Done),
        Ended::Failed => Err(Failure::new(
            Code::Failed,
            "a core ended, or a service reached its limit: see the lines above and the logs",
        )),
    }
}

/// Writes the logs of a robot; started by its supervisor.
#[derive(Args, Debug)]
pub(crate) struct KeepLogsArgs {
    /// The supervisor's directory.
    dir: PathBuf,
    /// Of this keeper.
    number: u64,
}

pub(crate) fn keep_logs(args: &KeepLogsArgs) -> Outcome {
    outlive_run::keep_logs(&args.dir, args.number)
        .map_err(|e| Failure::io("keep the logs", &e))
        .map(|()| Code::Done)
}

fn start_failure(error: StartError) -> Failure {
    match error {
        // For a thread or a process; a manager may try again, as it does not after a failure.
        StartError::Io(what, e) if e.kind() == ErrorKind::WouldBlock => {
            Failure::new(Code::NoRoom, format!("{what}: {e}"))
        }
        StartError::Io(what, e) => Failure::io(&what, &e),
        running => Failure::new(Code::Failed, running.to_string()),
    }
}

/// What the last supervisor of the domain said.
fn last_state(dir: &RunDir, options: &DomainOptions) -> Result<State, Failure> {
    let state = dir.read().map_err(|e| Failure::io("read the supervisor's state", &e))?;
    state.ok_or_else(|| nobody(options))
}

/// No robot runs in the domain: where that is, and which domains beside it have one.
fn nobody(options: &DomainOptions) -> Failure {
    let said = options.domain().map(|domain| {
        let (name, dir) = (domain.name(), domain.dir());
        let root = dir.parent().unwrap_or(dir);
        let there = match domains_with_robots(root, name).as_slice() {
            [] => {
                let root = root.display();
                format!(", nor in another of {root}: start one with 'outlive run robot.toml'")
            }
            [one] => format!("; domain {one} has one: give --domain {one}"),
            more => format!("; domains {} have one: give --domain", more.join(", ")),
        };
        format!("no robot runs in domain {name} ({}){there}", dir.display())
    });
    said.map_or_else(|e| e, |said| Failure::new(Code::NotFound, said))
}

/// Those of `root`, but for `own`, in which a supervisor runs, or one has died and left processes.
fn domains_with_robots(root: &Path, own: &str) -> Vec<String> {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    let names = entries.filter_map(|e| e.file_name().into_string().ok());
    let has_robot = |name: &String| {
        let domain = Domain::of(&Node::builder().root(root).domain(name));
        name != own
            && domain.is_ok_and(|of| RunDir::of(&of).read().is_ok_and(|state| state.is_some()))
    };
    let names = names.filter_map(|name| name.strip_prefix(".run-").map(String::from));
    let mut names: Vec<String> = names.filter(has_robot).collect();
    names.sort();
    names
}
