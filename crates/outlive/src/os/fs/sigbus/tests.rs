#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;

use super::*;
use crate::os::fixture::{Child, TempDir, fork_child};
use crate::os::fs::map::Mapping;

const LEN: usize = 3 * 65536; // whole pages on every architecture

fn file(dir: &TempDir) -> File {
    let path = dir.join("f");
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len(LEN as u64).unwrap();
    file
}

#[test]
fn a_truncated_file_reads_as_zeros_and_is_poisoned() {
    let dir = TempDir::new("sigbus");
    let file = file(&dir);
    let own = Mapping::map_own(&file, LEN, dir.path()).unwrap();
    let peer = Mapping::map_peer(&file, LEN, dir.path()).unwrap();
    for offset in [0, LEN - 8] {
        own.atomic_u64(offset).unwrap().store(7, Ordering::Relaxed);
    }
    file.set_len(8).unwrap();
    assert!(!own.is_poisoned() && !peer.is_poisoned());
    assert_eq!(peer.atomic_u64(0).unwrap().load(Ordering::Relaxed), 7);
    assert!(!peer.is_poisoned(), "the first page is still there");

    assert_eq!(peer.atomic_u64(LEN - 8).unwrap().load(Ordering::Relaxed), 0);
    assert!(peer.is_poisoned() && !own.is_poisoned());
    assert_eq!(peer.check_poisoned().unwrap_err().kind(), ErrorKind::Corrupt);
    own.atomic_u64(LEN - 8).unwrap().store(9, Ordering::Relaxed);
    assert!(own.is_poisoned());
    assert_eq!(own.atomic_u64(LEN - 8).unwrap().load(Ordering::Relaxed), 9);
}

#[test]
fn many_threads_may_fault_at_once() {
    let dir = TempDir::new("sigbus");
    let file = file(&dir);
    let peer = Mapping::map_peer(&file, LEN, dir.path()).unwrap();
    file.set_len(0).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for offset in (0..LEN).step_by(512) {
                    assert_eq!(peer.atomic_u64(offset).unwrap().load(Ordering::Relaxed), 0);
                    assert!(peer.is_poisoned());
                }
            });
        }
    });
}

#[test]
fn a_slot_is_free_again_after_its_mapping() {
    let dir = TempDir::new("sigbus");
    let file = file(&dir);
    let peer = Mapping::map_peer(&file, LEN, dir.path()).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(peer.atomic_u64(0).unwrap().load(Ordering::Relaxed), 0);
    drop(peer);
    file.set_len(LEN as u64).unwrap();
    for _ in 0..RANGES_MAX + 10 {
        let peer = Mapping::map_peer(&file, LEN, dir.path()).unwrap();
        assert!(!peer.is_poisoned());
    }
}

/// A child that faults in a mapping of its own that the guard does not know.
fn fault_elsewhere(prepare: impl Fn()) -> Child {
    let dir = TempDir::new("sigbus");
    let file = file(&dir);
    let ours = Mapping::map_peer(&file, LEN, dir.path()).unwrap(); // installs the guard
    let fd = file.as_raw_fd();
    let child = fork_child(|| {
        // SAFETY: a mapping of this child's, read after its file was truncated: the fault is the
        // purpose. No core file is wanted.
        unsafe {
            let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            libc::setrlimit(libc::RLIMIT_CORE, &none);
            prepare();
            let (prot, flags) = (libc::PROT_READ, libc::MAP_SHARED);
            let start = libc::mmap(ptr::null_mut(), LEN, prot, flags, fd, 0);
            libc::ftruncate(fd, 0);
            start.cast::<u8>().read_volatile();
        }
        0
    });
    drop(ours);
    child
}

#[test]
fn a_fault_elsewhere_still_kills() {
    assert_eq!(fault_elsewhere(|| {}).wait(), -libc::SIGBUS);
}

#[test]
fn a_fault_elsewhere_with_the_default_before_us_kills() {
    for handler in [libc::SIG_DFL, libc::SIG_IGN] {
        let child = fault_elsewhere(|| under_us(handler, 0));
        assert_eq!(child.wait(), -libc::SIGBUS);
    }
}

#[test]
fn a_handler_that_was_there_before_gets_the_other_faults() {
    extern "C" fn plain(signal: i32) {
        // SAFETY: async-signal-safe, ends the child.
        unsafe { libc::_exit(if signal == libc::SIGBUS { 42 } else { 1 }) }
    }
    extern "C" fn full(_: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: as above; the kernel's siginfo was handed on.
        unsafe { libc::_exit(if (*info).si_code > 0 && !context.is_null() { 43 } else { 1 }) }
    }
    let (plain, full) = (plain as *const () as usize, full as *const () as usize);
    assert_eq!(fault_elsewhere(|| under_us(plain, 0)).wait(), 42);
    assert_eq!(fault_elsewhere(|| under_us(full, libc::SA_SIGINFO)).wait(), 43);
}

#[test]
fn a_signal_that_was_ignored_before_us_stays_ignored_when_sent() {
    let send = || {
        // SAFETY: sends this child a signal.
        unsafe { libc::kill(libc::getpid(), libc::SIGBUS) };
    };
    let ignored = fork_child(|| {
        under_us(libc::SIG_IGN, 0);
        send();
        7
    });
    assert_eq!(ignored.wait(), 7);
    let default = fork_child(|| {
        under_us(libc::SIG_DFL, 0);
        send();
        7
    });
    assert_eq!(default.wait(), -libc::SIGBUS);
}

/// In a child: as if `handler` had been there before the guard.
fn under_us(handler: usize, flags: i32) {
    // SAFETY: a sigaction struct is plain data; `handler` is of the kind its flags say.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        old.sa_sigaction = handler;
        old.sa_flags = flags;
        libc::sigaction(libc::SIGBUS, &old, ptr::null_mut());
    }
    install_handler();
}

#[test]
fn a_handler_that_comes_later_comes_second_once_a_file_is_mapped_and_does_not_go_round() {
    /// As Python's faulthandler: says what it has to say and raises the signal again.
    extern "C" fn again(signal: i32) {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        // SAFETY: async-signal-safe.
        unsafe {
            if CALLS.fetch_add(1, Ordering::Relaxed) > 3 {
                libc::_exit(9);
            }
            libc::raise(signal);
        }
    }
    let dir = TempDir::new("sigbus-later");
    let file = file(&dir);
    let child = fault_elsewhere(|| {
        // SAFETY: a sigaction struct is plain data; a raw map of this child's.
        unsafe {
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = again as *const () as usize;
            libc::sigaction(libc::SIGBUS, &new, ptr::null_mut());
            let (prot, flags) = (libc::PROT_READ, libc::MAP_SHARED);
            let start = libc::mmap(ptr::null_mut(), LEN, prot, flags, file.as_raw_fd(), 0);
            let guarded = guard(start.cast(), LEN, false);
            libc::ftruncate(file.as_raw_fd(), 0);
            if start.cast::<u8>().read_volatile() != 0 || !matches!(guarded, Ok(Some(_))) {
                libc::_exit(8);
            }
            std::mem::forget(guarded);
        }
    });
    assert_eq!(child.wait(), -libc::SIGBUS);
}
