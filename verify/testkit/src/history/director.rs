//! Runs a history: starts and ends its members, tells them their steps, asks the model.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use super::disk;
use super::languages;
use super::member::{self, ASLEEP};
use super::model::{Kind, Model};
use super::ordinals;
use super::reply::Reply;
use super::step::{Step, Verb};
use crate::spawn::{spawn_program, spawn_self};
use crate::{TempDomain, slow};

/// What takes longer hangs: everything here takes milliseconds.
const HANG: Duration = Duration::from_secs(10);
/// What SIGKILL was sent to ends when the kernel lets it: 6.18 was seen to spin for 20 s over what
/// `/proc` had cached of a process that ended.
const KILLED: Duration = Duration::from_secs(120);
/// So long an answer is awaited that may explain another one.
const LATE: Duration = Duration::from_secs(1);
/// For hundreds of ends.
const CROWD: Duration = Duration::from_secs(30);
/// More messages than a history has.
const MANY: u64 = 100_000;

/// What went wrong, and at which step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// In words.
    pub what: String,
    /// The step it showed at, as far as it is one of the history.
    pub at: String,
}

/// How the members end that are alive in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// SIGKILL.
    #[default]
    Kill,
    /// Their input ends, and they exit.
    Exit,
}

struct Process {
    child: Child,
    input: ChildStdin,
}

/// A running history.
pub(super) struct Director {
    pub(super) model: Model,
    domain: TempDomain,
    processes: BTreeMap<usize, Process>,
    say: Sender<(usize, Reply)>,
    said: Receiver<(usize, Reply)>,
    /// Said while something else was waited for.
    early: VecDeque<(usize, Reply)>,
    /// The steps that were done.
    pub(super) steps: Vec<Step>,
    hang: Duration,
}

impl Director {
    pub(super) fn new() -> Result<Self, Failure> {
        let domain = TempDomain::new("history").map_err(|e| failure("no domain", &e))?;
        let (say, said) = channel();
        Ok(Self {
            model: Model::default(),
            domain,
            processes: BTreeMap::new(),
            say,
            said,
            early: VecDeque::new(),
            steps: Vec::new(),
            hang: HANG,
        })
    }

    /// Does a step, if it can be done; `false`: it cannot.
    pub(super) fn run(&mut self, step: &Step) -> Result<bool, Failure> {
        if !self.model.allows(step) {
            return Ok(false);
        }
        let step = &self.model.fitted(step);
        self.steps.push(step.clone());
        if step.is_long() {
            self.model.begin(step);
            self.tell(step)?;
            if step.verb == Verb::Sleep {
                self.hear_asleep(step)?;
            }
        } else {
            match step.verb {
                Verb::Start
                | Verb::Kill
                | Verb::Stop
                | Verb::Continue
                | Verb::Exit
                | Verb::Quit => {
                    self.do_to_process(step)?;
                    self.model.done(step);
                }
                Verb::Pause => std::thread::sleep(Duration::from_millis(step.arg("ms").min(500))),
                Verb::Fill | Verb::Free => {
                    let left = (step.verb == Verb::Fill).then(|| step.arg("left") << 10);
                    disk::fill(left).map_err(|e| failure(&format!("the disk: {e}"), step))?;
                    self.model.done(step);
                }
                Verb::Ordinals => {
                    ordinals::leave(self.domain.path(), step.arg("nodes"), step.arg("threads"))
                        .map_err(|e| failure(&format!("the domain's counters: {e}"), step))?;
                    self.model.done(step);
                }
                _ => {
                    self.tell(step)?;
                    let reply = self.hear(step)?;
                    self.judge_after_others(step, &reply)?;
                }
            }
        }
        self.model.look_round();
        self.settle()?;
        Ok(true)
    }

    fn judge(&mut self, step: &Step, reply: &Reply) -> Result<(), Failure> {
        if std::env::var_os("HISTORIES_TRACE").is_some() {
            eprintln!("{step}\n    {}", reply.line());
        }
        self.model.check(step, reply).map_err(|what| failure(&what, step))
    }

    /// As `judge`, of a short step. What ended a wait before may be told after it: who gave up a
    /// lock that this step then finds lost.
    fn judge_after_others(&mut self, step: &Step, reply: &Reply) -> Result<(), Failure> {
        loop {
            let before = self.model.clone();
            let Err(failure) = self.judge(step, reply) else { return Ok(()) };
            self.model = before;
            if !self.take_in(&mut None) {
                match self.said.recv_timeout(LATE) {
                    Ok(said) => self.early.push_back(said),
                    Err(_) => return Err(failure),
                }
            }
        }
    }

    /// Every long wait that can end must end.
    ///
    /// Of several that end at once the answers may come in another order than they ended in: one
    /// that does not fit is looked at again after the others.
    fn settle(&mut self) -> Result<(), Failure> {
        let mut unfit: Option<Failure> = None;
        loop {
            let fitted = self.take_in(&mut unfit);
            if fitted {
                unfit = None;
                continue;
            }
            let answered: Vec<_> = self.early.iter().map(|(m, r)| (*m, r.thread)).collect();
            let ready = self.model.ready();
            let next = ready.iter().find(|s| !answered.contains(&(s.member, s.thread))).cloned();
            match (next, unfit.take()) {
                (None, None) => return Ok(()),
                // One that need not end yet may have, and its answer be on the way.
                (None, Some(failure)) => match self.said.recv_timeout(LATE) {
                    Ok(said) => self.early.push_back(said),
                    Err(_) => return Err(failure),
                },
                (Some(step), failure) => match self.said.recv_timeout(self.hang) {
                    Ok(said) => self.early.push_back(said),
                    Err(_) => {
                        return Err(failure.unwrap_or_else(|| self::failure("it hangs", &step)));
                    }
                },
            }
        }
    }

    /// Judges what has been said meanwhile; whether some of it fits. The first that does not goes
    /// into `unfit`, and all of that stays.
    fn take_in(&mut self, unfit: &mut Option<Failure>) -> bool {
        self.early.extend(self.said.try_iter());
        let mut later = VecDeque::new();
        let mut fitted = false;
        while let Some((member, reply)) = self.early.pop_front() {
            let threads = self.model.members.get(&member).map(|m| &m.threads);
            let Some(Some(step)) = threads.and_then(|t| t.get(&reply.thread)).cloned() else {
                continue;
            };
            let before = self.model.clone();
            match self.judge(&step, &reply) {
                Ok(()) => fitted = true,
                Err(failure) => {
                    self.model = before;
                    unfit.get_or_insert(failure);
                    later.push_back((member, reply));
                }
            }
        }
        self.early = later;
        fitted
    }

    fn tell(&mut self, step: &Step) -> Result<(), Failure> {
        let mut step = step.clone();
        if step.verb == Verb::Watch
            && let Some(Kind::Node { ordinal }) =
                self.model.objects.get(&step.arg("target")).map(|o| o.kind.clone())
        {
            step.args[2] = ordinal;
        }
        let Some(process) = self.processes.get_mut(&step.member) else { return Ok(()) };
        writeln!(process.input, "{step}").map_err(|e| failure(&format!("it is gone: {e}"), &step))
    }

    /// The answer to a short step.
    fn hear(&mut self, step: &Step) -> Result<Reply, Failure> {
        let crowd = if step.verb == Verb::Crowd { CROWD * slow::times() } else { Duration::ZERO };
        let until = Instant::now() + self.hang + crowd + Duration::from_millis(step.arg("ms"));
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.said.recv_timeout(left) {
                Ok((member, reply)) if (member, reply.thread) == (step.member, step.thread) => {
                    return Ok(reply);
                }
                Ok(said) => self.early.push_back(said),
                Err(_) => return Err(failure(&self.why_silent(step.member), step)),
            }
        }
    }

    /// Before the next step it has let the mutex go; perhaps it has woken since.
    fn hear_asleep(&mut self, step: &Step) -> Result<(), Failure> {
        loop {
            match self.said.recv_timeout(self.hang) {
                Ok((member, reply)) if member == step.member && reply.outcome == ASLEEP => {
                    return Ok(());
                }
                Ok(said) => self.early.push_back(said),
                Err(_) => return Err(failure(&self.why_silent(step.member), step)),
            }
        }
    }

    fn why_silent(&mut self, member: usize) -> String {
        match self.processes.get_mut(&member).map(|p| p.child.try_wait()) {
            Some(Ok(Some(status))) => format!("its process has ended: {status}"),
            _ => "it hangs".into(),
        }
    }

    fn do_to_process(&mut self, step: &Step) -> Result<(), Failure> {
        match step.verb {
            Verb::Start => {
                let process = start(step, self.domain.path(), &self.say)
                    .map_err(|e| failure(&format!("cannot start: {e}"), step))?;
                self.processes.insert(step.member, process);
                Ok(())
            }
            Verb::Exit | Verb::Quit => {
                self.tell(step)?;
                self.wait_for_end(step)
            }
            Verb::Kill => self.wait_for_end(step),
            Verb::Stop => {
                self.signal(step.member, libc::SIGSTOP);
                self.wait_for_stop(step.member);
                Ok(())
            }
            _ => {
                self.signal(step.member, libc::SIGCONT);
                Ok(())
            }
        }
    }

    fn signal(&self, member: usize, signal: i32) {
        if let Some(process) = self.processes.get(&member) {
            // SAFETY: the child is not reaped yet: who is leaves the map.
            unsafe { libc::kill(process.child.id() as i32, signal) };
        }
    }

    fn wait_for_stop(&self, member: usize) {
        if let Some(process) = self.processes.get(&member) {
            let mut status = 0;
            // SAFETY: a child of ours; the pointer is to a local.
            unsafe { libc::waitpid(process.child.id() as i32, &mut status, libc::WUNTRACED) };
        }
    }

    fn wait_for_end(&mut self, step: &Step) -> Result<(), Failure> {
        let Some(mut process) = self.processes.remove(&step.member) else { return Ok(()) };
        let child = &mut process.child;
        let signal = step.arg("signal") as i32;
        let limit = if signal == libc::SIGKILL { self.hang.max(KILLED) } else { self.hang };
        let ended = crate::process::wait_until(limit, || {
            let running = matches!(child.try_wait(), Ok(None));
            // std's handler of faults gives the first one back to the kernel, to come again.
            if running && signal > 0 {
                // SAFETY: the child runs, or is not reaped yet.
                unsafe { libc::kill(child.id() as i32, signal) };
            }
            !running
        });
        if ended {
            return Ok(());
        }
        let _ = child.kill();
        let _ = child.wait();
        Err(failure("it does not end", step))
    }

    /// After the last step: nobody is owed anything, and nothing is left.
    pub(super) fn finish(&mut self, ending: Ending) -> Result<(), Failure> {
        self.run(&Step::new(0, 0, Verb::Free, &[]))?;
        let members: Vec<usize> = self.processes.keys().copied().collect();
        for member in &members {
            self.run(&Step::new(*member, 0, Verb::Continue, &[]))?;
            for what in 0..3 {
                self.run(&Step::new(*member, 0, Verb::Unlimit, &[what]))?;
            }
        }
        for _ in 0..2 {
            let ends: Vec<_> = self.model.objects.iter().map(|(h, o)| (*h, o.clone())).collect();
            for (handle, object) in ends {
                let verb = match object.kind {
                    Kind::Subscriber(_) => Verb::Receive,
                    Kind::Consumer { .. } => Verb::Get,
                    Kind::Client(_) => Verb::Replies,
                    Kind::End(end) if end.connected && !end.writer => Verb::Pop,
                    _ => continue,
                };
                let args = match verb {
                    Verb::Replies => &[handle, 0][..],
                    Verb::Pop => &[handle, MANY],
                    _ => &[handle, MANY, 0],
                };
                self.run(&Step::new(object.member, 0, verb, args))?;
            }
        }
        for member in members {
            let verb = if ending == Ending::Kill { Verb::Kill } else { Verb::Exit };
            let args: &[u64] = if ending == Ending::Kill { &[libc::SIGKILL as u64] } else { &[] };
            if !self.run(&Step::new(member, 0, verb, args))? {
                self.run(&Step::new(member, 0, Verb::Kill, &[libc::SIGKILL as u64]))?;
            }
        }
        self.clean_up()
    }

    fn clean_up(&mut self) -> Result<(), Failure> {
        let cleaner = 1 + self.model.members.keys().max().copied().unwrap_or(0);
        self.run(&Step::new(cleaner, 0, Verb::Start, &[0]))?;
        self.run(&Step::new(cleaner, 0, Verb::Clean, &[]))?;
        self.run(&Step::new(cleaner, 0, Verb::Exit, &[]))?;
        let left = crate::temp::listing(self.domain.path());
        if left.is_empty() {
            return Ok(());
        }
        Err(failure(&format!("left after the end: {left:?}"), &"clean"))
    }
}

impl Drop for Director {
    fn drop(&mut self) {
        if self.model.full {
            let _ = disk::fill(None);
        }
        for process in self.processes.values_mut() {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

pub(super) fn failure(what: &str, at: &impl std::fmt::Display) -> Failure {
    Failure { what: what.into(), at: at.to_string() }
}

fn start(step: &Step, root: &Path, say: &Sender<(usize, Reply)>) -> std::io::Result<Process> {
    let member = step.member;
    let mut command = match languages::programs().get(&step.arg("in")) {
        Some(program) => {
            let mut command = spawn_program(&program[0]);
            command.args(&program[1..]).arg(root);
            command
        }
        None => spawn_self(member::ROLE, &[&root.to_string_lossy()]),
    };
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let input = child.stdin.take().expect("a pipe was asked for");
    let output = child.stdout.take().expect("a pipe was asked for");
    let say = say.clone();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if let Some(reply) = Reply::parse(&line)
                && say.send((member, reply)).is_err()
            {
                return;
            }
        }
    });
    Ok(Process { child, input })
}
