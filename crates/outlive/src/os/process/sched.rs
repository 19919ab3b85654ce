//! Cores, sleeping, identity, randomness.
#![allow(unsafe_code)]

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::os::syserr;
use crate::os::time::clock::kernel_time;
use crate::os::time::deadline::Deadline;
use crate::os::time::monotonic::raw_ns;
use crate::sync::{AtomicU32, Ordering};
use crate::{Error, ErrorKind, Result};

/// Of a thread's flags, in `/proc/<tid>/stat`: it ends.
const PF_EXITING: u32 = 4;

/// Pins the calling thread to one core. Errors: `InvalidArgument` when it may not run there.
pub(crate) fn pin_current(cpu: usize) -> Result<()> {
    let object = format!("cpu {cpu}");
    if cpu >= libc::CPU_SETSIZE as usize {
        let remedy = "use a core listed by `nproc` and `taskset -p`";
        return Err(Error::new(ErrorKind::InvalidArgument, "pin thread to", object, remedy));
    }
    // SAFETY: a cpu_set_t is plain bits, all zero is the empty set; `cpu` is below its size.
    let rc = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set)
    };
    if rc == 0 {
        return Ok(());
    }
    if syserr::errno() == libc::EINVAL {
        let remedy = "use a core this process is allowed on (`taskset -p`)";
        return Err(Error::new(ErrorKind::InvalidArgument, "pin thread to", object, remedy));
    }
    Err(syserr::last("pin thread to", object))
}

/// How many cores this process was allowed on when first asked; at least 1.
pub(crate) fn allowed_cpus() -> usize {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let known = COUNT.load(Ordering::Relaxed);
    if known != 0 {
        return known as usize;
    }
    // SAFETY: the set is plain bits which the call fills; CPU_COUNT only reads it.
    let count = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        match libc::sched_getaffinity(0, size_of_val(&set), &mut set) {
            0 => libc::CPU_COUNT(&set) as u32,
            _ => 1,
        }
    };
    COUNT.store(count.max(1), Ordering::Relaxed);
    count.max(1) as usize
}

/// Tells the PID namespace of this process from others; not 0.
///
/// # Errors
/// `Unsupported` without /proc.
pub(crate) fn pid_namespace() -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let path = "/proc/self/ns/pid";
    let found = std::fs::metadata(path).map(|file| file.ino()).ok().filter(|ino| *ino != 0);
    let remedy = "mount /proc, or use a RobustMutex";
    found.ok_or_else(|| Error::new(ErrorKind::Unsupported, "find the PID namespace", path, remedy))
}

/// Whether thread `tid` of this PID namespace runs no code of its program any more: it ends, or has
/// ended, reaped or not.
///
/// # Errors
/// `Io` where it cannot be asked about.
pub(crate) fn has_ended(tid: u32) -> Result<bool> {
    let is_gone = || {
        // SAFETY: asks whether a thread is there.
        unsafe { libc::kill(tid as i32, 0) != 0 && syserr::errno() == libc::ESRCH }
    };
    if is_gone() {
        return Ok(true);
    }
    let path = format!("/proc/{tid}/stat");
    let stat = match std::fs::read(&path) {
        Ok(stat) => stat,
        Err(_) if is_gone() => return Ok(true),
        Err(e) => return Err(syserr::from_io("asking whether a thread lives", path, e)),
    };
    // Behind the name, which may hold anything.
    let Some(at) = stat.iter().rposition(|byte| *byte == b')') else { return Ok(false) };
    let mut fields = stat[at + 1..].split(|byte| *byte == b' ').skip(1);
    let ended = matches!(fields.next(), Some(b"Z" | b"X"));
    // A large process is without its locks long before it is a zombie.
    let flags = fields.nth(5).and_then(|flags| str::from_utf8(flags).ok()?.parse::<u32>().ok());
    Ok(ended || flags.is_some_and(|flags| flags & PF_EXITING != 0))
}

/// Lets another thread run on this core.
pub(crate) fn yield_now() {
    #[cfg(test)]
    YIELDS.with(|n| n.set(n.get() + 1));
    std::thread::yield_now();
}

/// Sleeps until that moment of CLOCK_MONOTONIC; signals do not shorten it.
pub(crate) fn sleep_until(moment: Deadline) {
    let ts = kernel_time(moment.as_ns());
    loop {
        // SAFETY: `ts` is a valid timespec; with TIMER_ABSTIME no remainder is written.
        let rc = unsafe {
            let (id, flags) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
            libc::clock_nanosleep(id, flags, &ts, std::ptr::null_mut())
        };
        if rc != libc::EINTR {
            return;
        }
    }
}

/// This process's number, for people to read; never trusted as an identity.
pub(crate) fn pid() -> u32 {
    std::process::id()
}

/// The effective user: who will own the files made here.
pub(crate) fn uid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::geteuid() }
}

/// The effective group.
#[cfg(test)]
pub(crate) fn gid() -> u32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::getegid() }
}

/// 128 random bits for a domain's id.
pub(crate) fn random_u128() -> u128 {
    let mut bytes = [0u8; 16];
    // SAFETY: the buffer has the length given; a request this short is never cut by a signal.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    if got == bytes.len() as isize {
        return u128::from_ne_bytes(bytes);
    }
    // No getrandom (a strict seccomp filter): the standard library has its own other sources.
    let half = || RandomState::new().build_hasher().finish() ^ raw_ns();
    u128::from(half()) << 64 | u128::from(half())
}

#[cfg(test)]
thread_local! {
    /// How often this thread let others run.
    pub(crate) static YIELDS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_can_be_pinned_only_where_it_may_run() {
        assert!(allowed_cpus() >= 1);
        let pinned = std::thread::spawn(|| {
            (0..libc::CPU_SETSIZE as usize).find_map(|cpu| pin_current(cpu).ok().map(|()| cpu))
        });
        assert!(pinned.join().unwrap().is_some());
        for cpu in [libc::CPU_SETSIZE as usize - 1, usize::MAX] {
            assert_eq!(pin_current(cpu).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }

    #[test]
    fn sleeping_lasts_at_least_until_the_moment() {
        let moment = Deadline::in_ns(2_000_000);
        sleep_until(moment);
        assert!(moment.has_passed());
        sleep_until(Deadline::AT_ONCE);
    }

    #[test]
    fn random_numbers_differ() {
        assert_ne!(random_u128(), random_u128());
    }
}
