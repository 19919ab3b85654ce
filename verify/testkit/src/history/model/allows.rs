//! Which steps can be done now, so that safe code could do them.

use super::state::locks::{Lock, RWLOCK};
use super::{Kind, Life, Member, Model, Object};
use crate::history::disk;
use crate::history::languages::{CPP, PYTHON, RUST};
use crate::history::step::{FIXED, Handle, Step, Verb};

/// Words of the largest message, or batch, of a member whose address space is limited.
const LIMITED_WORDS: u64 = 2000;

impl Model {
    /// An object that its member can use now.
    pub(in crate::history) fn usable(
        &self,
        handle: Handle,
        member: usize,
        thread: usize,
    ) -> Option<&Kind> {
        let object = self.objects.get(&handle)?;
        let mine = object.member == member && object.thread.is_none_or(|t| t == thread);
        (mine && object.life == Life::Held && !object.busy).then_some(&object.kind)
    }

    /// Whether something borrows from `handle`, so that safe code could not drop it.
    fn is_borrowed(&self, handle: Handle) -> bool {
        let mut waits = self.members.values().flat_map(|m| m.threads.values().flatten());
        waits.any(|step| self.used_by(step).contains(&handle))
            || self.objects.values().any(|o| {
                let of = match &o.kind {
                    Kind::Loan { of } | Kind::Received { of, .. } | Kind::Guard { of, .. } => *of,
                    Kind::Permit { of } => *of,
                    _ => return false,
                };
                of == handle && o.life == Life::Held
            })
    }

    /// Whether the step can be done at all.
    pub(in crate::history) fn allows(&self, step: &Step) -> bool {
        let Step { member, thread, .. } = *step;
        let new_is_free = step.new_handle().is_none_or(|new| !self.objects.contains_key(&new));
        match step.verb {
            Verb::Fill => {
                return disk::is_own() && !self.full && self.members.values().all(is_idle);
            }
            Verb::Free => return self.full,
            Verb::Ordinals => {
                let begun = self.living().any(|(_, o)| matches!(o.kind, Kind::Node { .. }));
                // One that has begun to wait may not have taken its number yet.
                let waits = self.members.values().flat_map(|m| m.threads.values().flatten());
                let locks = |step: &Step| {
                    matches!(step.verb, Verb::Lock | Verb::Read | Verb::Acquire | Verb::Sleep)
                };
                return begun && self.ordinals.left.is_none() && !waits.into_iter().any(locks);
            }
            _ => {}
        }
        let Some(at) = self.members.get(&member) else {
            return matches!(step.verb, Verb::Start | Verb::Pause);
        };
        match step.verb {
            Verb::Start => return false,
            Verb::Pause => return true,
            // Only SIGKILL ends one that is stopped.
            Verb::Kill => return at.alive && (!at.stopped || step.arg("signal") == 9),
            Verb::Stop => return at.alive && !at.stopped,
            Verb::Continue => return at.alive && at.stopped,
            _ => {}
        }
        let free = matches!(at.threads.get(&thread), Some(None));
        if !at.alive || at.stopped || !new_is_free || !free {
            return false;
        }
        let lacking = match at.language {
            RUST => false,
            PYTHON => is_of_rust(step) || lacks_python(step),
            _ => is_of_rust(step) || lacks_cpp(step),
        };
        if lacking {
            return false;
        }
        let limited = !at.limits.is_empty();
        if limited && (step.is_long() || !may_lack(step.verb)) {
            return false;
        }
        if self.full && !limited && !may_lack_space(step.verb) {
            return false;
        }
        let on = |handle| self.usable(handle, member, thread);
        let node_ok = || matches!(on(step.arg("node")), Some(Kind::Node { .. }));
        let it = step.arg("on");
        // A program that is out of memory itself ends as it makes the largest.
        let batch = matches!(step.verb, Verb::PublishBatch | Verb::SendBatch);
        let words = step.arg("words") * if batch { step.arg("count") } else { 1 };
        let makes = words <= LIMITED_WORDS || !at.limits.contains(&1);
        match step.verb {
            Verb::Crowd => node_ok() && self.may_come(step),
            Verb::Limit => !self.full && is_idle(at),
            Verb::Fork => self.ordinals.suffice(step),
            // As a program that waits for its threads.
            Verb::Quit => thread == 0 && !self.full && is_idle(at),
            Verb::Unlimit => at.limits.contains(&step.arg("what")),
            Verb::Thread => {
                let new = step.arg("new") as usize;
                !at.threads.contains_key(&new) && !self.ended.contains(&(member, new))
            }
            Verb::End | Verb::Crash => {
                // What borrows from a thing of others must be over before.
                thread > 0
            }
            Verb::Subscriber => node_ok() && !self.may_publish_now(step.arg("topic")),
            Verb::Publisher
            | Verb::Producer
            | Verb::Consumer
            | Verb::Mutex
            | Verb::RwLock
            | Verb::PiMutex
            | Verb::Semaphore
            | Verb::Condvar
            | Verb::Set
            | Verb::Segment
            | Verb::RemoveSegment
            | Verb::Client
            | Verb::Server
            | Verb::RtOpen => node_ok(),
            Verb::Watch => node_ok() && self.has_its_number(step.arg("target")),
            Verb::RemoveLock => {
                let name = (step.arg("rw"), step.arg("mutex"));
                node_ok() && self.locks.get(&name).is_some_and(Lock::is_lost)
            }
            // Elsewhere what is forgotten keeps what it is of open, as long as its thread lives.
            Verb::Leak if at.language != RUST && on(it).is_some_and(is_in_hand) => false,
            // Who waits for an interrupt has a share of it, but not in C++.
            Verb::Drop | Verb::Leak | Verb::Unwind => {
                let is_shared = at.language != CPP;
                let shared = is_shared && matches!(on(it), Some(Kind::Interrupt { .. }));
                on(it).is_some() && (shared || !self.is_borrowed(it))
            }
            Verb::Close => at.language == PYTHON && self.closable(member).contains(&it),
            Verb::Publish => self.may_publish(it, member, thread) && !is_patient(on(it)),
            Verb::PublishBatch => {
                makes
                    && self.is_fixed(it)
                    && self.may_publish(it, member, thread)
                    && !is_patient(on(it))
            }
            Verb::Insist => step.is_long() && is_patient(on(it)),
            Verb::Loan => {
                self.may_publish(it, member, thread) && !self.has_loan(it) && !is_patient(on(it))
            }
            Verb::Commit => matches!(on(it), Some(Kind::Loan { .. })),
            Verb::Receive => matches!(on(it), Some(Kind::Subscriber(_))),
            Verb::ReceiveBatch => self.is_fixed(it) && matches!(on(it), Some(Kind::Subscriber(_))),
            Verb::Take => !self.is_fixed(it) && matches!(on(it), Some(Kind::Subscriber(_))),
            Verb::Check => matches!(on(it), Some(Kind::Sample { .. })),
            Verb::Send => makes && matches!(on(it), Some(Kind::Producer(_))),
            Verb::SendBatch => {
                makes && self.is_fixed(it) && matches!(on(it), Some(Kind::Producer(_)))
            }
            Verb::Get | Verb::GetBatch | Verb::Hold | Verb::HoldSlice => {
                let suits =
                    step.verb == Verb::Get || self.is_fixed(it) == (step.verb != Verb::Hold);
                suits && matches!(on(it), Some(Kind::Consumer { hand: None, .. }))
            }
            Verb::Lock => matches!(on(it), Some(Kind::Lock { .. })),
            Verb::Read => matches!(on(it), Some(Kind::Lock { name: (RWLOCK, _), .. })),
            Verb::Insert | Verb::Remove | Verb::Ids => matches!(on(it), Some(Kind::Set { .. })),
            Verb::Notify => matches!(on(it), Some(Kind::Condvar { .. })),
            Verb::Sleep => {
                let guard = step.arg("guard");
                let holds = on(guard).is_some() && self.may_sleep(guard);
                holds && matches!(on(it), Some(Kind::Condvar { .. })) && self.ordinals.suffice(step)
            }
            Verb::Poke | Verb::Peek => matches!(on(it), Some(Kind::Segment { .. })),
            // The first line is not zeros, perhaps.
            Verb::Place => step.arg("line") > 0 && matches!(on(it), Some(Kind::Segment { .. })),
            Verb::Fired | Verb::StopTimer => matches!(on(it), Some(Kind::Timer(_))),
            Verb::Raise | Verb::Raised => matches!(on(it), Some(Kind::Interrupt { .. })),
            // By who waits for it only.
            Verb::Clear => {
                matches!(on(it), Some(Kind::Interrupt { .. }))
                    && self.waits_on(member, it).is_empty()
            }
            Verb::Acquire => matches!(on(it), Some(Kind::Semaphore { .. })),
            Verb::Write => matches!(on(it), Some(Kind::Guard { reads: false, .. })),
            Verb::Ask | Verb::Call | Verb::Replies => matches!(on(it), Some(Kind::Client(_))),
            Verb::ReplyFor | Verb::Cancel => match on(it) {
                Some(Kind::Ticket { of }) => matches!(on(*of), Some(Kind::Client(_))),
                _ => false,
            },
            Verb::Serve => matches!(on(it), Some(Kind::Server(_))),
            Verb::Connect => matches!(on(it), Some(Kind::End(e)) if !e.connected),
            Verb::Reconnect | Verb::Peer => matches!(on(it), Some(Kind::End(e)) if e.connected),
            Verb::Push => matches!(on(it), Some(Kind::End(e)) if e.connected && e.writer),
            Verb::Pop => matches!(on(it), Some(Kind::End(e)) if e.connected && !e.writer),
            Verb::Part | Verb::Answer | Verb::Refuse | Verb::Wanted => match on(it) {
                Some(Kind::Request(request)) => on(request.of).is_some(),
                _ => false,
            },
            Verb::Wait => !limited && !self.full && self.may_wait(step),
            Verb::Await => matches!(on(it), Some(Kind::Watch { .. })),
            _ => true,
        }
    }

    /// What a member waits on and could close meanwhile.
    pub(in crate::history) fn closable(&self, member: usize) -> Vec<Handle> {
        let held = |handle: Handle| {
            let guards = |o: &Object| {
                let is_of = |kind: &Kind| match *kind {
                    Kind::Guard { of, .. } | Kind::Permit { of } => of == handle,
                    _ => false,
                };
                o.life == Life::Held && is_of(&o.kind)
            };
            self.objects.values().any(guards)
        };
        let ports = self.living().filter(|(handle, o)| match o.kind {
            Kind::Publisher(_)
            | Kind::Subscriber(_)
            | Kind::Consumer { .. }
            | Kind::Client(_)
            | Kind::Server(_) => true,
            Kind::Watch { .. } => true,
            Kind::Lock { .. } | Kind::Semaphore { .. } => !held(*handle),
            _ => false,
        });
        let theirs = ports.filter(|(_, o)| o.member == member && o.life == Life::Held);
        let on = theirs.map(|(handle, _)| handle);
        on.filter(|handle| !self.waits_on(member, *handle).is_empty()).collect()
    }

    /// Loans stay with their thread, and so does who lent them meanwhile.
    fn may_publish(&self, on: Handle, member: usize, thread: usize) -> bool {
        let elsewhere = self.objects.values().any(|o| {
            o.life == Life::Held
                && o.thread != Some(thread)
                && matches!(o.kind, Kind::Loan { of } if of == on)
        });
        matches!(self.usable(on, member, thread), Some(Kind::Publisher(_))) && !elsewhere
    }

    fn has_loan(&self, on: Handle) -> bool {
        let is =
            |o: &Object| o.life == Life::Held && matches!(o.kind, Kind::Loan { of } if of == on);
        self.objects.values().any(is)
    }
}

/// Whether it is a publisher that waits as long as it takes.
fn is_patient(kind: Option<&Kind>) -> bool {
    matches!(kind, Some(Kind::Publisher(publisher)) if publisher.patient)
}

fn is_in_hand(kind: &Kind) -> bool {
    matches!(kind, Kind::Received { .. } | Kind::Guard { .. } | Kind::Permit { .. })
}

/// What members in other languages do not do.
fn is_of_rust(step: &Step) -> bool {
    use Verb::{Connect, Crowd, Peek, Peer, Place, Poke, Pop, Push, Reconnect, RemoveSegment};
    use Verb::{Fired, RtOpen, Segment, StopTimer, Timer};
    let rt = [Connect, Peer, Pop, Push, Reconnect, RtOpen];
    let segments = [Peek, Place, Poke, RemoveSegment, Segment];
    // Elsewhere one does not say when it is due.
    let timers = [Fired, StopTimer, Timer];
    step.arg("type") >= FIXED
        || step.verb == Crowd
        || segments.contains(&step.verb)
        || timers.contains(&step.verb)
        || rt.contains(&step.verb)
}

/// Nor, of these, one in Python: an interpreter without memory raises anywhere.
fn lacks_python(step: &Step) -> bool {
    use Verb::{Clear, Interrupt, Raise, Raised};
    let lacks_memory = step.verb == Verb::Limit && step.arg("what") == 1;
    lacks_memory || [Clear, Interrupt, Raise, Raised].contains(&step.verb)
}

/// Nor one in C++: its types are known when it is compiled.
fn lacks_cpp(step: &Step) -> bool {
    step.verb == Verb::Audit || step.arg("type") != 0
}

/// Not limited, and no thread waits: what sleeps was not told what to do where it cannot open a
/// thing.
fn is_idle(member: &Member) -> bool {
    member.limits.is_empty() && member.threads.values().all(Option::is_none)
}

/// The same of a full disk, where waiting, cleaning and beginning need nothing.
fn may_lack_space(verb: Verb) -> bool {
    matches!(verb, Verb::Clean | Verb::Audit | Verb::Thread | Verb::Crash) || may_lack(verb)
}

/// Whether a step may be tried while there is too little. A thread or child could not begin, and
/// what half of a cleaner's work does is not known.
fn may_lack(verb: Verb) -> bool {
    use Verb::{Answer, Clean, Close, Connect, Crash, Crowd, Fork, Reconnect, Refuse, RemoveLock};
    let not = [Answer, Clean, Close, Connect, Crash, Crowd, Fork, Reconnect, Refuse, RemoveLock];
    !not.contains(&verb) && !matches!(verb, Verb::Audit | Verb::Thread | Verb::RemoveSegment)
}
