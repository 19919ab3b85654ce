//! Named crash points: kills a process at the n-th hit of a name.
//!
//! The code under test calls a hook at each `crash_point!("name")`; without a hook it does nothing.
//! This module is the other side: a hook that counts, and one day kills.

use crate::sweep::{Control, Phase, trap};
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Mutex;

/// Where the hook kills this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aim {
    /// Nowhere; hits are only counted.
    Nothing,
    /// At this hit (1-based) of this name.
    At(String, u32),
}

struct Recorder {
    aim: Aim,
    control: Option<&'static Control>,
}

static RECORDER: Mutex<Recorder> = Mutex::new(Recorder { aim: Aim::Nothing, control: None });

/// To be called at each crash point; the code under test gets it from the test.
pub fn hook(name: &'static str) {
    // A panic elsewhere does not make the recorder wrong.
    let mut recorder = RECORDER.lock().unwrap_or_else(|e| e.into_inner());
    if let Some(control) = recorder.control {
        // Warm-up before the gate and work after it do not count.
        if control.phase() != Phase::Inside {
            return;
        }
        control.count(name);
    }
    let Aim::At(target, hit) = &mut recorder.aim else {
        return;
    };
    if target != name {
        return;
    }
    *hit = hit.saturating_sub(1);
    if *hit > 0 {
        return;
    }
    recorder.aim = Aim::Nothing;
    match recorder.control {
        // The tracer kills, or lets the operation go on.
        Some(control) => {
            control.set_phase(Phase::AtCrashPoint);
            trap();
            control.set_phase(Phase::Inside);
        }
        // SAFETY: plain system calls; the process is meant to die here.
        None => unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
            loop {
                libc::pause();
            }
        },
    }
}

/// Makes the hook kill this process at a hit.
pub fn aim(aim: Aim) {
    *RECORDER.lock().unwrap_or_else(|e| e.into_inner()) = Recorder { aim, control: None };
}

/// Inside a victim: count for the driver, and stop for it at the aim.
pub(crate) fn aim_at(control: &'static Control, aim: Aim) {
    *RECORDER.lock().unwrap_or_else(|e| e.into_inner()) = Recorder { aim, control: Some(control) };
}

/// The names of all `crash_point!("name")` in the Rust sources below `dir`.
///
/// # Errors
/// When a file cannot be read.
pub fn names_in_sources(dir: &Path) -> io::Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut todo = vec![dir.to_path_buf()];
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(at)? {
            let path = entry?.path();
            if path.is_dir() {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path)?;
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                for line in code {
                    let calls = line.split("crash_point!(\"").skip(1);
                    names
                        .extend(calls.filter_map(|rest| rest.split('"').next()).map(str::to_owned));
                }
            }
        }
    }
    Ok(names)
}
