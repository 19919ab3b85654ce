//! The operating system: the only folder that makes system calls and knows the C library.
//!
//! | file | what |
//! |---|---|
//! | `dir`, `file` | directories with their locks, files that appear complete |
//! | `filelock` | OFD locks: "is this process really gone?" |
//! | `map`, `sigbus` | shared mappings; a truncated one reads as zeros and is marked poisoned |
//! | `event` | something that happens once, also in a signal handler |
//! | `faults` | an opt-in: fatal faults kill at once |
//! | `futex` | sleeping on one word or on many |
//! | `poll`, `socket`, `deaths` | descriptors: waiting for them, what makes one of ours readable |
//! | `pi` | a lock word with priority inheritance |
//! | `robust` | words that the kernel marks when their thread dies |
//! | `holder` | the thread that holds a node's word and does nothing else |
//! | `clock`, `tsc` | monotonic time, cheap time stamps |
//! | `stop` | signals that ask the process to end |
//! | `realtime` | priorities, memory that stays in RAM |
//! | `sched` | cores, sleeping, identity |
//! | `fork`, `wiped`, `per_process` | what a forked child must know, and must not inherit |
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
pub(crate) mod event;
pub(crate) mod faults;
pub(crate) mod file;
pub(crate) mod filelock;
pub(crate) mod fork;
pub(crate) mod futex;
pub(crate) mod holder;
pub(crate) mod map;
pub(crate) mod memory;
pub(crate) mod per_process;
pub(crate) mod pi;
pub(crate) mod poll;
pub(crate) mod realtime;
pub(crate) mod robust;
pub(crate) mod sched;
pub(crate) mod sigbus;
pub(crate) mod socket;
pub(crate) mod stop;
pub(crate) mod syserr;
#[cfg(target_arch = "x86_64")]
mod tsc;
pub(crate) mod wiped;

#[cfg(test)]
pub(crate) mod fixture;
