#![allow(unsafe_code)]

use std::fs;

use super::*;
use crate::os::fixture::{TempDir, fork_child, until};
use crate::os::time::deadline::Deadline;

const KINDS: [bool; 2] = [true, false]; // unnamed files, temporary names

fn expect(min_len: u64) -> Expect {
    Expect { writable: false, min_len, owner: Some(sched::uid()) }
}

fn kind_of<T>(result: Result<T>) -> ErrorKind {
    result.err().expect("an error").kind()
}

#[test]
fn a_draft_is_invisible_until_linked_and_complete_then() {
    for unnamed in KINDS {
        let dir = TempDir::new("file");
        let path = dir.join("ring");
        let draft = Draft::start(dir.path(), 10_000, 0o640, unnamed).unwrap();
        draft.map().unwrap().atomic_u64(9_992).unwrap().store(77, Ordering::Relaxed);
        let names = open_dir(dir.path()).unwrap().entries().unwrap();
        assert_eq!(names.len(), usize::from(!unnamed));
        assert!(names.iter().all(|n| n.starts_with(TMP_PREFIX)));
        let _fd = draft.link(&path).unwrap();
        assert_eq!(open_dir(dir.path()).unwrap().entries().unwrap(), ["ring"]);
        let (fd, len) = open_checked(&path, expect(10_000)).unwrap();
        assert_eq!(len, 10_000);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        let peer = Mapping::map_peer(&fd, 10_000, &path).unwrap();
        assert_eq!(peer.atomic_u64(9_992).unwrap().load(Ordering::Relaxed), 77);
    }
}

#[test]
fn a_dropped_draft_leaves_nothing() {
    for unnamed in KINDS {
        let dir = TempDir::new("file");
        drop(Draft::start(dir.path(), 4096, 0o600, unnamed).unwrap());
        assert!(open_dir(dir.path()).unwrap().entries().unwrap().is_empty());
    }
}

#[test]
fn a_linked_draft_keeps_its_lock_and_only_if_it_asked_for_one() {
    for unnamed in KINDS {
        for wanted in [true, false] {
            let dir = TempDir::new("file");
            let path = dir.join("node");
            let draft = Draft::start(dir.path(), 4096, 0o600, unnamed).unwrap();
            if wanted {
                assert!(draft.lock_ofd().unwrap());
            }
            let fd = draft.link(&path).unwrap();
            let (peer, _) = open_checked(&path, expect(1)).unwrap();
            assert_eq!(filelock::is_locked(&peer).unwrap(), wanted);
            drop(fd);
            until(|| !filelock::is_locked(&peer).unwrap());
        }
    }
}

#[test]
fn a_temporary_name_is_locked_while_its_maker_lives() {
    let dir = TempDir::new("file");
    let draft = Draft::start(dir.path(), 4096, 0o600, false).unwrap();
    let name = open_dir(dir.path()).unwrap().entries().unwrap().remove(0);
    let (peer, _) = open_checked(&dir.join(&name), expect(1)).unwrap();
    assert!(filelock::is_locked(&peer).unwrap());
    drop(draft);
}

#[test]
fn linking_over_an_existing_file_is_refused() {
    for unnamed in KINDS {
        let dir = TempDir::new("file");
        let path = dir.join("meta");
        fs::write(&path, "first").unwrap();
        let draft = Draft::start(dir.path(), 4096, 0o600, unnamed).unwrap();
        assert_eq!(kind_of(draft.link(&path)), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(open_dir(dir.path()).unwrap().entries().unwrap(), ["meta"]);
    }
}

#[test]
fn a_draft_without_its_directory_is_not_found() {
    for unnamed in KINDS {
        let dir = TempDir::new("file");
        let gone = dir.join("gone");
        let started = Draft::start(&gone, 4096, 0o600, unnamed);
        assert_eq!(kind_of(started), ErrorKind::NotFound);
        fs::create_dir(&gone).unwrap();
        let draft = Draft::start(&gone, 4096, 0o600, true).unwrap();
        fs::remove_dir(&gone).unwrap();
        assert_eq!(kind_of(draft.link(&gone.join("x"))), ErrorKind::NotFound);
    }
}

#[test]
fn a_file_larger_than_the_disk_is_no_space_at_once() {
    let dir = TempDir::new("file");
    let error = Draft::new(dir.path(), 1 << 50, 0o600).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::NoSpace);
    assert!(error.to_string().contains("outlive clean"), "{error}");
    let fd = Draft::new(dir.path(), 4096, 0o600).unwrap().link(&dir.join("f")).unwrap();
    assert_eq!(kind_of(grow(&fd, 1 << 50)), ErrorKind::NoSpace);
}

/// The limit is of the process, so in a child; SIGXFSZ would end it.
#[test]
fn a_file_larger_than_the_limit_of_the_process_is_no_space_and_no_signal() {
    let dir = TempDir::new("file-limit");
    let path = dir.join("f");
    let fd = Draft::new(dir.path(), 4096, 0o600).unwrap().link(&path).unwrap();
    let child = crate::os::fixture::fork_child(|| {
        let limit = libc::rlimit { rlim_cur: 8192, rlim_max: 8192 };
        // SAFETY: a limit that lives through the call, and for this child alone.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
        let refused = |e: Result<()>| {
            e.is_err_and(|e| e.kind() == ErrorKind::NoSpace && e.remedy().contains("RLIMIT_FSIZE"))
        };
        match (refused(grow(&fd, 8193)), grow(&fd, 8192).is_ok()) {
            (true, true) if refused(Draft::new(dir.path(), 9000, 0o600).map(drop)) => 0,
            (true, true) => 2,
            _ => 1,
        }
    });
    assert_eq!(child.wait(), 0);
    assert_eq!(fs::metadata(&path).unwrap().len(), 8192);
}

#[test]
fn growing_reserves_and_never_shortens() {
    let dir = TempDir::new("file");
    let path = dir.join("f");
    let fd = Draft::new(dir.path(), 4096, 0o600).unwrap().link(&path).unwrap();
    grow(&fd, 40 << 20).unwrap(); // more than one step
    let meta = fs::metadata(&path).unwrap();
    assert_eq!(meta.len(), 40 << 20);
    assert!(meta.blocks() * 512 >= 40 << 20);
    grow(&fd, 100).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), 40 << 20);
}

#[test]
fn zeros_are_written_where_reserving_is_unsupported() {
    let dir = TempDir::new("file");
    let path = dir.join("f");
    fs::write(&path, "abc").unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    write_zeros(&file, 3, 50_000).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!((bytes.len(), &bytes[..4]), (50_000, &b"abc\0"[..]));
}

#[test]
fn only_regular_files_of_ours_are_believed() {
    let dir = TempDir::new("file");
    let at = |name: &str| dir.join(name);
    fs::write(at("good"), [0; 100]).unwrap();
    fs::set_permissions(at("good"), Permissions::from_mode(0o600)).unwrap();
    assert_eq!(open_checked(&at("good"), expect(100)).unwrap().1, 100);
    assert_eq!(kind_of(open_checked(&at("good"), expect(101))), ErrorKind::Corrupt);
    let other = Expect { owner: Some(sched::uid() + 1), ..expect(1) };
    assert_eq!(kind_of(open_checked(&at("good"), other)), ErrorKind::NotOwned);
    assert_eq!(kind_of(open_checked(&at("none"), expect(1))), ErrorKind::NotFound);

    std::os::unix::fs::symlink(at("good"), at("link")).unwrap();
    fs::create_dir(at("dir")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let fifo = syserr::c_path(&at("fifo")).unwrap();
    // SAFETY: a C string that lives through the call.
    assert_eq!(unsafe { libc::mkfifo(fifo.as_ptr(), 0o600) }, 0);
    for name in ["link", "dir", "socket", "fifo"] {
        for writable in [false, true] {
            let opened = open_checked(&at(name), Expect { writable, ..expect(0) });
            let error = opened.expect_err(name);
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
            assert!(!error.remedy().is_empty());
        }
    }
    fs::set_permissions(at("good"), Permissions::from_mode(0o606)).unwrap();
    assert_eq!(kind_of(open_checked(&at("good"), expect(1))), ErrorKind::NotOwned);
}

#[test]
fn a_child_that_dies_lets_its_lock_go() {
    let dir = TempDir::new("file");
    let path = dir.join("node");
    let draft = Draft::new(dir.path(), 4096, 0o600).unwrap();
    drop(draft.link(&path).unwrap());
    let c = syserr::c_path(&path).unwrap();
    let child = fork_child(|| {
        // SAFETY: a C string of the parent's memory, which the child shares by copy.
        let fd = unsafe { libc::open(c.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        // SAFETY: just opened; never closed before the child's death.
        let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(fd) };
        let _ = filelock::try_lock_write(&fd);
        loop {
            sched::sleep_until(Deadline::NEVER);
        }
    });
    let (peer, _) = open_checked(&path, expect(1)).unwrap();
    until(|| filelock::is_locked(&peer).unwrap());
    child.kill();
    until(|| !filelock::is_locked(&peer).unwrap());
}

#[test]
fn unlink_says_whether_there_was_something() {
    let dir = TempDir::new("file");
    fs::write(dir.join("f"), "").unwrap();
    assert!(unlink(&dir.join("f")).unwrap());
    assert!(!unlink(&dir.join("f")).unwrap());
}
