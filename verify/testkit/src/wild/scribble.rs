//! The member that writes garbage.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::board::Board;
use super::members::{CALM, QUEUE, RUNS, SERVICE, TOPIC, TRAP, settings};
use crate::Rng;

/// Stops itself at one in so many crash points.
const STOP_ONE_IN: u64 = 400;

static STATE: AtomicU64 = AtomicU64::new(0);
static BOARD: std::sync::OnceLock<&'static Board> = std::sync::OnceLock::new();

/// Joins everything, then spoils what it can until it is killed, or dies of it.
pub(super) fn scribbler(dir: &Path, board: &'static Board, seed: u64) -> i32 {
    let mut rng = Rng::new(seed);
    STATE.store(rng.next_u64() | 1, Relaxed);
    let _ = BOARD.set(board);
    #[cfg(feature = "crash-points")]
    outlive::crash::set_hook(stop_at_times);
    loop {
        // What it had joined is spoilt, or it left: once more.
        if let Err(e) = play(dir, board, &mut rng)
            && std::env::var_os("WILD_VERBOSE").is_some()
        {
            eprintln!("the scribbler: {e}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Stands still in the middle of an operation until somebody lets it go on.
#[cfg_attr(not(feature = "crash-points"), allow(dead_code))]
fn stop_at_times(_name: &'static str) {
    let mut rng = Rng::new(STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Relaxed));
    if rng.one_in(STOP_ONE_IN) {
        if let Some(board) = BOARD.get() {
            board.stops.fetch_add(1, Relaxed);
        }
        // SAFETY: a signal to ourselves.
        unsafe { libc::raise(libc::SIGSTOP) };
    }
}

/// One membership in everything that can be joined, used and spoilt; then it leaves.
fn play(dir: &Path, board: &Board, rng: &mut Rng) -> outlive::Result<()> {
    board.joins.fetch_add(1, Relaxed);
    let node = settings(dir, "scribbler").open()?;
    let topic = || node.topic::<[u64]>(TOPIC).map(|t| t.depth(8));
    // It does not wait for its own subscriber, which never reads.
    let publisher = topic()?.reliable_timeout(Duration::ZERO).publisher().ok();
    let mut subscriber = topic()?.borrows(64).subscriber().ok();
    // Never reads: publishers wait for it as long as they allow.
    let _reliable = topic()?.reliable(true).subscriber().ok();
    let mut producer = node.queue::<[u64]>(QUEUE)?.producer().ok();
    let mut runs = node.queue::<u64>(RUNS)?.producer().ok();
    let mut client = node.service::<u64, u64>(SERVICE)?.client().ok();
    let mut consumer = node.queue::<[u64]>(TRAP)?.consumer().ok();
    let mut server = node.service::<u64, u64>(TRAP)?.server().ok();
    let mutex = node.mutex::<u64>("wild-mutex").ok();
    let rwlock = node.rwlock::<u64>("wild-rwlock").ok();
    let semaphore = node.semaphore("wild-permits", 3).ok();
    let set = node.lockless_set("wild-set", 100).ok();
    let (mut held, mut permits) = (Vec::new(), Vec::new());
    let (mut mappings, mut hot) = (Vec::new(), Vec::new());
    let short = Duration::from_millis(1);
    for n in 0..2000 {
        if n % 64 == 0 {
            mappings = shared_mappings(dir);
            hot = changed_by(&mappings, || {
                (0..9).for_each(|_| drop(publisher.as_ref().map(|p| p.publish(&[n; 60]))));
                (0..4).for_each(|_| drop(producer.as_mut().map(|p| p.try_send(&[n; 60]))));
                (0..4).for_each(|_| drop(runs.as_mut().map(|p| p.try_send(&n))));
                let _ = client.as_mut().map(|c| c.send(&n));
            });
        }
        let words = vec![n; 1 + rng.below(40) as usize * 20];
        match rng.below(16) {
            0..8 => {
                // Something new to spoil, which others are about to read.
                drop(publisher.as_ref().filter(|_| n % 2 == 0).map(|p| p.publish(&words)));
                drop(producer.as_mut().filter(|_| n % 4 == 0).map(|p| p.try_send(&words)));
                drop(runs.as_mut().filter(|_| n % 4 == 1).map(|p| p.try_send(&n)));
                scribble(&mappings, &hot, board, rng);
            }
            8 => drop(publisher.as_ref().map(|p| p.publish(&words))),
            9 => held.extend(subscriber.as_mut().and_then(|s| s.receive().ok().flatten())),
            10 if rng.one_in(4) => held.clear(),
            11 => drop(producer.as_mut().map(|p| p.try_send(&words))),
            12 => {
                let _ = client.as_mut().map(|c| c.send(&n));
                let _ = client.as_mut().map(|c| c.receive().map(drop));
            }
            13 => {
                let _ = consumer.as_mut().map(|c| c.receive().map(drop));
                let request = server.as_mut().and_then(|s| s.receive().ok().flatten());
                let _ = server.as_mut().zip(request).map(|(s, request)| s.respond(request, &n));
            }
            14 if rng.one_in(4) => {
                let guard = mutex.as_ref().and_then(|m| m.lock_timeout(short).ok());
                scribble(&mappings, &hot, board, rng);
                std::mem::forget(guard.filter(|_| rng.one_in(50)));
                drop(rwlock.as_ref().map(|l| l.read_timeout(short)));
                drop(rwlock.as_ref().map(|l| l.write_timeout(short)));
                permits.extend(semaphore.as_ref().and_then(|s| s.acquire_timeout(short).ok()));
                let _ = set.as_ref().map(|set| set.insert(1 + rng.below(200)));
            }
            15 if board.intact.load(Relaxed) == 0 && rng.one_in(8) => {
                spoil_a_file(dir, board, rng);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The shared writable mappings of this process whose files lie below `dir`.
fn shared_mappings(dir: &Path) -> Vec<(usize, usize)> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let dir = dir.to_string_lossy();
    let ours = |line: &str| {
        let mut fields = line.split_whitespace();
        let (range, rights) = (fields.next()?, fields.next()?);
        let path = fields.nth(3)?;
        let (start, end) = range.split_once('-')?;
        let number = |text| usize::from_str_radix(text, 16).ok();
        let shared = rights.starts_with("rw") && rights.ends_with('s');
        let wanted = shared && path.starts_with(&*dir);
        wanted.then_some((number(start)?, number(end)?))
    };
    maps.lines().filter_map(ours).collect()
}

/// What a field may be thought to hold at its limits.
fn value(rng: &mut Rng, old: u64) -> u64 {
    let page = 4096;
    match rng.below(18) {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => u64::MAX - 1,
        4 => 1 << 63,
        5 => i64::MAX as u64,
        6 => u64::from(u32::MAX),
        7 => 1 << 31,
        8 => page,
        9 => page - 1,
        10 => page + 1,
        11 => old ^ 1 << rng.below(64),
        12 => old.wrapping_add(1),
        13 => old.wrapping_sub(1),
        14 => old.wrapping_add(64),
        15 => 1 << rng.below(64),
        16 => rng.below(300),
        _ => rng.next_u64(),
    }
}

/// A few writes into one mapping: words, halves, bytes; at times a whole stretch.
fn scribble(mappings: &[(usize, usize)], hot: &[usize], board: &Board, rng: &mut Rng) {
    if mappings.is_empty() {
        return;
    }
    let (start, end) = mappings[rng.below(mappings.len() as u64) as usize];
    let len = (end - start) as u64;
    // Headers and tables lie in front.
    let reach = if rng.one_in(2) { len.min(4096) } else { len.min(1 << 20) };
    let count = if rng.one_in(20) { 64 } else { 1 + rng.below(4) };
    let mut at = rng.below(reach / 8) * 8;
    let hot = hot.get(rng.below(2 * hot.len() as u64 + 1) as usize);
    if rng.one_in(2) {
        at = in_use(start, reach, at);
    }
    for _ in 0..count {
        let place = hot.map_or(start + at as usize, |hot| *hot) as *mut u64;
        // SAFETY: an aligned word inside a mapping that this thread saw. If it is gone since, or
        // the file has no such page, this process may die of it, or write into its own memory:
        // what becomes of it does not matter. Volatile, for others use the word as well.
        unsafe {
            let old = place.read_volatile();
            let new = value(rng, old);
            match rng.below(3) {
                0 => place.write_volatile(new),
                1 => place.cast::<u32>().add(rng.below(2) as usize).write_volatile(new as u32),
                _ => place.cast::<u8>().add(rng.below(8) as usize).write_volatile(new as u8),
            }
        }
        at = if count > 4 { (at + 8) % reach } else { rng.below(reach / 8) * 8 };
    }
    board.writes.fetch_add(count, Relaxed);
}

/// Words in front of each mapping that are looked at for a change.
const LOOKED_AT: usize = 4096;

/// The words that `act` changed: what others are about to read.
fn changed_by(mappings: &[(usize, usize)], act: impl FnOnce()) -> Vec<usize> {
    let words = || {
        let of = |(start, end): &(usize, usize)| {
            let end = (*end).min(start + 8 * LOOKED_AT);
            // SAFETY: as in `scribble`.
            let read = |at: usize| (at, unsafe { (at as *const u64).read_volatile() });
            (*start..end).step_by(8).map(read).collect::<Vec<_>>()
        };
        mappings.iter().flat_map(of).collect::<Vec<_>>()
    };
    let before = words();
    act();
    let pairs = before.into_iter().zip(words());
    pairs.filter(|(old, new)| old != new).map(|((at, _), _)| at).collect()
}

/// The first word from `at` on that is not 0: most are, and say nothing to anybody.
fn in_use(start: usize, reach: u64, at: u64) -> u64 {
    // SAFETY: as in `scribble`.
    let word = |at: u64| unsafe { ((start as u64 + at) as *const u64).read_volatile() };
    let offsets = (at..reach).chain(0..at).step_by(8);
    offsets.take(1024).find(|at| word(*at) != 0).unwrap_or(at)
}

/// Every file of the domain but those of the calm.
fn files(dir: &Path, board: &Board) -> Vec<PathBuf> {
    let domain = dir.join("root/default");
    let calm = |name: &str| {
        let node = name.strip_prefix("nodes/").and_then(|rest| rest.split('.').next());
        let node: Option<u64> = node.and_then(|text| text.parse().ok());
        let spared = board.calm_nodes.iter().any(|n| Some(n.load(Relaxed)) == node);
        spared || name.contains(&CALM[1..]) || !name.contains('/')
    };
    let names = crate::temp::listing(&domain).into_iter().filter(|name| !calm(name));
    names.map(|name| domain.join(name)).filter(|path| path.is_file()).collect()
}

/// What an operator may do by mistake.
fn spoil_a_file(dir: &Path, board: &Board, rng: &mut Rng) {
    let files = files(dir, board);
    if files.is_empty() {
        return;
    }
    let path = &files[rng.below(files.len() as u64) as usize];
    let len = fs::metadata(path).map_or(0, |m| m.len());
    let open = || OpenOptions::new().read(true).write(true).open(path);
    let set_len = |to: u64| open().and_then(|file| file.set_len(to));
    let mut bytes = [0; 512];
    rng.fill(&mut bytes);
    let _ = match rng.below(9) {
        0 => set_len(0),
        1 => set_len(len / 2),
        2 => set_len(len & !4095),
        3 => set_len(len + 4096),
        4 => fs::remove_file(path),
        5 => fs::rename(path, path.with_extension("9")),
        6 => fs::remove_file(path).and_then(|()| fs::write(path, bytes)),
        7 => fs::remove_file(path).and_then(|()| fs::create_dir(path)),
        _ => open().and_then(|f| f.write_all_at(&bytes, rng.below(len.max(1)) & !7)),
    };
    board.attacks.fetch_add(1, Relaxed);
}
