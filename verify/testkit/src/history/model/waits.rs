//! Long waits: what each uses meanwhile, and when it can end.

use super::{Kind, Life, Model};
use crate::history::step::{Handle, Step, Verb};

impl Model {
    /// What a step uses: what it is done to, and whose part that is.
    pub(super) fn used_by(&self, step: &Step) -> Vec<Handle> {
        let on = step.arg("on");
        if step.verb == Verb::Wait {
            return Self::members_of(step);
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
        // Any thread may use a lock meanwhile.
        if !matches!(step.verb, Verb::Lock | Verb::Read | Verb::Acquire) {
            self.set_busy(step, true);
        }
    }

    pub(super) fn set_busy(&mut self, step: &Step, busy: bool) {
        for handle in self.used_by(step) {
            if let Some(object) = self.objects.get_mut(&handle) {
                object.busy = busy;
            }
        }
    }

    /// After each step: who waits for what nobody may let go any more, and who has met whom.
    pub(in crate::history) fn look_round(&mut self) {
        self.meet();
        let waits = self.members.values().flat_map(|m| m.threads.values().flatten());
        let orphans = waits.filter(|s| s.verb == Verb::Lock && self.is_orphaned(s));
        let orphans: Vec<_> = orphans.map(|s| (s.member, s.thread)).collect();
        self.excused.extend(orphans);
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
        if self.closed.contains(&(step.member, step.thread)) {
            return true;
        }
        match step.verb {
            Verb::Wait => self.wakes_set(step),
            Verb::Receive => self.has_news(step.arg("on")),
            Verb::Insist => self.has_room(step.arg("on")),
            Verb::Get => self.has_message(step.arg("on")),
            Verb::Lock | Verb::Read => !self.would_wait(step),
            Verb::Acquire => self.has_permit(step),
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
