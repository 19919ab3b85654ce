//! Random kills among processes that take a lock and let it go: who waits for the dead, who is
//! inside with another, who finds half-written data without a word.
//!
//! After each kill every living thread has to get a turn within a second; else that kill counts as
//! a stall, and everybody starts anew with a fresh lock.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::{Duration, Instant};

use outlive::{Result, now_ns};

use crate::memory::{SharedFile, failed};
use crate::{Lock, Process, Told, Use};

/// A wait that is longer counts as a stall.
pub const STALL: Duration = Duration::from_secs(1);
const PROCESSES_MAX: usize = 8;
const THREADS_MAX: usize = 4;

/// What is tried.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many are killed.
    pub kills: u64,
    /// Processes at a time, up to 8.
    pub processes: usize,
    /// Threads in each of them, up to 4.
    pub threads: usize,
    /// Seed of the instants, victims and turns.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Processes killed.
    pub kills: u64,
    /// Turns of all threads, alone or shared.
    pub turns: u64,
    /// Turns that were told of their owner's death.
    pub told: u64,
    /// Kills after which a living thread waited for more than a second.
    pub stalls: u64,
    /// Turns that found or left another living one inside.
    pub violations: u64,
    /// Turns alone that found what a dead one left half done, and were not told.
    pub untold: u64,
    /// Turns that were refused.
    pub refused: u64,
    /// The longest wait that ended, ns.
    pub longest_ns: u64,
}

impl Found {
    /// Adds another run.
    pub fn merge(&mut self, other: Self) {
        self.kills += other.kills;
        self.turns += other.turns;
        self.told += other.told;
        self.stalls += other.stalls;
        self.violations += other.violations;
        self.untold += other.untold;
        self.refused += other.refused;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} kills, {} stalls over 1 s, {} exclusion violations, {} torn untold, {} refused; \
             {} told, {} turns, longest wait {:.1} ms",
            self.kills,
            self.stalls,
            self.violations,
            self.untold,
            self.refused,
            self.told,
            self.turns,
            self.longest_ns as f64 / 1e6
        )
    }
}

/// Where the words of the board lie in its page.
mod at {
    pub(super) const STOP: usize = 0;
    pub(super) const TOLD: usize = 8;
    pub(super) const VIOLATIONS: usize = 16;
    pub(super) const UNTOLD: usize = 24;
    pub(super) const REFUSED: usize = 32;
    pub(super) const LONGEST: usize = 40;
    /// What the lock protects: who is alone inside, and two words that change together.
    pub(super) const OWNER: usize = 128;
    pub(super) const DATA: [usize; 2] = [136, 144];
    /// Number of the process that lives in each place, 0 for none.
    pub(super) const LIVES: usize = 256;
    /// Turns of each thread.
    pub(super) const TURNS: usize = 512;
}

/// What the processes share beside the lock.
struct Board(SharedFile);

impl Board {
    fn word(&self, offset: usize) -> &AtomicU64 {
        self.0.word64(offset)
    }

    fn get(&self, offset: usize) -> u64 {
        self.word(offset).load(SeqCst)
    }

    fn add(&self, offset: usize) {
        self.word(offset).fetch_add(1, Relaxed);
    }

    fn lives(&self, place: usize) -> &AtomicU64 {
        self.word(at::LIVES + 8 * place)
    }

    fn turns(&self, place: usize, thread: usize) -> &AtomicU64 {
        self.word(at::TURNS + 8 * (place * THREADS_MAX + thread))
    }

    fn data(&self) -> [u64; 2] {
        at::DATA.map(|offset| self.word(offset).load(Relaxed))
    }

    /// Whether the thread `owner` is of a process that has not been killed.
    fn is_living(&self, owner: u64) -> bool {
        let place = (owner / 16) as usize % PROCESSES_MAX;
        self.lives(place).load(SeqCst) == owner / 16 / PROCESSES_MAX as u64
    }
}

/// Numbers that look random (splitmix64).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }
}

/// One thread that takes the lock and lets it go.
struct Worker<'a, L: Use> {
    lock: &'a L,
    board: &'a Board,
    turns: &'a AtomicU64,
    random: Random,
    /// {number of the process, its place, number of the thread + 1}.
    me: u64,
}

impl<L: Use> Worker<'_, L> {
    fn pause(&mut self) {
        match self.random.below(64) {
            0 => std::thread::sleep(Duration::from_micros(self.random.below(300))),
            1..8 => std::thread::yield_now(),
            _ => (0..self.random.below(200)).for_each(|_| std::hint::spin_loop()),
        }
    }

    fn waited(&self, since: u64) {
        self.board.word(at::LONGEST).fetch_max(now_ns() - since, Relaxed);
    }

    /// Changes the data as its only user.
    fn alone(&mut self, told: Told) {
        let board = self.board;
        let owner = board.word(at::OWNER);
        let (before, [a, b]) = (owner.load(Relaxed), board.data());
        if before != 0 && board.is_living(before) {
            board.add(at::VIOLATIONS);
        } else if told == Told::OwnerDied {
            board.add(at::TOLD);
        } else if before != 0 {
            board.add(at::UNTOLD);
        } else if a != b {
            board.add(at::VIOLATIONS);
        }
        owner.store(self.me, Relaxed);
        let [first, second] = at::DATA.map(|offset| board.word(offset));
        first.store(a + 1, Relaxed);
        self.pause();
        second.store(a + 1, Relaxed);
        if owner.load(Relaxed) != self.me || board.data() != [a + 1; 2] {
            board.add(at::VIOLATIONS);
        }
        owner.store(0, Relaxed);
    }

    /// Looks at the data beside other readers.
    fn beside(&mut self) {
        let board = self.board;
        let (owner, before) = (board.word(at::OWNER).load(Relaxed), board.data());
        self.pause();
        let dead = owner != 0 && !board.is_living(owner);
        if !dead && (owner != 0 || before[0] != before[1] || board.data() != before) {
            board.add(at::VIOLATIONS);
        }
    }

    fn run(mut self, shares: bool) {
        while self.board.get(at::STOP) == 0 {
            let (since, mut inside) = (now_ns(), false);
            let (lock, reads) = (self.lock, shares && self.random.below(2) == 0);
            let turn = |told| {
                inside = true;
                self.waited(since);
                if reads && told == Told::Nothing { self.beside() } else { self.alone(told) }
            };
            if reads {
                lock.shared(turn)
            } else {
                lock.alone(turn)
            }
            if !inside {
                self.board.add(at::REFUSED);
            }
            self.turns.fetch_add(1, Relaxed);
            self.pause();
        }
    }
}

/// The processes and their lock.
struct Stage<'a, L: Lock> {
    lock: L,
    plan: Plan,
    dir: &'a Path,
    board: &'a Board,
    random: Random,
    /// Processes begun.
    begun: u64,
    /// Locks made.
    made: u64,
}

impl<L: Lock> Stage<'_, L> {
    fn lock_dir(&self) -> std::path::PathBuf {
        self.dir.join(format!("lock-{}", self.made))
    }

    fn fresh_lock(&mut self) -> Result<L::Keeper> {
        self.made += 1;
        for word in [at::OWNER, at::DATA[0], at::DATA[1]] {
            self.board.word(word).store(0, SeqCst);
        }
        let dir = self.lock_dir();
        let made = std::fs::create_dir_all(&dir);
        made.map_err(|e| failed("make", dir.display().to_string(), e))?;
        self.lock.make(&dir)
    }

    fn start(&mut self, place: usize) -> Result<Process> {
        self.begun += 1;
        let (number, seed) = (self.begun, self.random.next());
        let (lock, board, dir) = (self.lock, self.board, self.lock_dir());
        let shares = lock.shares();
        board.lives(place).store(number, SeqCst);
        Process::fork(|| {
            let open = lock.open(&dir).unwrap_or_else(|e| panic!("{}: {e}", lock.name()));
            std::thread::scope(|scope| {
                for thread in 0..self.plan.threads {
                    let id = (number * PROCESSES_MAX as u64 + place as u64) * 16;
                    let worker = Worker {
                        lock: &open,
                        board,
                        turns: board.turns(place, thread),
                        random: Random(seed ^ thread as u64),
                        me: id + thread as u64 + 1,
                    };
                    scope.spawn(move || worker.run(shares));
                }
            });
        })
    }

    fn start_all(&mut self) -> Result<Vec<Process>> {
        (0..self.plan.processes).map(|place| self.start(place)).collect()
    }

    /// By process and thread.
    fn all_turns(&self) -> impl Iterator<Item = ((usize, usize), u64)> {
        let threads = self.plan.threads;
        let all = (0..self.plan.processes).flat_map(move |p| (0..threads).map(move |t| (p, t)));
        all.map(|(p, t)| ((p, t), self.board.turns(p, t).load(SeqCst)))
    }

    /// Waits until every thread gets a turn; those that have waited too long.
    fn stalled(&self) -> Vec<(usize, usize)> {
        let (before, start) = (self.all_turns().collect::<Vec<_>>(), Instant::now());
        loop {
            let still = self.all_turns().zip(&before).filter(|(now, before)| now == *before);
            let still: Vec<_> = still.map(|((who, _), _)| who).collect();
            if still.is_empty() || start.elapsed() > STALL {
                return still;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Kills at random.
///
/// # Errors
/// When the lock cannot be made or a process not be forked.
pub fn random_kills<L: Lock>(lock: L, dir: &Path, plan: Plan) -> Result<Found> {
    let plan = Plan {
        processes: plan.processes.clamp(2, PROCESSES_MAX),
        threads: plan.threads.clamp(1, THREADS_MAX),
        ..plan
    };
    let board = Board(SharedFile::open(&dir.join("board"))?);
    let random = Random(plan.seed);
    let mut stage = Stage { lock, plan, dir, board: &board, random, begun: 0, made: 0 };
    let mut found = Found::default();
    let mut keeper = stage.fresh_lock()?;
    let mut workers = stage.start_all()?;
    stage.stalled();
    for _ in 0..plan.kills {
        std::thread::sleep(Duration::from_micros(stage.random.below(3000)));
        let place = stage.random.below(plan.processes as u64) as usize;
        board.lives(place).store(0, SeqCst);
        workers[place].kill();
        found.kills += 1;
        workers[place] = stage.start(place)?;
        let stalled = stage.stalled();
        if !stalled.is_empty() {
            found.stalls += 1;
            // One that began just now may be short of a processor.
            let stall = format!("(process, thread) {stalled:?} after process {place} was replaced");
            eprintln!("{}, kill {}: no turn for {stall}", lock.name(), found.kills);
            (0..plan.processes).for_each(|place| board.lives(place).store(0, SeqCst));
            workers.clear();
            drop(keeper);
            keeper = stage.fresh_lock()?;
            workers = stage.start_all()?;
            stage.stalled();
        }
    }
    board.word(at::STOP).store(1, SeqCst);
    // Who still waits for a dead one never ends by itself.
    for worker in &mut workers {
        let _ = worker.ends_within(STALL);
    }
    drop((workers, keeper));
    found.turns = stage.all_turns().map(|(_, turns)| turns).sum();
    found.told = board.get(at::TOLD);
    found.violations = board.get(at::VIOLATIONS);
    found.untold = board.get(at::UNTOLD);
    found.refused = board.get(at::REFUSED);
    found.longest_ns = board.get(at::LONGEST);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::TempDir;
    use crate::{OursRwLock, PthreadMutex};

    const PLAN: Plan = Plan { kills: 30, processes: 3, threads: 2, seed: 7 };

    #[test]
    fn outlives_lock_goes_on_after_every_kill() {
        let dir = TempDir::new("kills");
        let found = random_kills(OursRwLock, &dir.0, PLAN).unwrap();
        let faults = [found.stalls, found.violations, found.untold, found.refused];
        assert_eq!((found.kills, faults), (30, [0; 4]), "{found}");
        assert!(found.turns > 100, "{found}");
    }

    #[test]
    fn a_lock_that_does_not_survive_is_seen_to_stall() {
        let dir = TempDir::new("kills");
        let plan = Plan { kills: 12, ..PLAN };
        let found = random_kills(PthreadMutex { robust: false }, &dir.0, plan).unwrap();
        assert!(found.stalls > 0, "{found}");
    }
}
