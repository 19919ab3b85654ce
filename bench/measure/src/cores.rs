//! Cores: which two a run uses, and a thread tied to one of them.

use std::marker::PhantomData;
use std::{io, mem};

use outlive::{Error, ErrorKind, Result};

/// The two cores of a run.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    /// Of this process.
    pub ours: usize,
    /// Of the other one.
    pub peers: usize,
}

impl Cores {
    /// The first two that this process may use.
    pub fn first_two() -> Result<Self> {
        match allowed_cpus()?[..] {
            [ours, peers, ..] => Ok(Self { ours, peers }),
            _ => Err(Error::new(
                ErrorKind::Unsupported,
                "measure between processes",
                "this machine",
                "two cores are needed; see taskset and the container's cpuset",
            )),
        }
    }
}

/// The processors that the calling thread may use.
pub fn allowed_cpus() -> Result<Vec<usize>> {
    let set = affinity()?;
    // SAFETY: CPU_ISSET reads a bit of the initialised set; the index is below its size.
    let allowed = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    Ok((0..libc::CPU_SETSIZE as usize).filter(allowed).collect())
}

/// Ties the calling thread to one core until dropped.
#[derive(Debug)]
pub struct Pinned {
    before: libc::cpu_set_t,
    /// The affinity is the thread's, so this stays on it.
    _not_send: PhantomData<*const ()>,
}

impl Pinned {
    /// Ties the calling thread to `cpu`.
    pub fn to(cpu: usize) -> Result<Self> {
        let before = affinity()?;
        // SAFETY: a cpu_set_t is an array of integers; all zeroes is the empty set.
        let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
        // SAFETY: `cpu` came from an affinity set and is below its size.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        set_affinity(&set)?;
        Ok(Self { before, _not_send: PhantomData })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = set_affinity(&self.before);
    }
}

fn affinity() -> Result<libc::cpu_set_t> {
    // SAFETY: as in `Pinned::to`.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is writable and of the size given; 0 is the calling thread.
    let done = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    if done == 0 { Ok(set) } else { Err(os_error("read the affinity of", "this thread")) }
}

fn set_affinity(set: &libc::cpu_set_t) -> Result<()> {
    // SAFETY: `set` is readable and of the size given; 0 is the calling thread.
    let done = unsafe { libc::sched_setaffinity(0, size_of_val(set), set) };
    if done == 0 { Ok(()) } else { Err(os_error("pin to a core", "this thread")) }
}

fn os_error(what: &str, object: &str) -> Error {
    Error::new(ErrorKind::Io, what, object, "").with_source(io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinning_is_undone_on_drop() -> Result<()> {
        let count = |set: &libc::cpu_set_t| {
            // SAFETY: reads the bits of an initialised set.
            unsafe { libc::CPU_COUNT(set) }
        };
        let before = count(&affinity()?);
        let pinned = Pinned::to(Cores::first_two()?.ours)?;
        assert_eq!(count(&affinity()?), 1);
        drop(pinned);
        assert_eq!(count(&affinity()?), before);
        Ok(())
    }
}
