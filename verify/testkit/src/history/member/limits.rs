//! Limits of a member's process that are lowered in mid-life, and raised again; priorities of its
//! threads.

use crate::history::step::Step;

/// Between two tries of what could not be opened lie at most that many milliseconds, and calls.
const AGAIN_MS: u64 = 300;
pub(super) const AGAIN_CALLS: usize = 1100;

fn resource(step: &Step) -> libc::__rlimit_resource_t {
    match step.arg("what") {
        0 => libc::RLIMIT_NOFILE,
        1 => libc::RLIMIT_AS,
        _ => libc::RLIMIT_FSIZE,
    }
}

/// The limit that leaves this many descriptors. It bounds their numbers, and what was inherited may
/// lie beyond gaps.
fn descriptors(left: u64) -> u64 {
    // SAFETY: asks, and no pointer is passed.
    let free = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } < 0;
    (0..).filter(free).nth(left as usize).map_or(left, |fd| fd as u64)
}

/// KiB of address space that are in use.
fn used() -> std::io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:"));
    let kib = line.and_then(|line| line.trim().split(' ').next()?.parse().ok());
    kib.ok_or_else(|| std::io::Error::other("no VmSize"))
}

fn set(step: &Step, to: Option<u64>) -> std::io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local.
    unsafe { libc::getrlimit(resource(step), &mut limit) };
    limit.rlim_cur = to.map_or(limit.rlim_max, |to| to.min(limit.rlim_max));
    // SAFETY: as above.
    match unsafe { libc::setrlimit(resource(step), &limit) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Leaves only so many descriptors, KiB of address space, or of a file.
pub(super) fn lower(step: &Step) -> std::io::Result<()> {
    let left = step.arg("left");
    let to = match step.arg("what") {
        0 => descriptors(left),
        1 => (used()? + left) * 1024,
        _ => left * 1024,
    };
    set(step, Some(to))
}

/// As it was, and everything has been tried again since, but for what wants a call.
pub(super) fn raise(step: &Step) -> std::io::Result<()> {
    set(step, None)?;
    std::thread::sleep(std::time::Duration::from_millis(AGAIN_MS));
    Ok(())
}

/// The calling thread's priority and processors; where that is not allowed it goes on as it was.
pub(super) fn set_priority(step: &Step) {
    let fifo = libc::sched_param { sched_priority: step.arg("fifo") as i32 };
    let policy = if fifo.sched_priority > 0 { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
    // The kernel leaves out what there is not.
    let mut cpus = [if step.arg("one") == 1 { 0 } else { u64::MAX }; 16];
    cpus[0] |= 1;
    // SAFETY: the pointers are to locals, of the size that is said.
    unsafe {
        libc::sched_setaffinity(0, size_of_val(&cpus), cpus.as_ptr().cast());
        libc::sched_setscheduler(0, policy, &fifo);
    }
}
