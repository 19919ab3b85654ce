//! Condition variables: who must wake, who may, and who must not be told of a notification.

use std::collections::BTreeSet;

use super::state::locks::Name;
use super::state::waits::Told;
use super::{Kind, Life, Model, Verdict, ok};
use crate::history::reply::Reply;
use crate::history::step::{Handle, LONG_MS, Step, Verb};

/// A thread of a member.
type Who = (usize, usize);

impl Model {
    /// Condition variables lose nothing when their file goes: their name is enough.
    pub(super) fn condvar_opens(&mut self, step: &Step, reply: &Reply) -> Verdict {
        ok(reply)?;
        let (name, newest) = (step.arg("condvar"), self.condvars.entry(step.arg("condvar")));
        let file = *newest.or_default();
        self.add(step, Kind::Condvar { name, file }, None);
        Ok(())
    }

    fn condvar(&self, handle: Handle) -> Option<(u64, u64)> {
        match self.objects.get(&handle)?.kind {
            Kind::Condvar { name, file } => Some((name, file)),
            _ => None,
        }
    }

    /// All that sleep, with their steps.
    fn sleepers(&self) -> impl Iterator<Item = (Who, &Step)> {
        self.members.iter().flat_map(|(member, m)| {
            let waits =
                m.threads.iter().filter_map(|(thread, wait)| Some((*thread, wait.as_ref()?)));
            let sleeps = waits.filter(|(_, wait)| wait.verb == Verb::Sleep);
            sleeps.map(|(thread, wait)| ((*member, thread), wait))
        })
    }

    /// Those that may have woken by themselves, of that lock.
    pub(super) fn may_awake(&self, lock: (Name, u64)) -> impl Iterator<Item = Who> {
        let under = move |step: &Step| self.taken_under(step) == Some(lock);
        let woke = |who: &Who, step: &Step| {
            is_over_soon(step) || self.sleeps.get(who) == Some(&Told::Perhaps)
        };
        let all = self.sleepers().filter(move |(who, step)| under(step) && woke(who, step));
        all.map(|(who, _)| who)
    }

    /// The locks of those in that process that may be awake, and what each does with one whose
    /// owner died.
    pub(super) fn sleeps_of(&self, member: usize) -> impl Iterator<Item = ((Name, u64), u64)> {
        let theirs = self.sleepers().filter(move |(who, step)| {
            let told = !matches!(self.sleeps.get(who), None | Some(Told::No));
            who.0 == member && (told || is_over_soon(step))
        });
        theirs.filter_map(|(_, step)| Some((self.taken_under(step)?, step.arg("heal"))))
    }

    /// The notification may have gone to them.
    pub(super) fn sleepers_died(&mut self, member: usize) {
        self.sleeps.retain(|who, _| who.0 != member);
        self.one_of.retain(|group| group.iter().all(|who| who.0 != member));
    }

    pub(super) fn notifies(&mut self, step: &Step) {
        let place = self.condvar(step.arg("on"));
        let asleep: BTreeSet<Who> = self
            .sleepers()
            .filter(|(who, wait)| {
                self.condvar(wait.arg("on")) == place && self.sleeps.get(who) != Some(&Told::Surely)
            })
            .map(|(who, _)| who)
            .collect();
        let told = match step.arg("all") == 1 || asleep.len() == 1 {
            true => Told::Surely,
            false => Told::Perhaps,
        };
        self.sleeps.extend(asleep.iter().map(|who| (*who, told)));
        if asleep.len() > 1 && told == Told::Perhaps {
            self.one_of.push(asleep);
        }
    }

    /// Whether one that sleeps must wake and have the mutex: it was told, its time is over, or it
    /// stands for those of whom one was told.
    pub(super) fn must_wake(&self, step: &Step) -> bool {
        let who = (step.member, step.thread);
        let told = self.sleeps.get(&who) == Some(&Told::Surely) || is_over_soon(step);
        let may_have_it = |step: &Step| !self.would_wait(step);
        let stands = || {
            self.one_of.iter().any(|group| {
                let theirs = || self.sleepers().filter(|(who, _)| group.contains(who));
                let stopped = |who: Who| self.members.get(&who.0).is_some_and(|m| m.stopped);
                group.first() == Some(&who)
                    && theirs().all(|(who, step)| !stopped(who) && may_have_it(step))
            })
        };
        may_have_it(step) && (told || stands())
    }

    /// One that slept is back; `says`: whether it could say what came.
    pub(super) fn wakes_up(&mut self, step: &Step, notified: bool, says: bool) -> Verdict {
        let who = (step.member, step.thread);
        let told = self.sleeps.remove(&who).unwrap_or(Told::No);
        self.one_of.retain(|group| !group.contains(&who));
        match told {
            Told::No if notified => Err("it was notified by nobody".into()),
            _ if says && !notified && !is_over_soon(step) => {
                Err("it wakes before its time is over, and nobody notified it".into())
            }
            _ => Ok(()),
        }
    }

    /// What nobody has open is gone.
    pub(super) fn condvars_cleaned(&mut self) {
        let open: Vec<_> = self
            .objects
            .values()
            .filter(|o| matches!(o.life, Life::Held | Life::Leaked))
            .filter_map(|o| match o.kind {
                Kind::Condvar { name, file } => Some((name, file)),
                _ => None,
            })
            .collect();
        for (name, newest) in &mut self.condvars {
            if !open.contains(&(*name, *newest)) {
                *newest += 1;
            }
        }
    }
}

/// Whether it wakes without a notification, too. Nobody waits for that beside a stopped process.
fn is_over_soon(sleep: &Step) -> bool {
    sleep.arg("ms") < LONG_MS
}
