//! Scenarios that go wrong in every way the engine must notice, and one with named crash points.

use crate::toys::Words;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};
use std::time::Duration;
use testkit::sweep::{Gate, Outcome, Point, Scenario};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    SetupFails,
    SetupPanics,
    PreparationFails,
    ExitsInside,
    SurvivorDies,
    Spins,
    Sleeps,
    LeavesFiles,
    SeesNothing,
    /// Fine when killed by the clock: repeats its operation.
    Repeats,
    /// Wrong even when killed by the clock: dies of a signal of its own.
    Aborts,
    /// Fine: takes a detour in about every other process, as code that looks at the clock does.
    Wanders,
    /// Fine: other threads run untraced, and die too.
    Threads,
    /// Fine: a signal arrives in the operation.
    Signals,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Misbehave {
    pub(crate) way: Way,
}

static CAUGHT: AtomicU64 = AtomicU64::new(0);

extern "C" fn catch(_signal: i32) {
    CAUGHT.fetch_add(1, Relaxed);
}

fn sleep_for_ever() {
    loop {
        std::thread::sleep(Duration::from_secs(1000));
    }
}

impl Scenario for Misbehave {
    type World = ();

    fn name(&self) -> String {
        format!("{:?}", self.way)
    }

    fn must_see(&self) -> &[Outcome] {
        if self.way == Way::SeesNothing { &["fine", "owner died"] } else { &["fine"] }
    }

    fn setup(&self, dir: &Path) -> Result<(), String> {
        match self.way {
            Way::SetupFails => return Err("no room".into()),
            Way::SetupPanics => panic!("the world is flat"),
            _ => {}
        }
        std::fs::write(dir.join("file"), "").map_err(|e| e.to_string())
    }

    fn victim(&self, _: &Path, gate: &Gate) -> Result<(), String> {
        let way = self.way;
        match way {
            Way::PreparationFails => return Err("no warm-up".into()),
            Way::Threads => {
                std::thread::spawn(sleep_for_ever);
                std::thread::spawn(|| {
                    loop {
                        std::hint::spin_loop()
                    }
                });
            }
            // SAFETY: the handler only increments an atomic.
            Way::Signals => unsafe {
                libc::signal(libc::SIGUSR1, catch as extern "C" fn(i32) as usize);
            },
            _ => {}
        }
        let done = AtomicBool::new(false);
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        let detour = now.subsec_micros() % 2 == 0;
        gate.enter();
        match way {
            // SAFETY: plain system calls.
            Way::ExitsInside => unsafe { libc::_exit(7) },
            Way::Spins => {
                while !done.load(Relaxed) {
                    std::hint::spin_loop();
                }
            }
            Way::Sleeps => sleep_for_ever(),
            Way::Wanders => {
                if detour {
                    (0..20).for_each(|n| gate.mark(n));
                }
                (0..20).for_each(|n| gate.mark(100 + n));
            }
            Way::Aborts => std::process::abort(),
            Way::Repeats => {
                for n in 1..u64::MAX {
                    gate.mark(n);
                }
            }
            // SAFETY: as above.
            Way::Signals => unsafe {
                libc::raise(libc::SIGUSR1);
            },
            _ => done.store(true, Relaxed),
        }
        if way == Way::Signals {
            gate.mark(CAUGHT.load(Relaxed));
        }
        gate.leave();
        Ok(())
    }

    fn survivor(&self, _: &Path, (): &mut (), at: &Point) -> Result<Outcome, String> {
        match self.way {
            Way::SurvivorDies => std::process::abort(),
            Way::Wanders if at.mark >= 100 => Ok("behind the detour"),
            Way::Repeats if at.mark == 0 => Ok("not even once"),
            Way::Signals if at.finished && at.mark != 1 => Err("the signal got lost".into()),
            _ => Ok("fine"),
        }
    }

    fn teardown(&self, dir: &Path, (): ()) -> Result<(), String> {
        match self.way {
            Way::LeavesFiles => Err(format!("files left: {:?}", testkit::temp::listing(dir))),
            _ => Ok(()),
        }
    }
}

/// The hook of the code under test, as a library would keep it.
static HOOK: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn install(hook: fn(&'static str)) {
    HOOK.store(hook as usize, Relaxed);
}

fn crash_point(name: &'static str) {
    let hook = HOOK.load(Relaxed);
    if hook != 0 {
        // SAFETY: only `install` stores another value than 0, and it stores such a function.
        unsafe { std::mem::transmute::<usize, fn(&'static str)>(hook)(name) };
    }
}

/// Adds 1 to word 0; a broken one leaves word 1 odd in between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named {
    pub(crate) broken: bool,
}

impl Named {
    fn operation(&self, words: &Words) {
        crash_point("toy.before");
        if self.broken {
            words.at(1).fetch_add(1, Relaxed);
        }
        for _ in 0..5 {
            crash_point("toy.loop");
        }
        if self.broken {
            words.at(1).fetch_add(1, Relaxed);
        }
        words.at(0).fetch_add(1, Relaxed);
        crash_point("toy.after");
    }
}

impl Scenario for Named {
    type World = Words;

    fn name(&self) -> String {
        if self.broken { "broken names" } else { "names" }.into()
    }

    fn setup(&self, dir: &Path) -> Result<Words, String> {
        Words::create(&dir.join("words"), 2)
    }

    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String> {
        let words = Words::open(&dir.join("words"))?;
        self.operation(&words);
        gate.enter();
        self.operation(&words);
        gate.leave();
        Ok(())
    }

    fn survivor(&self, _: &Path, words: &mut Words, _: &Point) -> Result<Outcome, String> {
        match (words.at(0).load(Relaxed), words.at(1).load(Relaxed) % 2) {
            (1, 0) => Ok("before"),
            (2, 0) => Ok("after"),
            (_, odd) => Err(format!("word 1 is odd: {odd}")),
        }
    }
}
