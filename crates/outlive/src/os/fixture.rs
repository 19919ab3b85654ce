//! What the tests of this folder share: directories that go away, children that are reaped.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use super::syserr;
use crate::Result;
use crate::sync::{AtomicU32, Ordering};

/// A directory of its own under /dev/shm, removed at the end.
#[derive(Debug)]
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    /// `label` is for people who find it after a killed test.
    pub(crate) fn new(label: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("outlive-test-{label}-{}-{n}", std::process::id());
        let path = Path::new("/dev/shm").join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A forked child; killed and reaped at the end.
#[derive(Debug)]
pub(crate) struct Child(libc::pid_t);

/// Forks a child that runs `body` and exits with its result. The parent has other threads, so
/// `body` must not allocate, lock or panic.
pub(crate) fn fork_child(body: impl FnOnce() -> i32) -> Child {
    // SAFETY: the child only runs `body`, under the rule above, and leaves with _exit.
    unsafe {
        let pid = libc::fork();
        assert!(pid >= 0);
        if pid == 0 {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // One that hangs fails its test.
            libc::alarm(100);
            libc::_exit(body());
        }
        Child(pid)
    }
}

/// Closes a descriptor by its number, as a program that closes all does.
pub(crate) fn close_number(fd: i32) {
    // SAFETY: nobody uses it meanwhile; whoever has it looks whether it is still its own.
    unsafe { libc::close(fd) };
}

const ALONE: &str = "OUTLIVE_TEST_ALONE";

/// Whether this is the process of its own that `test` of `module` needs; else runs it in one.
pub(crate) fn in_a_child(module: &str, test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let name = format!("{}::{test}", module.trim_start_matches("outlive::"));
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let done = child.args(["--exact", &name]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    false
}

/// Lets this process have descriptors below `number` only; returns what it was.
pub(crate) fn limit_descriptors(number: u64) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both calls take a struct that lives through them.
    unsafe {
        assert_eq!(libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit), 0);
        let was = std::mem::replace(&mut limit.rlim_cur, number);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limit), 0);
        was
    }
}

/// Lets this process map nothing more once it has `bytes`.
pub(crate) fn limit_memory(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a struct that outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// As a program does that becomes a daemon.
pub(crate) fn close_all_descriptors() {
    // SAFETY: in a child that the test has to itself.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}

/// From here on SIGUSR1 runs `handler`; returns what sends it to the calling thread.
pub(crate) fn on_sigusr1(handler: extern "C" fn(i32)) -> impl Fn() + Send + Sync + Copy {
    // SAFETY: a sigaction is plain data, without flags: what it interrupts is not begun again.
    let thread = unsafe {
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = handler as *const () as usize;
        libc::sigaction(libc::SIGUSR1, &new, std::ptr::null_mut());
        // A number: musl's is a pointer, which no closure may carry to another thread.
        libc::pthread_self() as usize
    };
    // SAFETY: the thread lives: callers wait for it.
    move || unsafe { _ = libc::pthread_kill(thread as libc::pthread_t, libc::SIGUSR1) }
}

impl Child {
    /// Its process number.
    pub(crate) fn pid(&self) -> i32 {
        self.0
    }

    /// Sends SIGKILL and reaps it.
    pub(crate) fn kill(self) {}

    /// Waits for its end: exit code, or minus the signal that killed it.
    pub(crate) fn wait(mut self) -> i32 {
        let mut status = 0;
        // SAFETY: waits for our own child, not reaped yet.
        let got = unsafe { libc::waitpid(self.0, &mut status, 0) };
        assert_eq!(got, self.0);
        self.0 = 0;
        if libc::WIFSIGNALED(status) { -libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.0 > 0 {
            // SAFETY: our own child, not reaped yet.
            unsafe {
                libc::kill(self.0, libc::SIGKILL);
                libc::waitpid(self.0, std::ptr::null_mut(), 0);
            }
        }
    }
}

/// Runs `body` in a thread that then dies as in a killed process: no hook of its end runs.
pub(crate) fn killed_thread<F: FnOnce() + Send>(body: F) {
    extern "C" fn run<F: FnOnce()>(body: *mut libc::c_void) -> *mut libc::c_void {
        // SAFETY: the option below, which outlives the thread; nobody else uses it.
        if let Some(body) = unsafe { &mut *body.cast::<Option<F>>() }.take() {
            body();
        }
        // SAFETY: ends this thread only; its stack belongs to the C library.
        unsafe { libc::syscall(libc::SYS_exit, 0) };
        std::ptr::null_mut()
    }
    let mut body = Some(body);
    // SAFETY: the thread gets a pointer that is valid until it is joined here.
    unsafe {
        let mut thread = std::mem::zeroed();
        let arg = (&raw mut body).cast();
        assert_eq!(libc::pthread_create(&mut thread, std::ptr::null(), run::<F>, arg), 0);
        assert_eq!(libc::pthread_join(thread, std::ptr::null_mut()), 0);
    }
}

/// How long the calling thread was on a core.
pub(crate) fn thread_cpu() -> std::time::Duration {
    let mut ts = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `ts` is a valid timespec for the call to fill; the clock exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut ts) };
    std::time::Duration::new(ts.tv_sec as u64, ts.tv_nsec as u32)
}

/// Bytes of a page of this machine.
pub(crate) fn page_bytes() -> usize {
    // SAFETY: asks for a number.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

/// How often the calling thread has given its core away by itself.
pub(crate) fn thread_sleeps() -> i64 {
    // SAFETY: a rusage is integers, and the call fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` outlives the call.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &mut usage) };
    usage.ru_nvcsw
}

/// Polls until `done`, at most about 20 s: a watchdog against hangs, not a bound on time.
pub(crate) fn until(mut done: impl FnMut() -> bool) {
    for _ in 0..200_000 {
        if done() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    panic!("gave up waiting");
}

/// Whether that thread, of any process, sleeps in the kernel.
pub(crate) fn is_asleep(tid: i32) -> bool {
    // Also of a thread: /proc knows every thread by its number, listed or not.
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
}

thread_local! {
    static REFUSED: RefCell<Option<Refused>> = const { RefCell::new(None) };
}

/// What this thread's next system calls on a file are told.
struct Refused {
    call: &'static str,
    /// Part of the path.
    of: String,
    errno: i32,
    times: u32,
}

/// Lets the next `times` calls of `call` on a file whose path contains `of` fail with `errno`, for
/// this thread. Of `call` there are: `open`, `opendir`, `stat`, `map`, `port`, `unlink`; and
/// `thread`, whose path is the name of a stage.
pub(crate) fn refuse(call: &'static str, of: &str, errno: i32, times: u32) {
    REFUSED.set(Some(Refused { call, of: of.into(), errno, times }));
}

/// No more; how many of those calls there have not been.
pub(crate) fn refuse_none() -> u32 {
    REFUSED.take().map_or(0, |refused| refused.times)
}

/// At the call: fails if it was to be refused.
pub(crate) fn may(call: &str, path: &Path) -> Result<()> {
    REFUSED.with_borrow_mut(|refused| match refused {
        Some(r) if r.times > 0 && r.call == call && path.to_string_lossy().contains(&r.of) => {
            r.times -= 1;
            Err(syserr::from_code("look at", syserr::show(path), r.errno))
        }
        _ => Ok(()),
    })
}
