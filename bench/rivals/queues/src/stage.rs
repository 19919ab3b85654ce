//! Two pinned processes, or two pinned threads, and a clock.

use std::collections::HashSet;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

/// Why a subject has no figure.
pub type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Shared with forked children, all zeroes.
pub struct Shared {
    pub at: *mut u8,
    bytes: usize,
}

impl Shared {
    pub fn new(bytes: usize) -> Result<Self, Failed> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping disturbs nothing.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), bytes, rights, flags, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        Ok(Self { at: at.cast(), bytes })
    }

    /// Word `i`, counted in cache lines.
    pub fn word(&self, i: usize) -> &AtomicU64 {
        assert!(64 * i + 8 <= self.bytes);
        // SAFETY: inside the mapping, aligned, and touched as an atomic only.
        unsafe { &*self.at.add(64 * i).cast() }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`.
        unsafe { libc::munmap(self.at.cast(), self.bytes) };
    }
}

pub fn pin(cpu: usize) {
    pin_thread(0, cpu);
}

/// Pins thread `tid`, which may be another process's; 0 is the caller.
pub fn pin_thread(tid: i32, cpu: usize) {
    allow(tid, cpu..cpu + 1);
}

/// Undoes `pin`.
pub fn everywhere() {
    allow(0, 0..libc::CPU_SETSIZE as usize);
}

fn allow(tid: i32, cpus: std::ops::Range<usize>) {
    // SAFETY: plain bits; the indices are below CPU_SETSIZE.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.for_each(|cpu| libc::CPU_SET(cpu, &mut set));
        libc::sched_setaffinity(tid, size_of_val(&set), &set);
    }
}

/// A forked child, killed and reaped on drop.
struct Child(i32);

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: our own child, not reaped before.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

/// What iceoryx2 leaves on the RAM disk of a process that is killed, removed on drop.
pub struct Rests(HashSet<PathBuf>);

impl Rests {
    /// What lies there now stays.
    pub fn new() -> Self {
        Self(Self::now())
    }

    fn now() -> HashSet<PathBuf> {
        let entries = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let rests = entries.filter(|e| e.file_name().to_string_lossy().starts_with("iox2_"));
        rests.map(|entry| entry.path()).collect()
    }
}

impl Drop for Rests {
    fn drop(&mut self) {
        for path in Self::now().difference(&self.0) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// What a child says with its first word.
const READY: u64 = 1;
const DONE: u64 = 2;
const FAILED: u64 = 3;

fn fork(shared: &Shared, body: impl FnOnce() -> Result<(), Failed>) -> Result<Child, Failed> {
    // SAFETY: this process has one thread.
    let pid = unsafe { libc::fork() };
    if pid < 0 {
        return Err(io::Error::last_os_error().into());
    }
    if pid > 0 {
        return Ok(Child(pid));
    }
    // SAFETY: plain system calls; the child never returns into the parent's code.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    pin(1);
    if let Err(error) = body() {
        eprintln!("peers: {error}");
        shared.word(0).store(FAILED, Release);
    }
    loop {
        std::thread::park();
    }
}

/// Spins until the first word of `shared` is at least `wanted`.
pub fn await_word(shared: &Shared, wanted: u64) -> Result<(), Failed> {
    let start = Instant::now();
    for tries in 0u64.. {
        match shared.word(0).load(Acquire) {
            FAILED => return Err("the other side failed".into()),
            n if n >= wanted => break,
            _ if tries % 4096 == 0 && start.elapsed() > Duration::from_secs(20) => {
                return Err("the other side hangs".into());
            }
            _ => std::hint::spin_loop(),
        }
    }
    Ok(())
}

/// Sends numbers 1 to `count` from this process to a child; messages per second. `receive` calls
/// its argument once it is ready, and returns the sum.
pub fn race<P>(
    count: u64,
    receive: impl FnOnce(&dyn Fn()) -> Result<u64, Failed>,
    prepare: impl FnOnce() -> Result<P, Failed>,
    send: impl FnOnce(&mut P) -> Result<(), Failed>,
) -> Result<f64, Failed> {
    let shared = Shared::new(4096)?;
    let _child = fork(&shared, || {
        let sum = receive(&|| shared.word(0).store(READY, Release))?;
        shared.word(1).store(sum, Relaxed);
        shared.word(0).store(DONE, Release);
        Ok(())
    })?;
    pin(0);
    await_word(&shared, READY)?;
    let mut sender = prepare()?;
    let start = Instant::now();
    send(&mut sender)?;
    await_word(&shared, DONE)?;
    let seconds = start.elapsed().as_secs_f64();
    if shared.word(1).load(Relaxed) != count * (count + 1) / 2 {
        return Err("what came is not what was sent".into());
    }
    Ok(count as f64 / seconds)
}

/// Half a round trip between this process and a child that echoes, median in ns.
pub fn one_way<P>(
    count: u64,
    echo: impl FnOnce(&dyn Fn()) -> Result<(), Failed>,
    prepare: impl FnOnce() -> Result<P, Failed>,
    mut trip: impl FnMut(&mut P, u64) -> Result<(), Failed>,
) -> Result<f64, Failed> {
    let shared = Shared::new(4096)?;
    let _child = fork(&shared, || echo(&|| shared.word(0).store(READY, Release)))?;
    pin(0);
    await_word(&shared, READY)?;
    let mut end = prepare()?;
    let mut all = Vec::new();
    for i in 1..=count {
        let start = Instant::now();
        trip(&mut end, i)?;
        all.push(start.elapsed().as_nanos() as f64 / 2.0);
    }
    all.drain(..all.len() / 10);
    Ok(median(&mut all))
}

/// As `race`, between two threads of this process.
pub fn race_threads(
    count: u64,
    receive: impl FnOnce() -> u64 + Send,
    send: impl FnOnce(),
) -> Result<f64, Failed> {
    pin(0);
    std::thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            pin(1);
            receive()
        });
        let start = Instant::now();
        send();
        let sum = receiving.join().map_err(|_| "the receiver panicked")?;
        let seconds = start.elapsed().as_secs_f64();
        if sum != count * (count + 1) / 2 {
            return Err("what came is not what was sent".into());
        }
        Ok(count as f64 / seconds)
    })
}

pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
