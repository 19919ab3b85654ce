//! The operating system: the only folder that makes system calls and knows the C library.
//!
//! | module | what |
//! |---|---|
//! | `fs/` | directories and their locks, files that appear complete, OFD locks, shared maps |
//! | `death/` | words that the kernel marks when their thread dies; who holds a node's |
//! | `sleep/` | futexes, one or many, with priority inheritance; descriptors |
//! | `time/` | monotonic time, deadlines, cheap time stamps |
//! | `process/` | forks and what a child must not inherit, signals, faults, cores, priorities |
//! | `syserr` | what the kernel answered as the crate's `Error`, with object and remedy |
//!
//! May use `sync`, `crash` and `error` only, as may all others. Begin with `fs/file`, `sleep/futex`
//! and `death/robust`.

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("outlive runs on 64-bit Linux, x86_64 or aarch64");

pub(crate) mod death;
pub(crate) mod fs;
pub(crate) mod process;
pub(crate) mod sleep;
pub(crate) mod syserr;
pub(crate) mod time;

#[cfg(test)]
pub(crate) mod fixture;

/// Bytes of a page, of memory and of what our files grow by.
pub(crate) const PAGE: usize = 4096;
