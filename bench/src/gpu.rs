//! Device memory in and out of chunks, beside what the card can do with pinned memory.
//!
//! The peer is this program once more, started before and not forked, since CUDA survives no fork.
#![allow(unsafe_code)]

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use measure::stats::{Samples, Target, interleave};
use outlive::{Error, ErrorKind, Node, Publisher, Result, Sample, Subscriber};
use outlive_gpu::copier::{Job, Place};
use outlive_gpu::share::{DeviceFrame, DeviceShare};
use outlive_gpu::{Cuda, DeviceBuffer, LoanExt, SampleExt, Stream};

use super::report::{Row, Unit};
use super::scratch::TempRoot;

/// Set for the peer: the directory of the domain.
pub(super) const PEER: &str = "OUTLIVE_BENCH_GPU_PEER";
/// An image.
const BYTES: usize = 10_000_000;
const RUNS: usize = 10;
const LONG: Duration = Duration::from_secs(30);

/// Without a GPU it is `NotFound`: the command ends with 4.
fn told(e: outlive_gpu::Error) -> Error {
    e.into()
}

fn late() -> Error {
    Error::new(ErrorKind::Timeout, "measuring", "a GPU", "the other process does not answer")
}

/// Both ends, as each process has them.
struct Ends {
    cuda: Cuda,
    _node: Node,
    out: Publisher<[u8]>,
    usual: Publisher<[u8]>,
    acks: Subscriber<u64>,
    buffer: DeviceBuffer,
}

/// ns of each of `RUNS` runs, after one that warms up.
fn times(mut run: impl FnMut() -> Result<()>) -> Result<Samples> {
    run()?;
    let mut all = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        all.push(start.elapsed().as_nanos() as f64);
    }
    Ok(Samples::new(all))
}

pub(super) fn rows(rounds: usize) -> Result<(Vec<Row>, Vec<String>)> {
    let cuda = Cuda::open(0).map_err(told)?;
    let root = TempRoot::made()?;
    let node = Node::builder().root(&root.0).name("bench").open()?;
    let acks = node.topic::<u64>("/acks")?.subscriber()?;
    let out = node.topic::<[u8]>("/direct")?.depth(2).publisher()?;
    let usual = node.topic::<[u8]>("/usual")?.depth(2).publisher()?;
    let mut peer = Peer::start(&root.0)?;
    let deadline = Instant::now() + LONG;
    while out.subscribers()? == 0 || usual.subscribers()? == 0 {
        if Instant::now() > deadline || peer.has_ended() {
            return Err(late());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let buffer = cuda.alloc(BYTES).map_err(told)?;
    let mut ends = Ends { cuda, _node: node, out, usual, acks, buffer };
    let mut rows = one_process(&ends, rounds)?;
    rows.extend(two_processes(&mut ends, rounds)?);
    let mut notes = vec![ends.cuda.name().to_owned()];
    match same_device(&mut ends) {
        Ok(row) => rows.push(row),
        Err(e) => notes.push(format!("same-GPU path left out: {e}")),
    }
    notes.push(format!("{:?}", ends.cuda.registered()));
    Ok((rows, notes))
}

/// In and out of pinned memory, of a chunk, and of pageable memory.
fn one_process(ends: &Ends, rounds: usize) -> Result<Vec<Row>> {
    let Ends { cuda, out, buffer, .. } = ends;
    let pinned = cuda.pinned(BYTES).map_err(told)?;
    let mut pageable = vec![0u8; BYTES];
    let device = Place::device(buffer.ptr());
    let copy = |to, from| {
        // SAFETY: both have this length and live until the copy is done.
        unsafe { cuda.copy_now(&Job::flat(to, from, BYTES)) }.map_err(told)
    };
    let (host, heap) = (Place::host(pinned.as_ptr()), Place::host(pageable.as_mut_ptr()));
    let down = || times(|| copy(host, device));
    let up = || times(|| copy(device, host));
    let into_chunk = || {
        times(|| {
            let loan = out.loan_slice(BYTES)?;
            // SAFETY: the buffer lives until the copy is done.
            let filled = unsafe { loan.fill_from_device(cuda, buffer.ptr(), Stream::DEFAULT) };
            filled.and_then(|fill| fill.finish()).map(drop).map_err(told)
        })
    };
    let c = interleave(rounds, down, into_chunk)?;
    let target = Target::AtMost(1.0 / 0.95);
    let mut rows =
        vec![Row::compared("10 MB device to chunk", Unit::Ns, "device to pinned", &c, target)];
    let c = interleave(rounds, down, || times(|| copy(heap, device)))?;
    let none = Target::None;
    rows.push(Row::compared("10 MB device to pageable", Unit::Ns, "device to pinned", &c, none));
    let c = interleave(rounds, up, || times(|| copy(device, heap)))?;
    rows.push(Row::compared("10 MB pageable to device", Unit::Ns, "pinned to device", &c, none));
    let both = || {
        times(|| {
            copy(host, device)?;
            copy(device, host)
        })
    };
    rows.push(Row::measured("10 MB device, pinned, device", Unit::Ns, &both()?));
    Ok(rows)
}

/// Device to device of another process: by way of a chunk, and the usual way.
fn two_processes(ends: &mut Ends, rounds: usize) -> Result<Vec<Row>> {
    let Ends { cuda, out, usual, acks, buffer, .. } = ends;
    let pinned = cuda.pinned(BYTES).map_err(told)?;
    let (host, device) = (Place::host(pinned.as_ptr()), Place::device(buffer.ptr()));
    let mut pageable = vec![0u8; BYTES];
    let heap = Place::host(pageable.as_mut_ptr());
    let copy = |to, from| {
        // SAFETY: both have this length and live until the copy is done.
        unsafe { cuda.copy_now(&Job::flat(to, from, BYTES)) }.map_err(told)
    };
    let acks = std::cell::RefCell::new(acks);
    let acked = || {
        let got = acks.borrow_mut().receive_timeout(LONG)?;
        // An event may end the wait early.
        if got.is_some() || acks.borrow_mut().receive_timeout(LONG)?.is_some() {
            return Ok(());
        }
        Err(late())
    };
    let ceiling = || {
        times(|| {
            copy(host, device)?;
            copy(device, host)
        })
    };
    let direct = || {
        times(|| {
            let loan = out.loan_slice(BYTES)?;
            // SAFETY: the buffer lives until the copy is done.
            let filled = unsafe { loan.fill_from_device(cuda, buffer.ptr(), Stream::DEFAULT) };
            filled.and_then(|fill| fill.publish()).map_err(told)?;
            acked()
        })
    };
    let usual_way = || {
        times(|| {
            copy(heap, device)?;
            // SAFETY: `pageable` lives and is not borrowed otherwise.
            let bytes = unsafe { std::slice::from_raw_parts(heap_ptr(heap), BYTES) };
            usual.publish(bytes)?;
            acked()
        })
    };
    let c = interleave(rounds, ceiling, direct)?;
    let (name, limit) = ("10 MB device, chunk, device of another", "device, pinned, device");
    let mut rows = vec![Row::compared(name, Unit::Ns, limit, &c, Target::AtMost(1.0 / 0.95))];
    let c = interleave(rounds, direct, usual_way)?;
    let (name, limit) = ("10 MB the usual way", "device, chunk, device of another");
    rows.push(Row::compared(name, Unit::Ns, limit, &c, Target::AtLeast(2.0)));
    Ok(rows)
}

fn heap_ptr(place: Place) -> *const u8 {
    match place {
        Place::Host { ptr, .. } => ptr,
        Place::Device { .. } => std::ptr::null(),
    }
}

/// From a finished kernel to the other process that has the pointer.
fn same_device(ends: &mut Ends) -> outlive_gpu::Result<Row> {
    let share = DeviceShare::open(&ends.cuda, &ends._node)?;
    let publisher = share.publisher(ends._node.topic::<DeviceFrame>("/device")?.depth(2))?;
    let deadline = Instant::now() + LONG;
    while publisher.port().subscribers()? == 0 {
        if Instant::now() > deadline {
            return Err(late().into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut all = Vec::new();
    for i in 0..520 {
        let loan = publisher.loan(BYTES)?;
        let start = outlive::now_ns();
        // SAFETY: the default stream always lives.
        unsafe { loan.publish(Stream::DEFAULT, [0; 8]) }?;
        let got = ends.acks.receive_timeout(LONG)?;
        let got = match got {
            Some(ack) => ack,
            None => ends.acks.receive_timeout(LONG)?.ok_or_else(late)?,
        };
        // The peer says when it had the pointer: the same clock.
        if i >= 20 {
            all.push(got.saturating_sub(start) as f64);
        }
    }
    Ok(Row::measured("10 MB same GPU, publish to pointer in hand", Unit::Ns, &Samples::new(all)))
}

struct Peer(Child);

impl Peer {
    fn start(dir: &Path) -> Result<Self> {
        let io = |e| Error::new(ErrorKind::Io, "starting", "the other process", "").with_source(e);
        let program = std::env::current_exe().map_err(io)?;
        let mut command = Command::new(program);
        command.arg("gpu").env(PEER, dir);
        command.spawn().map(Self).map_err(io)
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The other process: takes what comes and answers each message, until its parent is gone.
pub(super) fn peer(dir: &Path) -> Result<()> {
    let cuda = Cuda::open(0).map_err(told)?;
    let node = Node::builder().root(dir).name("bench-peer").open()?;
    let acks = node.topic::<u64>("/acks")?.publisher()?;
    let mut direct = node.topic::<[u8]>("/direct")?.subscriber()?;
    let mut usual = node.topic::<[u8]>("/usual")?.subscriber()?;
    let share = DeviceShare::open(&cuda, &node).ok();
    let mut device = match &share {
        Some(share) => {
            let topic = node.topic::<DeviceFrame>("/device")?.depth(2);
            Some(share.subscriber(topic).map_err(told)?)
        }
        None => None,
    };
    let buffer = cuda.alloc(BYTES).map_err(told)?;
    let parent = std::os::unix::process::parent_id();
    let mut heap = vec![0u8; BYTES];
    let mut quiet = 0u32;
    loop {
        let mut busy = false;
        if let Some(sample) = direct.receive()? {
            to_device(&cuda, sample, &buffer)?;
            acks.publish(&outlive::now_ns())?;
            busy = true;
        }
        if let Some(sample) = usual.receive()? {
            heap.copy_from_slice(&sample);
            drop(sample);
            let (to, from) = (Place::device(buffer.ptr()), Place::host(heap.as_mut_ptr()));
            // SAFETY: both have this length and live until the copy is done.
            unsafe { cuda.copy_now(&Job::flat(to, from, BYTES)) }.map_err(told)?;
            acks.publish(&outlive::now_ns())?;
            busy = true;
        }
        if let Some(device) = &mut device
            && let Some(sample) = device.receive().map_err(told)?
        {
            std::hint::black_box(sample.ptr());
            acks.publish(&outlive::now_ns())?;
            busy = true;
        }
        quiet = if busy { 0 } else { quiet.wrapping_add(1) };
        if quiet % 1024 == 1023 {
            if std::os::unix::process::parent_id() != parent {
                return Ok(());
            }
            std::thread::yield_now();
        }
    }
}

fn to_device(cuda: &Cuda, sample: Sample<[u8]>, buffer: &DeviceBuffer) -> Result<()> {
    // SAFETY: the buffer lives until the copy is done.
    let taken = unsafe { sample.copy_to_device(cuda, buffer.ptr(), Stream::DEFAULT) };
    taken.and_then(|take| take.finish()).map_err(told)
}
