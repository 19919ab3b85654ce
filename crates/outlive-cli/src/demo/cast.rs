//! The actors as the director sees them: start, order, listen, kill.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::claim::{must, untrue};
use super::protocol::{Order, Report};
use crate::exit::{Code, Failure};
use crate::os;
use crate::stage::Stage;

/// The domain of the demo, in a directory of its own.
pub(super) const DOMAIN: &str = "demo";
/// Ends a demo that hangs; nothing is judged by the time it takes.
const PATIENCE: Duration = Duration::from_secs(90);

/// A child process in a role; killed and reaped on drop.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) name: &'static str,
    /// Its node, once it is ready.
    pub(super) node: u64,
    child: Child,
    orders: Option<ChildStdin>,
    reports: Receiver<Report>,
    /// Came before they were asked for.
    early: VecDeque<Report>,
}

impl Actor {
    /// Starts this binary again as `part`, with further arguments.
    pub(super) fn start(
        stage: &Stage,
        name: &'static str,
        part: &str,
        further: &[String],
    ) -> Result<Self, Failure> {
        // Of its own group: Ctrl-C is for the director.
        let mut child = Command::new("/proc/self/exe")
            .arg0("outlive")
            .args(["demo-role", part, "--name", &name.replace(' ', "-")])
            .args(["--parent", &std::process::id().to_string(), "--domain", DOMAIN])
            .arg("--root")
            .arg(stage.dir())
            .args(further)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(|e| Failure::io("start a process", &e))?;
        let (to, reports) = channel();
        if let Some(out) = child.stdout.take() {
            thread::spawn(move || {
                for line in BufReader::new(out).lines() {
                    let report = line.ok().and_then(|line| serde_json::from_str(&line).ok());
                    let Some(report) = report else { break };
                    if to.send(report).is_err() {
                        break;
                    }
                }
            });
        }
        let orders = child.stdin.take();
        Ok(Self { name, node: 0, child, orders, reports, early: VecDeque::new() })
    }

    /// Waits until it has joined; when that was, ns.
    pub(super) fn ready(&mut self) -> Result<u64, Failure> {
        let (node, at_ns) = self.expect("join", |r| match r {
            Report::Ready { node, at_ns } => Some((*node, *at_ns)),
            _ => None,
        })?;
        self.node = node;
        Ok(at_ns)
    }

    pub(super) fn order(&mut self, order: &Order) -> Result<(), Failure> {
        let Some(pipe) = &mut self.orders else { return Ok(()) };
        let line = serde_json::to_string(order).map_err(std::io::Error::from);
        line.and_then(|line| writeln!(pipe, "{line}"))
            .map_err(|e| untrue(format!("the {} is alive to take orders ({e})", self.name)))
    }

    /// The first report that `pick` wants; others are kept for later.
    pub(super) fn expect<T>(
        &mut self,
        what: &str,
        pick: impl Fn(&Report) -> Option<T>,
    ) -> Result<T, Failure> {
        if let Some(at) = self.early.iter().position(|r| pick(r).is_some())
            && let Some(value) = self.early.remove(at).and_then(|r| pick(&r))
        {
            return Ok(value);
        }
        let start = Instant::now();
        loop {
            let slice = Duration::from_nanos(os::SLICE_NS);
            match self.reports.recv_timeout(slice) {
                _ if os::stop_asked() => return Err(interrupted()),
                Ok(report) => match pick(&report) {
                    Some(value) => return Ok(value),
                    None => self.early.push_back(report),
                },
                Err(RecvTimeoutError::Timeout) if start.elapsed() < PATIENCE => {}
                Err(RecvTimeoutError::Timeout) => {
                    let message = format!("nobody hangs: the {} did not {what}", self.name);
                    return Err(untrue(message));
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(untrue(format!(
                        "nobody else dies: the {} ended before it could {what}",
                        self.name
                    )));
                }
            }
        }
    }

    /// SIGKILL. Returns when that was and everything it had still said.
    pub(super) fn kill(&mut self) -> Result<(u64, Vec<Report>), Failure> {
        let killed_ns = outlive::now_ns();
        let ended = self.child.kill().and_then(|()| self.child.wait());
        let status = ended.map_err(|e| Failure::io("kill a process", &e))?;
        if status.signal() != Some(9) {
            return Err(untrue(format!("the {} was alive until killed ({status})", self.name)));
        }
        let mut said: Vec<_> = self.early.drain(..).collect();
        said.extend(self.reports.iter());
        Ok((killed_ns, said))
    }

    /// Asks it to leave and waits until it has.
    pub(super) fn quit(&mut self) -> Result<(), Failure> {
        self.order(&Order::Quit)?;
        self.leave()
    }

    /// Waits until it has left, as it was asked to.
    pub(super) fn leave(&mut self) -> Result<(), Failure> {
        self.orders = None;
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if os::stop_asked() => return Err(interrupted()),
                Ok(None) if start.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(2)),
                Ok(None) => return Err(untrue(format!("nobody hangs: the {} stays", self.name))),
                Err(e) => return Err(Failure::io("wait for a process", &e)),
            }
        };
        must(status.success(), || format!("the {} leaves in order ({status})", self.name))
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn interrupted() -> Failure {
    Failure::new(Code::Failed, "interrupted")
}
