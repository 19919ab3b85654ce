//! What the primitives cost that the mechanisms are made of.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use measure::cores::{Cores, Pinned};
use measure::stats::Samples;
use outlive::{Result, now_ns};

use super::hops::Slots;
use crate::pair::Peer;
use crate::report::{Row, Unit};

/// Operations of one sample.
const BATCH: u32 = 1000;
/// Batches of yields with one peer before it is the other's turn.
const BATCH_TURNS: usize = 20;
/// Batches of yields at most: a switch takes a microsecond or two.
const YIELDS_MAX: usize = 400;

/// Mean of a batch, many times.
fn batches(samples: usize, mut once: impl FnMut()) -> Samples {
    let mut all = Vec::with_capacity(samples);
    for _ in 0..samples {
        let began = now_ns();
        for _ in 0..BATCH {
            once();
        }
        all.push((now_ns() - began) as f64 / f64::from(BATCH));
    }
    Samples::after_warm_up(all)
}

/// Mutex and condition variable, then atomics and the kernel.
pub(super) fn rows(cores: Cores, quick: bool) -> Result<Vec<Row>> {
    let samples = if quick { 200 } else { 2000 };
    let row = |name: &str, samples: &Samples| Row::measured(name, Unit::Ns, samples);
    let slots = Slots::new(2, false)?;
    let slots = slots.init();
    let mut rows = vec![
        row(
            "mutex: lock and unlock, alone",
            &batches(samples, || {
                slots[0].lock();
                slots[0].unlock();
            }),
        ),
        row("mutex: lock and unlock, one rival", &contended(cores, slots[0], samples)?),
        row("condition variable: notify, nobody waits", &batches(samples, || slots[0].notify())),
    ];
    let wakes = if quick { 500 } else { 5000 };
    rows.push(row("condition variable: notify to running", &condition_wake(&slots, wakes)?));

    let word = AtomicU64::new(0);
    rows.push(row(
        "atomic: store, release",
        &batches(samples, || {
            word.store(std::hint::black_box(7), Ordering::Release);
        }),
    ));
    rows.push(row(
        "atomic: load, acquire",
        &batches(samples, || {
            std::hint::black_box(word.load(Ordering::Acquire));
        }),
    ));
    rows.push(row(
        "atomic: swap",
        &batches(samples, || {
            std::hint::black_box(word.swap(7, Ordering::SeqCst));
        }),
    ));
    rows.push(row(
        "atomic: store, then a full fence",
        &batches(samples, || {
            // The compiler joins fences that follow each other.
            word.store(std::hint::black_box(7), Ordering::Relaxed);
            std::sync::atomic::fence(Ordering::SeqCst);
        }),
    ));
    rows.push(row("yield, nobody else runs here", &batches(samples, std::thread::yield_now)));
    let (to_thread, to_process) = yields(cores, samples)?;
    rows.push(row("yield to another thread", &to_thread));
    rows.push(row("yield to another process", &to_process));
    rows.push(row(
        "system call (getppid)",
        &batches(samples, || {
            // SAFETY: no arguments.
            unsafe { libc::syscall(libc::SYS_getppid) };
        }),
    ));
    let futex = AtomicU32::new(0);
    rows.push(row("futex: wake, nobody waits", &batches(samples, || wake(&futex))));
    rows.push(row("futex: wake to running", &futex_wake(wakes)));
    rows.push(row(
        "clock (CLOCK_MONOTONIC)",
        &batches(samples, || {
            std::hint::black_box(now_ns());
        }),
    ));
    Ok(rows)
}

/// A switch to another thread and one to another process, on one core, in turn: what the address
/// space costs without any mechanism.
fn yields(cores: Cores, samples: usize) -> Result<(Samples, Samples)> {
    let _pinned = Pinned::to(cores.ours)?;
    let switches = |all: &mut Vec<f64>| {
        let began = now_ns();
        for _ in 0..BATCH {
            std::thread::yield_now();
        }
        // There and back.
        all.push((now_ns() - began) as f64 / f64::from(2 * BATCH));
    };
    let (mut to_thread, mut to_process) = (Vec::new(), Vec::new());
    for _ in 0..samples.min(YIELDS_MAX).div_ceil(BATCH_TURNS) {
        let process = Peer::spawn(cores.ours, || {
            loop {
                std::thread::yield_now();
            }
        })?;
        (0..BATCH_TURNS).for_each(|_| switches(&mut to_process));
        drop(process);
        let end = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !end.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            });
            (0..BATCH_TURNS).for_each(|_| switches(&mut to_thread));
            end.store(true, Ordering::Relaxed);
        });
    }
    Ok((Samples::after_warm_up(to_thread), Samples::after_warm_up(to_process)))
}

fn contended(cores: Cores, slot: &super::hops::Slot, samples: usize) -> Result<Samples> {
    let end = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _pinned = Pinned::to(cores.peers);
            while !end.load(Ordering::Relaxed) {
                slot.lock();
                slot.unlock();
            }
        });
        let pinned = Pinned::to(cores.ours);
        let measured = batches(samples, || {
            slot.lock();
            slot.unlock();
        });
        end.store(true, Ordering::Relaxed);
        pinned.map(|_| measured)
    })
}

/// Half a round trip between two sleeping threads.
fn condition_wake(slots: &[&super::hops::Slot], wakes: usize) -> Result<Samples> {
    use super::hops::{Hop, Waiting::Sleep};
    use super::work::PACKET_WORDS;
    let (there, back) = (Hop::Slot(slots[0], Sleep), Hop::Slot(slots[1], Sleep));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut seen = 0;
            for _ in 0..wakes {
                if there.receive(&mut seen).is_err() || back.send(&[0; PACKET_WORDS]).is_err() {
                    return;
                }
            }
        });
        let mut seen = 0;
        let mut all = Vec::with_capacity(wakes);
        for _ in 0..wakes {
            let began = now_ns();
            there.send(&[0; PACKET_WORDS])?;
            back.receive(&mut seen)?;
            all.push((now_ns() - began) as f64 / 2.0);
        }
        Ok(Samples::after_warm_up(all))
    })
}

fn wake(word: &AtomicU32) {
    // SAFETY: FUTEX_WAKE uses the address as a key only.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}

fn sleep_while(word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire) == value {
        let no_time = std::ptr::null::<libc::timespec>();
        // SAFETY: a live word; no deadline.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, no_time) };
    }
}

fn futex_wake(wakes: usize) -> Samples {
    let (there, back) = (AtomicU32::new(0), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..wakes as u32 {
                sleep_while(&there, n);
                back.store(n + 1, Ordering::Release);
                wake(&back);
            }
        });
        let mut all = Vec::with_capacity(wakes);
        for n in 0..wakes as u32 {
            let began = now_ns();
            there.store(n + 1, Ordering::Release);
            wake(&there);
            sleep_while(&back, n);
            all.push((now_ns() - began) as f64 / 2.0);
        }
        Samples::after_warm_up(all)
    })
}
