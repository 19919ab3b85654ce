//! The oracle: what each object of a history may show, and must.
//!
//! Steps come one after the other, so there is one truth at each; only long waits go on beside
//! others, and each of them ends as soon as the model says that it can. It knows nothing of how
//! the library does it.
//!
//! | file | what |
//! |---|---|
//! | `state` | what there is, and what happened to it |
//! | here | what an answer must be, and what is true after it |
//! | `allows` | which steps can be done now |
//! | `waits`, `wait_sets` | which long waits can end; what wait sets name |
//! | `ordinals` | numbers of nodes and threads, and when there are no more |
//! | `topics`, `queues`, `services`, `rt`, `crowd` | the same for those kinds |
//! | `locks`, `condvars`, `semaphores`, `sets`, `segments`, `timers` | and for those |

mod allows;
mod condvars;
mod crowd;
mod locks;
mod ordinals;
mod queues;
mod rt;
mod segments;
mod semaphores;
mod services;
mod sets;
mod state;
mod timers;
mod topics;
mod wait_sets;
mod waits;

use super::languages::{PYTHON, spoken};
use super::reply::Reply;
use super::step::{FIXED, FIXED_WORDS, Handle, Step, Verb};
use crate::slow;
pub(super) use state::locks::{MUTEX, PI, RWLOCK};
pub(super) use state::{Kind, Life, Model};
use state::{Member, Object};

/// What is wrong, in words; nothing if all is as it must be.
pub(super) type Verdict = Result<(), String>;

/// A thread uses more of a processor than this while it waits: it does not sleep. Percent, and
/// how long it must have waited to say so, us.
const BUSY: (u64, u64) = (50, 200_000);

impl Model {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub(super) fn is_alive(&self, member: usize) -> bool {
        self.members.get(&member).is_some_and(|m| m.alive)
    }

    /// Whether it is there, usable or not.
    fn exists(&self, handle: Handle) -> bool {
        let is = |o: &Object| matches!(o.life, Life::Held | Life::Leaked);
        self.objects.get(&handle).is_some_and(is)
    }

    /// Held by its member, or leaked in a process that lives: others see it as living.
    fn living(&self) -> impl Iterator<Item = (Handle, &Object)> {
        let is = |o: &&Object| matches!(o.life, Life::Held | Life::Leaked);
        self.objects.iter().map(|(h, o)| (*h, o)).filter(move |(_, o)| is(o))
    }

    /// Whether a limit of its process is lowered, or the disk is full.
    pub(super) fn is_limited(&self, member: usize) -> bool {
        self.full || self.members.get(&member).is_some_and(|m| !m.limits.is_empty())
    }

    /// Whether it failed as what is limited may: with an error that says so.
    fn lacks(&self, step: &Step, reply: &Reply) -> bool {
        self.is_limited(step.member) && LACKS.contains(&reply.outcome.as_str())
    }

    /// As before, of what may be told after the limit was raised.
    fn lacked(reply: &Reply) -> bool {
        LACKS.contains(&reply.outcome.as_str())
    }

    /// Such an object was made in a segment, if it is not known yet.
    fn begins(&mut self, kind: &Kind, count: u64) {
        match *kind {
            Kind::Lock { name, file } => self.locks.entry(name).or_default().begin(file),
            Kind::Condvar { name, file } => drop(self.condvars.entry(name).or_insert(file)),
            Kind::Semaphore { name, file } => {
                self.semaphores.entry(name).or_default().begin(file, count);
            }
            Kind::Set { name, file } => self.sets.entry(name).or_default().begin(file, count),
            _ => {}
        }
    }

    fn add(&mut self, step: &Step, kind: Kind, thread: Option<usize>) {
        let Some(new) = step.new_handle() else { return };
        let node = Some(step.arg("node")).filter(|n| *n > 0);
        let (member, type_) = (step.member, step.arg("type"));
        let object = Object { member, thread, node, kind, life: Life::Held, type_, busy: false };
        self.objects.insert(new, object);
    }

    /// Whether the messages of that have a fixed size.
    pub(super) fn is_fixed(&self, handle: Handle) -> bool {
        self.objects.get(&handle).is_some_and(|o| o.type_ >= FIXED)
    }

    /// With messages of the size that the type has.
    pub(super) fn fitted(&self, step: &Step) -> Step {
        let mut step = step.clone();
        if self.is_fixed(step.arg("on")) {
            let type_ = self.objects[&step.arg("on")].type_;
            step.set("words", FIXED_WORDS[usize::from(type_ > FIXED)]);
        }
        step
    }

    /// A step was done: whether the answer is right, and what is true from now on.
    pub(super) fn check(&mut self, step: &Step, reply: &Reply) -> Verdict {
        if step.is_long()
            && let Some(member) = self.members.get_mut(&step.member)
        {
            member.threads.insert(step.thread, None);
            self.set_busy(step, false);
            self.may_oversleep.remove(&(step.member, step.thread));
        }
        if reply.outcome == "Panic" {
            return Err(format!("it panics: {}", reply.text));
        }
        if matches!(step.verb, Verb::Insist | Verb::Loan | Verb::Publish | Verb::PublishBatch) {
            self.makes_room(step);
        }
        if step.is_long() && self.closed.remove(&(step.member, step.thread)) {
            return match reply.outcome.as_str() {
                "InvalidArgument" => Ok(()),
                _ => ok(reply).and(Err("a wait goes on after what it waits on was closed".into())),
            };
        }
        let (cpu, wall) = reply.took;
        let long = wall > BUSY.1 * u64::from(slow::times());
        if step.arg("ms") > 0 && long && cpu * 100 > wall * BUSY.0 {
            return Err(format!("it waited {wall} us and computed {cpu} us of them"));
        }
        if self.ordinals.took(step, reply) {
            return Ok(());
        }
        if self.lacks(step, reply) && is_all_or_nothing(step.verb) {
            if let Some(Object { kind: Kind::Node { ordinal }, .. }) =
                self.objects.get(&step.arg("node"))
            {
                self.gave_up.insert(*ordinal);
            }
            // Its server has counted it all the same.
            if let Some(Kind::Request(request)) =
                self.objects.get_mut(&step.arg("on")).map(|o| &mut o.kind)
            {
                request.parts += u64::from(step.verb == Verb::Part);
            }
            return Ok(());
        }
        match step.verb {
            Verb::Wait => self.waited(step, reply),
            Verb::Limit => {
                self.lacks_from_now(Some(step.member));
                let limits = self.members.get_mut(&step.member).map(|m| &mut m.limits);
                limits.map(|l| l.insert(step.arg("what")));
                ok(reply)
            }
            Verb::Unlimit => {
                let limits = self.members.get_mut(&step.member).map(|m| &mut m.limits);
                limits.map(|l| l.remove(&step.arg("what")));
                ok(reply)
            }
            Verb::Crowd => self.crowd_comes(step, reply),
            Verb::Fork if reply.value == 0 => ok(reply),
            Verb::Fork => Err(format!("a forked child ends with status {}", reply.value)),
            Verb::Thread => {
                let threads = self.members.get_mut(&step.member).map(|m| &mut m.threads);
                threads.map(|t| t.insert(step.arg("new") as usize, None));
                ok(reply)
            }
            Verb::End | Verb::Crash => {
                self.thread_ends(step);
                ok(reply)
            }
            Verb::Node => self.node_opens(step, reply),
            Verb::Drop | Verb::Leak | Verb::Unwind => {
                self.let_go(step.arg("on"), step.verb);
                ok(reply)
            }
            Verb::Close => {
                let on = step.arg("on");
                let waits = self.waits_on(step.member, on);
                self.closed.extend(waits.iter().map(|s| (s.member, s.thread)));
                self.let_go(on, Verb::Drop);
                ok(reply)
            }
            Verb::Publisher => self.publisher(step, reply),
            Verb::Subscriber => self.subscriber(step, reply),
            Verb::Insist => self.insisted(step, reply),
            Verb::Publish | Verb::PublishBatch | Verb::Commit => self.published(step, reply),
            Verb::Loan => {
                self.add(step, Kind::Loan { of: step.arg("on") }, Some(step.thread));
                ok(reply)
            }
            Verb::Receive | Verb::ReceiveBatch | Verb::Take => self.received(step, reply),
            Verb::Check if reply.value == 1 => ok(reply),
            Verb::Check => Err("a message that is held has changed".into()),
            Verb::Producer => self.producer(step, reply),
            Verb::Consumer => self.consumer(step, reply),
            Verb::Send | Verb::SendBatch => self.sent(step, reply),
            Verb::Get | Verb::GetBatch | Verb::Hold | Verb::HoldSlice => self.got(step, reply),
            Verb::Mutex | Verb::RwLock | Verb::PiMutex => self.lock(step, reply),
            Verb::Lock | Verb::Read => self.locked(step, reply),
            Verb::Condvar => self.condvar_opens(step, reply),
            Verb::Sleep => self.slept(step, reply),
            Verb::Notify => {
                self.notifies(step);
                ok(reply)
            }
            Verb::Set => self.set_opens(step, reply),
            Verb::Insert | Verb::Remove | Verb::Ids => self.set_done(step, reply),
            Verb::Segment => self.segment_opens(step, reply),
            Verb::Poke | Verb::Peek => self.segment_used(step, reply),
            Verb::Place => self.put_in_segment(step, reply),
            Verb::RemoveSegment => self.segment_removed(step, reply),
            Verb::Timer => self.timer_begins(step, reply),
            Verb::Fired | Verb::StopTimer => self.timer_asked(step, reply),
            Verb::Interrupt => {
                self.add(step, Kind::Interrupt { raised: false }, None);
                ok(reply)
            }
            Verb::Raise | Verb::Raised | Verb::Clear => self.interrupt_asked(step, reply),
            Verb::Semaphore => self.semaphore_opens(step, reply),
            Verb::Acquire => self.acquired(step, reply),
            Verb::RtOpen => self.end_opens(step, reply),
            Verb::Connect | Verb::Reconnect => self.connects(step, reply),
            Verb::Push => self.pushed(step, reply),
            Verb::Pop => self.popped(step, reply),
            Verb::Peer => self.looks_at_peer(step, reply),
            Verb::Client => self.client_opens(step, reply),
            Verb::Server => self.server_opens(step, reply),
            Verb::Ask | Verb::Call => self.asks(step, reply),
            Verb::Replies => self.replies(step, reply),
            Verb::ReplyFor => self.reply_for(step, reply),
            Verb::Cancel => self.cancels(step, reply),
            Verb::Serve => self.serves(step, reply),
            Verb::Part | Verb::Answer | Verb::Refuse | Verb::Wanted => self.answers(step, reply),
            Verb::Write => {
                self.written(step);
                ok(reply)
            }
            Verb::RemoveLock => {
                let name = (step.arg("rw"), step.arg("mutex"));
                self.locks.entry(name).or_default().replace();
                ok(reply)
            }
            Verb::Watch => self.watch(step, reply),
            Verb::Await => match (reply.is_ok(), self.is_gone(step.arg("on")), reply.value) {
                (true, None, _) | (true, Some(true), 1) | (true, Some(false), 0) => Ok(()),
                (true, Some(true), _) => Err("the end of a node is not told".into()),
                (true, Some(false), _) => Err("a node that lives is reported gone".into()),
                (false, ..) => ok(reply),
            },
            Verb::Clean => {
                self.cleaned();
                ok(reply)
            }
            Verb::Audit | Verb::Chdir | Verb::Priority => ok(reply),
            _ => Ok(()),
        }
    }

    fn watch(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let target = step.arg("target");
        let alive = self.exists(target);
        if reply.is_ok() {
            self.add(step, Kind::Watch { target }, None);
            return Ok(());
        }
        match reply.outcome.as_str() {
            "NotFound" if !alive => Ok(()),
            _ => ok(reply),
        }
    }

    /// A step of the director's was done.
    pub(super) fn done(&mut self, step: &Step) {
        if matches!(step.verb, Verb::Fill | Verb::Free) {
            self.full = step.verb == Verb::Fill;
            self.lacks_from_now(None);
            return;
        }
        if step.verb == Verb::Ordinals {
            self.ordinals.left = Some([step.arg("nodes"), step.arg("threads")]);
            return;
        }
        if step.verb == Verb::Stop {
            self.stops(step.member);
        }
        if matches!(step.verb, Verb::Kill | Verb::Exit | Verb::Quit) {
            self.circles_were_told();
        }
        let member = self.members.entry(step.member).or_default();
        match step.verb {
            Verb::Start => {
                member.alive = true;
                member.language = spoken(step.arg("in"));
                member.threads.insert(0, None);
            }
            Verb::Stop => member.stopped = true,
            Verb::Continue => member.stopped = false,
            Verb::Kill | Verb::Exit | Verb::Quit => {
                member.alive = false;
                if step.verb == Verb::Quit {
                    self.closes_all(step.member);
                }
                self.died(step.member);
                if let Some(member) = self.members.get_mut(&step.member) {
                    member.threads.clear();
                }
            }
            _ => {}
        }
    }

    /// At the end of its program a member drops what it holds: messages in hand come first, since
    /// they borrow. Python gives those back, and closes what was forgotten, too.
    fn closes_all(&mut self, member: usize) {
        let python = self.members.get(&member).is_some_and(|m| m.language == PYTHON);
        let theirs = self.living().filter(|(_, o)| o.member == member);
        let theirs = theirs.filter(|(_, o)| python || o.life == Life::Held);
        let mut theirs: Vec<_> = theirs.map(|(handle, o)| (!is_part(&o.kind), handle)).collect();
        theirs.sort_unstable();
        for (_, handle) in theirs {
            let in_hand = matches!(self.objects[&handle].kind, Kind::Received { .. });
            let verb = if python && in_hand { Verb::Unwind } else { Verb::Drop };
            self.let_go(handle, verb);
        }
    }

    fn died(&mut self, member: usize) {
        let theirs: Vec<Handle> =
            self.living().filter(|(_, o)| o.member == member).map(|(handle, _)| handle).collect();
        for handle in theirs {
            self.end_of(handle, Life::Dead);
        }
        self.waiters_die(member);
        self.owners_died(member);
        self.takers_died(member);
        self.permits_of_dead(|by| by.0 == member);
    }

    /// What only the thread may hold goes with it.
    fn thread_ends(&mut self, step: &Step) {
        let Step { member, thread, .. } = *step;
        let theirs: Vec<Handle> = self
            .living()
            .filter(|(_, o)| o.member == member && o.thread == Some(thread) && o.life == Life::Held)
            .map(|(handle, _)| handle)
            .collect();
        let verb = if step.verb == Verb::Crash { Verb::Unwind } else { Verb::Drop };
        for handle in theirs {
            self.let_go(handle, verb);
        }
        if let Some(member) = self.members.get_mut(&member) {
            member.threads.remove(&thread);
        }
        self.ended.insert((member, thread));
        self.thread_ended(member, thread);
        self.permits_of_dead(|by| by == (member, thread));
    }

    /// Dropped, forgotten, or dropped in a panic.
    fn let_go(&mut self, handle: Handle, verb: Verb) {
        let Some(object) = self.objects.get(&handle) else { return };
        match &object.kind {
            Kind::Received { of, from, count } => {
                let taken = if verb == Verb::Drop { *count } else { 0 };
                let (of, from) = (*of, *from);
                self.put_down(of, from, taken);
            }
            Kind::Guard { of, .. } => {
                let of = *of;
                self.unlocked(handle, of, verb);
            }
            Kind::Permit { of } => {
                let of = *of;
                self.permit_let_go(handle, of, verb);
            }
            _ => {}
        }
        self.end_of(handle, if verb == Verb::Leak { Life::Leaked } else { Life::Dropped });
    }

    fn end_of(&mut self, handle: Handle, life: Life) {
        let now = self.tick();
        let Some(object) = self.objects.get_mut(&handle) else { return };
        object.life = life;
        object.busy = false;
        match &mut object.kind {
            Kind::Publisher(publisher) => {
                let topic = publisher.topic;
                publisher.unsure |= publisher.pending > 0;
                if life != Life::Leaked {
                    publisher.ended_at.get_or_insert(now);
                }
                self.left_topic(topic, life);
            }
            Kind::Subscriber(subscriber) => {
                let topic = subscriber.topic;
                self.left_topic(topic, life);
            }
            Kind::Producer(producer) => {
                let queue = producer.queue;
                self.left_queue(queue, life);
            }
            Kind::Consumer { queue, .. } => {
                let queue = *queue;
                self.left_queue(queue, life);
            }
            _ => {}
        }
    }

    fn cleaned(&mut self) {
        self.topics_cleaned();
        self.queues_cleaned();
        self.locks_cleaned();
        self.semaphores_cleaned();
        self.condvars_cleaned();
        self.sets_cleaned();
        self.segments_cleaned();
        self.services_cleaned();
    }
}

/// Whether it borrows from another thing of its member.
fn is_part(kind: &Kind) -> bool {
    use Kind::{Guard, Loan, Permit, Received};
    matches!(kind, Received { .. } | Guard { .. } | Permit { .. } | Loan { .. })
}

/// Errors that say what there is too little of.
const LACKS: [&str; 3] = ["NoSpace", "OutOfMemory", "Io"];

/// Whether a step that lacks something has done nothing.
fn is_all_or_nothing(verb: Verb) -> bool {
    use Verb::{
        Acquire, Client, Condvar, Consumer, Loan, Lock, Mutex, Node, Part, PiMutex, Producer,
        Publisher,
    };
    use Verb::{Place, Read, RtOpen, RwLock, Segment, Semaphore, Server, Set, Subscriber, Watch};
    let opens = [Node, Publisher, Subscriber, Producer, Consumer, Client, Server, RtOpen, Watch];
    let takes = [Loan, Lock, Read, Acquire, Part, Place];
    opens.contains(&verb)
        || [Mutex, PiMutex, RwLock, Semaphore, Condvar, Set, Segment].contains(&verb)
        || takes.contains(&verb)
}

/// A step that must succeed.
fn ok(reply: &Reply) -> Verdict {
    if reply.is_ok() { Ok(()) } else { Err(format!("{}: {}", reply.outcome, reply.text)) }
}
