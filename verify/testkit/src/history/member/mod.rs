//! A member of a history: a process with threads that do what they are told through the public
//! API, and say what they saw.
//!
//! | file | what |
//! |---|---|
//! | here | the process: what its threads share, who gets which step |
//! | `actor` | a thread: one step after the other |
//! | `messages` | what is sent, and what is seen of it |
//! | `batches`, `locks`, `semaphores`, `services`, `rt`, `crowd` | steps of those kinds |
//! | `sets`, `segments`, `forks`, `limits`, `wait_sets`, `timers` | others |
//! | `python.py`, `cpp.cpp`, `words.hpp` | members in other languages, which do most of them |

mod actor;
mod batches;
mod crowd;
mod forks;
mod limits;
mod locks;
mod messages;
mod rt;
mod segments;
mod semaphores;
mod services;
mod sets;
mod timers;
mod wait_sets;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

pub(super) use forks::WAYS;
use outlive::lock::{LocklessSet, RobustCondvar, RobustSemaphore};
use outlive::service::Ticket;
use outlive::{
    Consumer, Interrupt, Loan, Node, NodeBuilder, PayloadType, Producer, Publisher, Received,
    Sample, Subscriber, Timer, Watch,
};
pub(super) use segments::{LINES, PLACED, WORDS, lines};
pub(super) use services::{KINDS, PARTS, UNSAID};

use super::reply::{Reply, Seen};
use super::step::{Handle, Step, Verb};
use crate::process::wait_until;
use actor::Actor;

/// The role's name.
pub const ROLE: &str = "history member";

/// Languages of members, by number.
pub(super) const RUST: u64 = 0;
pub(super) const PYTHON: u64 = 1;
pub(super) const CPP: u64 = 2;

/// How members in other languages are started.
type Programs = BTreeMap<u64, Vec<PathBuf>>;
static PROGRAMS: OnceLock<Programs> = OnceLock::new();

/// From here on half of all members are Python programs under this interpreter, which has the
/// package, and C++ programs: `cpp.cpp`, built.
pub fn use_others(python: Option<&Path>, cpp: Option<&Path>) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/history/member/python.py");
    let python = python.map(|it| (PYTHON, vec![it.to_owned(), script.into()]));
    let cpp = cpp.map(|it| (CPP, vec![it.to_owned()]));
    let _ = PROGRAMS.set(python.into_iter().chain(cpp).collect());
}

pub(super) fn programs() -> &'static Programs {
    PROGRAMS.get_or_init(Programs::new)
}

/// The language of a member that was to be in `asked`: Rust, where there is no program for that.
pub(super) fn spoken(asked: u64) -> u64 {
    if programs().contains_key(&asked) { asked } else { RUST }
}

/// So long a lost wake would have to be waited for, and of locks a tenth of it: it counts as a hang
/// before.
const SLICE: Duration = Duration::from_secs(600);

/// What is said of a thread that has let a mutex go and waits for a notification.
pub(super) const ASLEEP: &str = "Asleep";
/// One that has not done so by then never does.
const HANG: Duration = Duration::from_secs(5);

/// The payload of a panic that the history asked for.
struct AsTold;

/// What any thread of the process may use.
enum Thing {
    Node(Node),
    Publisher(Box<Publisher<[u8]>>),
    Subscriber(Box<Subscriber<[u8]>>),
    /// One that receives messages of a fixed size.
    Values(Box<batches::Values>),
    Sample(Sample<[u8]>, Seen),
    Producer(Box<Producer<[u8]>>),
    /// Not a box: a message in hand borrows from what it points to.
    Consumer(Lasting<Consumer<[u8]>>),
    /// Kept for its drop.
    Received {
        _it: Hand,
    },
    Lock(locks::Lock),
    Semaphore(Arc<RobustSemaphore>),
    Condvar(Arc<RobustCondvar>),
    Set(LocklessSet),
    Watch(Watch),
    Client(Box<services::Asking>),
    /// With its client's handle.
    Ticket(Ticket, Handle),
    Server(Box<services::Serving>),
    Request(Box<services::InHand>),
    End(Box<rt::End>),
    Segment(segments::Segment),
    Timer(Timer),
    Interrupt(Arc<Interrupt>),
}

/// A message in hand, or several in a row.
enum Hand {
    One { _it: Received<'static, [u8]> },
    Slice { _it: batches::Slice },
}

/// What only the thread that took it may use.
enum Own {
    /// With the publisher's handle.
    Loan(Loan<'static, [u8]>, Handle),
    Guard(locks::Guard),
    /// Kept for its drop.
    Permit(semaphores::Held),
}

/// A value at an address that lasts until it is dropped here.
struct Lasting<T>(*mut T);

// SAFETY: it is a box whose content is borrowed by hand; it may be sent where the content may.
unsafe impl<T: Send> Send for Lasting<T> {}

impl<T> Lasting<T> {
    fn new(value: T) -> Self {
        Self(Box::into_raw(Box::new(value)))
    }

    /// The director sees to it that nothing that borrows from it is used after its end, nor
    /// beside another.
    #[allow(clippy::mut_from_ref)]
    fn get(&self) -> &'static mut T {
        // SAFETY: as above; the pointer is a box's.
        unsafe { &mut *self.0 }
    }
}

impl<T> Drop for Lasting<T> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// By thread and handle.
type Lent = BTreeMap<(usize, Handle), Arc<Interrupt>>;

#[derive(Clone)]
struct Shared {
    root: PathBuf,
    things: Arc<Mutex<BTreeMap<Handle, Thing>>>,
    /// A limit was lowered before: what could not be opened is tried again.
    was_limited: Arc<AtomicBool>,
    /// How often somebody was about to wait for a notification.
    sleeps: Arc<AtomicU64>,
    /// Shares of interrupts, for the threads that are to wait for them.
    lent: Arc<Mutex<Lent>>,
    /// Messages sent, by handle.
    sent: Arc<Mutex<BTreeMap<Handle, u64>>>,
}

type Fails = Box<dyn std::error::Error>;

/// The kind of an error of the library, with its text.
fn refusal(e: &outlive::Error) -> (String, String) {
    (format!("{:?}", e.kind()), e.to_string())
}

impl Shared {
    fn take(&self, handle: Handle) -> Thing {
        let taken = self.things.lock().unwrap().remove(&handle);
        taken.unwrap_or_else(|| panic!("there is no handle {handle}"))
    }

    /// Of what others may use meanwhile, and drop, a share is kept for who is to wait for it.
    fn lend(&self, step: &Step) {
        let things = self.things.lock().unwrap();
        for handle in wait_sets::members(step) {
            if let Some(Thing::Interrupt(it)) = things.get(&handle) {
                self.lent.lock().unwrap().insert((step.thread, handle), it.clone());
            }
        }
    }

    /// That share, or the thing itself.
    fn borrow(&self, thread: usize, handle: Handle) -> Thing {
        let lent = self.lent.lock().unwrap().remove(&(thread, handle));
        lent.map_or_else(|| self.take(handle), Thing::Interrupt)
    }

    /// Puts back what `borrow` gave.
    fn give_back(&self, handle: Handle, thing: Thing) {
        if !matches!(thing, Thing::Interrupt(_)) {
            self.put(handle, thing);
        }
    }

    fn put(&self, handle: Handle, thing: Thing) {
        self.things.lock().unwrap().insert(handle, thing);
    }

    fn node(&self, handle: Handle) -> Node {
        match self.things.lock().unwrap().get(&handle) {
            Some(Thing::Node(node)) => node.clone(),
            _ => panic!("handle {handle} is not a node"),
        }
    }

    fn settings(&self) -> NodeBuilder {
        let here = if MOVED.load(Relaxed) { std::env::current_dir().ok() } else { None };
        let root = here.map_or_else(|| self.root.clone(), |here| relative(&self.root, &here));
        Node::builder().root(root).domain("h")
    }

    fn change_directory(&self, to: u64) -> io::Result<()> {
        MOVED.store(true, Relaxed);
        match to {
            0 => std::env::set_current_dir("/"),
            1 => std::env::set_current_dir(self.root.parent().unwrap_or(&self.root)),
            _ => {
                let gone = std::env::temp_dir().join(format!("gone-{}", std::process::id()));
                std::fs::create_dir(&gone)?;
                std::env::set_current_dir(&gone)?;
                std::fs::remove_dir(&gone)
            }
        }
    }
}

/// The process has changed its directory.
static MOVED: AtomicBool = AtomicBool::new(false);

/// The way from `here` to `to`, both absolute.
fn relative(to: &Path, here: &Path) -> PathBuf {
    let common = to.components().zip(here.components()).take_while(|(a, b)| a == b).count();
    let up = here.components().skip(common).map(|_| Component::ParentDir);
    up.chain(to.components().skip(common)).collect()
}

/// Type 0: slices of `u64`; 1: of `u32`, another type of the same name of topic; others: of a
/// fixed size.
fn payload_type(number: u64) -> PayloadType {
    let slices =
        || if number == 0 { PayloadType::of::<[u64]>() } else { PayloadType::of::<[u32]>() };
    batches::payload_type(number).unwrap_or_else(slices)
}

/// Drops all in the order that safe code has: what borrows goes first.
fn close_all(things: &mut BTreeMap<Handle, Thing>) {
    things.retain(|_, thing| !matches!(thing, Thing::Received { .. }));
    things.clear();
}

fn topic(number: u64) -> String {
    format!("/h/topic{number}")
}

fn queue(number: u64) -> String {
    format!("/h/queue{number}")
}

/// One write: several threads say things.
fn say(reply: &Reply) {
    let line = reply.line() + "\n";
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
    let _ = std::io::stdout().lock().flush();
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
                    // SAFETY: takes nothing.
                    let _ = started.send(unsafe { libc::gettid() });
                    Actor::new(shared, thread).run(&steps);
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
    let shared = Shared {
        root,
        things: Arc::default(),
        was_limited: Arc::default(),
        sleeps: Arc::default(),
        lent: Arc::default(),
        sent: Arc::default(),
    };
    let (main, steps) = channel();
    let of_main = shared.clone();
    std::thread::spawn(move || dispatch(&of_main, main));
    Actor::new(shared.clone(), 0).run(&steps);
    close_all(&mut shared.things.lock().unwrap());
    std::process::exit(0)
}
