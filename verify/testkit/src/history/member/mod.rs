//! A member of a history: a process with threads that do what they are told through the public
//! API, and say what they saw.
//!
//! | file | what |
//! |---|---|
//! | here | the process: its life, and who gets which step |
//! | `shared`, `things` | what its threads share; what is under a handle |
//! | `actor` | a thread: one step after the other |
//! | `names`, `fails` | how things are called that it opens; how a step fails |
//! | `messages` | what is sent, and what is seen of it |
//! | `batches`, `locks`, `semaphores`, `services`, `rt`, `crowd` | steps of those kinds |
//! | `sets`, `segments`, `forks`, `limits`, `wait_sets`, `timers` | others |
//! | `python.py`, `cpp.cpp`, `words.hpp` | members in other languages, which do most of them |

mod actor;
mod batches;
mod crowd;
mod fails;
mod forks;
mod limits;
mod locks;
mod messages;
mod names;
mod rt;
mod segments;
mod semaphores;
mod services;
mod sets;
mod shared;
mod things;
mod timers;
mod wait_sets;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

pub(super) use forks::WAYS;
pub(super) use services::{KINDS, PARTS, UNSAID};
pub(super) use things::segments::{LINES, PLACED, WORDS, lines};

use super::reply::Reply;
use super::step::{Handle, Step, Verb};
use crate::process::wait_until;
use actor::{Actor, AsTold, say};
use shared::Shared;
use things::Thing;

/// The role's name.
pub const ROLE: &str = "history member";

/// So long a lost wake would have to be waited for, and of locks a tenth of it: it counts as a hang
/// before.
const SLICE: Duration = Duration::from_secs(600);

/// What is said of a thread that has let a mutex go and waits for a notification.
pub(super) const ASLEEP: &str = "Asleep";
/// One that has not done so by then never does.
const HANG: Duration = Duration::from_secs(5);

/// Drops all in the order that safe code has: what borrows goes first.
fn close_all(things: &mut BTreeMap<Handle, Thing>) {
    things.retain(|_, thing| !matches!(thing, Thing::Received { .. }));
    things.clear();
}

/// Who does a thread's steps, which ends when it is told to, and its number for the kernel.
type Threads = BTreeMap<usize, (Sender<Step>, Option<JoinHandle<()>>, i32)>;

/// All threads end, `main` as the last: it drops what is left.
fn quit(mut threads: Threads, mut step: Step) {
    step.verb = Verb::End;
    while let Some((_, (send, join, _))) = threads.pop_last() {
        let _ = send.send(step.clone());
        let _ = join.map(JoinHandle::join);
    }
}

/// Whether that thread of ours sleeps on a futex: it has let go what it was to let go.
fn is_in_futex(tid: i32) -> bool {
    let call = std::fs::read_to_string(format!("/proc/self/task/{tid}/syscall"));
    call.is_ok_and(|call| call.split(' ').next() == Some(&libc::SYS_futex.to_string()))
}

/// Whoever reads the steps; ends the process when there will be no more.
fn dispatch(shared: &Shared, main: Sender<Step>) {
    let mut threads = Threads::from([(0, (main, None, std::process::id() as i32))]);
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let step = Step::parse(&line).expect("the director writes steps");
        match step.verb {
            Verb::Exit => std::process::exit(0),
            Verb::Quit => return quit(threads, step),
            Verb::Thread => {
                let (send, steps) = channel();
                let thread = step.arg("new") as usize;
                let shared = shared.clone();
                let (started, starts) = channel();
                let join = std::thread::spawn(move || {
                    let actor = Actor::new(shared, thread);
                    // SAFETY: takes nothing.
                    let _ = started.send(unsafe { libc::gettid() });
                    actor.run(&steps);
                });
                // The runtime aborts a thread that cannot have its signal stack: a limit that comes
                // next is not to meet one that begins.
                let tid = starts.recv().unwrap_or_default();
                threads.insert(thread, (send, Some(join), tid));
                say(&Reply { thread: step.thread, outcome: "ok".into(), ..Reply::default() });
            }
            Verb::End | Verb::Crash => {
                let Some((send, join, _)) = threads.remove(&step.thread) else { continue };
                let _ = send.send(step.clone());
                let _ = join.map(JoinHandle::join);
                say(&Reply { thread: step.thread, outcome: "ok".into(), ..Reply::default() });
            }
            Verb::Sleep => {
                let Some((send, _, tid)) = threads.get(&step.thread) else { continue };
                let (thread, before) = (step.thread, shared.sleeps.load(Relaxed));
                let _ = send.send(step);
                wait_until(HANG, || shared.sleeps.load(Relaxed) > before);
                wait_until(HANG, || is_in_futex(*tid));
                say(&Reply { thread, outcome: ASLEEP.into(), ..Reply::default() });
            }
            _ => {
                shared.lend(&step);
                if let Some((send, ..)) = threads.get(&step.thread) {
                    let _ = send.send(step);
                }
            }
        }
    }
    std::process::exit(0);
}

/// The life of a member; does not return.
pub(super) fn run(args: &[String]) -> ! {
    let root = PathBuf::from(args.first().map_or("", String::as_str));
    std::panic::set_hook(Box::new(|panic| {
        if !panic.payload().is::<AsTold>() {
            // Not by the usual hook, which may need memory that a limit took.
            let _ = writeln!(std::io::stderr(), "{panic}");
        }
    }));
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
    outlive::internals::set_slice_ns_max(SLICE.as_nanos() as u64);
    let shared = Shared::new(root);
    let (main, steps) = channel();
    let of_main = shared.clone();
    std::thread::spawn(move || dispatch(&of_main, main));
    Actor::new(shared.clone(), 0).run(&steps);
    close_all(&mut shared.things.lock().unwrap());
    std::process::exit(0)
}
