//! `outlive restart` and `outlive stop`.

use std::io;
use std::time::{Duration, Instant};

use clap::Args;
use outlive_run::{Answer, Phase, Request, RunDir, State, ask, end_orphans};

use super::{nobody, ps};
use crate::complete;
use crate::exit::{Code, Failure, Outcome};
use crate::options::{DomainOptions, seconds};
use crate::output::print;

/// Restart a service, or start one that was stopped or has failed.
///
/// Resets its restart count. Waits until it is ready; code 4 if that takes too long.
#[derive(Args, Debug)]
pub(crate) struct RestartArgs {
    /// Process, as `outlive ps` shows it.
    #[arg(add = complete::processes())]
    name: String,
    /// Time to wait until it is ready; 0: none.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    timeout: Duration,
}

/// Stop a service until it is restarted by hand; without a name the whole robot.
///
/// Waits until it has ended; code 4 if that takes too long. Without a name it also ends processes
/// that a killed supervisor left.
#[derive(Args, Debug)]
pub(crate) struct StopArgs {
    /// Process, as `outlive ps` shows it.
    #[arg(add = complete::processes())]
    name: Option<String>,
    /// Time to wait; 0: none.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    timeout: Duration,
}

pub(crate) fn restart(args: &RestartArgs, options: &DomainOptions) -> Outcome {
    let dir = RunDir::of(&options.domain()?);
    let before = ps::state(&dir, options)?;
    let old = before.processes.iter().find(|s| s.name == args.name).and_then(|s| s.process);
    request(&dir, &Request::Restart(args.name.clone()), options)?;
    let name = &args.name;
    wait(args.timeout, &format!("{name} is not ready yet"), || {
        let now = ps::state(&dir, options)?;
        let Some(status) = now.processes.iter().find(|s| s.name == *name) else {
            return Err(Failure::new(Code::Failed, format!("{name} is no longer in the file")));
        };
        match status.phase {
            Phase::Failed => {
                let end = status.last_end.as_deref().unwrap_or("it failed");
                Err(Failure::new(Code::Failed, format!("{name} {end}: see 'outlive logs {name}'")))
            }
            // Without a process it was told to wait for its start before it answered.
            Phase::Ready | Phase::Done if status.process != old || old.is_none() => {
                let pid = status.process.map_or("-".into(), |p| p.pid.to_string());
                Ok(Some(format!("{name} {} (pid {pid})\n", status.phase.name())))
            }
            _ => Ok(None),
        }
    })
}

pub(crate) fn stop(args: &StopArgs, options: &DomainOptions) -> Outcome {
    let dir = RunDir::of(&options.domain()?);
    match &args.name {
        Some(name) => {
            request(&dir, &Request::Stop(Some(name.clone())), options)?;
            wait(args.timeout, &format!("{name} has not ended yet"), || {
                let now = ps::state(&dir, options)?;
                let of = now.processes.iter().find(|s| s.name == *name);
                let over = of.is_none_or(|s| s.process.is_none());
                Ok(over.then(|| format!("{name} stopped\n")))
            })
        }
        None => stop_robot(&dir, args.timeout, options),
    }
}

fn stop_robot(dir: &RunDir, timeout: Duration, options: &DomainOptions) -> Outcome {
    match ask(dir, &Request::Stop(None), Duration::from_secs(5)) {
        Ok(Answer::Done(_)) => wait(timeout, "the robot has not stopped yet", || {
            Ok((!dir.path().exists()).then(|| "stopped\n".to_owned()))
        }),
        Ok(Answer::Refused(why)) => Err(Failure::new(Code::Failed, why)),
        Err(_) if !dir.path().exists() => Err(nobody(options)),
        Err(_) => {
            let ended = end_orphans(dir).map_err(|e| Failure::io("end what is left", &e))?;
            let Some(ended) = ended else {
                let what = "the supervisor is alive but does not answer: end it with 'kill', then \
                    try again";
                return Err(Failure::new(Code::Failed, what));
            };
            let line = |(name, pid): &(String, i32)| format!("ended {name} (pid {pid})\n");
            let lines: String = ended.iter().map(line).collect();
            print(&(lines + "stopped\n"))
        }
    }
}

fn request(dir: &RunDir, request: &Request, options: &DomainOptions) -> Result<State, Failure> {
    match ask(dir, request, Duration::from_secs(5)) {
        Ok(Answer::Done(state)) => Ok(state),
        Ok(Answer::Refused(why)) => Err(Failure::new(Code::Usage, why)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(nobody(options)),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Err(Failure::new(
            Code::NotFound,
            "the supervisor is dead: 'outlive run' takes over what still runs",
        )),
        Err(e) => Err(Failure::io("speak to the supervisor", &e)),
    }
}

/// Looks until `look` has something to say.
fn wait(
    timeout: Duration,
    late: &str,
    mut look: impl FnMut() -> Result<Option<String>, Failure>,
) -> Outcome {
    if timeout.is_zero() {
        return Ok(Code::Done);
    }
    let begun = Instant::now();
    loop {
        if let Some(line) = look()? {
            return print(&line);
        }
        if begun.elapsed() > timeout {
            return Err(Failure::new(Code::NotFound, late));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
