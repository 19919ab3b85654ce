//! The robot's supervisor, that of `outlive run` in a process of this program; its keeper of logs.

use std::path::PathBuf;

use clap::Args;
use outlive::Domain;
use outlive_run::config::Config;
use outlive_run::{Outcome, Supervisor, SupervisorOptions};

use crate::builder;
use crate::teller::Failure;

/// Starts and supervises the robot of a file; started by the demo.
#[derive(Args, Debug)]
pub(crate) struct SuperviseArgs {
    file: PathBuf,
    /// Directory of the domains.
    #[arg(long)]
    root: PathBuf,
}

pub(crate) fn run(args: &SuperviseArgs) -> Result<(), Failure> {
    let config = Config::load(&args.file).map_err(|e| Failure::Failed(e.to_string()))?;
    let domain = Domain::of(&builder().root(&args.root))?;
    let options = SupervisorOptions { quiet: true, ..SupervisorOptions::default() };
    let supervisor = Supervisor::start(config, domain, options);
    match supervisor.map_err(|e| Failure::Failed(e.to_string()))?.run() {
        Outcome::Stopped => Ok(()),
        Outcome::Failed => Err(Failure::Failed("the robot failed: see its logs".into())),
    }
}

/// Writes the logs of the robot; started by its supervisor, which chose these words.
#[derive(Args, Debug)]
pub(crate) struct KeepLogsArgs {
    /// The supervisor's directory.
    dir: PathBuf,
    /// Of this keeper.
    number: u64,
}

pub(crate) fn keep_logs(args: &KeepLogsArgs) -> Result<(), Failure> {
    outlive_run::keep_logs(&args.dir, args.number).map_err(|e| Failure::io("keep the logs", &e))
}
