//! What the tests of this folder share: directories that go away, children that are reaped.
#![allow(unsafe_code)]

use std::path::{Path, PathBuf};

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
            libc::_exit(body());
        }
        Child(pid)
    }
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
