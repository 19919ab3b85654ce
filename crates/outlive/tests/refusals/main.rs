//! What hot calls cost, refused and accepted: a counting allocator, which can also have nothing
//! left, and for those that are refused a seccomp filter that kills whoever makes a system call.
#![cfg(not(loom))]

mod accepted;
mod refused;
mod scene;
mod woken;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use accepted::ACCEPTED;
use outlive::doc_dir;
use refused::REFUSED;
use scene::Row;
use woken::REFUSED_AND_WOKEN;

struct Counting;

thread_local! {
    static COUNTED: Cell<bool> = const { Cell::new(false) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static STARVED: Cell<bool> = const { Cell::new(false) };
}

/// What is smaller can be had by whoever starves: the text of an error.
const STARVED_BYTES: usize = 256;

/// What `call` returns when larger things cannot be had.
fn starving<R>(call: impl FnOnce() -> R) -> R {
    STARVED.set(true);
    let result = call();
    STARVED.set(false);
    result
}

fn is_refused(bytes: usize) -> bool {
    bytes >= STARVED_BYTES && STARVED.try_with(Cell::get).unwrap_or(false)
}

fn count() {
    if COUNTED.try_with(Cell::get).unwrap_or(false) {
        let _ = ALLOCATIONS.try_with(|n| n.set(n.get() + 1));
    }
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_refused(layout.size()) {
            return std::ptr::null_mut();
        }
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if is_refused(size) {
            return std::ptr::null_mut();
        }
        count();
        // SAFETY: the caller's promise.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Calls before the count begins: rings are full and lists have grown then.
const SETTLED: u32 = 300;
const CALLS: u32 = 100;

/// Allocations of `CALLS` calls.
fn allocations(row: &Row) -> u64 {
    let mut scene = row.1();
    (0..SETTLED).for_each(|_| (scene.call)());
    ALLOCATIONS.set(0);
    COUNTED.set(true);
    (0..CALLS).for_each(|_| (scene.call)());
    COUNTED.set(false);
    ALLOCATIONS.get()
}

#[test]
fn a_hot_call_allocates_nothing_refused_or_accepted() {
    let mut wrong = Vec::new();
    for row in [REFUSED, REFUSED_AND_WOKEN, ACCEPTED].into_iter().flatten() {
        let n = allocations(row);
        println!("{n:>5} allocations in {CALLS} times: {}", row.0);
        if n > 0 {
            wrong.push(row.0);
        }
    }
    assert!(wrong.is_empty(), "these allocate: {wrong:?}");
    COUNTED.set(true);
    drop(std::hint::black_box(Box::new(7)));
    COUNTED.set(false);
    assert_eq!(ALLOCATIONS.get(), 1, "the count counts");
}

/// From now on any system call of this thread but `_exit` ends the process.
fn no_system_calls() {
    // Where the clock is not read without the kernel, reading it is a call.
    let allowed = [libc::SYS_exit_group, libc::SYS_clock_gettime];
    let op =
        |code: u32, jump: u8, k: u32| libc::sock_filter { code: code as u16, jt: jump, jf: 0, k };
    let mut program = vec![op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (at, number) in allowed.iter().enumerate() {
        let to_the_end = (allowed.len() - at) as u8;
        program.push(op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, to_the_end, *number as u32));
    }
    program.push(op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_KILL_PROCESS));
    program.push(op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // Freeing might be a call of its own.
    std::mem::forget(program);
    // SAFETY: a filter of this thread's own, alive for the call.
    let rc = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
    };
    assert_eq!(rc, 0, "no seccomp here");
}

const ROW: &str = "OUTLIVE_TEST_REFUSED_ROW";
/// A child that shows that the filter catches a call.
const CAUGHT: usize = usize::MAX;

/// What a child of the test below does: nothing in a run of all tests.
#[test]
fn a_refused_call_under_the_filter() {
    let Ok(row) = std::env::var(ROW) else { return };
    let row: usize = row.parse().unwrap();
    let mut scene = REFUSED[if row == CAUGHT { 0 } else { row }].1();
    (0..SETTLED).for_each(|_| (scene.call)());
    no_system_calls();
    (0..CALLS).for_each(|_| (scene.call)());
    // SAFETY: no arguments; ends this process at once.
    unsafe {
        if row == CAUGHT {
            libc::getppid();
        }
        libc::_exit(0)
    }
}

#[test]
fn a_refused_call_makes_no_system_call() {
    let run = |row: usize| {
        let dir = doc_dir();
        std::fs::create_dir_all(dir.path()).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "a_refused_call_under_the_filter", "--test-threads=1"]);
        // What it leaves goes with this directory.
        child.env(ROW, row.to_string()).env("TMPDIR", dir.path());
        let out = child.output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        (out.status, said + &String::from_utf8_lossy(&out.stderr))
    };
    let mut wrong = Vec::new();
    for (at, (name, _)) in REFUSED.iter().enumerate() {
        let (status, said) = run(at);
        println!("{status}: {name}");
        if !status.success() {
            assert_eq!(status.signal(), Some(libc::SIGSYS), "{name}: {said}");
            wrong.push(name);
        }
    }
    assert!(wrong.is_empty(), "these make a system call: {wrong:?}");
    assert_eq!(run(CAUGHT).0.signal(), Some(libc::SIGSYS), "one call is caught");
}
