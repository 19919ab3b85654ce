//! Semaphores: who may have which permit, and who is told that its holder died.

use super::state::semaphores::Place;
use super::{Kind, Life, Model, Verdict, ok};
use crate::history::reply::Reply;
use crate::history::step::{Handle, Step, Verb};

impl Model {
    pub(super) fn semaphore_opens(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let (name, permits) = (step.arg("semaphore"), step.arg("permits") as usize);
        let at = self.semaphores.entry(name).or_default();
        let other = at.files.get(&at.newest).is_some_and(|f| f.len() != permits);
        if other {
            return match reply.outcome.as_str() {
                "TypeMismatch" => Ok(()),
                "ok" => Err("a semaphore is opened with another number of permits".into()),
                _ => ok(reply),
            };
        }
        ok(reply)?;
        let file = at.newest;
        at.files.entry(file).or_insert_with(|| vec![Place::Free; permits]);
        self.add(step, Kind::Semaphore { name, file }, None);
        Ok(())
    }

    fn places_of(&mut self, semaphore: Handle) -> Option<&mut Vec<Place>> {
        let Kind::Semaphore { name, file } = self.objects.get(&semaphore)?.kind else {
            return None;
        };
        self.semaphores.get_mut(&name)?.files.get_mut(&file)
    }

    fn places(&self, semaphore: Handle) -> &[Place] {
        let Some(Kind::Semaphore { name, file }) = self.objects.get(&semaphore).map(|o| &o.kind)
        else {
            return &[];
        };
        self.semaphores.get(name).and_then(|s| s.files.get(file)).map_or(&[], Vec::as_slice)
    }

    pub(super) fn permit_holders(&self, semaphore: Handle) -> Vec<(usize, usize)> {
        let by = |place: &Place| match place {
            Place::Held { by, .. } => Some(*by),
            _ => None,
        };
        self.places(semaphore).iter().filter_map(by).collect()
    }

    /// Whether its holder forgot it and dropped the semaphore: the node may have left, and then it
    /// is a dead thread's.
    fn may_be_back(&self, place: &Place) -> bool {
        let Place::Held { permit, forgotten: true, .. } = place else { return false };
        let of = match self.objects.get(permit).map(|o| &o.kind) {
            Some(Kind::Permit { of }) => *of,
            _ => return false,
        };
        !self.exists(of)
    }

    /// Whether a wait for a permit must end: there is one, or only the waiting thread has any.
    pub(super) fn has_permit(&self, step: &Step) -> bool {
        let places = self.places(step.arg("on"));
        let free = places.iter().any(|p| matches!(p, Place::Free | Place::Broken | Place::Unsure));
        free || self.has_all(step) && !places.iter().any(|p| self.may_be_back(p))
    }

    fn has_all(&self, step: &Step) -> bool {
        let who = (step.member, step.thread);
        self.places(step.arg("on"))
            .iter()
            .all(|p| matches!(p, Place::Held { by, .. } if *by == who))
    }

    pub(super) fn acquired(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let on = step.arg("on");
        let places = self.places(on).to_vec();
        match reply.outcome.as_str() {
            "ok" => {}
            "Deadlock" if self.has_all(step) => return Ok(()),
            "Deadlock" => return Err(format!("a deadlock, but the permits are {places:?}")),
            "WouldBlock" | "Timeout" if self.has_permit(step) && !self.is_beside_late(step) => {
                return Err(format!("no permit comes ({}) of {places:?}", reply.outcome));
            }
            "WouldBlock" | "Timeout" => return Ok(()),
            _ => return ok(reply),
        }
        let &[index, available] = &reply.data[..] else { return Err("it has no number".into()) };
        let died = reply.value == 1;
        match places.get(index as usize) {
            Some(Place::Free) if !died => {}
            Some(Place::Broken) if died => {}
            Some(Place::Unsure) => {}
            Some(place) if died && self.may_be_back(place) => {}
            Some(place) => {
                return Err(format!("permit {index} is taken, its holder died: {died}: {place:?}"));
            }
            None => return Err(format!("permit {index} of {} is taken", places.len())),
        }
        let others = || places.iter().enumerate().filter(|(at, _)| *at as u64 != index);
        let left = |state| others().filter(|(_, p)| **p == state).count() as u64;
        // Of one that slept: others may have got theirs since, or answered before it.
        let (least, most) = match step.is_long() {
            true => (0, others().count() as u64),
            false => (left(Place::Free), left(Place::Free) + left(Place::Unsure)),
        };
        if !(least..=most).contains(&available) {
            return Err(format!("{available} permits are free, not {least} to {most}: {places:?}"));
        }
        let new = step.new_handle().unwrap_or_default();
        let by = (step.member, step.thread);
        if let Some(place) = self.places_of(on).and_then(|p| p.get_mut(index as usize)) {
            *place = Place::Held { permit: new, by, forgotten: false };
        }
        self.add(step, Kind::Permit { of: on }, Some(step.thread));
        Ok(())
    }

    /// Given back, in a panic too; a forgotten one stays its thread's.
    pub(super) fn permit_let_go(&mut self, permit: Handle, of: Handle, verb: Verb) {
        let places = self.places_of(of).into_iter().flatten();
        for place in places {
            match place {
                Place::Held { permit: held, forgotten, .. } if *held == permit => {
                    match verb == Verb::Leak {
                        true => *forgotten = true,
                        false => *place = Place::Free,
                    }
                }
                _ => {}
            }
        }
    }

    /// Where a process dies that waits although a permit is free, it may have taken that unheard.
    pub(super) fn takers_died(&mut self, dead: usize) {
        let waits = self.members.get(&dead).into_iter().flat_map(|m| m.threads.values().flatten());
        let waits: Vec<_> =
            waits.filter(|s| s.verb == Verb::Acquire).map(|s| s.arg("on")).collect();
        for on in waits {
            let places = self.places_of(on).into_iter().flatten();
            places.filter(|p| **p == Place::Free).for_each(|p| *p = Place::Unsure);
        }
    }

    /// Threads are dead: their permits come back.
    pub(super) fn permits_of_dead(&mut self, dead: impl Fn((usize, usize)) -> bool) {
        let files = self.semaphores.values_mut().flat_map(|s| s.files.values_mut());
        for place in files.flatten() {
            if matches!(place, Place::Held { by, .. } if dead(*by)) {
                *place = Place::Broken;
            }
        }
    }

    /// What nobody has open is gone.
    pub(super) fn semaphores_cleaned(&mut self) {
        let open: Vec<_> = self
            .objects
            .values()
            .filter(|o| matches!(o.life, Life::Held | Life::Leaked))
            .filter_map(|o| match o.kind {
                Kind::Semaphore { name, file } => Some((name, file)),
                _ => None,
            })
            .collect();
        for (name, semaphore) in &mut self.semaphores {
            if !open.contains(&(*name, semaphore.newest)) {
                semaphore.newest += 1;
            }
        }
    }
}
