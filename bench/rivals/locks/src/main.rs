//! Boost's sharable mutex and the C library's reader/writer lock beside outlive's: pairs without a
//! rival, two processes with one, and random kills. Rounds alternate; ratios to outlive's are
//! medians over rounds.
//!
//! `--rounds N` (10), `--kills N` (30; 0: none).

mod boost;

use std::path::PathBuf;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use std::time::{Duration, Instant};

use boost::BoostSharable;
use outlive::Result;
use outlive_baselines::kills::{Plan, random_kills};
use outlive_baselines::{Lock, OursRwLock, Process, PthreadRwLock, SharedFile, Use};

const PAIRS: u32 = 300_000;
const RUN: Duration = Duration::from_millis(100);

/// A directory of its own, removed at the end.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Self {
        let dir = PathBuf::from(format!("/dev/shm/outlive-peers-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).expect("a RAM disk at /dev/shm");
        Self(dir)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What is measured of one lock; ns, or turns per microsecond.
type Row = [f64; 3];
const WHAT: [&str; 3] = ["write pair, ns", "read pair, ns", "two writers, turns/us"];

fn pair(turn: impl Fn()) -> f64 {
    (0..PAIRS / 10).for_each(|_| turn());
    let start = Instant::now();
    (0..PAIRS).for_each(|_| turn());
    start.elapsed().as_nanos() as f64 / f64::from(PAIRS)
}

fn pin(cpu: usize) {
    // SAFETY: plain bits, zero is the empty set; the calling thread's affinity.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set);
    }
}

/// Two processes that take it in turn as fast as they can. Turns per us.
fn rivals<L: Lock>(lock: L, dir: &TempDir) -> Result<f64> {
    let board = SharedFile::open(&dir.0.join("board"))?;
    let [go, stop, inside] = [0, 128, 256].map(|at| board.word64(at));
    for word in [go, stop, inside] {
        word.store(0, SeqCst);
    }
    let turns = |n: usize| board.word64(512 + 128 * n);
    let begin = || -> Result<Vec<Process>> {
        (0..2)
            .map(|n| {
                Process::fork(|| {
                    pin(n);
                    let Ok(open) = lock.open(&dir.0) else { return };
                    go.fetch_add(1, SeqCst);
                    while go.load(Acquire) < 2 {}
                    let mut mine = 0;
                    while stop.load(Relaxed) == 0 {
                        open.alone(|_| inside.store(inside.load(Relaxed) + 1, Relaxed));
                        mine += 1;
                    }
                    turns(n).store(mine, SeqCst);
                })
            })
            .collect()
    };
    let mut peers = begin()?;
    while go.load(Acquire) < 2 {
        std::thread::sleep(Duration::from_micros(100));
    }
    let start = Instant::now();
    std::thread::sleep(RUN);
    stop.store(1, SeqCst);
    let ended = peers.iter_mut().all(|peer| peer.ends_within(Duration::from_secs(10)));
    let sum = turns(0).load(SeqCst) + turns(1).load(SeqCst);
    assert!(ended && inside.load(SeqCst) == sum, "{}: two were inside at once", lock.name());
    Ok(sum as f64 / (start.elapsed().as_nanos() as f64 / 1e3))
}

fn measure<L: Lock>(lock: L) -> Result<Row> {
    let dir = TempDir::new();
    let _keeper = lock.make(&dir.0)?;
    let open = lock.open(&dir.0)?;
    let pairs = [pair(|| open.alone(|_| {})), pair(|| open.shared(|_| {}))];
    Ok([pairs[0], pairs[1], rivals(lock, &dir)?])
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

/// `p50 mean sd`.
fn figures(values: &[f64]) -> String {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let deviation = (squares / values.len() as f64).sqrt();
    format!("{:>8.1} {mean:>8.1} {deviation:>8.1}", median(values.to_vec()))
}

fn table(name: &str, rows: &[Row], ours: &[Row]) {
    for (n, what) in WHAT.iter().enumerate() {
        let values: Vec<f64> = rows.iter().map(|row| row[n]).collect();
        let ratio = median(rows.iter().zip(ours).map(|(row, ours)| row[n] / ours[n]).collect());
        println!("{name:<22} {what:<22} {} {ratio:>10.2}", figures(&values));
    }
}

fn kills<L: Lock>(lock: L, kills: u64) -> Result<()> {
    let dir = TempDir::new();
    let found = random_kills(lock, &dir.0, Plan { kills, processes: 3, threads: 1, seed: 1 })?;
    println!("{:<22} {found}", lock.name());
    Ok(())
}

fn number(flag: &str, default: u64) -> u64 {
    let mut args = std::env::args().skip_while(|arg| arg != flag).skip(1);
    args.next().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn main() -> Result<()> {
    let rounds = number("--rounds", 10).max(1);
    let (mut ours, mut pthread, mut boost) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        ours.push(measure(OursRwLock)?);
        pthread.push(measure(PthreadRwLock)?);
        boost.push(measure(BoostSharable)?);
    }
    println!("{rounds} rounds; ratio: to outlive's of the same round\n");
    println!(
        "{:<22} {:<22} {:>8} {:>8} {:>8} {:>10}",
        "lock", "what", "p50", "mean", "sd", "ratio"
    );
    table(OursRwLock.name(), &ours, &ours);
    table(PthreadRwLock.name(), &pthread, &ours);
    table(BoostSharable.name(), &boost, &ours);
    let victims = number("--kills", 30);
    if victims > 0 {
        println!("\n3 processes that lock and unlock, one killed at random, again and again:");
        kills(OursRwLock, victims)?;
        kills(PthreadRwLock, victims)?;
        kills(BoostSharable, victims)?;
    }
    Ok(())
}
