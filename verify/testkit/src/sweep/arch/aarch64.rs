//! Registers, calls and breakpoints of an aarch64 tracee.

use super::exclusive;
use crate::sweep::ptrace::request;
use std::io;

// Register sets of <elf.h>.
const GENERAL: u64 = 1;
const BREAKPOINTS: u64 = 0x402;
const SYSTEM_CALL: u64 = 0x404;

/// `user_pt_regs`: x0 to x30, sp, pc, pstate.
type General = [u64; 34];
const PC: usize = 32;

/// `user_hwdebug_state` with the two breakpoints that every processor has.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Breakpoints {
    info: u64,
    slots: [(u64, u64); 2],
}

/// Enabled, in user mode, for an instruction of four bytes.
const EXECUTE: u64 = 0b1111 << 5 | 0b10 << 1 | 1;

fn exchange<T>(what: u32, pid: i32, set: u64, value: &mut T) -> io::Result<()> {
    let mut io = libc::iovec { iov_base: (&raw mut *value).cast(), iov_len: size_of::<T>() };
    request(what.into(), pid, set, &raw mut io as u64)
}

fn general(pid: i32) -> io::Result<General> {
    let mut all = [0; 34];
    exchange(libc::PTRACE_GETREGSET as u32, pid, GENERAL, &mut all)?;
    Ok(all)
}

fn set<T>(pid: i32, set: u64, mut value: T) -> io::Result<()> {
    exchange(libc::PTRACE_SETREGSET as u32, pid, set, &mut value)
}

/// Address of the next instruction of a stopped thread.
pub(crate) fn instruction_pointer(pid: i32) -> io::Result<u64> {
    general(pid).map(|all| all[PC])
}

/// The number of the system call that a thread in an entry stop is about to make.
pub(crate) fn syscall_number(pid: i32) -> io::Result<i64> {
    general(pid).map(|all| all[8] as i64)
}

/// At an entry stop: the kernel makes no call at all.
pub(crate) fn skip_syscall(pid: i32) -> io::Result<()> {
    set(pid, SYSTEM_CALL, -1_i32)
}

/// At an exit stop: what the call answers.
pub(crate) fn set_answer(pid: i32, answer: i64) -> io::Result<()> {
    let mut all = general(pid)?;
    all[0] = answer as u64;
    set(pid, GENERAL, all)
}

/// The n-th argument (0 to 3) of the call that a thread in an entry stop is about to make.
pub(crate) fn argument(pid: i32, n: usize) -> io::Result<u64> {
    general(pid).map(|all| all[n])
}

/// True when these first bytes of an instruction enter the kernel.
pub(crate) fn is_syscall(code: u64) -> bool {
    code as u32 == 0xd400_0001
}

/// No instruction here repeats itself.
pub(crate) fn repeat_bytes(_code: u64) -> Option<u64> {
    None
}

/// Sets up to two hardware breakpoints of a stopped thread; clears the others.
pub(crate) fn set_breakpoints(pid: i32, addresses: &[u64]) -> io::Result<()> {
    let mut all = Breakpoints::default();
    if addresses.len() > all.slots.len() {
        return Err(io::ErrorKind::Unsupported.into());
    }
    for (slot, &address) in all.slots.iter_mut().zip(addresses) {
        *slot = (address, EXECUTE);
    }
    set(pid, BREAKPOINTS, all)
}

/// A thread that goes on from its breakpoint stops there again.
pub(crate) const BREAKS_AGAIN: bool = true;

/// Where the sequence ends that begins here and cannot be stepped; see [`exclusive`].
pub(crate) fn behind_exclusive(
    pc: impl Fn() -> u64,
    code: impl Fn(u64) -> u64,
) -> Option<Vec<u64>> {
    exclusive::ends(pc(), code)
}
