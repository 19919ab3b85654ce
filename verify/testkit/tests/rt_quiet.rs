//! A running pipeline allocates nothing, takes no page fault and makes no system call but those of
//! its wait: a counting allocator, the kernel's count of faults, and a seccomp filter that kills
//! whoever calls anything else.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use outlive::rt::{
    Cycle, LatestReader, LatestWriter, Outcome, Overrun, Pipeline, Realtime, Schedule,
    StageOptions, Stop, Wait, latest,
};
use testkit::{Exit, fork_child};

struct Counting;

thread_local! {
    static COUNTED: Cell<bool> = const { Cell::new(false) };
    /// Page faults of the thread before it was watched.
    static FAULTS_BEFORE: Cell<i64> = const { Cell::new(0) };
}
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

fn count() {
    if COUNTED.try_with(Cell::get).unwrap_or(false) {
        ALLOCATIONS.fetch_add(1, Relaxed);
    }
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count();
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Cycles in which a stage settles before it is watched.
const SETTLED: u64 = 5;
const CYCLES: u64 = 60;

/// Two stages on threads with a channel between them; each calls `watch` once when it has settled,
/// the first calls `also` in each cycle, the second `end` after its last one.
fn pipeline(options: StageOptions, watch: fn(), also: fn(), end: fn()) {
    let (mut writer, mut reader): (LatestWriter<[f64; 6]>, LatestReader<[f64; 6]>) = latest();
    let schedule = Schedule::every(Duration::from_millis(2)).unwrap();
    let schedule = schedule.deadline(Duration::from_secs(10)).overrun(Overrun::CatchUp);
    let stop = Stop::new();
    let done = stop.clone();
    let mut pipeline = Pipeline::new(schedule)
        .stage("first", options, move |cycle: &Cycle| {
            if cycle.number == SETTLED {
                watch();
            }
            also();
            writer.write(&[cycle.number as f64; 6]).unwrap();
            Outcome::HandOn
        })
        .stage("second", options, move |cycle: &Cycle| {
            if cycle.number == SETTLED {
                watch();
            }
            assert!(reader.read().unwrap().is_some());
            if cycle.number == CYCLES {
                end();
                done.stop();
            }
            Outcome::HandOn
        });
    pipeline.run_threads(&stop).unwrap();
}

fn nothing() {}

/// Counts what a thread allocates while its pipeline runs.
fn allocations(also: fn()) -> u64 {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    ALLOCATIONS.store(0, Relaxed);
    // Ending a thread may allocate: what counts is taken before.
    pipeline(
        StageOptions::default(),
        || COUNTED.set(true),
        also,
        || {
            TAKEN.store(ALLOCATIONS.load(Relaxed), Relaxed);
        },
    );
    TAKEN.load(Relaxed)
}

#[test]
fn a_cycle_allocates_nothing() {
    assert_eq!(allocations(nothing), 0);
    let one_a_cycle = allocations(|| drop(std::hint::black_box(Box::new(7))));
    assert!(one_a_cycle >= CYCLES, "the count counts: {one_a_cycle}");
}

/// Faults of this thread so far, of pages in memory and of others.
fn page_faults() -> i64 {
    // SAFETY: all zeroes is a valid rusage, and there is room for one.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut used);
        used
    };
    used.ru_minflt + used.ru_majflt
}

/// Faults of both stages while their pipeline runs, with its memory locked where that is allowed.
fn faults(also: fn()) -> i64 {
    static FIRST: AtomicU64 = AtomicU64::new(0);
    static ALSO: OnceLock<fn()> = OnceLock::new();
    const MOST: i64 = 250; // an exit code
    let realtime = Realtime { lock_memory: true, stack_bytes: 64 << 10, ..Realtime::default() };
    let mut child = fork_child(|| {
        ALSO.set(also).unwrap();
        pipeline(
            StageOptions { realtime, ..StageOptions::default() },
            || FAULTS_BEFORE.set(page_faults()),
            || {
                ALSO.get().unwrap()();
                if FAULTS_BEFORE.get() > 0 {
                    FIRST.store((page_faults() - FAULTS_BEFORE.get()) as u64, Relaxed);
                }
            },
            || {
                let second = page_faults() - FAULTS_BEFORE.get();
                let both = (second + FIRST.load(Relaxed) as i64).min(MOST);
                // SAFETY: ends this process at once.
                unsafe { libc::_exit(both as i32) }
            },
        );
        MOST as i32 + 1
    })
    .unwrap();
    match child.wait_timeout(Duration::from_secs(60)).expect("it ends") {
        Exit::Code(faults) => faults.into(),
        other => panic!("{other:?}"),
    }
}

/// Stores into a page that the kernel has to bring in again.
fn fault_once() {
    static PAGE: OnceLock<usize> = OnceLock::new();
    let bytes = 64 << 10; // a page or more
    let at = *PAGE.get_or_init(|| {
        let (rights, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, rights, flags | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert!(at != libc::MAP_FAILED);
        at as usize
    }) as *mut libc::c_void;
    // SAFETY: the mapping made above, which nobody else uses.
    unsafe {
        assert_eq!(libc::munlock(at, bytes), 0);
        assert_eq!(libc::madvise(at, bytes, libc::MADV_DONTNEED), 0);
        at.cast::<u8>().write_volatile(1);
    }
}

#[test]
fn a_cycle_takes_no_page_fault() {
    assert_eq!(faults(nothing), 0);
    let one_a_cycle = faults(fault_once);
    assert!(one_a_cycle >= (CYCLES - SETTLED) as i64, "the count counts: {one_a_cycle}");
}

/// From now on any system call of this thread but `allowed` ends the process.
fn only(allowed: &[libc::c_long]) {
    let op = |code: u32, jump: u8, value: u32| libc::sock_filter {
        code: code as u16,
        jt: jump,
        jf: 0,
        k: value,
    };
    let mut program = vec![op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (at, number) in allowed.iter().enumerate() {
        let to_the_end = (allowed.len() - at) as u8;
        program.push(op(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, to_the_end, *number as u32));
    }
    program.push(op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_KILL_PROCESS));
    program.push(op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // Freeing would be a call of its own.
    std::mem::forget(program);
    // SAFETY: a filter of this thread's own, alive for the call.
    let rc = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
    };
    assert_eq!(rc, 0, "no seccomp here");
}

// Where the clock is not read without the kernel, reading it is a call.
const ALWAYS: [libc::c_long; 2] = [libc::SYS_exit_group, libc::SYS_clock_gettime];

fn end_process() {
    // SAFETY: ends this process at once.
    unsafe { libc::_exit(0) }
}

fn in_child(wait: Wait, watch: fn(), also: fn()) -> Exit {
    let mut child = fork_child(|| {
        pipeline(StageOptions { wait, ..StageOptions::default() }, watch, also, end_process);
        1
    })
    .unwrap();
    child.wait_timeout(Duration::from_secs(60)).expect("it ends or is ended")
}

fn only_the_wait() {
    let [exit, clock] = ALWAYS;
    only(&[exit, clock, libc::SYS_futex, libc::SYS_clock_nanosleep]);
}

#[test]
fn a_cycle_makes_no_system_call_beyond_its_wait() {
    let spin = in_child(Wait::Spin, || only(&ALWAYS), nothing);
    assert_eq!(spin, Exit::Code(0), "spinning needs none");
    let sleep = in_child(Wait::SpinThenSleep { spin_ns: 0 }, only_the_wait, nothing);
    assert_eq!(sleep, Exit::Code(0), "sleeping needs a timer and a futex");
    let caught = in_child(Wait::SpinThenSleep { spin_ns: 0 }, only_the_wait, || {
        // SAFETY: no arguments.
        unsafe { libc::syscall(libc::SYS_getppid) };
    });
    assert_eq!(caught, Exit::Signal(libc::SIGSYS), "one call too many is caught");
}
