//! Long waits: what each uses meanwhile, and when it can end.

use std::collections::BTreeSet;

use super::state::waits::Told;
use super::{Kind, Life, Model};
use crate::history::step::{Handle, Step, Verb};

impl Model {
    /// What a step uses: what it is done to, and whose part that is.
    pub(super) fn used_by(&self, step: &Step) -> Vec<Handle> {
        let on = step.arg("on");
        match step.verb {
            Verb::Wait => return step.waited_for(),
            Verb::Sleep => return vec![on, step.arg("guard")],
            _ => {}
        }
        let of = match self.objects.get(&on).map(|o| &o.kind) {
            Some(Kind::Ticket { of }) if step.verb != Verb::Drop => Some(*of),
            _ => None,
        };
        [on].into_iter().chain(of).collect()
    }

    /// A long wait begins.
    pub(in crate::history) fn begin(&mut self, step: &Step) {
        if let Some(member) = self.members.get_mut(&step.member) {
            member.threads.insert(step.thread, Some(step.clone()));
        }
        self.ordinals.take(step);
        if step.verb == Verb::Insist {
            self.insists(step);
        }
        if step.verb == Verb::Sleep {
            self.falls_asleep(step);
        }
        // Any thread may use a lock meanwhile.
        if !matches!(step.verb, Verb::Lock | Verb::Read | Verb::Acquire) {
            self.set_busy(step, true);
        }
    }

    pub(super) fn set_busy(&mut self, step: &Step, busy: bool) {
        let condvar = Some(step.arg("on")).filter(|_| step.verb == Verb::Sleep);
        for handle in self.used_by(step).into_iter().filter(|handle| Some(*handle) != condvar) {
            if self.is_raised(handle).is_some() {
                continue; // others raise it, or wait for it, meanwhile
            }
            if let Some(object) = self.objects.get_mut(&handle) {
                object.busy = busy;
            }
        }
    }

    /// After each step: who waits for what nobody may let go any more, and who has met whom.
    pub(in crate::history) fn look_round(&mut self) {
        self.meet();
        let waits = self.members.values().flat_map(|m| m.threads.values().flatten());
        let orphans =
            waits.filter(|s| matches!(s.verb, Verb::Lock | Verb::Sleep) && self.is_orphaned(s));
        let orphans: Vec<_> = orphans.map(|s| (s.member, s.thread)).collect();
        self.excused.extend(orphans);
    }

    /// What a step waits to take: the kind of object, its number and its file.
    fn waits_to_take(&self, step: &Step) -> Option<(Option<u64>, u64, u64)> {
        match (step.verb, self.objects.get(&step.arg("on")).map(|o| &o.kind)) {
            (Verb::Acquire, Some(Kind::Semaphore { name, file })) => Some((None, *name, *file)),
            (Verb::Lock | Verb::Read | Verb::Sleep, _) => {
                self.taken_under(step).map(|((kind, name), file)| (Some(kind), name, file))
            }
            _ => None,
        }
    }

    /// The threads of `member` on whose tokens such a step sleeps: they hold what it waits for.
    fn watched_by(&self, step: &Step, member: usize) -> BTreeSet<(usize, usize)> {
        let holders = match step.verb {
            Verb::Acquire => self.permit_holders(step.arg("on")),
            _ => self.lock_holders(step),
        };
        holders.into_iter().filter(|by| by.0 == member).collect()
    }

    /// A process dies, or several of its threads do: the kernel wakes one of those who sleep on a
    /// holder's token, for the same object or for another one. Where that one dies, too, the
    /// others look by themselves, later.
    pub(super) fn waiters_die(&mut self, member: usize) {
        let waits = |m: usize| self.members.get(&m).into_iter().flat_map(|m| m.threads.values());
        let theirs = || waits(member).flatten().filter(|step| self.waits_to_take(step).is_some());
        let objects: Vec<_> = theirs().filter_map(|step| self.waits_to_take(step)).collect();
        let tokens: BTreeSet<_> = theirs().flat_map(|step| self.watched_by(step, member)).collect();
        let others =
            self.members.keys().filter(|m| **m != member).flat_map(|m| waits(*m).flatten());
        let late = others.filter(|step| {
            self.waits_to_take(step).is_some_and(|object| {
                objects.contains(&object) || !self.watched_by(step, member).is_disjoint(&tokens)
            })
        });
        let late: Vec<_> = late.map(|step| (step.member, step.thread)).collect();
        self.may_oversleep.extend(late);
    }

    /// Whether somebody who need not have woken, but may have, waits for the same.
    pub(super) fn is_beside_late(&self, step: &Step) -> bool {
        let object = self.waits_to_take(step);
        let waits = self.members.values().flat_map(|m| m.threads.values().flatten());
        let late = waits
            .filter(|s| self.may_oversleep.contains(&(s.member, s.thread)) || self.nobody_hears(s));
        late.into_iter().any(|s| self.waits_to_take(s) == object)
    }

    /// Whether that wait may have ended although nobody waited for its answer: a stopped process
    /// waits for the same lock.
    fn nobody_hears(&self, step: &Step) -> bool {
        let asleep = self.sleeps.get(&(step.member, step.thread)) == Some(&Told::No);
        let stopped = self.members.get(&step.member).is_some_and(|m| m.stopped);
        !asleep && !stopped && self.is_beside_stopped(step)
    }

    /// A process stops: it keeps what it may have been given unheard.
    pub(super) fn stops(&mut self, member: usize) {
        let waits = self.members.get(&member).map(|m| m.threads.values().flatten());
        let unheard = waits.into_iter().flatten().filter(|step| self.nobody_hears(step));
        let unheard: Vec<_> = unheard.map(|step| (step.member, step.thread)).collect();
        self.may_oversleep.extend(unheard);
    }

    /// The long waits that can end now.
    pub(in crate::history) fn ready(&self) -> Vec<Step> {
        let waits = self.members.values().filter(|m| m.alive && !m.stopped);
        let waits = waits.flat_map(|m| m.threads.values().flatten());
        waits.filter(|step| self.is_ready(step)).cloned().collect()
    }

    /// The waits of a member that use that.
    pub(super) fn waits_on(&self, member: usize, on: Handle) -> Vec<Step> {
        let threads = self.members.get(&member).map(|m| m.threads.values().flatten());
        let theirs = threads.into_iter().flatten();
        theirs.filter(|step| self.used_by(step).contains(&on)).cloned().collect()
    }

    fn is_ready(&self, step: &Step) -> bool {
        let who = (step.member, step.thread);
        if self.closed.contains(&who) {
            return true;
        }
        match step.verb {
            Verb::Wait => self.wakes_set(step),
            Verb::Sleep => self.must_wake(step),
            Verb::Receive => self.has_news(step.arg("on")),
            Verb::Insist => self.has_room(step.arg("on")),
            Verb::Get | Verb::HoldSlice => self.has_message(step.arg("on")),
            Verb::Lock | Verb::Read => !self.would_wait(step),
            Verb::Acquire => !self.may_oversleep.contains(&who) && self.has_permit(step),
            Verb::Replies => self.has_reply(step.arg("on")),
            Verb::ReplyFor => self.has_reply_for(step.arg("on")),
            // Whom it has no room to answer waits until there is some.
            Verb::Serve => !self.is_limited(step.member) && self.has_request(step.arg("on")),
            Verb::Connect | Verb::Reconnect => self.is_connected(step),
            Verb::Await => self.is_gone(step.arg("on")) == Some(true),
            _ => true,
        }
    }

    /// Whether the node that a watch looks at is gone; `None`: it may be.
    pub(super) fn is_gone(&self, watch: Handle) -> Option<bool> {
        let Kind::Watch { target } = self.objects.get(&watch)?.kind else { return None };
        let node = self.objects.get(&target)?;
        match node.life {
            Life::Dead => Some(true),
            Life::Held | Life::Leaked => Some(false),
            Life::Dropped if !self.is_alive(node.member) => Some(true),
            Life::Dropped => {
                let users = self.living().filter(|(_, o)| o.node == Some(target));
                let ports = users.map(|(_, o)| {
                    matches!(o.kind, Kind::Publisher(_) | Kind::Subscriber(_) | Kind::Producer(_))
                });
                // A part that is held keeps its node; of others that is nobody's business.
                let parts: Vec<bool> = ports.collect();
                match (parts.contains(&true), parts.is_empty()) {
                    (true, _) => Some(false),
                    (false, true) => Some(true),
                    (false, false) => None,
                }
            }
        }
    }
}
