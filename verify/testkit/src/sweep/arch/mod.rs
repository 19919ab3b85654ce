//! What differs between processors: the trap, the instruction pointer, breakpoints.

use super::ptrace::request;
use std::io;

/// Stops a traced process right here.
#[inline(always)]
pub(crate) fn trap() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a breakpoint changes no register; the tracer takes the signal.
    unsafe {
        std::arch::asm!("int3")
    };
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: a plain system call; the tracer takes the signal.
    unsafe {
        libc::raise(libc::SIGTRAP)
    };
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::super::ptrace::peek;
    use super::*;
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

    /// Sets (or with `None` clears) the one hardware breakpoint of a stopped thread.
    pub(crate) fn set_breakpoint(pid: i32, address: Option<u64>) -> io::Result<()> {
        let register = |n: usize| (DEBUG_REGISTERS + 8 * n) as u64;
        if let Some(address) = address {
            request(libc::PTRACE_POKEUSER as i64, pid, register(0), address)?;
        }
        // Bit 0 turns slot 0 on for this thread; type "execute" is all zeros.
        request(libc::PTRACE_POKEUSER as i64, pid, register(7), u64::from(address.is_some()))
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::*;

#[cfg(not(target_arch = "x86_64"))]
mod other {
    use super::*;

    /// PTRACE_GET_SYSCALL_INFO; words 1 and 3 of its answer are the instruction pointer and, in an
    /// entry stop, the number of the system call.
    fn info(pid: i32) -> io::Result<[u64; 16]> {
        let mut words = [0_u64; 16];
        request(0x420e, pid, size_of_val(&words) as u64, words.as_mut_ptr() as u64)?;
        Ok(words)
    }

    /// Address of the next instruction of a stopped thread.
    pub(crate) fn instruction_pointer(pid: i32) -> io::Result<u64> {
        info(pid).map(|words| words[1])
    }

    /// The number of the system call that a thread in an entry stop is about to make.
    pub(crate) fn syscall_number(pid: i32) -> io::Result<i64> {
        info(pid).map(|words| words[3] as i64)
    }

    /// Not supported: a sweep of failing calls says so.
    pub(crate) fn skip_syscall(_pid: i32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// As `skip_syscall`.
    pub(crate) fn set_answer(_pid: i32, _answer: i64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// As `skip_syscall`.
    pub(crate) fn argument(_pid: i32, _n: usize) -> io::Result<u64> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// True when these first bytes of an instruction enter the kernel.
    pub(crate) fn is_syscall(code: u64) -> bool {
        cfg!(target_arch = "aarch64") && code as u32 == 0xd400_0001
    }

    /// No instruction here repeats itself.
    pub(crate) fn repeat_bytes(_code: u64) -> Option<u64> {
        None
    }

    /// Not supported: every point is reached by single steps.
    pub(crate) fn set_breakpoint(_pid: i32, _address: Option<u64>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use other::*;
