//! Ways to know whether a process lives: what a look costs, how long after SIGKILL it tells, and
//! what each gets wrong.
//!
//! | file | ways |
//! |---|---|
//! | `method` | what every way answers; begin here |
//! | `words` | one load of a word that the kernel marks |
//! | `calls` | one system call: signal 0, /proc, robust mutex, file lock, pidfd |
//! | `sockets` | a connection that breaks, asked by poll or epoll |
//! | `helpers` | somebody else looks: a thread of ours, a central tracker |

mod calls;
mod helpers;
mod method;
mod sockets;
mod words;

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, SeqCst};
use std::time::{Duration, Instant};

use measure::cores::{Cores, Pinned};
use measure::stats::{Samples, interleave};
use outlive::{Error, ErrorKind, Result};

use super::pair::{Peer, Reaper};
use super::report::{Row, Unit};
use super::ticks;
pub(crate) use method::{Method, Stage};

/// Kills of the large process for each method; making it takes seconds.
const LARGE_KILLS: usize = 10;

/// A look that sees nothing: what the loop itself costs.
pub(crate) struct Dummy;

impl Method for Dummy {
    const NAME: &'static str = "dummy";
    const WRONG: &'static str = "everything";
    const CHECKS: u64 = 10_000_000;

    fn new(_: &Stage) -> Result<Self> {
        Ok(Self)
    }

    fn watch(&mut self, _: &Stage, _: i32) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn is_alive(&mut self) -> bool {
        black_box(true)
    }
}

/// A process that lives until it is killed, `resident` bytes large, and its watcher.
fn with_victim<M: Method, R>(
    cores: Cores,
    resident: usize,
    body: impl FnOnce(&mut M, &Peer) -> Result<R>,
) -> Result<R> {
    ticks::ns_per_tick(); // measured before the fork
    let stage = Stage::new()?;
    let [ready] = stage.map.words(4096);
    let mut method = M::new(&stage)?;
    let peer = Peer::spawn(cores.peers, || {
        let lives = make_resident(resident) && method.live(&stage).is_ok();
        ready.store(if lives { 1 } else { 2 }, SeqCst);
        loop {
            std::thread::park();
        }
    })?;
    let start = Instant::now();
    while ready.load(Acquire) == 0 {
        if start.elapsed() > Duration::from_secs(60) || peer.has_ended() {
            return Err(peer.lost());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    if ready.load(Acquire) == 2 {
        return Err(Error::new(ErrorKind::Unsupported, "prepare", M::NAME, ""));
    }
    method.watch(&stage, peer.pid())?;
    let _pinned = Pinned::to(cores.ours)?;
    body(&mut method, &peer)
}

/// Makes the calling process so many bytes large; false when there is not so much memory.
fn make_resident(bytes: usize) -> bool {
    if bytes == 0 {
        return true;
    }
    let (rights, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let populate = flags | libc::MAP_POPULATE;
    // SAFETY: a new mapping disturbs nothing; it stays until the process dies.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, populate, -1, 0) };
    at != libc::MAP_FAILED
}

/// What one look costs, ns.
fn cost<M: Method>(cores: Cores) -> Result<Samples> {
    with_victim::<M, _>(cores, 0, |method, _| {
        let batch = M::CHECKS.div_ceil(10);
        let mut samples = Vec::new();
        for _ in 0..11 {
            let start = ticks::now();
            let mut alive = 0;
            for _ in 0..batch {
                alive += u64::from(black_box(method.is_alive()));
            }
            let took = ticks::now().wrapping_sub(start) as f64 * ticks::ns_per_tick();
            samples.push(took / batch as f64);
            if alive != batch {
                let why = "it took a living process for dead";
                return Err(Error::new(ErrorKind::Corrupt, "look with", M::NAME, why));
            }
        }
        Ok(Samples::new(samples.split_off(1)))
    })
}

/// From SIGKILL to knowledge, ns, of a process with so much memory.
fn delay<M: Method>(cores: Cores, resident: usize, kills: usize) -> Result<Samples> {
    let one = || {
        with_victim::<M, _>(cores, resident, |method, peer| {
            let start = outlive::now_ns();
            peer.kill();
            while method.is_alive() {
                if outlive::now_ns() - start > 20_000_000_000 {
                    return Err(Error::new(ErrorKind::Timeout, "await a death with", M::NAME, ""));
                }
            }
            Ok((outlive::now_ns() - start) as f64)
        })
    };
    Ok(Samples::new((0..kills).map(|_| one()).collect::<Result<_>>()?))
}

/// Three quarters of what the machine can spare; all where it does not say.
fn spare_bytes() -> usize {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kib.map_or(usize::MAX, |kib| (kib / 4 * 3) << 10)
}

fn millions(looks: u64) -> String {
    format!("{} M", looks / 1_000_000)
}

fn mib(bytes: usize) -> usize {
    bytes >> 20
}

/// The rows of one method.
fn measure<M: Method>(plan: &Plan, rows: &mut Rows) -> Result<()> {
    rows.cost.push(Row::measured(M::NAME, Unit::Ns, &cost::<M>(plan.cores)?));
    if M::NAME == Dummy::NAME {
        return Ok(());
    }
    let small = delay::<M>(plan.cores, 0, plan.kills)?;
    rows.delay.push(Row::measured(&format!("{}, dead after", M::NAME), Unit::Ns, &small));
    if plan.large_bytes > 0 {
        let large = delay::<M>(plan.cores, plan.large_bytes, plan.large_kills)?;
        let name = format!("{}, large dead after", M::NAME);
        rows.large.push(Row::measured(&name, Unit::Ns, &large));
    }
    rows.notes.push(format!("{}, {} looks: {}", M::NAME, millions(M::CHECKS), M::WRONG));
    Ok(())
}

struct Plan {
    cores: Cores,
    kills: usize,
    large_kills: usize,
    large_bytes: usize,
}

#[derive(Default)]
struct Rows {
    cost: Vec<Row>,
    delay: Vec<Row>,
    large: Vec<Row>,
    notes: Vec<String>,
}

/// All rows, and what each method gets wrong. The large process has `large_bytes` resident.
pub(super) fn rows(
    cores: Cores,
    rounds: usize,
    large_bytes: usize,
) -> Result<(Vec<Row>, Vec<String>)> {
    // For `kill` and /proc a zombie lives.
    let _reaper = Reaper::kernel();
    let mut rows = Rows::default();
    let (asked, large_bytes) = (large_bytes, large_bytes.min(spare_bytes()));
    if large_bytes > 0 {
        let lowered = if large_bytes < asked {
            format!(" of the {} asked for: there is no more memory", mib(asked))
        } else {
            String::new()
        };
        rows.notes.push(format!("large: a process of {} MiB{lowered}", mib(large_bytes)));
    }
    let plan = Plan { cores, kills: rounds, large_kills: LARGE_KILLS, large_bytes };
    let c = interleave(rounds, || cost::<Dummy>(cores), || cost::<words::Hint>(cores))?;
    let ours = Row::added("outlive, above the dummy", Dummy::NAME, &c, 1.0);
    let mut table = Table { plan, rows: &mut rows };
    each(&mut table)?;
    let Rows { mut cost, delay, large, notes } = rows;
    cost.push(ours);
    cost.extend(delay);
    cost.extend(large);
    Ok((cost, notes))
}

/// Something done with every method.
pub(crate) trait Visit {
    fn visit<M: Method>(&mut self) -> Result<()>;
}

struct Table<'a> {
    plan: Plan,
    rows: &'a mut Rows,
}

impl Visit for Table<'_> {
    fn visit<M: Method>(&mut self) -> Result<()> {
        measure::<M>(&self.plan, self.rows)
    }
}

/// The dummy, then all methods.
pub(crate) fn each(visit: &mut impl Visit) -> Result<()> {
    visit.visit::<Dummy>()?;
    visit.visit::<words::Hint>()?;
    visit.visit::<words::Ours>()?;
    visit.visit::<words::LibcMutex>()?;
    visit.visit::<words::OwnEntry>()?;
    visit.visit::<calls::TryLock>()?;
    visit.visit::<sockets::EmptyEpoll>()?;
    visit.visit::<calls::Signal>()?;
    visit.visit::<calls::Proc>()?;
    visit.visit::<helpers::PollingThread>()?;
    visit.visit::<sockets::Poll>()?;
    visit.visit::<sockets::Epoll>()?;
    visit.visit::<calls::FileLock>()?;
    visit.visit::<calls::PidFd>()?;
    visit.visit::<helpers::Tracker>()
}
