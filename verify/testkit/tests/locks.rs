//! Locks under random kills: nobody waits for the dead, nobody is inside with another.
//!
//! `LOCK_KILLS` sets the kills of each test (300), `LOCK_ROUNDS` how often it is repeated (1).

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::time::{Duration, Instant};

use outlive::lock::{
    Inherited, LockError, LocklessSet, MutexGuard, RobustMutex, RobustRwLock, RobustSemaphore,
    WriteGuard,
};
use outlive::{Domain, Node};
use testkit::{Child, Rng, TempDomain, Watchdog, fork_child, seed_from_env};

/// What a lock protects: two words that only change together, and who is inside.
type Data = [u64; 3];

const PROCESSES: usize = 3;
const STALL: Duration = Duration::from_secs(1);

/// Words that all processes share, outside of any lock.
#[derive(Clone, Copy)]
struct Board(NonNull<AtomicU64>);

// SAFETY: shared memory of atomics, never unmapped.
unsafe impl Sync for Board {}
// SAFETY: as above.
unsafe impl Send for Board {}

#[derive(Clone, Copy)]
#[repr(usize)]
enum Word {
    Stop,
    Turns,
    Inherited,
    Violations,
    Stalls,
    WaitedNsMax,
    Failures,
}

impl Board {
    fn new() -> Self {
        let (mode, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new anonymous mapping disturbs nothing.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), 4096, mode, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        Self(NonNull::new(at.cast()).expect("not at 0"))
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        // SAFETY: the page holds 64 words, each on a line of its own.
        unsafe { self.0.add(8 * word as usize).as_ref() }
    }

    fn get(&self, word: Word) -> u64 {
        self.word(word).load(SeqCst)
    }

    fn add(&self, word: Word) {
        self.word(word).fetch_add(1, Relaxed);
    }

    /// How long a lock was waited for.
    fn waited(&self, since: Instant) {
        let waited = since.elapsed();
        self.word(Word::WaitedNsMax).fetch_max(waited.as_nanos() as u64, Relaxed);
        if waited > STALL {
            self.add(Word::Stalls);
        }
    }
}

struct Locks {
    mutex: RobustMutex<Data>,
    rwlock: RobustRwLock<Data>,
    semaphore: RobustSemaphore,
    set: LocklessSet,
}

impl Locks {
    fn open(node: &Node) -> outlive::Result<Self> {
        Ok(Self {
            mutex: node.mutex("/kills/mutex")?,
            rwlock: node.rwlock("/kills/rwlock")?,
            semaphore: node.semaphore("/kills/semaphore", 2)?,
            set: node.lockless_set("/kills/set", 200)?,
        })
    }
}

/// One worker thread: takes and lets go until it is told to stop or killed.
struct Worker<'a> {
    board: Board,
    locks: &'a Locks,
    rng: Rng,
    me: u64,
}

impl Worker<'_> {
    fn pause(&mut self) {
        match self.rng.below(64) {
            0 => std::thread::sleep(Duration::from_micros(self.rng.below(300))),
            1..8 => std::thread::yield_now(),
            _ => (0..self.rng.below(200)).for_each(|_| std::hint::spin_loop()),
        }
    }

    /// Changes the data as its only user.
    fn alone(&mut self, data: &mut Data) {
        if data[0] != data[1] || data[2] != 0 {
            self.board.add(Word::Violations);
        }
        data[2] = self.me;
        data[0] += 1;
        self.pause();
        data[1] += 1;
        if data[2] != self.me {
            self.board.add(Word::Violations);
        }
        data[2] = 0;
    }

    fn repair(&self, data: &mut Data) {
        self.board.add(Word::Inherited);
        data[1] = data[0];
        data[2] = 0;
    }

    fn turn(&mut self) -> Result<(), String> {
        let since = Instant::now();
        let locks = self.locks;
        let text = |e: outlive::Error| e.to_string();
        match self.rng.below(10) {
            0..3 => {
                let mut guard = match locks.mutex.lock() {
                    Ok(guard) => guard,
                    Err(LockError::OwnerDied(left)) => self.mend(left),
                    Err(e) => return Err(e.to_string()),
                };
                self.board.waited(since);
                self.alone(&mut guard);
            }
            3..7 => match locks.rwlock.read() {
                Ok(guard) => {
                    self.board.waited(since);
                    self.pause();
                    if guard[0] != guard[1] || guard[2] != 0 {
                        self.board.add(Word::Violations);
                    }
                }
                Err(LockError::OwnerDied(_)) => self.write(since)?,
                Err(e) => return Err(e.to_string()),
            },
            7 => self.write(since)?,
            8 => {
                let permit = locks.semaphore.acquire().map_err(|e| text(e.into()))?;
                self.board.waited(since);
                self.pause();
                drop(permit);
            }
            _ => {
                let id = 1 + self.rng.below(150);
                if locks.set.insert(id).map_err(text)? && self.rng.below(2) == 0 {
                    self.pause();
                }
                locks.set.remove(id);
            }
        }
        Ok(())
    }

    fn mend<'g>(&self, mut left: Inherited<MutexGuard<'g, Data>>) -> MutexGuard<'g, Data> {
        self.repair(&mut left);
        left.mark_consistent()
    }

    fn write(&mut self, since: Instant) -> Result<(), String> {
        let mut guard: WriteGuard<'_, Data> = match self.locks.rwlock.write() {
            Ok(guard) => guard,
            Err(LockError::OwnerDied(mut left)) => {
                self.repair(&mut left);
                left.mark_consistent()
            }
            Err(e) => return Err(e.to_string()),
        };
        self.board.waited(since);
        self.alone(&mut guard);
        Ok(())
    }

    fn run(mut self) {
        while self.board.get(Word::Stop) == 0 {
            if let Err(e) = self.turn() {
                eprintln!("worker {}: {e}", self.me);
                self.board.add(Word::Failures);
                return;
            }
            self.board.add(Word::Turns);
            self.pause();
        }
    }
}

/// A process with some worker threads.
fn spawn(domain: &TempDomain, board: Board, threads: usize, rng: &mut Rng, first: u64) -> Child {
    let (root, seed) = (domain.path().join("root"), rng.next_u64());
    fork_child(|| {
        let node = Node::builder().root(root).name("worker").open().expect("a node");
        let locks = Locks::open(&node).expect("locks");
        std::thread::scope(|scope| {
            for thread in 0..threads as u64 {
                let rng = Rng::new(seed ^ thread);
                let worker = Worker { board, locks: &locks, rng, me: first + thread };
                scope.spawn(move || worker.run());
            }
        });
        0
    })
    .expect("fork")
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn random_kills(label: &str, threads: usize) {
    let seed = seed_from_env("LOCK_SEED");
    for round in 0..number("LOCK_ROUNDS", 1) {
        kill_round(label, threads, seed.wrapping_add(round));
    }
}

fn kill_round(label: &str, threads: usize, seed: u64) {
    let kills = number("LOCK_KILLS", 300);
    let domain = TempDomain::new(label).unwrap();
    let _dog = Watchdog::start(label, Duration::from_secs(120));
    let board = Board::new();
    let mut rng = Rng::new(seed);
    let mut next = 1;
    let mut start = |rng: &mut Rng| {
        next += threads as u64;
        spawn(&domain, board, threads, rng, next)
    };
    let mut workers: Vec<Child> = (0..PROCESSES).map(|_| start(&mut rng)).collect();
    for _ in 0..kills {
        std::thread::sleep(Duration::from_micros(rng.below(6000)));
        let victim = &mut workers[rng.below(PROCESSES as u64) as usize];
        victim.kill();
        *victim = start(&mut rng);
    }
    board.word(Word::Stop).store(1, SeqCst);
    let clean_ends = workers.iter_mut().map(|w| w.wait().success()).filter(|ok| *ok).count();
    let (turns, inherited) = (board.get(Word::Turns), board.get(Word::Inherited));
    println!(
        "{label}, seed {seed}: {kills} kills, {turns} turns, {inherited} inherited, longest wait \
         {} us",
        board.get(Word::WaitedNsMax) / 1000
    );
    assert_eq!(clean_ends, PROCESSES);
    let faults = [Word::Violations, Word::Stalls, Word::Failures].map(|word| board.get(word));
    assert_eq!(faults, [0; 3], "violations, stalls, failures");
    assert!(turns > kills, "nothing was tried");
    let tools = Domain::of(&Node::builder().root(domain.path().join("root"))).unwrap();
    let audit = tools.audit().unwrap();
    assert!(audit.files >= 4 && audit.faults.is_empty(), "{:?}", audit.faults);
    assert!(tools.clean().unwrap().domain_removed);
    assert_eq!(domain.listing(), [""; 0]);
}

#[test]
fn three_processes_of_one_thread_survive_random_kills() {
    random_kills("one-thread", 1);
}

#[test]
fn three_processes_of_several_threads_survive_random_kills() {
    random_kills("threads", 3);
}
