//! The operating system: the only folder that makes system calls and knows the C library.
//!
//! | file | what |
//! |---|---|
//! | `dir`, `file` | directories with their locks, files that appear complete |
//! | `filelock` | OFD locks: "is this process really gone?" |
//! | `map`, `sigbus` | shared mappings; a truncated one reads as zeros and is marked poisoned |
//! | `futex` | sleeping on one word or on many |
//! | `poll`, `socket`, `deaths` | descriptors: waiting for them, what makes one of ours readable |
//! | `robust`, `strict` | words that the kernel marks when their thread dies |
//! | `clock`, `tsc` | monotonic time, cheap time stamps |
//! | `realtime` | priorities, memory that stays in RAM |
//! | `sched`, `fork`, `wiped` | cores, sleeping, identity; what a forked child must not inherit |
//!
//! Everything fails with the crate's `Error` (see `syserr`), names the object and the remedy.

#[cfg(not(all(
    target_os = "linux",
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
compile_error!("outlive runs on 64-bit Linux, x86_64 or aarch64");

pub(crate) mod clock;
pub(crate) mod deaths;
pub(crate) mod dir;
pub(crate) mod file;
pub(crate) mod filelock;
pub(crate) mod fork;
pub(crate) mod futex;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod poll;
pub(crate) mod realtime;
pub(crate) mod robust;
pub(crate) mod sched;
pub(crate) mod sigbus;
pub(crate) mod socket;
mod strict;
pub(crate) mod syserr;
#[cfg(target_arch = "x86_64")]
mod tsc;
pub(crate) mod wiped;

#[cfg(test)]
pub(crate) mod fixture;
