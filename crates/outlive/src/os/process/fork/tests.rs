#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;

use super::*;
use crate::os::fixture::{TempDir, fork_child, until};
use crate::os::fs::filelock;
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;

#[test]
fn a_child_is_another_generation() {
    install();
    let mine = fork_generation();
    let child = fork_child(|| i32::from(fork_generation() == mine));
    assert_eq!(child.wait(), 0);
    assert_eq!(fork_generation(), mine);
}

/// A child that none of the C library's handlers has told.
fn raw_clone(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: a fork without handlers; the child runs `body`, which takes no lock of the C library,
    // and leaves with _exit. The parent waits for it.
    unsafe {
        let flags = libc::SIGCHLD as usize;
        let pid = libc::syscall(libc::SYS_clone, flags, 0usize, 0usize, 0usize, 0usize) as i32;
        assert!(pid >= 0);
        if pid == 0 {
            libc::_exit(body());
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &mut status, 0), pid);
        assert!(libc::WIFEXITED(status));
        libc::WEXITSTATUS(status)
    }
}

#[test]
fn a_child_of_a_raw_clone_is_another_generation_and_lets_go_of_nothing() {
    let dir = TempDir::new("fork-raw");
    let path = dir.join("node");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let asking = options.open(&path).unwrap();
    let fd = NotInChild::open(|| Ok(options.open(&path).unwrap().into())).unwrap();
    assert!(filelock::try_lock_write(&fd).unwrap());
    let mine = fork_generation();
    assert!(mine != 0);
    let dropped = raw_clone(|| {
        let generation = fork_generation();
        // SAFETY: a copy that only this child drops.
        drop(unsafe { std::ptr::read(&fd) });
        i32::from(generation == mine)
    });
    assert_eq!(dropped, 0);
    assert!(filelock::is_locked(&asking).unwrap(), "the child let its parent's lock go");
    let begun = raw_clone(|| {
        install();
        i32::from(matches!(fork_generation(), 0 | TAKEN) || fork_generation() == mine)
    });
    assert_eq!(begun, 0);
    assert_eq!(fork_generation(), mine);
    // The number is an inert descriptor by now in who has noticed that it is a child.
    let raw = fd.as_fd().as_raw_fd();
    let kept = raw_clone(|| {
        install();
        // SAFETY: all zero is a valid stat, filled by the call.
        unsafe {
            let mut stat: libc::stat = std::mem::zeroed();
            libc::fstat(raw, &mut stat);
            i32::from(stat.st_mode & libc::S_IFMT == libc::S_IFREG)
        }
    });
    assert_eq!(kept, 0);
}

#[test]
fn a_lock_that_means_alive_is_not_kept_by_a_child() {
    let dir = TempDir::new("fork");
    let path = dir.join("node");
    let open = || {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).open(&path).unwrap()
    };
    let asking = open();
    for registered in [true, false] {
        let lock = open();
        until(|| filelock::try_lock_write(&lock).unwrap());
        if registered {
            register_close_in_child(lock.as_raw_fd(), inode_of(lock.as_raw_fd()).unwrap()).unwrap();
        }
        let fd = lock.as_raw_fd();
        // SAFETY: asks whether a descriptor is open.
        let still_a_descriptor = move || unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
        let (reader, writer) = std::os::unix::net::UnixStream::pair().unwrap();
        let child = fork_child(|| {
            let answer = [u8::from(still_a_descriptor())];
            // SAFETY: writes one byte of this frame.
            unsafe { libc::write(writer.as_raw_fd(), answer.as_ptr().cast(), 1) };
            loop {
                sched::sleep_until(Deadline::in_ns(1_000_000_000));
            }
        });
        let mut answer = [0];
        std::io::Read::read_exact(&mut &reader, &mut answer).unwrap();
        assert_eq!(answer, [1], "its number stays taken in the child");
        unregister_close_in_child(fd);
        drop(lock);
        if registered {
            until(|| !filelock::is_locked(&asking).unwrap());
        } else {
            assert!(filelock::is_locked(&asking).unwrap(), "the child has a copy");
        }
        child.kill();
    }
}

#[test]
fn a_full_table_is_an_error() {
    // In a child: the table is the process's.
    install();
    let child = fork_child(|| {
        // Numbers that are no descriptors, and none that the children of this child would miss.
        for fd in 0..CLOSE_MAX as i32 {
            if replace_slot(0, fd as u32 + 1_000_000).is_none() {
                return i32::from(fd < CLOSE_MAX as i32 - 100);
            }
        }
        i32::from(replace_slot(0, 7).is_some())
    });
    assert_eq!(child.wait(), 0);
}

static RAN: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];
static ORDER: AtomicU32 = AtomicU32::new(1);

/// A number in place of a pointer.
fn index(i: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(i)
}

fn note(index: *mut c_void) {
    RAN[index.addr()].store(ORDER.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
}

#[test]
fn hooks_run_when_their_thread_ends_last_first() {
    std::thread::spawn(|| {
        for i in 0..3 {
            // SAFETY: the pointer is only a number here.
            unsafe { thread_exit_hook(note, index(i)) }.unwrap();
        }
        assert!(remove_thread_exit_hook(index(1)));
        assert!(!remove_thread_exit_hook(index(1)));
        assert!(RAN.iter().all(|ran| ran.load(Ordering::Relaxed) == 0));
    })
    .join()
    .unwrap();
    until(|| RAN[0].load(Ordering::Relaxed) != 0);
    let ran: Vec<u32> = RAN.iter().map(|ran| ran.load(Ordering::Relaxed)).collect();
    assert_eq!(ran, [2, 0, 1]);
}

#[test]
fn a_thread_without_hooks_has_none_to_remove() {
    assert!(!remove_thread_exit_hook(index(5)));
}

#[test]
fn a_file_that_a_child_was_forked_beside_is_opened_again_before_it_is_locked() {
    let dir = TempDir::new("fork-beside");
    let path = dir.join("lock");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let asking = options.open(&path).unwrap();
    let mut children = Vec::new();
    let fd = NotInChild::open(|| {
        let fd = options.open(&path).unwrap().into();
        if children.is_empty() {
            children.push(fork_child(|| {
                loop {
                    sched::sleep_until(Deadline::in_ns(1_000_000_000));
                }
            }));
        }
        Ok(fd)
    })
    .unwrap();
    assert!(filelock::try_lock_write(&fd).unwrap());
    // As its process's death would: closed, not unlocked.
    unregister_close_in_child(fd.as_fd().as_raw_fd());
    // SAFETY: closes a descriptor of ours, whose owner is forgotten.
    unsafe { libc::close(fd.as_fd().as_raw_fd()) };
    std::mem::forget(fd);
    until(|| !filelock::is_locked(&asking).unwrap());
    assert_eq!(children.len(), 1);
}
