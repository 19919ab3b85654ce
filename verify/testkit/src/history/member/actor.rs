//! One thread of a member: does a step at a time and says what came of it.

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use outlive::{Domain, Interrupt, Loan, NodeId, Producer, Publisher};

use super::fails::{Fails, refusal};
use super::messages::{content, get, look, look_at, receive, receive_at_last};
use super::names::{payload_type, queue, topic};
use super::shared::Shared;
use super::things::lasting::Lasting;
use super::things::{Hand, Own, Thing};
use super::{
    batches, crowd, forks, limits, locks, rt, segments, semaphores, services, sets, timers,
    wait_sets,
};
use crate::chaos::message::WORDS_MIN;
use crate::history::reply::{Reply, Seen};
use crate::history::step::{FIXED, Handle, Step, Verb};

/// The payload of a panic that the history asked for.
pub(super) struct AsTold;

/// One write: several threads say things.
pub(super) fn say(reply: &Reply) {
    let line = reply.line() + "\n";
    let _ = std::io::stdout().lock().write_all(line.as_bytes());
    let _ = std::io::stdout().lock().flush();
}

/// One thread that does what it is told.
pub(super) struct Actor {
    shared: Shared,
    /// Its number, for its answers.
    thread: usize,
    own: BTreeMap<Handle, Own>,
    set: wait_sets::Own,
}

impl Actor {
    pub(super) fn new(shared: Shared, thread: usize) -> Self {
        batches::prepare();
        Self { shared, thread, own: BTreeMap::new(), set: wait_sets::Own::default() }
    }

    /// Until it ends. The sender goes with the thread: whoever waits for that knows.
    pub(super) fn run(mut self, steps: &Receiver<Step>) {
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
        reply.at.0 = outlive::now_ns();
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
        reply.at.1 = outlive::now_ns();
        reply.thread = self.thread;
        let cpu = thread_cpu().saturating_sub(cpu);
        reply.took = (cpu.as_micros() as u64, began.elapsed().as_micros() as u64);
        reply
    }

    fn next_number(&self, handle: Handle) -> u64 {
        *self.shared.sent.lock().unwrap().entry(handle).or_default()
    }

    fn was_sent(&self, handle: Handle) {
        self.were_sent(handle, 1);
    }

    fn were_sent(&self, handle: Handle, count: u64) {
        *self.shared.sent.lock().unwrap().entry(handle).or_default() += count;
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
            Verb::Subscriber | Verb::Consumer if step.arg("type") >= FIXED => {
                let values = batches::open(&self.shared, step)?;
                self.shared.put(new, values);
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
                self.shared.put(new, Thing::Subscriber(Box::new(subscriber)));
            }
            Verb::Producer => {
                let node = self.shared.node(step.arg("node"));
                let mut queue = node.queue::<[u8]>(&queue(step.arg("queue")))?.of_type(&type_);
                if step.arg("bound") > 0 {
                    queue = queue.bound_bytes(step.arg("bound"));
                }
                let producer = queue.producer()?;
                reply.id = (producer.id().node.get(), producer.id().port);
                self.shared.put(new, Thing::Producer(Box::new(producer)));
            }
            Verb::Consumer => {
                let node = self.shared.node(step.arg("node"));
                let queue = node.queue::<[u8]>(&queue(step.arg("queue")))?.of_type(&type_);
                self.shared.put(new, Thing::Consumer(Lasting::new(queue.consumer()?)));
            }
            Verb::Set => {
                let set = sets::open(&self.shared, step)?;
                self.shared.put(new, set);
            }
            Verb::Condvar => {
                let condvar = locks::condvar(&self.shared, step)?;
                self.shared.put(new, condvar);
            }
            Verb::Notify => locks::notify(&self.shared, step),
            Verb::Sleep => {
                let guard = step.arg("guard");
                let Some(Own::Guard(held)) = self.own.remove(&guard) else {
                    panic!("handle {guard} is not a guard")
                };
                if let Some(held) = locks::sleep(&self.shared, held, step, reply)? {
                    self.own.insert(guard, Own::Guard(held));
                }
            }
            Verb::Mutex | Verb::RwLock | Verb::PiMutex => {
                let lock = locks::open(&self.shared, step)?;
                self.shared.put(new, Thing::Lock(lock));
            }
            Verb::Semaphore => {
                let semaphore = semaphores::open(&self.shared, step)?;
                self.shared.put(new, semaphore);
            }
            Verb::Acquire => {
                let held = semaphores::acquire(&self.shared, step, reply)?;
                self.own.insert(new, Own::Permit(held));
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
            Verb::Segment => {
                let segment = segments::open(&self.shared, step)?;
                self.shared.put(new, segment);
            }
            Verb::RemoveSegment => segments::remove(&self.shared, step, reply)?,
            Verb::Timer => self.shared.put(new, timers::open(step, reply)),
            Verb::Interrupt => {
                self.shared.put(new, Thing::Interrupt(Arc::new(Interrupt::new())));
            }
            Verb::Raise | Verb::Raised | Verb::Clear => {
                timers::about_interrupt(&self.shared, step, reply)?;
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
            Verb::Priority => limits::set_priority(step),
            Verb::Chdir => self.shared.change_directory(step.arg("to"))?,
            Verb::Clean => {
                Domain::of(&self.shared.settings())?.clean()?;
            }
            Verb::Audit => {
                let report = Domain::of(&self.shared.settings())?.audit()?;
                if !report.faults.is_empty() {
                    return Err(report.faults.join("; ").into());
                }
            }
            Verb::Wait => wait_sets::wait(&mut self.set, &self.shared, step, reply)?,
            Verb::RemoveLock => locks::remove(&self.shared, step)?,
            Verb::Lock | Verb::Read => {
                if let Some(guard) = locks::take(&self.shared, step, reply)? {
                    self.own.insert(new, Own::Guard(guard));
                }
            }
            Verb::Write => match self.own.get_mut(&on) {
                Some(Own::Guard(guard)) => guard.write(step),
                _ => panic!("handle {on} is not a guard"),
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
                    panic!("handle {on} is not a loan")
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
            (Thing::Publisher(publisher), Verb::PublishBatch) => {
                let next = self.next_number(on);
                let done = batches::publish(publisher, next, step, reply);
                self.were_sent(on, reply.value);
                done
            }
            (Thing::Producer(producer), Verb::SendBatch) => {
                let next = self.next_number(on);
                let done = batches::send(producer, next, step, reply);
                self.were_sent(on, reply.value);
                done
            }
            (Thing::Segment(segment), Verb::Place) => match segments::place(segment, step) {
                Ok(placed) => {
                    self.shared.put(step.arg("new"), placed);
                    Ok(())
                }
                Err(e) => Err(e.into()),
            },
            (Thing::Segment(segment), _) => {
                segments::act(segment, step, reply);
                Ok(())
            }
            (Thing::Timer(timer), _) => {
                timers::act(timer, step, reply);
                Ok(())
            }
            (Thing::Set(set), _) => sets::act(set, step, reply),
            (Thing::Values(values), Verb::HoldSlice) => {
                batches::hold(values, step, reply).map(|slice| {
                    if let Some(slice) = slice {
                        let hand = Hand::Slice { _it: slice };
                        self.shared.put(step.arg("new"), Thing::Received { _it: hand });
                    }
                })
            }
            (Thing::Values(values), _) => {
                let was_limited = self.shared.was_limited.load(Relaxed);
                batches::act(values, was_limited, step, reply)
            }
            (Thing::Publisher(publisher), Verb::Insist) => {
                let body = content(on, self.next_number(on), step.arg("words"));
                publisher.publish(&body).map(|_| self.was_sent(on)).map_err(Into::into)
            }
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
                    self.shared
                        .put(step.arg("new"), Thing::Received { _it: Hand::One { _it: received } });
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
            let body = content(on, self.next_number(on), step.arg("words"));
            producer.try_send(&body).map_err(outlive::Error::from)?;
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
            Some(Own::Permit(held)) => held.forget(),
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

fn thread_cpu() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a local.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
