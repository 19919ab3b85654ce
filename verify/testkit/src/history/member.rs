//! A member of a history: a process with threads that do what they are told through the public
//! API, and say what they saw.

mod crowd;
mod forks;
mod limits;
mod locks;
mod rt;
mod services;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub(super) use forks::WAYS;
use outlive::{
    Consumer, Domain, Event, Loan, Node, NodeBuilder, NodeId, PayloadType, Producer, Publisher,
    QueueEvent, Received, Sample, Subscriber, Ticket, Watch,
};
pub(super) use services::{KINDS, PARTS};

use super::reply::{News, Reply, Seen};
use super::step::{Handle, Step, Verb};
use crate::chaos::message::{self, Head, WORDS_MIN};

/// The role's name.
pub const ROLE: &str = "history member";

/// So long a lost wake would have to be waited for: it counts as a hang before.
const SLICE: Duration = Duration::from_secs(60);

/// The payload of a panic that the history asked for.
struct AsTold;

/// What any thread of the process may use.
enum Thing {
    Node(Node),
    Publisher(Box<Publisher<[u8]>>),
    Subscriber(Subscriber<[u8]>),
    Sample(Sample<[u8]>, Seen),
    Producer(Producer<[u8]>),
    /// Not a box: a message in hand borrows from what it points to.
    Consumer(Lasting<Consumer<[u8]>>),
    /// Kept for its drop.
    Received {
        _it: Received<'static, [u8]>,
    },
    Lock(locks::Lock),
    Watch(Watch),
    Client(Box<services::Asking>),
    /// With its client's handle.
    Ticket(Ticket, Handle),
    Server(Box<services::Serving>),
    Request(Box<services::InHand>),
    End(Box<rt::End>),
}

/// What only the thread that took it may use.
enum Own {
    /// With the publisher's handle.
    Loan(Loan<'static, [u8]>, Handle),
    Guard(locks::Guard),
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

#[derive(Clone)]
struct Shared {
    root: PathBuf,
    things: Arc<Mutex<BTreeMap<Handle, Thing>>>,
    /// A limit was lowered before: what could not be opened is tried again.
    was_limited: Arc<AtomicBool>,
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

    fn put(&self, handle: Handle, thing: Thing) {
        self.things.lock().unwrap().insert(handle, thing);
    }

    fn node(&self, handle: Handle) -> Node {
        match self.things.lock().unwrap().get(&handle) {
            Some(Thing::Node(node)) => node.clone(),
            _ => panic!("handle {handle} is no node"),
        }
    }

    fn settings(&self) -> NodeBuilder {
        Node::builder().root(&self.root).domain("h")
    }
}

/// Type 0: slices of `u64`; 1: of `u32`, another type of the same name of topic.
fn payload_type(number: u64) -> PayloadType {
    if number == 0 { PayloadType::of::<[u64]>() } else { PayloadType::of::<[u32]>() }
}

fn topic(number: u64) -> String {
    format!("/h/topic{number}")
}

fn queue(number: u64) -> String {
    format!("/h/queue{number}")
}

fn content(from: Handle, n: u64, words: u64) -> Vec<u8> {
    let mut content = vec![0; (words as usize).max(WORDS_MIN)];
    message::fill(&mut content, Head { slot: from as usize, life: 0, seq: n, stamp: 0 });
    content.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn look(bytes: &[u8]) -> Seen {
    let words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|chunk| u64::from_ne_bytes(chunk.try_into().expect("eight bytes")))
        .collect();
    match message::check(&words) {
        Ok(head) => Seen { from: head.slot as u64, n: head.seq, whole: true, ..Seen::default() },
        Err(_) => Seen::default(),
    }
}

fn look_at(sample: &Sample<[u8]>) -> Seen {
    let id = sample.publisher();
    Seen {
        seq: sample.seq(),
        lost: sample.lost_before(),
        borrowed: sample.is_borrowed(),
        id: (id.node.get(), id.port),
        ..look(sample)
    }
}

/// One thread that does what it is told.
struct Actor {
    shared: Shared,
    /// Its number, for its answers.
    thread: usize,
    own: BTreeMap<Handle, Own>,
}

impl Actor {
    /// Until it ends. The sender goes with the thread: whoever waits for that knows.
    fn run(mut self, steps: &Receiver<Step>) {
        while let Ok(step) = steps.recv() {
            match step.verb {
                Verb::End => return,
                Verb::Crash => panic_any(AsTold),
                _ => say(&self.answer(&step)),
            }
        }
    }

    fn answer(&mut self, step: &Step) -> Reply {
        let (began, cpu) = (Instant::now(), thread_cpu());
        let mut reply = Reply { outcome: "ok".into(), ..Reply::default() };
        match catch_unwind(AssertUnwindSafe(|| self.act(step, &mut reply))) {
            Ok(Ok(())) => {}
            Ok(Err(e)) => {
                (reply.outcome, reply.text) = match e.downcast_ref::<outlive::Error>() {
                    Some(e) => refusal(e),
                    None => ("Failed".into(), e.to_string()),
                };
            }
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).into()));
                (reply.outcome, reply.text) = ("Panic".into(), text.unwrap_or_default());
            }
        }
        reply.thread = self.thread;
        let cpu = thread_cpu().saturating_sub(cpu);
        reply.took = (cpu.as_micros() as u64, began.elapsed().as_micros() as u64);
        reply
    }

    fn next_number(&self, handle: Handle) -> u64 {
        *self.shared.sent.lock().unwrap().entry(handle).or_default()
    }

    fn was_sent(&self, handle: Handle) {
        *self.shared.sent.lock().unwrap().entry(handle).or_default() += 1;
    }

    fn act(&mut self, step: &Step, reply: &mut Reply) -> Result<(), Fails> {
        let (new, on) = (step.arg("new"), step.arg("on"));
        let type_ = payload_type(step.arg("type"));
        match step.verb {
            Verb::Node => {
                let node = self.shared.settings().name(format!("n{new}")).open()?;
                reply.id = (node.id().get(), 0);
                self.shared.put(new, Thing::Node(node));
            }
            Verb::Publisher => {
                let node = self.shared.node(step.arg("node"));
                let publisher = node
                    .topic::<[u8]>(&topic(step.arg("topic")))?
                    .of_type(&type_)
                    .depth(step.arg("depth"))
                    .volatile(step.arg("volatile") == 1)
                    .reliable_timeout(Duration::from_millis(step.arg("wait_ms")))
                    .publisher()?;
                reply.id = (publisher.id().node.get(), publisher.id().port);
                self.shared.put(new, Thing::Publisher(Box::new(publisher)));
            }
            Verb::Subscriber => {
                let node = self.shared.node(step.arg("node"));
                let subscriber = node
                    .topic::<[u8]>(&topic(step.arg("topic")))?
                    .of_type(&type_)
                    .history(step.arg("history"))
                    .reliable(step.arg("reliable") == 1)
                    .borrows(step.arg("borrows") as usize)
                    .subscriber()?;
                self.shared.put(new, Thing::Subscriber(subscriber));
            }
            Verb::Producer => {
                let node = self.shared.node(step.arg("node"));
                let mut queue = node.queue::<[u8]>(&queue(step.arg("queue")))?.of_type(&type_);
                if step.arg("bound") > 0 {
                    queue = queue.bound_bytes(step.arg("bound"));
                }
                let producer = queue.producer()?;
                reply.id = (producer.id().node.get(), producer.id().port);
                self.shared.put(new, Thing::Producer(producer));
            }
            Verb::Consumer => {
                let node = self.shared.node(step.arg("node"));
                let queue = node.queue::<[u8]>(&queue(step.arg("queue")))?.of_type(&type_);
                self.shared.put(new, Thing::Consumer(Lasting::new(queue.consumer()?)));
            }
            Verb::Mutex | Verb::RwLock => {
                let lock = locks::open(&self.shared, step)?;
                self.shared.put(new, Thing::Lock(lock));
            }
            Verb::RtOpen => {
                let end = rt::open(&self.shared, step)?;
                self.shared.put(new, Thing::End(Box::new(end)));
            }
            Verb::Connect => rt::connect(&self.shared, step)?,
            Verb::Client | Verb::Server => {
                let end = services::open(&self.shared, step)?;
                self.shared.put(new, end);
            }
            Verb::ReplyFor
            | Verb::Cancel
            | Verb::Part
            | Verb::Answer
            | Verb::Refuse
            | Verb::Wanted => return services::about(&self.shared, step, reply),
            Verb::Watch => {
                let node = self.shared.node(step.arg("node"));
                let watch = node.watch(NodeId::from_raw(step.arg("target")))?;
                self.shared.put(new, Thing::Watch(watch));
            }
            Verb::Drop => self.drop(on),
            Verb::Leak => self.leak(on),
            Verb::Unwind => self.unwind(on),
            Verb::Crowd => crowd::come(&self.shared, step, reply)?,
            Verb::Fork => forks::fork(&self.shared, &mut self.own, step, reply)?,
            Verb::Limit => {
                self.shared.was_limited.store(true, Relaxed);
                limits::lower(step)?;
            }
            Verb::Unlimit => limits::raise(step)?,
            Verb::Clean => {
                Domain::of(&self.shared.settings())?.clean()?;
            }
            Verb::Audit => {
                let report = Domain::of(&self.shared.settings())?.audit()?;
                if !report.faults.is_empty() {
                    return Err(report.faults.join("; ").into());
                }
            }
            Verb::RemoveLock => locks::remove(&self.shared, step)?,
            Verb::Lock | Verb::Read => {
                if let Some(guard) = locks::take(&self.shared, step, reply)? {
                    self.own.insert(new, Own::Guard(guard));
                }
            }
            Verb::Write => match self.own.get_mut(&on) {
                Some(Own::Guard(guard)) => guard.write(step),
                _ => panic!("handle {on} is no guard"),
            },
            Verb::Loan => {
                let Thing::Publisher(publisher) = self.shared.take(on) else {
                    panic!("a publisher")
                };
                let bytes = 8 * (step.arg("words") as usize).max(WORDS_MIN);
                let loan = publisher.loan_slice(bytes).map(|loan| {
                    // SAFETY: its publisher lies in a box that stays until the loan is gone, or
                    // is never freed; the director sees to that.
                    unsafe { std::mem::transmute::<Loan<'_, [u8]>, Loan<'static, [u8]>>(loan) }
                });
                self.shared.put(on, Thing::Publisher(publisher));
                self.own.insert(new, Own::Loan(loan?, on));
            }
            Verb::Commit => {
                let Some(Own::Loan(mut loan, from)) = self.own.remove(&on) else {
                    panic!("handle {on} is no loan")
                };
                let words = loan.len() as u64 / 8;
                loan.copy_from_slice(&content(from, self.next_number(from), words));
                loan.publish()?;
                self.was_sent(from);
            }
            _ => return self.use_in_place(step, reply),
        }
        Ok(())
    }

    /// Steps that take a thing out and put it back, whatever came of it.
    fn use_in_place(&mut self, step: &Step, reply: &mut Reply) -> Result<(), Fails> {
        let on = step.arg("on");
        let mut thing = self.shared.take(on);
        let done = match (&mut thing, step.verb) {
            (Thing::Publisher(publisher), Verb::Publish) => self.publish(publisher, step, reply),
            (Thing::Subscriber(subscriber), Verb::Receive) => {
                if self.shared.was_limited.load(Relaxed) && !step.is_long() {
                    receive_at_last(subscriber, step, reply)
                } else {
                    receive(subscriber, step, reply)
                }
            }
            (Thing::Subscriber(subscriber), Verb::Take) => match subscriber.receive() {
                Ok(Some(sample)) => {
                    let seen = look_at(&sample);
                    reply.seen.push(seen);
                    self.shared.put(step.arg("new"), Thing::Sample(sample, seen));
                    Ok(())
                }
                Ok(None) => Ok(()),
                Err(e) => Err(e.into()),
            },
            (Thing::Sample(sample, seen), Verb::Check) => {
                reply.value = u64::from(look_at(sample) == *seen);
                Ok(())
            }
            (Thing::Producer(producer), Verb::Send) => self.send(producer, step, reply),
            (Thing::Consumer(consumer), Verb::Get) => get(consumer.get(), step, reply),
            (Thing::Consumer(consumer), Verb::Hold) => match consumer.get().receive() {
                Ok(Some(received)) => {
                    let id = received.producer();
                    let id = (id.node.get(), id.port);
                    reply.seen.push(Seen { id, ..look(&received) });
                    self.shared.put(step.arg("new"), Thing::Received { _it: received });
                    Ok(())
                }
                Ok(None) => Ok(()),
                Err(e) => Err(e.into()),
            },
            (Thing::Client(client), Verb::Ask | Verb::Call | Verb::Replies) => {
                services::ask(&self.shared, client, step, reply)
            }
            (Thing::Server(server), Verb::Serve) => {
                services::serve(&self.shared, server, step, reply)
            }
            (Thing::End(end), _) => {
                let mut sent = self.next_number(on);
                let done = rt::act(end, &mut sent, step, reply);
                self.shared.sent.lock().unwrap().insert(on, sent);
                done
            }
            (Thing::Watch(watch), Verb::Await) => {
                reply.value = u64::from(watch.wait(Duration::from_millis(step.arg("ms"))));
                Ok(())
            }
            _ => panic!("handle {on} does not {:?}", step.verb),
        };
        self.shared.put(on, thing);
        done
    }

    fn publish(
        &self,
        publisher: &Publisher<[u8]>,
        step: &Step,
        reply: &mut Reply,
    ) -> Result<(), Fails> {
        let on = step.arg("on");
        for _ in 0..step.arg("count") {
            publisher.publish(&content(on, self.next_number(on), step.arg("words")))?;
            self.was_sent(on);
            reply.value += 1;
        }
        Ok(())
    }

    fn send(
        &self,
        producer: &mut Producer<[u8]>,
        step: &Step,
        reply: &mut Reply,
    ) -> Result<(), Fails> {
        let on = step.arg("on");
        for _ in 0..step.arg("count") {
            producer.try_send(&content(on, self.next_number(on), step.arg("words")))?;
            self.was_sent(on);
            reply.value += 1;
        }
        Ok(())
    }

    fn drop(&mut self, on: Handle) {
        match self.own.remove(&on) {
            Some(mine) => drop(mine),
            None => drop(self.shared.take(on)),
        }
    }

    fn leak(&mut self, on: Handle) {
        match self.own.remove(&on) {
            Some(Own::Guard(guard)) => guard.forget(),
            Some(Own::Loan(loan, _)) => std::mem::forget(loan),
            None => std::mem::forget(self.shared.take(on)),
        }
    }

    fn unwind(&mut self, on: Handle) {
        let mine = self.own.remove(&on);
        let theirs = if mine.is_none() { Some(self.shared.take(on)) } else { None };
        let caught = catch_unwind(AssertUnwindSafe(move || {
            let _in_hand = (mine, theirs);
            panic_any(AsTold);
        }));
        assert!(caught.is_err(), "it panics");
    }
}

fn receive(subscriber: &mut Subscriber<[u8]>, step: &Step, reply: &mut Reply) -> Result<(), Fails> {
    let wait = Duration::from_millis(step.arg("ms"));
    let done = (|| {
        for i in 0..step.arg("max") {
            let wait = if i == 0 { wait } else { Duration::ZERO };
            match subscriber.receive_timeout(wait)? {
                Some(sample) => reply.seen.push(look_at(&sample)),
                None => {
                    reply.value = 1;
                    break;
                }
            }
        }
        Ok(())
    })();
    while let Some(event) = subscriber.next_event() {
        let (news, id) = match event {
            Event::PublisherJoined(id) => (News::Joined, id),
            Event::PublisherLeft(id) => (News::Left, id),
            Event::PublisherDied { publisher, unfinished, lost } => {
                (News::Died(unfinished, lost), publisher)
            }
            Event::PublisherCorrupt { publisher, why } => {
                reply.text = why;
                (News::Corrupt, publisher)
            }
            _ => continue,
        };
        reply.news.push((news, (id.node.get(), id.port)));
    }
    done
}

/// What could not be opened for a while is tried again after so many calls.
fn receive_at_last(
    subscriber: &mut Subscriber<[u8]>,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    for _ in 0..limits::AGAIN_CALLS {
        if reply.seen.len() as u64 >= step.arg("max") {
            break;
        }
        reply.value = 0;
        receive(subscriber, step, reply)?;
    }
    Ok(())
}

fn get(consumer: &mut Consumer<[u8]>, step: &Step, reply: &mut Reply) -> Result<(), Fails> {
    let wait = Duration::from_millis(step.arg("ms"));
    let done = (|| {
        for i in 0..step.arg("max") {
            let wait = if i == 0 { wait } else { Duration::ZERO };
            match consumer.receive_timeout(wait)? {
                Some(received) => {
                    let id = received.producer();
                    let id = (id.node.get(), id.port);
                    reply.seen.push(Seen { id, ..look(&received) });
                }
                None => {
                    reply.value = 1;
                    break;
                }
            }
        }
        Ok(())
    })();
    while let Some(event) = consumer.next_event() {
        let (news, id) = match event {
            QueueEvent::ProducerJoined(id) => (News::Joined, id),
            QueueEvent::ProducerLeft(id) => (News::Left, id),
            QueueEvent::ProducerDied(id) => (News::Died(false, 0), id),
            QueueEvent::ProducerCorrupt { producer, why } => {
                reply.text = why;
                (News::Corrupt, producer)
            }
            #[allow(unreachable_patterns)]
            _ => continue,
        };
        reply.news.push((news, (id.node.get(), id.port)));
    }
    done
}

fn thread_cpu() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// One write: several threads say things.
fn say(reply: &Reply) {
    let line = reply.line() + "\n";
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
    let _ = std::io::stdout().lock().flush();
}

/// Whoever reads the steps; ends the process when there will be no more.
fn dispatch(shared: &Shared, main: Sender<Step>) {
    let mut threads = BTreeMap::from([(0, (main, None))]);
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let step = Step::parse(&line).expect("the director writes steps");
        match step.verb {
            Verb::Exit => std::process::exit(0),
            Verb::Thread => {
                let (send, steps) = channel();
                let thread = step.arg("new") as usize;
                let shared = shared.clone();
                let (started, starts) = channel();
                let join = std::thread::spawn(move || {
                    let _ = started.send(());
                    Actor { shared, thread, own: BTreeMap::new() }.run(&steps);
                });
                threads.insert(thread, (send, Some(join)));
                // The runtime aborts a thread that cannot have its signal stack: a limit that comes
                // next is not to meet one that begins.
                let _ = starts.recv();
                say(&Reply { thread: step.thread, outcome: "ok".into(), ..Reply::default() });
            }
            Verb::End | Verb::Crash => {
                let Some((send, join)) = threads.remove(&step.thread) else { continue };
                let _ = send.send(step.clone());
                let _ = join.map(std::thread::JoinHandle::join);
                say(&Reply { thread: step.thread, outcome: "ok".into(), ..Reply::default() });
            }
            _ => {
                if let Some((send, _)) = threads.get(&step.thread) {
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
    let shared =
        Shared { root, things: Arc::default(), was_limited: Arc::default(), sent: Arc::default() };
    let (main, steps) = channel();
    let of_main = shared.clone();
    std::thread::spawn(move || dispatch(&of_main, main));
    Actor { shared, thread: 0, own: BTreeMap::new() }.run(&steps);
    std::process::exit(0)
}
