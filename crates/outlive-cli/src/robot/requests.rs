//! `outlive restart` and `outlive stop`.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use clap::Args;
use outlive_run::{Answer, Phase, Request, RunDir, State, ask, end_orphans};

use super::ps::{self, Said};
use super::{PATIENCE, nobody};
use crate::complete;
use crate::exit::{Code, Failure, Outcome};
use crate::options::{DomainOptions, seconds};
use crate::output::print;

/// To answer, a supervisor has at least so long.
const ANSWER: Duration = Duration::from_secs(1);

/// Restart a service, or start one that was stopped or has failed.
///
/// Resets its restart count. Waits until it is ready; code 4 if that takes too long.
#[derive(Args, Debug)]
pub(crate) struct RestartArgs {
    /// Process, as `outlive ps` shows it.
    #[arg(add = complete::processes())]
    name: String,
    /// Time to wait; 0: none.
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
    let (dir, name) = (RunDir::of(&options.domain()?), &args.name);
    let (before, said) = ps::look(&dir, options, patience(args.timeout))?;
    if said == Said::BySilent {
        return Err(Failure::new(
            Code::NotFound,
            silence(&dir, &format!("{name} was not restarted")),
        ));
    }
    let old = before.processes.iter().find(|s| s.name == *name).and_then(|s| s.process);
    request(&dir, &Request::Restart(name.clone()), args.timeout, options)?;
    wait(args.timeout, |patience| {
        let (now, said) = ps::look(&dir, options, patience)?;
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
                Ok(Look::Over(format!("{name} {} (pid {pid})\n", status.phase.name())))
            }
            _ => Ok(not_yet(&dir, said, format!("{name} is not ready yet"))),
        }
    })
}

pub(crate) fn stop(args: &StopArgs, options: &DomainOptions) -> Outcome {
    let dir = RunDir::of(&options.domain()?);
    let Some(name) = &args.name else { return stop_robot(&dir, args.timeout, options) };
    request(&dir, &Request::Stop(Some(name.clone())), args.timeout, options)?;
    wait(args.timeout, |patience| {
        let (now, said) = ps::look(&dir, options, patience)?;
        let of = now.processes.iter().find(|s| s.name == *name);
        if of.is_none_or(|s| s.process.is_none()) {
            return Ok(Look::Over(format!("{name} stopped\n")));
        }
        Ok(not_yet(&dir, said, format!("{name} has not ended yet")))
    })
}

fn stop_robot(dir: &RunDir, timeout: Duration, options: &DomainOptions) -> Outcome {
    match ask(dir, &Request::Stop(None), patience(timeout)) {
        Ok(Answer::Done(_)) => wait(timeout, |_| match dir.path().exists() {
            true => Ok(Look::NotYet("the robot has not stopped yet".into())),
            false => Ok(Look::Over("stopped\n".into())),
        }),
        Ok(Answer::Refused(why)) => Err(Failure::new(Code::Failed, why)),
        Err(_) if !dir.path().exists() => Err(nobody(options)),
        Err(e) if e.kind() == ErrorKind::TimedOut => Err(unanswered(dir)),
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

fn request(
    dir: &RunDir,
    request: &Request,
    timeout: Duration,
    options: &DomainOptions,
) -> Result<State, Failure> {
    match ask(dir, request, patience(timeout)) {
        Ok(Answer::Done(state)) => Ok(state),
        Ok(Answer::Refused(why)) => Err(Failure::new(Code::Usage, why)),
        Err(e) if e.kind() == ErrorKind::NotFound => Err(nobody(options)),
        Err(e) if e.kind() == ErrorKind::TimedOut => Err(unanswered(dir)),
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => Err(Failure::new(
            Code::NotFound,
            "the supervisor is dead: 'outlive run' takes over what still runs",
        )),
        Err(e) => Err(Failure::io("speak to the supervisor", &e)),
    }
}

/// How long to wait for an answer, if there is so much time left for all. A supervisor that does
/// not hang has a moment to say that it will, or will not, also if nothing else is waited for.
fn patience(left: Duration) -> Duration {
    left.clamp(ANSWER, PATIENCE)
}

/// A request that was sent and not answered.
fn unanswered(dir: &RunDir) -> Failure {
    Failure::new(Code::NotFound, silence(dir, "it may still do what it was asked"))
}

/// That the supervisor does not answer, what that means, and what to do about it.
fn silence(dir: &RunDir, meaning: &str) -> String {
    // One of another container has another number there.
    let state = dir.read().ok().flatten().filter(State::is_supervised);
    let Some(pid) = state.map(|state| state.supervisor.pid) else {
        return format!("the supervisor does not answer, {meaning}: continue it, or end it");
    };
    format!(
        "the supervisor (pid {pid}) does not answer, {meaning}: 'kill -CONT {pid}' if it was \
         stopped, else 'kill -KILL {pid}', and 'outlive run' takes over"
    )
}

/// What is seen of what is waited for.
enum Look {
    /// It is over, with this line.
    Over(String),
    /// It is not; what to say if there is no time left.
    NotYet(String),
}

fn not_yet(dir: &RunDir, said: Said, what: String) -> Look {
    Look::NotYet(if said == Said::BySilent { silence(dir, &what) } else { what })
}

/// Looks until it is over; `look` is told how long it may take.
fn wait(timeout: Duration, mut look: impl FnMut(Duration) -> Result<Look, Failure>) -> Outcome {
    if timeout.is_zero() {
        return Ok(Code::Done);
    }
    let begun = Instant::now();
    loop {
        let late = match look(patience(timeout.saturating_sub(begun.elapsed())))? {
            Look::Over(line) => return print(&line),
            Look::NotYet(late) => late,
        };
        if begun.elapsed() > timeout {
            return Err(Failure::new(Code::NotFound, late));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
