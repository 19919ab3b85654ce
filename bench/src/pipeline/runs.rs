//! One run of one row: its stages on one thread, on threads or in processes.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use measure::cores::allowed_cpus;
use outlive::rt::{
    Cycle, Joining, LatestReader, LatestWriter, Member, Opening, Outcome, Pipeline, Realtime,
    Schedule, Stage, StageOptions, Stop, Wait, latest,
};
use outlive::{Error, ErrorKind, Node, Result, now_ns};

use super::hops::{Ends, Hop, Slots, Waiting};
use super::work::{PACKET_WORDS, PARTS, Packet, Work};
use crate::pair::SharedMap;

/// What carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mechanism {
    /// Nothing: one stage calls the next.
    Calls,
    LockFree,
    Mutex,
    /// Nothing but a word and the wait for it: what the kernel takes for a hand-over.
    Bare,
    Pipe,
    Socket,
}

/// A row of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) name: &'static str,
    pub(super) mechanism: Mechanism,
    /// Whether each stage is a process.
    pub(super) processes: bool,
    pub(super) waiting: Waiting,
    /// At most `PARTS`.
    pub(super) stages: usize,
}

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    pub(super) period_ns: u64,
    /// Cycles that do not count.
    pub(super) warm_up: u64,
    pub(super) cycles: u64,
    /// SCHED_FIFO, 0 for none.
    pub(super) priority: u8,
    /// Time for the stages to start, ns: until they run they have no priority.
    pub(super) lead_ns: u64,
}

/// What one run saw, after the warm-up.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcomes {
    /// From the scheduled release to the end of the last stage, ns.
    pub(super) latency_ns: Vec<f64>,
    /// Distance of two ends of following cycles less the period, ns.
    pub(super) deviation_ns: Vec<f64>,
    /// Cycles that ended after their period, or never.
    pub(super) misses: u64,
    /// Processor time of all stages, share of one core.
    pub(super) cpu: f64,
}

const NAMES: [&str; PARTS] = ["planner", "ik", "ethercat", "hardware"];
/// The end of the line.
const END: u64 = u64::MAX;
const PATIENCE: Duration = Duration::from_secs(10);
/// Exit code of a stage in a process that waited too long.
const TIMED_OUT: i32 = 4;

impl Subject {
    /// Runs it once. `dir` is for the files of channels.
    pub(super) fn run(&self, dir: &Path, timing: &Timing) -> Result<Outcomes> {
        let all = (timing.warm_up + timing.cycles) as usize;
        let ends = SharedMap::new(all * 8)?;
        let slots: &[[AtomicU64; 1]] = ends.slots(0, all);
        let start_ns = now_ns() + timing.lead_ns;
        let line =
            Line { subject: *self, timing: *timing, cpus: allowed_cpus()?, start_ns, ends: slots };
        let before = processor_ns(self.processes);
        let began = now_ns();
        match (self.mechanism, self.processes) {
            (Mechanism::Calls | Mechanism::LockFree, false) => line.own_threads()?,
            (Mechanism::LockFree, true) => {
                line.fork(|stage| line.own_process(dir, stage))?;
            }
            _ => line.hops()?,
        }
        let cpu = (processor_ns(self.processes) - before) as f64 / (now_ns() - began) as f64;
        Ok(line.outcomes(cpu))
    }
}

struct Line<'a> {
    subject: Subject,
    timing: Timing,
    /// Cores that may be used.
    cpus: Vec<usize>,
    start_ns: u64,
    /// When each cycle ended.
    ends: &'a [[AtomicU64; 1]],
}

impl Line<'_> {
    /// What stage `at` asks for. Neighbours have different cores: each hand-over wakes one.
    fn realtime(&self, at: usize) -> Realtime {
        // Who looks all the time at a real-time priority starves those that are still starting.
        let sleeps = self.subject.waiting == Waiting::Sleep;
        let priority = (sleeps && self.timing.priority > 0).then_some(self.timing.priority);
        Realtime { priority, cpu: Some(self.cpus[at % self.cpus.len()]), ..Realtime::default() }
    }

    fn names(&self) -> &'static [&'static str] {
        &NAMES[..self.subject.stages]
    }

    fn wait(&self) -> Wait {
        match self.subject.waiting {
            Waiting::Sleep => Wait::SpinThenSleep { spin_ns: 0 },
            Waiting::Yield => Wait::Yield,
            Waiting::Spin => Wait::Spin,
        }
    }

    fn release_ns(&self, n: u64) -> u64 {
        self.start_ns + n * self.timing.period_ns
    }

    fn ended(&self, n: u64) {
        if let Some([end]) = self.ends.get(n as usize) {
            end.store(now_ns(), Relaxed);
        }
    }

    fn options(&self, at: usize) -> StageOptions {
        let realtime = self.realtime(at);
        StageOptions { wait: self.wait(), realtime, ..StageOptions::default() }
    }

    fn schedule(&self) -> Result<Schedule> {
        // Late is counted by the benchmark, not acted upon.
        let every = Schedule::every(Duration::from_nanos(self.timing.period_ns))?;
        Ok(every.starting_at(self.start_ns).deadline(Duration::from_secs(5)))
    }

    /// A stage with outlive's channels.
    fn stage<'s>(
        &'s self,
        at: usize,
        mut from: Option<LatestReader<Packet>>,
        mut to: Option<LatestWriter<Packet>>,
    ) -> impl FnMut(&Cycle) -> Outcome + Send + 's {
        let mut work = Work::of(at, self.subject.stages, self.timing.period_ns);
        let mut out = [0; PACKET_WORDS];
        move |cycle: &Cycle| {
            // A stage goes on a little longer than the one it hands on to, which would wait.
            if cycle.number >= (self.ends.len() + 2 * (self.subject.stages - at)) as u64 {
                return Outcome::Stop;
            }
            let packet = match &mut from {
                None => [0; PACKET_WORDS],
                Some(from) => match from.read() {
                    Ok(Some(packet)) => packet.value,
                    _ => return Outcome::Skip,
                },
            };
            work.run(cycle.number, &packet, &mut out);
            match &mut to {
                // One that has done its cycles leaves before us.
                Some(to) => _ = to.write(&out),
                None => self.ended(cycle.number),
            }
            Outcome::HandOn
        }
    }

    /// On one thread, or on threads with channels on the heap.
    fn own_threads(&self) -> Result<()> {
        let one = self.subject.mechanism == Mechanism::Calls;
        let schedule = self.schedule()?;
        let mut pipeline = Pipeline::new(schedule);
        let mut from = None;
        for (at, name) in self.names().iter().enumerate() {
            let (to, next) = match at + 1 < self.subject.stages {
                true => some_both(latest::<Packet>()),
                false => (None, None),
            };
            let stage = self.stage(at, std::mem::replace(&mut from, next), to);
            pipeline = pipeline.stage(*name, self.options(at), stage);
        }
        // On a thread of its own, so that what it asks of the kernel ends with it.
        let ran = std::thread::scope(|scope| {
            let run = || match one {
                true => Ok(pipeline.run_inline(&Stop::new())),
                false => pipeline.run_threads(&Stop::new()),
            };
            scope.spawn(run).join()
        });
        ran.unwrap_or_else(|e| std::panic::resume_unwind(e)).map(drop)
    }

    /// The next cycle: the last one released, if that is later.
    fn after(&self, n: u64) -> u64 {
        (n + 1).max(now_ns().saturating_sub(self.start_ns) / self.timing.period_ns)
    }

    /// One stage in a process of its own, with channels in files.
    fn own_process(&self, dir: &Path, at: usize) -> Result<()> {
        let node = Node::builder().root(dir).name(NAMES[at]).open()?;
        let name = |at: usize| format!("bench/{at}");
        let joining: Joining = Member::open(&node, "bench", self.names(), at, self.schedule()?)?;
        let to: Option<Opening<LatestWriter<Packet>>> = (at + 1 < self.subject.stages)
            .then(|| LatestWriter::open(&node, &name(at)))
            .transpose()?;
        let from: Option<Opening<LatestReader<Packet>>> =
            (at > 0).then(|| LatestReader::open(&node, &name(at - 1))).transpose()?;
        let from = from.map(|from| from.connect(PATIENCE)).transpose()?;
        let to = to.map(|to| to.connect(PATIENCE)).transpose()?;
        let mut member = joining.connect(PATIENCE)?;
        let mut stage = self.stage(at, from, to);
        let stage: &mut dyn Stage = &mut stage;
        member.run(&self.options(at), stage, &Stop::new());
        Ok(())
    }

    /// Mutex and condition variable, a bare word, pipe, socket; on threads or in processes.
    fn hops(&self) -> Result<()> {
        let slots = Slots::new(self.subject.stages - 1, self.subject.processes)?;
        let make = match self.subject.mechanism {
            Mechanism::Pipe => Some(Ends::pipe as fn() -> Result<Ends>),
            Mechanism::Socket => Some(Ends::socket as fn() -> Result<Ends>),
            _ => None,
        };
        let streams: Vec<Ends> = match make {
            Some(make) => (1..self.subject.stages).map(|_| make()).collect::<Result<_>>()?,
            None => Vec::new(),
        };
        // Shared memory also between threads, so that only the switch differs.
        let words = SharedMap::new(self.subject.stages * 4096)?;
        let waiting = self.subject.waiting;
        let word =
            |at: usize| Hop::Word(words.futex(at * 4096), words.words(at * 4096 + 64), waiting);
        let hops: Vec<Hop<'_>> = match make {
            Some(_) => streams.iter().map(|e| Hop::Stream { from: e.from, to: e.to }).collect(),
            None if self.subject.mechanism == Mechanism::Bare => {
                (1..self.subject.stages).map(word).collect()
            }
            None => slots.init().into_iter().map(|slot| Hop::Slot(slot, waiting)).collect(),
        };
        let run = |at: usize| self.hop_stage(at, &hops);
        if self.subject.processes {
            return self.fork(run);
        }
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..self.subject.stages).map(|at| scope.spawn(move || run(at))).collect();
            threads.into_iter().try_for_each(|t| t.join().expect("stages do not panic"))
        })
    }

    fn hop_stage(&self, at: usize, hops: &[Hop<'_>]) -> Result<()> {
        self.realtime(at).apply();
        let mut work = Work::of(at, self.subject.stages, self.timing.period_ns);
        let (mut out, mut seen, mut n) = ([0; PACKET_WORDS], 0, 0);
        loop {
            let packet = if at == 0 {
                if n >= self.ends.len() as u64 {
                    // A period later: who takes the newest packet would miss the last one.
                    self.wait().until(self.release_ns(n));
                    out[0] = END;
                    return hops[0].send(&out);
                }
                self.wait().until(self.release_ns(n));
                [0; PACKET_WORDS]
            } else {
                let packet = hops[at - 1].receive(&mut seen)?;
                n = packet[0];
                packet
            };
            if n == END {
                return hops.get(at).map_or(Ok(()), |hop| hop.send(&packet));
            }
            work.run(n, &packet, &mut out);
            match hops.get(at) {
                Some(hop) => hop.send(&out)?,
                None => self.ended(n),
            }
            if at == 0 {
                n = self.after(n);
            }
        }
    }

    /// Runs `body` for each stage in a forked child; the parent has one thread.
    fn fork(&self, body: impl Fn(usize) -> Result<()>) -> Result<()> {
        let mut children = Vec::new();
        for at in 0..self.subject.stages {
            // SAFETY: this process has no other thread now, so the child may do anything.
            match unsafe { libc::fork() } {
                0 => {
                    // SAFETY: no pointers.
                    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
                    let code = match body(at) {
                        Ok(()) => 0,
                        Err(e) => {
                            eprintln!("stage {at}: {e}");
                            if e.kind() == ErrorKind::Timeout { TIMED_OUT } else { 1 }
                        }
                    };
                    // SAFETY: ends the child without the parent's exit handlers.
                    unsafe { libc::_exit(code) }
                }
                -1 => return Err(os_error("fork")),
                pid => children.push(pid),
            }
        }
        let wait = |pid| {
            let mut status = 0;
            // SAFETY: our own child, reaped here only.
            unsafe { libc::waitpid(pid, &mut status, 0) };
            status
        };
        let statuses: Vec<i32> = children.into_iter().map(wait).collect();
        ended(self.subject.name, &statuses)
    }

    fn outcomes(&self, cpu: f64) -> Outcomes {
        let mut out = Outcomes { cpu, ..Outcomes::default() };
        let mut last = None;
        for n in self.timing.warm_up..self.ends.len() as u64 {
            let end = self.ends[n as usize][0].load(Relaxed);
            if end == 0 {
                out.misses += 1;
                last = None;
                continue;
            }
            let latency = end.saturating_sub(self.release_ns(n));
            out.misses += u64::from(latency > self.timing.period_ns);
            out.latency_ns.push(latency as f64);
            if let Some(last) = last {
                out.deviation_ns.push((end as f64 - last as f64) - self.timing.period_ns as f64);
            }
            last = Some(end);
        }
        out
    }
}

/// What the wait statuses of the stages of row `name` come to.
fn ended(name: &str, statuses: &[i32]) -> Result<()> {
    let timed_out = |&s: &i32| libc::WIFEXITED(s) && libc::WEXITSTATUS(s) == TIMED_OUT;
    let (kind, remedy) = if statuses.iter().all(|&s| s == 0) {
        return Ok(());
    } else if statuses.iter().all(|s| *s == 0 || timed_out(s)) {
        (ErrorKind::Timeout, "run again on a machine that is not overloaded")
    } else {
        // The others may have waited for that one.
        (ErrorKind::OwnerDied, "see above")
    };
    Err(Error::new(kind, "measure", name, remedy))
}

fn some_both<A, B>(both: (A, B)) -> (Option<A>, Option<B>) {
    (Some(both.0), Some(both.1))
}

fn os_error(what: &str) -> Error {
    let cause = std::io::Error::last_os_error();
    Error::new(ErrorKind::Io, what, "the pipeline's stages", "").with_source(cause)
}

/// Processor time of this process, or of its ended children, ns.
fn processor_ns(children: bool) -> u64 {
    let who = if children { libc::RUSAGE_CHILDREN } else { libc::RUSAGE_SELF };
    // SAFETY: a rusage is integers, filled by the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_that_waited_too_long_is_a_timeout_unless_another_one_failed() {
        let kind = |statuses: &[i32]| ended("row", statuses).err().map(|e| e.kind());
        let (timed_out, failed, killed) = (TIMED_OUT << 8, 1 << 8, libc::SIGKILL);
        assert_eq!(kind(&[0, 0]), None);
        assert_eq!(kind(&[0, timed_out]), Some(ErrorKind::Timeout));
        for other in [failed, killed] {
            assert_eq!(kind(&[timed_out, other]), Some(ErrorKind::OwnerDied));
        }
    }
}
