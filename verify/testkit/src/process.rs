//! Forked children, waiting and processor affinity.

use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use zerocopy::FromZeros;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It returned or called exit with this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// True for exit code 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }

    pub(crate) fn from_status(status: i32) -> Self {
        if libc::WIFSIGNALED(status) {
            Self::Signal(libc::WTERMSIG(status))
        } else {
            Self::Code(libc::WEXITSTATUS(status))
        }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A `T` of zeroes that this process shares with the children it forks; it stays mapped for the
/// life of all of them.
///
/// # Panics
/// When there is no memory.
pub fn shared_zeroes<T: FromZeros + Sync>() -> &'static T {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    // Memory counts as it is touched.
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping disturbs nothing.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), size_of::<T>(), rights, flags, -1, 0) };
    assert!(at != libc::MAP_FAILED, "no shared memory: {}", io::Error::last_os_error());
    const { assert!(align_of::<T>() <= 4096) };
    // SAFETY: zeroes are a `T` (FromZeros); large enough, page aligned, never unmapped.
    unsafe { &*at.cast::<T>() }
}

/// A forked child; killed and reaped on drop.
#[derive(Debug)]
pub struct Child {
    pid: i32,
    parent: u32,
    exit: Option<Exit>,
}

/// Forks a child that runs `body` and exits with its result (101 after a panic).
///
/// The child gets SIGKILL when the forking thread ends. In a process with several threads `body`
/// must keep to what a forked child may do; glibc allows it to allocate.
///
/// # Errors
/// When fork fails.
pub fn fork_child(body: impl FnOnce() -> i32) -> io::Result<Child> {
    let _ = io::stdout().flush();
    let parent = std::process::id();
    // SAFETY: the child only runs `body`, whose limits are the caller's (see above), and exits.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            die_with_parent(parent);
            let code = catch_unwind(AssertUnwindSafe(body)).unwrap_or(101);
            let _ = io::stdout().flush();
            // SAFETY: ends this process at once, without the parent's exit handlers.
            unsafe { libc::_exit(code) }
        }
        pid => Ok(Child { pid, parent, exit: None }),
    }
}

/// Asks the kernel to kill this process when its parent ends; exits if that happened already.
pub(crate) fn die_with_parent(parent: u32) {
    // SAFETY: plain system calls without pointers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() as u32 != parent {
            libc::_exit(102);
        }
    }
}

impl Child {
    /// The process id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends a signal; does nothing once the child was reaped.
    pub fn signal(&self, signal: i32) {
        if self.exit.is_none() {
            // SAFETY: the child is not reaped, so its id cannot belong to another process.
            unsafe { libc::kill(self.pid, signal) };
        }
    }

    /// SIGKILL, then reap.
    pub fn kill(&mut self) -> Exit {
        self.signal(libc::SIGKILL);
        self.wait()
    }

    /// Ended as the kernel does where memory is out, then reaped. For root, who shields all others
    /// by an `oom_score_adj` of -1000, which the child had inherited.
    ///
    /// # Errors
    /// Those of asking; `TimedOut` if the kernel does not end it.
    pub fn kill_for_memory(&mut self) -> io::Result<Exit> {
        std::fs::write(format!("/proc/{}/oom_score_adj", self.pid), "1000")?;
        for _ in 0..5 {
            std::fs::write("/proc/sysrq-trigger", "f")?;
            // The kernel passes over who is just beginning or ending.
            if let Some(exit) = self.wait_timeout(Duration::from_secs(4)) {
                return Ok(exit);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Waits until the child ended.
    pub fn wait(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.poll(0) {
                return exit;
            }
        }
    }

    /// Waits at most `limit`; `None` when the child still runs.
    pub fn wait_timeout(&mut self, limit: Duration) -> Option<Exit> {
        let start = Instant::now();
        loop {
            if let Some(exit) = self.poll(libc::WNOHANG) {
                return Some(exit);
            }
            if start.elapsed() >= limit {
                return None;
            }
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// True while the child has not ended.
    pub fn is_running(&mut self) -> bool {
        self.poll(libc::WNOHANG).is_none()
    }

    /// Notes an end that the tracer saw and reaped itself.
    pub(crate) fn reaped(&mut self, exit: Exit) {
        self.exit = Some(exit);
    }

    fn poll(&mut self, flags: i32) -> Option<Exit> {
        if self.exit.is_some() {
            return self.exit;
        }
        let mut status = 0;
        // SAFETY: `status` outlives the call; the id is our own unreaped child.
        let got = unsafe { libc::waitpid(self.pid, &mut status, flags | libc::__WALL) };
        if got == self.pid && (libc::WIFEXITED(status) || libc::WIFSIGNALED(status)) {
            self.exit = Some(Exit::from_status(status));
        } else if got < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) {
            self.exit = Some(Exit::Code(-1));
        }
        self.exit
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // A forked sibling holds a copy of this value; the process is not its child.
        if self.exit.is_none() && self.parent == std::process::id() {
            self.kill();
        }
    }
}

/// Waits until `done` holds, at most `limit`; false when it never did.
pub fn wait_until(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let start = Instant::now();
    loop {
        if done() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// How many threads this process has.
pub fn thread_count() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(1, |tasks| tasks.count())
}

/// The set of processors a thread may use.
#[derive(Clone)]
pub struct Affinity(libc::cpu_set_t);

impl std::fmt::Debug for Affinity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Affinity").field(&self.cpus()).finish()
    }
}

impl Affinity {
    /// The processors the calling thread may use.
    pub fn current() -> Self {
        // SAFETY: a cpu_set_t is plain bits; zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer and size describe `set`.
        unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
        Self(set)
    }

    /// Just one processor.
    pub fn one(cpu: usize) -> Self {
        // SAFETY: a cpu_set_t is plain bits; zero is the empty set.
        let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
        // SAFETY: CPU_SET checks the index against the size of the set.
        unsafe { libc::CPU_SET(cpu, &mut set) };
        Self(set)
    }

    /// The numbers of the processors.
    pub fn cpus(&self) -> Vec<usize> {
        let all = 0..libc::CPU_SETSIZE as usize;
        // SAFETY: the indices are within the set.
        all.filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &self.0) }).collect()
    }

    /// Restricts the calling thread to these processors; false when refused.
    pub fn apply(&self) -> bool {
        // SAFETY: the pointer and size describe the set.
        unsafe { libc::sched_setaffinity(0, size_of_val(&self.0), &self.0) == 0 }
    }
}

/// The kernel's number of the calling thread.
pub fn thread_id() -> i32 {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as i32 }
}

/// Whether the thread, of whatever process, is inside a system call that waits for a futex or for
/// descriptors, as long waits do without `futex_waitv`.
pub fn sleeps(thread: i32) -> bool {
    const FUTEX_WAITV: i64 = 449;
    let waits = [libc::SYS_futex, FUTEX_WAITV, libc::SYS_ppoll];
    system_call(thread).is_some_and(|n| waits.contains(&n))
}

/// The system call that a thread is inside of; `None` while it runs.
fn system_call(thread: i32) -> Option<i64> {
    let text = std::fs::read_to_string(format!("/proc/{thread}/syscall")).ok()?;
    text.split(' ').next()?.parse().ok()
}
