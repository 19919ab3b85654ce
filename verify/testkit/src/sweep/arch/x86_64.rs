//! Registers, calls and breakpoints of an x86_64 tracee.

use crate::sweep::ptrace::{peek, request};
use std::io;
use std::mem::offset_of;

const DEBUG_REGISTERS: usize = offset_of!(libc::user, u_debugreg);

/// Address of the next instruction of a stopped thread.
pub(crate) fn instruction_pointer(pid: i32) -> io::Result<u64> {
    let at = offset_of!(libc::user, regs) + offset_of!(libc::user_regs_struct, rip);
    peek(libc::PTRACE_PEEKUSER as i64, pid, at as u64)
}

/// The number of the system call that a thread in an entry stop is about to make.
pub(crate) fn syscall_number(pid: i32) -> io::Result<i64> {
    let at = offset_of!(libc::user, regs) + offset_of!(libc::user_regs_struct, orig_rax);
    peek(libc::PTRACE_PEEKUSER as i64, pid, at as u64).map(|n| n as i64)
}

/// At an entry stop: the kernel makes no call at all.
pub(crate) fn skip_syscall(pid: i32) -> io::Result<()> {
    let at = offset_of!(libc::user, regs) + offset_of!(libc::user_regs_struct, orig_rax);
    request(libc::PTRACE_POKEUSER as i64, pid, at as u64, u64::MAX)
}

/// At an exit stop: what the call answers.
pub(crate) fn set_answer(pid: i32, answer: i64) -> io::Result<()> {
    let at = offset_of!(libc::user, regs) + offset_of!(libc::user_regs_struct, rax);
    request(libc::PTRACE_POKEUSER as i64, pid, at as u64, answer as u64)
}

/// The n-th argument (0 to 3) of the call that a thread in an entry stop is about to make.
pub(crate) fn argument(pid: i32, n: usize) -> io::Result<u64> {
    let fields = [
        offset_of!(libc::user_regs_struct, rdi),
        offset_of!(libc::user_regs_struct, rsi),
        offset_of!(libc::user_regs_struct, rdx),
        offset_of!(libc::user_regs_struct, r10),
    ];
    let at = offset_of!(libc::user, regs) + fields[n];
    peek(libc::PTRACE_PEEKUSER as i64, pid, at as u64)
}

/// True when these first bytes of an instruction enter the kernel.
pub(crate) fn is_syscall(code: u64) -> bool {
    code & 0xffff == 0x050f
}

/// Length of a `rep movs` or `rep stos`, which counts as one instruction but steps many times.
pub(crate) fn repeat_bytes(code: u64) -> Option<u64> {
    let [prefix, second, third, ..] = code.to_le_bytes();
    let is_string = |opcode| matches!(opcode, 0xa4 | 0xa5 | 0xaa | 0xab);
    match (prefix, second) {
        (0xf3, 0x40..=0x4f) if is_string(third) => Some(3),
        (0xf3, opcode) if is_string(opcode) => Some(2),
        _ => None,
    }
}

/// Sets the one hardware breakpoint of a stopped thread, or clears it.
pub(crate) fn set_breakpoints(pid: i32, addresses: &[u64]) -> io::Result<()> {
    let register = |n: usize| (DEBUG_REGISTERS + 8 * n) as u64;
    let mut enabled = 0;
    for (n, &address) in addresses.iter().enumerate() {
        request(libc::PTRACE_POKEUSER as i64, pid, register(n), address)?;
        // Two bits for each; the lower turns it on for this thread. Type "execute" is all zeros.
        enabled |= 1 << (2 * n);
    }
    request(libc::PTRACE_POKEUSER as i64, pid, register(7), enabled)
}

/// A thread that goes on from its breakpoint executes the instruction there.
pub(crate) const BREAKS_AGAIN: bool = false;

/// No instruction here notices that it is stepped.
pub(crate) fn behind_exclusive(
    _pc: impl Fn() -> u64,
    _code: impl Fn(u64) -> u64,
) -> Option<Vec<u64>> {
    None
}
