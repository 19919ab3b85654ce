#![allow(unsafe_code)]

use super::*;
use crate::os::death::robust::{TID_MASK, has_died, is_alive_word};
use crate::os::fixture::{TempDir, fork_child, until};
use crate::os::fs::file;
use crate::os::fs::file::Draft;
use crate::os::fs::map::Mapping;
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;

const NOTE: usize = 1024;

/// A node's file: our writable view and a peer's read-only one.
fn file(dir: &TempDir) -> (Mapping, Mapping) {
    let draft = Draft::new(dir.path(), 4096, 0o600).unwrap();
    let own = draft.map().unwrap();
    (own, Mapping::map_peer(&draft.fd(), 4096, dir.path()).unwrap())
}

fn word_of(map: &Mapping) -> &AtomicU32 {
    map.atomic_u32(WORD_AT).unwrap()
}

fn hold(own: &Mapping) -> Holder {
    // SAFETY: zero bytes of our own mapping, which every caller keeps longer.
    unsafe { Holder::spawn(own.base_mut()) }.unwrap()
}

#[test]
fn a_token_lives_until_its_holder_is_dropped() {
    let dir = TempDir::new("holder");
    let (own, peer) = file(&dir);
    let holder = hold(&own);
    let word = word_of(&peer).load(Ordering::Acquire);
    assert!(is_alive_word(word) && word & WAITERS != 0 && word & TID_MASK != gettid());
    drop(holder);
    assert_eq!(word_of(&peer).load(Ordering::Acquire), 0);
}

/// What the kernel says of our own thread `tid`.
fn status(tid: u32, key: &str) -> String {
    let all = std::fs::read_to_string(format!("/proc/thread-self/../{tid}/status")).unwrap();
    let line = all.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim().to_owned()
}

#[test]
fn a_holder_is_small_named_and_runs_nobodys_signal_handler() {
    let dir = TempDir::new("holder");
    let (own, peer) = file(&dir);
    let _holder = hold(&own);
    let tid = word_of(&peer).load(Ordering::Acquire) & TID_MASK;
    assert_eq!(status(tid, "Name:"), "outlive-token");
    let blocked = u64::from_str_radix(&status(tid, "SigBlk:"), 16).unwrap();
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGALRM, libc::SIGPROF, libc::SIGCHLD] {
        assert!(blocked & 1 << (signal - 1) != 0, "signal {signal} is open");
    }
    // SAFETY: fills a set of plain bits with our own mask, which is as it was.
    let open = unsafe {
        let mut now: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, ptr::null(), &mut now);
        libc::sigismember(&now, libc::SIGTERM)
    };
    assert_eq!(open, 0, "the mask of who opens a node is put back");
}

#[test]
fn a_forked_child_leaves_its_parents_token_alone() {
    let dir = TempDir::new("holder");
    let (own, peer) = file(&dir);
    let holder = hold(&own);
    let before = word_of(&peer).load(Ordering::Acquire);
    let child = fork_child(|| {
        // SAFETY: a copy that only this child drops; its parent's is untouched.
        drop(unsafe { ptr::read(&holder) });
        0
    });
    assert_eq!(child.wait(), 0);
    assert_eq!(word_of(&peer).load(Ordering::Acquire), before);
    drop(holder);
    assert_eq!(word_of(&peer).load(Ordering::Acquire), 0);
}

const FILE: &str = "OUTLIVE_TEST_HOLDER_FILE";

#[test]
#[ignore = "the child of a_token_dies_with_its_process_even_if_its_memory_is_reaped_first"]
fn holding_child() {
    let path = std::path::PathBuf::from(std::env::var_os(FILE).unwrap());
    let expect = file::Expect { writable: true, min_len: 4096, owner: None };
    let (fd, _) = file::open_checked(&path, expect).unwrap();
    let own = Mapping::map_own(&fd, 4096, &path).unwrap();
    let _holder = hold(&own);
    own.atomic_u32(NOTE).unwrap().store(1, Ordering::Release);
    loop {
        sched::sleep_until(Deadline::in_ns(1_000_000_000));
    }
}

#[test]
fn a_token_dies_with_its_process_even_if_its_memory_is_reaped_first() {
    for _ in 0..3 {
        let dir = TempDir::new("holder");
        let path = dir.join("node");
        let draft = Draft::new(dir.path(), 4096, 0o600).unwrap();
        let peer = Mapping::map_peer(&draft.fd(), 4096, dir.path()).unwrap();
        drop(draft.link(&path).unwrap());
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "os::death::holder::tests::holding_child"])
            .env(FILE, &path)
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        until(|| peer.atomic_u32(NOTE).unwrap().load(Ordering::Acquire) != 0);
        assert!(is_alive_word(word_of(&peer).load(Ordering::Acquire)));
        // SAFETY: system calls on our own child, not reaped yet. process_mrelease (448) does what
        // the OOM killer does; a kernel without it leaves the test weaker, not wrong.
        unsafe {
            let pidfd = libc::syscall(libc::SYS_pidfd_open, child.id(), 0);
            libc::kill(child.id() as i32, libc::SIGKILL);
            libc::syscall(448, pidfd, 0);
            libc::close(pidfd as i32);
        }
        until(|| has_died(word_of(&peer).load(Ordering::Acquire)));
        child.wait().unwrap();
    }
}
