//! Processes of their own, forked from one that opens no device: what one opens would be
//! everybody's.

mod common;

use common::library;
use outlive_gpu::{Cuda, Error, ErrorKind};
use testkit::fork_child;

/// Where a namespace cannot be had.
const NOT_ALLOWED: i32 = 77;

fn code_of(body: impl FnOnce() -> i32) -> i32 {
    match fork_child(body).unwrap().wait() {
        testkit::Exit::Code(code) => code,
        testkit::Exit::Signal(signal) => 1000 + signal,
    }
}

/// Runs `body` as process 1 of a PID namespace; answers what it exits with.
fn as_process_1(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: plain system calls; the child runs `body` alone, and exits.
    unsafe {
        let pids = libc::CLONE_NEWPID;
        if libc::unshare(pids) != 0 && libc::unshare(pids | libc::CLONE_NEWUSER) != 0 {
            return NOT_ALLOWED;
        }
        match libc::fork() {
            -1 => NOT_ALLOWED,
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::_exit(body())
            }
            child => {
                let mut status = 0;
                libc::waitpid(child, &raw mut status, 0);
                if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 100 }
            }
        }
    }
}

fn is_refused<T>(answer: Result<T, Error>) -> bool {
    answer.is_err_and(|e| e.kind() == ErrorKind::Unsupported)
}

/// It was taken for its parent.
#[test]
fn a_child_with_the_process_id_of_its_parent_is_refused() {
    let code = code_of(|| {
        as_process_1(|| {
            let cuda = Cuda::open_library(library(), 0).unwrap();
            as_process_1(|| {
                assert_eq!(std::process::id(), 1);
                let refused = is_refused(cuda.alloc(1))
                    && is_refused(Cuda::open_library(library(), 0))
                    && is_refused(Cuda::open_library(library(), 1));
                i32::from(!refused)
            })
        })
    });
    assert!([0, NOT_ALLOWED].contains(&code), "exit code {code}");
}
