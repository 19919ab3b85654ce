//! Who keeps the logs: a process of its own, which reads what the processes of a robot print and
//! writes it to disk. It outlives the supervisor; see ADR 0025.
//!
//! Each process prints into a named pipe of the supervisor's directory. It has it open for
//! reading too, as has the supervisor, so a keeper that is killed ends nobody by SIGPIPE: the next
//! one opens the pipe and finds what is in it.
//!
//! # Dying here
//! What was read and is not yet written is lost: [`READ_MAX`] at most of one log. What is in the
//! pipes stays there while the supervisor or the process lives.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::sink::{Bounds, Sink};
use crate::proc::Identity;

/// Read of one pipe at once, bytes.
const READ_MAX: usize = 64 << 10;
/// The pause after a full read: who prints more than 64 KiB in it waits.
const PACE: Duration = Duration::from_millis(1);
/// Between two looks at what is to be said, at files that were moved, and at the supervisor.
const TICK: Duration = Duration::from_millis(200);
/// For the one before to let go of the lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// Held by the keeper; says who it is.
pub(crate) const LOCK: &str = "logs.lock";
/// Says what it is to keep.
pub(crate) const PLAN: &str = "logs.json";
/// Becomes it.
pub(crate) const DRAFT: &str = "logs.new";

/// What it prints once it has the pipes open.
pub(crate) const READY: &[u8] = b"ready\n";

/// What a keeper is to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Of one keeper: another number means that another one is to keep them.
    pub(crate) number: u64,
    /// It ends when this one is dead and nobody has a pipe open.
    pub(crate) supervisor: Identity,
    pub(crate) bytes_max: u64,
    pub(crate) keep: u32,
    pub(crate) rate: u64,
    /// Pipes, and the logs that they are for.
    pub(crate) logs: Vec<(PathBuf, PathBuf)>,
}

/// Keeps the logs of the supervisor of `dir` until it must end, or nobody is left to print. For a
/// program started as [`SupervisorOptions::log_keeper`](crate::SupervisorOptions) says; it must do
/// nothing else.
///
/// # Errors
/// Its plan cannot be read, or it cannot have the lock. Errors of the disk are said in the logs.
pub fn keep_logs(dir: &Path, number: u64) -> io::Result<()> {
    let end = Arc::<AtomicBool>::default();
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&end))?;
    }
    crate::os::ignore_file_size_signal();
    let _ = rustix::thread::set_name(c"outlive-logs");
    let Some(plan) = plan(dir, number)? else { return Ok(()) };
    let now = Instant::now();
    let bounds = Bounds { bytes_max: plan.bytes_max, keep: plan.keep, rate: plan.rate };
    let mut sources = Vec::new();
    for (pipe, path) in &plan.logs {
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        // One that is gone has no process any more.
        let Ok(pipe) = OpenOptions::new().read(true).custom_flags(flags).open(pipe) else {
            continue;
        };
        let sink = Sink::new(path.clone(), bounds, now);
        sources.push(Source { pipe, sink, alone: false });
    }
    // What is in them is safe from here on, also while the one before still reads.
    let _ = io::stdout().write_all(READY).and_then(|()| io::stdout().flush());
    let Some(_lock) = lock(dir)? else { return Ok(()) };
    // Meanwhile another one may have been asked for.
    if self::plan(dir, number)?.is_none() {
        return Ok(());
    }
    run(&mut sources, dir, &plan, &end);
    // What was printed up to now; who prints on prints for the next one.
    for source in &mut sources {
        (0..16).take_while(|_| source.read() == Some(READ_MAX)).for_each(drop);
        source.sink.end(Instant::now());
    }
    Ok(())
}

/// What there is to do, if it is for the keeper with this number.
fn plan(dir: &Path, number: u64) -> io::Result<Option<Plan>> {
    let text = match fs::read(dir.join(PLAN)) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let plan: Plan = serde_json::from_slice(&text)?;
    Ok(Some(plan).filter(|plan| plan.number == number))
}

/// Waits for the one before to end; `None` if the directory is gone.
fn lock(dir: &Path) -> io::Result<Option<File>> {
    let begun = Instant::now();
    loop {
        let mut file = match OpenOptions::new().read(true).write(true).open(dir.join(LOCK)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let own = Identity::own();
            file.set_len(0)?;
            file.rewind()?;
            file.write_all(format!("{} {}\n", own.pid, own.start).as_bytes())?;
            return Ok(Some(file));
        }
        if begun.elapsed() > PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        sleep(Duration::from_millis(2));
    }
}

/// The keeper of `dir`, dead or alive.
pub(crate) fn keeper_of(dir: &Path) -> Option<Identity> {
    let text = fs::read_to_string(dir.join(LOCK)).ok()?;
    let mut words = text.split_whitespace();
    Some(Identity { pid: words.next()?.parse().ok()?, start: words.next()?.parse().ok()? })
}

/// Asks a keeper to write what it has and to end; kills one that does not. Its lock is free
/// afterwards, or it is in an uninterruptible sleep.
pub(crate) fn end_keeper(keeper: Identity) {
    keeper.signal(libc::SIGTERM);
    let begun = Instant::now();
    while keeper.is_alive() && begun.elapsed() < Duration::from_secs(3) {
        if begun.elapsed() > Duration::from_secs(2) {
            keeper.signal(libc::SIGKILL);
        }
        sleep(Duration::from_millis(2));
    }
}

struct Source {
    pipe: File,
    sink: Sink,
    /// Nobody has it open for writing.
    alone: bool,
}

impl Source {
    /// Bytes that came; `None` if there are none now.
    fn read(&mut self) -> Option<usize> {
        let mut bytes = [0; READ_MAX];
        let read = self.pipe.read(&mut bytes);
        self.alone = matches!(read, Ok(0));
        let n = read.ok().filter(|n| *n > 0)?;
        self.sink.take(&bytes[..n], Instant::now());
        Some(n)
    }
}

fn run(sources: &mut [Source], dir: &Path, plan: &Plan, end: &AtomicBool) {
    let mut ticked = Instant::now();
    while !end.load(Relaxed) {
        let timeout = Timespec { tv_sec: 0, tv_nsec: TICK.as_nanos() as i64 };
        // A pipe without a writer can always be read.
        let open = sources.iter().enumerate().filter(|(_, s)| !s.alone);
        let (at, mut fds): (Vec<_>, Vec<_>) =
            open.map(|(n, s)| (n, PollFd::new(&s.pipe, PollFlags::IN))).unzip();
        let polled = poll(&mut fds, Some(&timeout));
        let ready: Vec<usize> = at
            .into_iter()
            .zip(&fds)
            .filter(|(_, fd)| polled.is_ok() && !fd.revents().is_empty())
            .map(|(n, _)| n)
            .collect();
        drop(fds);
        let mut full = false;
        for n in ready {
            full |= sources[n].read() == Some(READ_MAX);
        }
        if ticked.elapsed() >= TICK {
            ticked = Instant::now();
            for source in sources.iter_mut() {
                if source.alone {
                    source.read();
                }
                source.sink.tick(ticked);
            }
            let over = sources.iter().all(|s| s.alone) && !plan.supervisor.is_alive();
            // Another one waits, whose supervisor could not know us yet.
            let replaced = self::plan(dir, plan.number).is_ok_and(|plan| plan.is_none());
            if over || replaced {
                return;
            }
        }
        if full {
            sleep(PACE);
        }
    }
}
