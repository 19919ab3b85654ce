//! Memory is given back where no thread can be started any more. In a process of its own: its limit
//! would be everybody's.

mod common;

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use common::{alone, count, pattern, stub, topic};
use outlive::Node;
use outlive::topic::segments;
use outlive_gpu::copier::{Copier, Job, Place, Started, Threads};
use outlive_gpu::share::{DeviceFrame, DeviceShare};
use outlive_gpu::{Gate, LoanExt, Stream};
use testkit::temp::TempDomain;

const BYTES: usize = 100_000;

/// While it is there no thread can be started, and there is room for everything but its stack.
struct NoThreads {
    before: libc::rlimit,
    /// Stacks of threads that have ended would be used again: these hold them.
    parked: Vec<JoinHandle<()>>,
    end: Arc<AtomicBool>,
}

impl NoThreads {
    fn begin() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
        let now: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        let mut before = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: valid pointers.
        unsafe {
            assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &raw mut before), 0);
            let limit = libc::rlimit { rlim_cur: (now + 1024) << 10, ..before };
            assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &raw const limit), 0);
        }
        let mut out = Self { before, parked: Vec::new(), end: Arc::default() };
        while let Ok(thread) = out.park_one() {
            out.parked.push(thread);
        }
        out
    }

    fn park_one(&self) -> std::io::Result<JoinHandle<()>> {
        let end = Arc::clone(&self.end);
        std::thread::Builder::new().spawn(move || {
            while !end.load(Relaxed) {
                std::thread::park();
            }
        })
    }
}

impl Drop for NoThreads {
    fn drop(&mut self) {
        // SAFETY: a valid pointer.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const self.before) }, 0);
        self.end.store(true, Relaxed);
        for thread in self.parked.drain(..) {
            thread.thread().unpark();
            thread.join().unwrap();
        }
    }
}

/// It panicked.
#[test]
fn a_copy_by_several_threads_is_whole_where_none_can_be_started() {
    let _alone = alone("");
    let from = pattern(2, BYTES);
    let mut to = vec![0; BYTES];
    let threads = Threads { count: NonZero::new(4).unwrap() };
    let place = |at: *const u8| Place::host(at.cast_mut());
    let job = Job::flat(Place::host(to.as_mut_ptr()), place(from.as_ptr()), BYTES);
    let none = NoThreads::begin();
    // SAFETY: both have this length, and nobody else touches them.
    let started = unsafe { threads.start(&job, Stream::DEFAULT) };
    drop(none);
    assert_eq!(started.unwrap(), Started::Done);
    assert!(to == from);
}

/// It stayed registered and mapped, or allocated, for as long as the process lived.
#[test]
fn what_is_dropped_where_no_thread_can_be_started_is_given_back() {
    let stub = stub("");
    let dir = TempDomain::new("gpu-threads").unwrap();
    let node = Node::builder().root(dir.path()).open().unwrap();
    let allocations = count(2);
    let (publisher, subscriber) = topic(&node, "/image");
    let from = stub.cuda.upload(&pattern(1, BYTES)).unwrap();
    let ranges = count(0);
    let share = DeviceShare::open(&stub.cuda, &node).unwrap();
    let device = || node.topic::<DeviceFrame>("/device").unwrap();
    let shared = share.publisher(device()).unwrap();
    let mut reader = share.subscriber(device()).unwrap();
    assert_eq!(shared.port().subscribers().unwrap(), 1);
    // SAFETY: nothing is on the stream.
    unsafe { shared.loan(BYTES).unwrap().publish(Stream::DEFAULT, [0; 8]) }.unwrap();
    let sample = reader.receive().unwrap().unwrap();
    let unsent = shared.loan(BYTES).unwrap();
    let others = (stub.cuda.pinned(BYTES).unwrap(), Gate::new(&stub.cuda).unwrap());
    let loan = publisher.loan_slice(BYTES).unwrap();
    let segment = segments::segment_at(loan.as_ptr().addr()).unwrap();
    // SAFETY: the buffer lives until the copy is done.
    let fill = unsafe { loan.fill_from_device(&stub.cuda, from.ptr(), Stream::DEFAULT) };
    fill.unwrap().publish().unwrap();
    assert_eq!(count(0), ranges + 3);

    let none = NoThreads::begin();
    // These first: the others leave room.
    drop((unsent, sample));
    drop((shared, reader, share));
    drop((publisher, subscriber, from, others));
    drop(none);
    assert_eq!((count(0), count(2), count(4)), (ranges, allocations, 0));
    assert_eq!(stub.cuda.registered().quarantined, 0);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let (start, dir) = (format!("{:x}-", segment.start()), dir.path().display().to_string());
    let is_mapped = |line: &str| line.starts_with(&start) && line.contains(&dir);
    assert!(!maps.lines().any(is_mapped), "{maps}");
}
