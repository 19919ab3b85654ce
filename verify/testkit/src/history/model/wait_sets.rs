//! Wait sets: what each must and must not name, and who sleeps in one until when.

use super::state::waits::Named;
use super::{Kind, Model, Verdict, ok};
use crate::history::reply::Reply;
use crate::history::step::{Handle, Step};

impl Model {
    /// What a step waits for in a wait set.
    pub(super) fn may_wait(&self, step: &Step) -> bool {
        let members = step.waited_for();
        let is = |handle: &Handle| {
            let kind = self.usable(*handle, step.member, step.thread);
            matches!(
                kind,
                Some(
                    Kind::Subscriber(_)
                        | Kind::Consumer { hand: None, .. }
                        | Kind::Client(_)
                        | Kind::Server(_)
                        | Kind::Watch { .. }
                        | Kind::Timer(_)
                        | Kind::Interrupt { .. }
                )
            )
        };
        let mut once = members.clone();
        once.sort_unstable();
        once.dedup();
        step.arg("on") > 0 && once.len() == members.len() && members.iter().all(is)
    }

    /// Whether a wait set must name it.
    fn must_name(&self, handle: Handle) -> bool {
        match self.objects.get(&handle).map(|o| &o.kind) {
            Some(Kind::Subscriber(_)) => self.has_news(handle),
            Some(Kind::Consumer { .. }) => self.has_message(handle),
            Some(Kind::Client(_)) => self.has_reply(handle),
            Some(Kind::Server(_)) => self.has_request(handle),
            Some(Kind::Watch { .. }) => self.is_gone(handle) == Some(true),
            Some(Kind::Timer(_)) => self.is_due(handle),
            Some(Kind::Interrupt { raised }) => *raised,
            _ => false,
        }
    }

    pub(super) fn wakes_set(&self, step: &Step) -> bool {
        step.waited_for().into_iter().any(|handle| self.must_name(handle))
    }

    pub(super) fn waited(&mut self, step: &Step, reply: &Reply) -> Verdict {
        ok(reply)?;
        let members = step.waited_for();
        let named = &reply.data;
        if let Some(stranger) = named.iter().find(|handle| !members.contains(handle)) {
            return Err(format!("a wait set names {stranger}, it has {members:?}"));
        }
        if step.is_long() && named.is_empty() {
            return Err("a wait set wakes for nothing".into());
        }
        let sure = !step.is_long() && !self.was_limited.contains(&step.member);
        for handle in members {
            let is_named = named.contains(&handle);
            self.timer_waited(handle, step, reply)?;
            let is_timer = self.timer(handle).is_some();
            if sure && !is_timer && !is_named && self.must_name(handle) {
                return Err(format!("a wait set names {named:?}, {handle} is ready, too"));
            }
            let watch =
                matches!(self.objects.get(&handle).map(|o| &o.kind), Some(Kind::Watch { .. }));
            if is_named && watch && self.is_gone(handle) == Some(false) {
                return Err(format!("a wait set names {handle}, whose node lives"));
            }
            if is_named && self.is_raised(handle) == Some(false) {
                return Err(format!("a wait set names {handle}, which nobody raised"));
            }
            if is_named {
                self.named.insert(handle, Named::Ready);
            }
        }
        Ok(())
    }

    /// A subscriber or consumer was asked for all it has; `came`: there was something.
    pub(super) fn named_is_asked(&mut self, handle: Handle, came: bool) -> Verdict {
        match self.named.remove(&handle) {
            Some(Named::Ready) if !came => {
                Err("a wait set named it, and nothing comes of it".into())
            }
            _ => Ok(()),
        }
    }

    /// One message was taken of it: that may have been all.
    pub(super) fn named_gives_one(&mut self, handle: Handle) {
        if let Some(named) = self.named.get_mut(&handle) {
            *named = Named::Unsure;
        }
    }

    /// Whether a wait set named it, for what may have been its news.
    pub(super) fn is_named(&self, handle: Handle) -> bool {
        self.named.contains_key(&handle)
    }

    /// Something is lacked: by that member, or by all.
    pub(super) fn lacks_from_now(&mut self, member: Option<usize>) {
        let all = self.members.keys().copied().filter(|m| member.is_none_or(|it| it == *m));
        self.was_limited.extend(all);
        for (handle, named) in &mut self.named {
            if self.objects.get(handle).is_some_and(|o| self.was_limited.contains(&o.member)) {
                *named = Named::Unsure;
            }
        }
    }
}
