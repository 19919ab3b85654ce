//! Wild writes: a member that scribbles over everything it can reach, and those beside it who must
//! neither crash nor hang nor take garbage for a message.
//!
//! | process    | part                                                                       |
//! |------------|----------------------------------------------------------------------------|
//! | scribbler  | joins everything, then writes garbage through its own mappings, stops amid |
//! |            | its operations, holds every borrow, joins and leaves; in odd rounds it     |
//! |            | also spoils files as a clumsy operator would                               |
//! | talker     | publishes, sends and asks, in the topic, queue and service of the scribbler |
//! | listener   | the other end of those                                                     |
//! | locker     | takes the same locks; sends to the scribbler and asks it                   |
//! | calm pair  | a publisher and a reliable subscriber in another topic of the same domain  |

mod board;
mod members;
mod scribble;

use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use board::Board;

use crate::{Child, Exit, TempDomain, fork_child};

/// How long a round lasts once everybody is there.
const ROUND: Duration = Duration::from_millis(250);
/// By then every member has ended after it was told to: joins may take 10 s.
const END: Duration = Duration::from_secs(20);
/// So late for a sleep of 20 ms: the machine stood still.
const STALL: Duration = Duration::from_millis(500);
/// Most private and shared memory of a survivor, KiB.
const MEMORY_KIB_MAX: u64 = 400 << 10;

/// Figures of one round or of all.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Rounds.
    pub seeds: u64,
    /// Garbage written through mappings.
    pub writes: u64,
    /// Files spoilt.
    pub attacks: u64,
    /// Stops amid an operation of the library.
    pub stops: u64,
    /// Joins and leaves of the scribbler.
    pub joins: u64,
    /// Rounds in which the machine itself stood still, so that slowness says nothing.
    pub stalls: u64,
    /// Scribblers that died of their own garbage.
    pub own_deaths: u64,
    /// Operations of survivors, and how many of them told of an error.
    pub operations: u64,
    /// See `operations`.
    pub errors: u64,
    /// Messages that survivors received.
    pub received: u64,
    /// What must not be, in words.
    pub crashes: Vec<String>,
    /// See `crashes`.
    pub hangs: Vec<String>,
    /// See `crashes`.
    pub wrong: Vec<String>,
}

impl Found {
    /// Whether nothing happened that must not.
    pub fn is_good(&self) -> bool {
        self.crashes.is_empty() && self.hangs.is_empty() && self.wrong.is_empty()
    }

    /// Adds another round.
    pub fn merge(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.writes += other.writes;
        self.attacks += other.attacks;
        self.stops += other.stops;
        self.joins += other.joins;
        self.stalls += other.stalls;
        self.own_deaths += other.own_deaths;
        self.operations += other.operations;
        self.errors += other.errors;
        self.received += other.received;
        self.crashes.extend(other.crashes);
        self.hangs.extend(other.hangs);
        self.wrong.extend(other.wrong);
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} seeds, {} writes, {} file attacks, {} stops, {} joins, {} scribblers died, {} \
             machine stalls; survivors: {} operations, {} errors told, {} messages, {} crashes, \
             {} hangs, {} wrong",
            self.seeds,
            self.writes,
            self.attacks,
            self.stops,
            self.joins,
            self.own_deaths,
            self.stalls,
            self.operations,
            self.errors,
            self.received,
            self.crashes.len(),
            self.hangs.len(),
            self.wrong.len()
        )
    }
}

/// One round; an odd `seed` spoils files too.
///
/// # Errors
/// What kept the round from being run.
pub fn round(seed: u64) -> Result<Found, String> {
    let dir = TempDomain::new("wild").map_err(|e| e.to_string())?;
    let board = Board::map();
    let with_files = seed % 2 == 1;
    board.intact.store(u64::from(!with_files), Relaxed);
    let mut found = Found { seeds: 1, ..Found::default() };
    let mut members = Vec::new();
    for (i, (name, body)) in members::ALL.iter().enumerate() {
        let child = fork_child(|| body(dir.path(), board, &board.members[i]));
        members.push((*name, child.map_err(|e| e.to_string())?));
    }
    let all_ready = || board.members.iter().all(|m| m.ready.load(Acquire) != 0);
    if !crate::process::wait_until(END, all_ready) {
        return Err(format!("seed {seed}: the members do not come up"));
    }
    scribblers(seed, dir.path(), board, &mut found)?;
    board.stop.store(1, Release);
    for (i, (name, child)) in members.iter_mut().enumerate() {
        let kib = memory_kib(child.pid());
        if kib > MEMORY_KIB_MAX {
            found.wrong.push(format!("seed {seed}: the {name} has {kib} KiB of memory"));
        }
        match child.wait_timeout(END) {
            Some(Exit::Code(0)) => {}
            Some(exit) => found.crashes.push(format!("seed {seed}: the {name} ended by {exit}")),
            None => found.hangs.push(format!("seed {seed}: the {name} does not end")),
        }
        let m = &board.members[i];
        found.operations += m.done.load(Relaxed);
        found.errors += m.errors.load(Relaxed);
        found.received += m.received.load(Relaxed);
        let (wrong, slow) = (m.wrong.load(Relaxed), m.slow.load(Relaxed));
        if wrong > 0 {
            found.wrong.push(format!("seed {seed}: the {name} saw {wrong} wrong messages"));
        }
        if slow > 0 && found.stalls == 0 {
            found.hangs.push(format!("seed {seed}: {slow} operations of the {name} hung"));
        }
    }
    found.writes = board.writes.load(Relaxed);
    found.attacks = board.attacks.load(Relaxed);
    found.stops = board.stops.load(Relaxed);
    found.joins = board.joins.load(Relaxed);
    unmap(board);
    Ok(found)
}

/// Scribblers one after another for the length of a round: some die of what they write.
fn scribblers(
    seed: u64,
    dir: &Path,
    board: &'static Board,
    found: &mut Found,
) -> Result<(), String> {
    let start = Instant::now();
    let (mut n, mut last) = (0, start);
    while start.elapsed() < ROUND {
        let own_seed = seed << 8 | n;
        let child = fork_child(|| scribble::scribbler(dir, board, own_seed));
        let mut child: Child = child.map_err(|e| e.to_string())?;
        let ended = loop {
            if let Some(exit) = child.wait_timeout(Duration::from_millis(20)) {
                break Some(exit);
            }
            // Who only sleeps is late when the machine is.
            found.stalls |= u64::from(last.elapsed() > STALL);
            last = Instant::now();
            // It stops itself in the middle of things.
            child.signal(libc::SIGCONT);
            if start.elapsed() >= ROUND {
                break None;
            }
        };
        child.kill();
        found.own_deaths += u64::from(matches!(ended, Some(Exit::Signal(_) | Exit::Code(101))));
        n += 1;
    }
    Ok(())
}

fn unmap(board: &'static Board) {
    // SAFETY: mapped by `Board::map`; its users have ended, and the caller uses it no more.
    unsafe { libc::munmap(std::ptr::from_ref(board) as *mut _, size_of::<Board>()) };
}

/// Most memory the process has had.
fn memory_kib(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
