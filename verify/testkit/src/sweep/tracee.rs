//! A stopped child and the ways to move it on.

use super::arch;
use super::ptrace::{peek, request};
use crate::process::{Child, Exit};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ticks of the sweep's interval timer, which also ends blocking calls with EINTR.
static TICKS: AtomicU32 = AtomicU32::new(0);
const TICK_MS: u32 = 250;

/// Interrupts blocking calls every 250 ms while it lives. Forked children do not inherit the timer.
#[derive(Debug)]
pub(crate) struct Ticker;

impl Ticker {
    pub(crate) fn start() -> Self {
        extern "C" fn tick(_signal: i32) {
            TICKS.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: zero is a valid sigaction without flags, so that calls are not restarted.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = tick as extern "C" fn(i32) as usize;
        // SAFETY: the handler only increments an atomic.
        unsafe { libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut()) };
        set_timer(TICK_MS);
        Self
    }

    pub(crate) fn now() -> u32 {
        TICKS.load(Ordering::Relaxed)
    }

    /// How many ticks make up `seconds`.
    pub(crate) fn ticks(seconds: u32) -> u32 {
        seconds.saturating_mul(1000 / TICK_MS)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        set_timer(0);
    }
}

fn set_timer(ms: u32) {
    let every = libc::timeval { tv_sec: 0, tv_usec: (ms * 1000).into() };
    let timer = libc::itimerval { it_interval: every, it_value: every };
    // SAFETY: the struct outlives the call.
    unsafe { libc::setitimer(libc::ITIMER_REAL, &timer, std::ptr::null_mut()) };
}

/// Why the tracee stopped, or did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A step, a breakpoint or a trap instruction.
    Trap,
    /// Entry or exit of a system call.
    Syscall,
    /// It ended and is reaped.
    Ended(Exit),
    /// It did not stop for as long as a hang may last.
    Stuck,
}

/// The traced thread of a victim.
#[derive(Debug)]
pub(crate) struct Tracee {
    child: Child,
    hang_ticks: u32,
    /// Single steps made.
    pub(crate) steps: u64,
}

impl Tracee {
    /// Lets the parent of the calling process trace the calling thread.
    pub(crate) fn trace_me() -> io::Result<()> {
        request(libc::PTRACE_TRACEME as i64, 0, 0, 0)
    }

    /// Takes a child that calls [`Tracee::trace_me`] and waits for its first trap.
    pub(crate) fn attach(child: Child, hang_ticks: u32) -> (Self, Stop) {
        let mut tracee = Self { child, hang_ticks, steps: 0 };
        let mut stop = tracee.wait();
        // Ordinary signals before the first trap are passed on.
        while let Err(signal) = stop {
            stop = tracee.go_on(libc::PTRACE_CONT as i64, signal);
        }
        let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESYSGOOD;
        // Failure can only mean that it ended, which `stop` says.
        let _ = request(libc::PTRACE_SETOPTIONS as i64, tracee.pid(), 0, options as u64);
        (tracee, stop.unwrap_or(Stop::Stuck))
    }

    pub(crate) fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Executes one instruction, or a sequence of them that must not be interrupted.
    pub(crate) fn step(&mut self) -> Stop {
        self.steps += 1;
        match arch::behind_exclusive(|| self.instruction_pointer(), |at| self.code(at)) {
            Some(ends) => self.run_to_one_of(&ends),
            None => self.resume(libc::PTRACE_SINGLESTEP as i64),
        }
    }

    fn run_to_one_of(&mut self, addresses: &[u64]) -> Stop {
        if arch::set_breakpoints(self.pid(), addresses).is_err() {
            return Stop::Stuck;
        }
        let stop = self.run();
        let _ = arch::set_breakpoints(self.pid(), &[]);
        stop
    }

    /// Ends the tracing; only a kill may follow.
    pub(crate) fn detach(&self) {
        // Fails only when the process is ending.
        let _ = request(libc::PTRACE_DETACH as i64, self.pid(), 0, 0);
    }

    /// Runs to the next trap.
    pub(crate) fn run(&mut self) -> Stop {
        self.resume(libc::PTRACE_CONT as i64)
    }

    /// Runs to the next entry or exit of a system call.
    pub(crate) fn run_to_syscall(&mut self) -> Stop {
        self.resume(libc::PTRACE_SYSCALL as i64)
    }

    /// Runs to the n-th execution of the instruction at `address`, or to another trap, where `end`
    /// holds. Does not move when the processor's breakpoints cannot be used.
    pub(crate) fn run_to(&mut self, address: u64, hits: u32, end: impl Fn() -> bool) -> Stop {
        for hit in 0..hits {
            if arch::BREAKS_AGAIN && hit > 0 {
                // From the breakpoint itself; its step may need breakpoints of its own.
                let _ = arch::set_breakpoints(self.pid(), &[]);
                let stop = self.step();
                if stop != Stop::Trap || end() {
                    return stop;
                }
            }
            if (arch::BREAKS_AGAIN || hit == 0)
                && arch::set_breakpoints(self.pid(), &[address]).is_err()
            {
                return Stop::Trap;
            }
            let stop = self.run();
            if stop != Stop::Trap || end() {
                return stop;
            }
        }
        // Cannot fail: the thread is stopped and the register was just set.
        let _ = arch::set_breakpoints(self.pid(), &[]);
        Stop::Trap
    }

    pub(crate) fn instruction_pointer(&self) -> u64 {
        arch::instruction_pointer(self.pid()).unwrap_or(0)
    }

    pub(crate) fn syscall_number(&self) -> i64 {
        arch::syscall_number(self.pid()).unwrap_or(-1)
    }

    /// The first four arguments of the system call at whose entry it stands.
    pub(crate) fn arguments(&self) -> [u64; 4] {
        std::array::from_fn(|n| arch::argument(self.pid(), n).unwrap_or(0))
    }

    /// The system call at whose entry it stands is not made.
    pub(crate) fn skip_syscall(&self) -> io::Result<()> {
        arch::skip_syscall(self.pid())
    }

    /// What the call at whose exit it stands answers.
    pub(crate) fn answer_syscall(&self, answer: i64) -> io::Result<()> {
        arch::set_answer(self.pid(), answer)
    }

    /// Eight bytes of code at `address`, 0 when unreadable.
    pub(crate) fn code(&self, address: u64) -> u64 {
        // Aligned, so that the read never crosses into an unmapped page.
        let aligned = address & !7;
        let shift = 8 * (address & 7) as u32;
        let read = |at| peek(libc::PTRACE_PEEKTEXT as i64, self.pid(), at).unwrap_or(0);
        let low = read(aligned) >> shift;
        // Only the first four bytes matter.
        if shift <= 32 { low } else { low | read(aligned + 8) << (64 - shift) }
    }

    /// SIGKILL, then reap; returns when the process with all its threads is gone.
    pub(crate) fn kill(mut self) -> Exit {
        self.child.kill()
    }

    fn resume(&mut self, how: i64) -> Stop {
        let mut stop = self.go_on(how, 0);
        while let Err(signal) = stop {
            stop = self.go_on(how, signal);
        }
        stop.unwrap_or(Stop::Stuck)
    }

    fn go_on(&mut self, how: i64, signal: i32) -> Result<Stop, i32> {
        // Fails only when the process is ending, which the wait reports.
        let _ = request(how, self.pid(), 0, signal as u64);
        self.wait()
    }

    /// Waits for a stop; `Err` is a signal that the tracee should get.
    fn wait(&mut self) -> Result<Stop, i32> {
        let start = Ticker::now();
        loop {
            let mut status = 0;
            // SAFETY: `status` outlives the call; the id is our own unreaped child.
            let got = unsafe { libc::waitpid(self.pid(), &mut status, libc::__WALL) };
            if got < 0 {
                if Ticker::now().wrapping_sub(start) > self.hang_ticks {
                    return Ok(Stop::Stuck);
                }
                match io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => continue,
                    _ => return Ok(Stop::Ended(Exit::Code(-1))),
                }
            }
            if !libc::WIFSTOPPED(status) {
                let exit = Exit::from_status(status);
                self.child.reaped(exit);
                return Ok(Stop::Ended(exit));
            }
            return match libc::WSTOPSIG(status) {
                libc::SIGTRAP => Ok(Stop::Trap),
                signal if signal == libc::SIGTRAP | 0x80 => Ok(Stop::Syscall),
                signal => Err(signal),
            };
        }
    }
}
