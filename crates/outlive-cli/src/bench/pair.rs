//! Two processes on two cores: what is done with a channel while the clock runs.

use std::hint::spin_loop;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::{io, mem, slice};

use outlive::internals::pin;
use outlive::{Error, ErrorKind, Result, now_ns};

/// Our processor and the peer's.
pub(super) type Cores = [usize; 2];
/// Sorted; ns, or messages per second.
pub(super) type Samples = Vec<f64>;

/// Looks, without a pause or of a second each, before the other side is given up.
const LOOKS_MAX: u64 = 1 << 32;
const SLEEPS_MAX: u64 = 50;

/// Times `count` round trips, numbered from 1, over a channel whose ends, `(send, receive)`, are
/// opened for this process with true, for its peer with false. ns one way, but the first tenth.
pub(super) fn echoed<S: FnMut(u64) -> Result<()>, R: FnMut() -> Result<Option<u64>>>(
    (cores, sleeps): (Cores, bool),
    count: u64,
    open: impl Fn(bool) -> Result<(S, R)>,
) -> Result<Samples> {
    let ready = Words::new(1)?;
    let _peer = Peer::fork(cores[1], || {
        let (mut send, mut receive) = open(false)?;
        ready[0].store(1, Release);
        loop {
            if let Some(i) = receive()? {
                send(i)?;
            }
        }
    })?;
    reached(|| ready[0].load(Acquire) == 1)?;
    let (mut send, mut receive) = open(true)?;
    let looks = if sleeps { SLEEPS_MAX } else { LOOKS_MAX };
    let mut ways = Vec::with_capacity(count as usize);
    for i in 1..=count {
        let start = now_ns();
        send(i)?;
        same(until(looks, &mut receive)? == i)?;
        ways.push(now_ns().saturating_sub(start) as f64 / 2.0);
    }
    ways.drain(..ways.len() / 10);
    Ok(sorted(ways))
}

/// Sends the numbers up to `count` to the peer, which sums them. One sample: messages per second.
pub(super) fn streamed<S: FnMut(u64) -> Result<()>, R: FnMut() -> Result<Option<u64>>>(
    cores: Cores,
    count: u64,
    receiver: impl FnOnce() -> Result<R>,
    sender: impl FnOnce() -> Result<S>,
) -> Result<Samples> {
    let map = Words::new(2)?;
    let (state, sum_seen) = (&map[0], &map[1]);
    let _peer = Peer::fork(cores[1], || {
        let mut receive = receiver()?;
        state.store(1, Release);
        let (mut seen, mut sum) = (0, 0u64);
        while seen < count {
            match receive()? {
                Some(i) => (seen, sum) = (seen + 1, sum.wrapping_add(i)),
                None => spin_loop(),
            }
        }
        sum_seen.store(sum, Relaxed);
        state.store(2, Release);
        Ok(())
    })?;
    reached(|| state.load(Acquire) == 1)?;
    let mut send = sender()?;
    let start = now_ns();
    (1..=count).try_for_each(&mut send)?;
    reached(|| state.load(Acquire) == 2)?;
    let took_ns = now_ns().saturating_sub(start);
    same(sum_seen.load(Relaxed) == count * (count + 1) / 2)?;
    Ok(vec![count as f64 * 1e9 / took_ns as f64])
}

/// ns of one of `count` calls, ten samples, after a tenth that does not count.
pub(super) fn times(count: u64, mut call: impl FnMut() -> Result<()>) -> Result<Samples> {
    let mut all = Vec::new();
    for _ in 0..11 {
        let start = now_ns();
        (0..count / 10).try_for_each(|_| call())?;
        all.push(now_ns().saturating_sub(start) as f64 / (count / 10) as f64);
    }
    Ok(sorted(all.split_off(1)))
}

/// Spins until `ready`, yet not for ever: the peer may have died.
#[inline(always)]
pub(super) fn reached(ready: impl Fn() -> bool) -> Result<()> {
    until(LOOKS_MAX, || {
        let is = ready();
        if !is {
            spin_loop();
        }
        Ok(is.then_some(()))
    })
}

/// The first answer of at most `looks`.
#[inline(always)]
fn until<T>(looks: u64, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    for _ in 0..looks {
        if let Some(found) = look()? {
            return Ok(found);
        }
    }
    let remedy = "run again on a machine that is less busy";
    Err(Error::new(ErrorKind::Timeout, "wait for", "the measuring peer", remedy))
}

/// What was sent has arrived.
pub(super) fn same(good: bool) -> Result<()> {
    let remedy = "report it with the machine's description";
    let error = || Error::new(ErrorKind::Corrupt, "compare the answer of", "the peer", remedy);
    if good { Ok(()) } else { Err(error()) }
}

pub(super) fn sorted(mut values: Vec<f64>) -> Samples {
    values.sort_by(f64::total_cmp);
    values
}

/// The first two processors that this process may use.
pub(super) fn cores() -> Result<Cores> {
    // SAFETY: a cpu_set_t is an array of integers; all zeroes is the empty set.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is writable and of the size given; where it fails, the set stays empty.
    unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    // SAFETY: reads a bit of the initialised set; the index is below its size.
    let allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    let mut cpus = (0..libc::CPU_SETSIZE as usize).filter(allowed);
    cpus.next().zip(cpus.next()).map(|(ours, peers)| [ours, peers]).ok_or_else(|| {
        let remedy = "two cores are needed; see taskset and the container's cpuset";
        Error::new(ErrorKind::Unsupported, "measure between processes", "this machine", remedy)
    })
}

/// Words that a forked child shares with us, all zeroes and present.
pub(super) struct Words(NonNull<AtomicU64>, usize);

impl Words {
    pub(super) fn new(count: usize) -> Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing of ours.
        let at = unsafe { libc::mmap(ptr::null_mut(), count * 8, rights, flags, -1, 0) };
        match NonNull::new(at.cast()) {
            Some(first) if at != libc::MAP_FAILED => Ok(Self(first, count)),
            _ => Err(failed("map", "memory for the measurement")),
        }
    }
}

impl Deref for Words {
    type Target = [AtomicU64];

    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: the mapping holds so many zeroed words, lives as long as `self`, and both
        // processes touch it through atomics only.
        unsafe { slice::from_raw_parts(self.0.as_ptr(), self.1) }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: exactly the mapping made in `new`; references into it borrow `self`.
        unsafe { libc::munmap(self.0.as_ptr().cast(), self.1 * 8) };
    }
}

/// A forked child that plays the other side. Dies with us; is killed when dropped.
struct Peer(libc::pid_t);

impl Peer {
    /// Runs `body` in a child on processor `cpu`, which then sleeps: its end would disturb us.
    fn fork(cpu: usize, body: impl FnOnce() -> Result<()>) -> Result<Self> {
        // SAFETY: no other thread of this command is at work: nodes of earlier runs are closed.
        let pid = unsafe { libc::fork() };
        if pid != 0 {
            return if pid > 0 { Ok(Self(pid)) } else { Err(failed("fork", "the measuring peer")) };
        }
        // SAFETY: no pointers are passed.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        // One that the kernel refuses leaves the thread where it was.
        let _ = pin(cpu);
        if let Err(error) = body() {
            crate::exit::note(error);
        }
        loop {
            // SAFETY: sleeps until a signal; the child never returns into the parent's code.
            unsafe { libc::pause() };
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // SAFETY: our own child, reaped here and only here, so the id is still its.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, ptr::null_mut(), 0);
        }
    }
}

fn failed(what: &str, object: &str) -> Error {
    Error::new(ErrorKind::Io, what, object, "").with_source(io::Error::last_os_error())
}
