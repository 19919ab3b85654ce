//! Mutexes and reader/writer locks: who may hold one, with which data, and who is told of which
//! death.

use std::collections::BTreeSet;

use super::state::locks::{File, MUTEX, Name, PI, RWLOCK, Reader, State};
use super::state::waits::Told;
use super::{Kind, Life, Model, Verdict, ok};
use crate::history::reply::Reply;
use crate::history::step::{Handle, Step, Verb};

/// What taking a lock gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    Clean,
    OwnerDied,
    Waits,
    Deadlock,
    Unrecoverable,
}

impl Model {
    pub(super) fn lock(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let kind = match step.verb {
            Verb::Mutex => MUTEX,
            Verb::PiMutex => PI,
            _ => RWLOCK,
        };
        let name = (kind, step.arg("mutex"));
        let at = self.locks.entry(name).or_default();
        at.file();
        let file = at.newest;
        self.add(step, Kind::Lock { name, file }, None);
        ok(reply)
    }

    fn place_of(&self, handle: Handle) -> Option<(Name, u64)> {
        match self.objects.get(&handle)?.kind {
            Kind::Lock { name, file } => Some((name, file)),
            _ => None,
        }
    }

    fn look_at(&self, handle: Handle) -> Option<&File> {
        let (name, file) = self.place_of(handle)?;
        self.locks.get(&name)?.files.get(&file)
    }

    fn file_of(&mut self, handle: Handle) -> Option<&mut File> {
        let (name, file) = self.place_of(handle)?;
        self.locks.get_mut(&name)?.files.get_mut(&file)
    }

    /// Members that wait to write, besides that thread: one of them keeps others out before the
    /// readers have left.
    fn writers_wait(&self, step: &Step) -> impl Iterator<Item = usize> {
        let place = self.place_of(step.arg("on"));
        let who = (step.member, step.thread);
        self.members.iter().flat_map(move |(member, m)| {
            let waits = m.threads.iter().filter(move |(thread, wait)| {
                let same = |s: &Step| s.verb == Verb::Lock && self.place_of(s.arg("on")) == place;
                (*member, **thread) != who && wait.as_ref().is_some_and(same)
            });
            waits.map(|_| *member)
        })
    }

    /// The lock that a step takes.
    fn taken_by(&self, step: &Step) -> Handle {
        match step.verb {
            Verb::Sleep => self.lock_of(step.arg("guard")).unwrap_or_default(),
            _ => step.arg("on"),
        }
    }

    /// The others, where it waits for a mutex with priority inheritance whose holder waits for one
    /// of its own, perhaps through more of them: the kernel tells one of them.
    fn circle(&self, step: &Step) -> Vec<(usize, usize)> {
        let me = (step.member, step.thread);
        let (mut on, mut others) = (step.arg("on"), Vec::new());
        while others.len() < self.objects.len() {
            let (Some(((PI, _), _)), Some(file)) = (self.place_of(on), self.look_at(on)) else {
                break;
            };
            let State::Held { by, .. } = file.state else { break };
            if by == me {
                return others;
            }
            let wait = self.members.get(&by.0).and_then(|m| m.threads.get(&by.1)?.as_ref());
            let Some(wait) = wait.filter(|s| s.verb == Verb::Lock) else { break };
            others.push(by);
            on = wait.arg("on");
        }
        Vec::new()
    }

    /// The kernel tells of a circle at once; the answer may come after one of them has died.
    pub(super) fn circles_were_told(&mut self) {
        let waits = self.members.values().flat_map(|m| m.threads.values().flatten());
        let locks = waits.filter(|s| s.verb == Verb::Lock && !self.circle(s).is_empty());
        let told: Vec<_> = locks.map(|s| (s.member, s.thread)).collect();
        self.circled.extend(told);
    }

    /// Whether a wake for the same lock may have gone to one that is stopped: it, or the slice of
    /// another's sleep, comes later.
    pub(super) fn is_beside_stopped(&self, step: &Step) -> bool {
        self.stopped_beside(step).next().is_some()
    }

    /// Stopped members that wait for the same lock.
    fn stopped_beside(&self, step: &Step) -> impl Iterator<Item = usize> {
        let place = self.place_of(self.taken_by(step));
        let waits = move |s: &Step| {
            let takes = matches!(s.verb, Verb::Lock | Verb::Read | Verb::Sleep);
            takes && self.place_of(self.taken_by(s)) == place
        };
        let stopped = self.members.iter().filter(|(_, m)| m.stopped);
        let waiting = stopped.filter(move |(_, m)| m.threads.values().flatten().any(waits));
        waiting.map(|(member, _)| *member)
    }

    /// Who has the lock that a step waits for.
    pub(super) fn lock_holders(&self, step: &Step) -> Vec<(usize, usize)> {
        let Some(file) = self.look_at(self.taken_by(step)) else { return Vec::new() };
        let holder = match file.state {
            State::Held { by, .. } => Some(by),
            _ => None,
        };
        holder.into_iter().chain(file.readers.iter().map(|r| r.by)).collect()
    }

    /// What taking it may give now.
    fn taking(&self, step: &Step) -> Vec<Taking> {
        let on = self.taken_by(step);
        let Some(file) = self.look_at(on) else { return Vec::new() };
        let who = (step.member, step.thread);
        let mut all = vec![match file.state {
            State::Free => Taking::Clean,
            State::Broken => Taking::OwnerDied,
            State::Held { by, .. } if by == who => Taking::Deadlock,
            State::Held { .. } => Taking::Waits,
            State::Leaked { .. } | State::Lost => Taking::Unrecoverable,
        }];
        // No reference outlives the lock's object, and with the node its tokens went.
        if matches!(file.state, State::Leaked { guard, .. } if self.has_left(guard)) {
            all.push(Taking::OwnerDied);
        }
        if file.unsure {
            all.push(Taking::OwnerDied);
        }
        if file.perhaps_lost || file.state == State::Broken && !self.givers_up(step).is_empty() {
            all.push(Taking::Unrecoverable);
        }
        if self.circled.contains(&who) || !self.circle(step).is_empty() {
            all.push(Taking::Deadlock);
        }
        // The kernel has made it the holder, which it finds out when it goes on.
        if matches!(self.place_of(on), Some(((PI, _), _))) && self.is_beside_stopped(step) {
            all.push(Taking::Waits);
        }
        // It has been told, or will look: it may have the lock by now.
        if self.place_of(on).is_some_and(|place| self.may_awake(place).next().is_some()) {
            all.push(Taking::Waits);
        }
        let mine: Vec<_> = file.readers.iter().filter(|r| r.by == who && !r.leaked).collect();
        if step.verb == Verb::Read {
            // As a member of another node it is told only where it would wait for itself.
            let node = |lock: Handle| self.objects.get(&lock).and_then(|o| o.node);
            let through = |r: &&Reader| self.lock_of(r.guard).and_then(node);
            if mine.iter().any(|r| through(r) == node(on)) {
                all.retain(|t| *t != Taking::Clean);
            }
            if !mine.is_empty() {
                all.push(Taking::Deadlock);
            }
            if self.writers_wait(step).next().is_some() {
                all.push(Taking::Waits);
            }
            return all;
        }
        if !mine.is_empty() {
            let may_have_left = mine.iter().all(|r| self.is_orphan(r.guard, r.forgotten));
            if !may_have_left || mine.len() == file.readers.len() {
                return vec![Taking::Deadlock];
            }
            // It waits for the others, then.
            all.push(Taking::Deadlock);
        }
        if matches!(all[0], Taking::Clean | Taking::OwnerDied) && !file.readers.is_empty() {
            let (gone, here): (Vec<&Reader>, Vec<&Reader>) =
                file.readers.iter().partition(|r| r.leaked);
            let orphan = file.readers.iter().any(|r| self.is_orphan(r.guard, r.forgotten));
            if !orphan {
                all.clear();
            }
            if orphan || !gone.is_empty() {
                all.push(Taking::Unrecoverable);
            }
            if orphan || !here.is_empty() {
                all.push(Taking::Waits);
            }
        }
        all
    }

    fn lock_of(&self, guard: Handle) -> Option<Handle> {
        match self.objects.get(&guard)?.kind {
            Kind::Guard { of, .. } => Some(of),
            _ => None,
        }
    }

    /// Others who wait for the same lock and give it up if its holder has died: one of them may
    /// have had it before, and its answer comes after that of `step`.
    fn givers_up(&self, step: &Step) -> Vec<(usize, usize)> {
        let place = self.place_of(self.taken_by(step));
        let waits = self.members.values().filter(|m| m.alive);
        let waits = waits.flat_map(|m| m.threads.values().flatten());
        let takes = |s: &&Step| matches!(s.verb, Verb::Lock | Verb::Sleep);
        let giving = waits.filter(takes).filter(|s| s.arg("heal") == 0);
        let giving = giving.filter(|s| self.place_of(self.taken_by(s)) == place);
        let giving = giving.map(|s| (s.member, s.thread));
        giving.filter(|who| *who != (step.member, step.thread)).collect()
    }

    /// Others were refused a broken lock before this answer: one of those that gave it up must say
    /// so, unless one of them has ended and says nothing.
    fn answers_to_claims(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let who = (step.member, step.thread);
        let gives_up = reply.is_ok() && reply.value & 1 == 1;
        let waits = |at: &(usize, usize)| {
            let member = self.members.get(&at.0).filter(|m| m.alive);
            *at == who || member.is_some_and(|m| matches!(m.threads.get(&at.1), Some(Some(_))))
        };
        let mut claims = std::mem::take(&mut self.claims);
        claims.retain(|any| any.iter().all(waits) && !(gives_up && any.contains(&who)));
        for any in &mut claims {
            any.remove(&who);
        }
        if claims.iter().any(BTreeSet::is_empty) {
            return Err("another was refused, and nobody has given the lock up".into());
        }
        self.claims = claims;
        Ok(())
    }

    /// Whether the guard is forgotten and its lock dropped: its node may have left.
    fn is_orphan(&self, guard: Handle, forgotten: bool) -> bool {
        forgotten && self.lock_of(guard).is_some_and(|of| !self.exists(of))
    }

    /// Whether its holder has forgotten the guard and dropped the lock.
    pub(super) fn is_orphaned(&self, step: &Step) -> bool {
        let Some(file) = self.look_at(self.taken_by(step)) else { return false };
        if file.readers.iter().any(|r| self.is_orphan(r.guard, r.forgotten)) {
            return true;
        }
        match file.state {
            State::Held { guard, forgotten, .. } => self.is_orphan(guard, forgotten),
            _ => false,
        }
    }

    /// Whether the node that this guard came by is closed, and all that was opened by it.
    fn has_left(&self, guard: Handle) -> bool {
        let node = self.lock_of(guard).and_then(|lock| self.objects.get(&lock)?.node);
        node.is_some_and(|node| {
            !self.living().any(|(handle, o)| handle == node || o.node == Some(node))
        })
    }

    pub(super) fn would_wait(&self, step: &Step) -> bool {
        let stopped = |member: usize| self.members.get(&member).is_some_and(|m| m.stopped);
        let place = self.place_of(self.taken_by(step));
        let rw = place.is_some_and(|((kind, _), _)| kind == RWLOCK);
        let kept_out = rw && step.verb == Verb::Lock && self.writers_wait(step).any(stopped);
        let late = self.may_oversleep.contains(&(step.member, step.thread));
        let held_back = late || self.is_beside_stopped(step);
        let waits = self.look_at(self.taken_by(step)).is_some_and(|file| {
            let awake = place.is_some_and(|place| self.may_awake(place).next().is_some());
            let takes = matches!(file.state, State::Free | State::Broken);
            !(awake && takes) && self.taking(step).contains(&Taking::Waits)
        });
        kept_out || held_back || waits
    }

    pub(super) fn locked(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let mut taking = self.taking(step);
        if taking.is_empty() {
            return Err("no lock".into());
        }
        self.answers_to_claims(step, reply)?;
        self.circled.remove(&(step.member, step.thread));
        let circle = self.circle(step);
        self.circled.extend(circle);
        let rw = self.place_of(step.arg("on")).is_some_and(|((kind, _), _)| kind == RWLOCK);
        if rw && self.writers_wait(step).next().is_some() {
            taking.push(Taking::Waits);
        }
        // For a second: the process may be ending. Or one that woke late has it.
        let doubtful = taking.contains(&Taking::Unrecoverable) || self.is_beside_late(step);
        if doubtful && !step.is_long() {
            taking.push(Taking::Waits);
        }
        let got = match reply.outcome.as_str() {
            "ok" if reply.value == 1 => Taking::OwnerDied,
            "ok" => Taking::Clean,
            "OwnerDied" if step.verb == Verb::Read => Taking::OwnerDied,
            "Timeout" | "WouldBlock" => Taking::Waits,
            "Deadlock" => Taking::Deadlock,
            "Unrecoverable" => Taking::Unrecoverable,
            _ => return ok(reply),
        };
        // Nobody can let it go any more, nor use the data: that of a node that may have left.
        let excused = self.excused.remove(&(step.member, step.thread));
        let orphan = (excused || self.is_orphaned(step)) && (rw || got != Taking::Clean);
        let told = self.saw_death.remove(&(step.member, step.thread)) && got == Taking::OwnerDied;
        if !taking.contains(&got) && !orphan && !told {
            return Err(format!("taking the lock gives {got:?}, it must give one of {taking:?}"));
        }
        if got == Taking::OwnerDied {
            // Before this one, perhaps, and the answer comes after it.
            let place = self.place_of(step.arg("on"));
            self.death_is_seen_in(|model, lock| model.place_of(lock) == place);
        }
        let guard = step.new_handle().unwrap_or_default();
        if self.enters(step, step.arg("on"), guard, got, reply)? {
            let reads = step.verb == Verb::Read;
            self.add(step, Kind::Guard { of: step.arg("on"), reads }, Some(step.thread));
        }
        Ok(())
    }

    /// A lock was taken, or not; `true`: from now on that guard holds it.
    fn enters(
        &mut self,
        step: &Step,
        lock: Handle,
        guard: Handle,
        got: Taking,
        reply: &Reply,
    ) -> Result<bool, String> {
        let by = (step.member, step.thread);
        let lost = self.look_at(lock).is_some_and(|f| f.state == State::Lost);
        if got == Taking::Unrecoverable && !lost {
            let before = self.givers_up(step);
            let sure = |f: &File| f.state == State::Broken && !f.perhaps_lost;
            if !before.is_empty() && self.look_at(lock).is_some_and(sure) {
                self.claims.push(before.iter().copied().collect());
            }
            self.saw_death.extend(before);
        }
        let Some(file) = self.file_of(lock) else { return Ok(false) };
        match got {
            Taking::Clean => file.unsure = false,
            Taking::OwnerDied if file.unsure => (file.state, file.unsure) = (State::Broken, false),
            Taking::Unrecoverable if file.perhaps_lost || file.state == State::Broken => {
                file.state = State::Lost;
            }
            _ => {}
        }
        let heals = file.perhaps_healed;
        if reply.is_ok() {
            (file.perhaps_lost, file.perhaps_healed) = (false, false);
        } else {
            return Ok(false);
        }
        if heals && reply.data == [file.data[0]; 4] {
            file.data = [file.data[0]; 4];
        }
        if reply.data != file.data {
            return Err(format!("under the lock is {:?}, it must be {:?}", reply.data, file.data));
        }
        if step.verb == Verb::Read {
            file.readers.push(Reader { guard, by, forgotten: false, leaked: false });
            return Ok(true);
        }
        file.readers.clear();
        let (died, heal) = (got == Taking::OwnerDied, step.arg("heal"));
        if died && heal == 0 {
            file.state = State::Lost;
            return Ok(false);
        }
        if died && heal == 1 {
            file.data = [file.data[0]; 4];
        }
        let broken = died && heal > 1;
        file.state = State::Held { guard, by, forgotten: false, broken };
        Ok(true)
    }

    /// Whether that guard holds a mutex in good order, and no other kind of lock.
    pub(super) fn may_sleep(&self, guard: Handle) -> bool {
        let lock = self.lock_of(guard).unwrap_or_default();
        let mutex = matches!(self.place_of(lock), Some(((MUTEX, _), _)));
        let held =
            |f: &File| matches!(f.state, State::Held { guard: g, broken: false, .. } if g == guard);
        mutex && self.look_at(lock).is_some_and(held)
    }

    /// The lock that is taken, perhaps again.
    pub(super) fn taken_under(&self, step: &Step) -> Option<(Name, u64)> {
        self.place_of(self.taken_by(step))
    }

    /// Who waits for a notification lets the mutex go.
    pub(super) fn falls_asleep(&mut self, step: &Step) {
        let lock = self.taken_by(step);
        if let Some(file) = self.file_of(lock) {
            file.state = State::Free;
        }
        self.sleeps.insert((step.member, step.thread), Told::No);
    }

    /// It has the mutex again.
    pub(super) fn slept(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let (lock, guard) = (self.taken_by(step), step.arg("guard"));
        let taking = self.taking(step);
        self.answers_to_claims(step, reply)?;
        let (died, notified) = (reply.value & 1 == 1, reply.value & 2 == 2);
        let got = match reply.outcome.as_str() {
            "ok" if died => Taking::OwnerDied,
            "ok" => Taking::Clean,
            "Unrecoverable" => Taking::Unrecoverable,
            _ => return ok(reply),
        };
        self.wakes_up(step, notified, reply.is_ok() && !died)?;
        let excused = self.excused.remove(&(step.member, step.thread)) && got != Taking::Clean;
        let told = self.saw_death.remove(&(step.member, step.thread)) && died;
        if !taking.contains(&got) && !excused && !told {
            return Err(format!("the mutex again gives {got:?}, it must give one of {taking:?}"));
        }
        if !self.enters(step, lock, guard, got, reply)? {
            self.end_of(guard, Life::Dropped);
        }
        Ok(())
    }

    pub(super) fn written(&mut self, step: &Step) {
        let Some(of) = self.lock_of(step.arg("on")) else { return };
        let words = if step.arg("half") == 1 { 2 } else { 4 };
        if let Some(file) = self.file_of(of) {
            file.data[..words].fill(step.arg("value"));
        }
    }

    pub(super) fn unlocked(&mut self, guard: Handle, of: Handle, verb: Verb) {
        self.let_go_of(guard, of, verb);
        self.death_is_seen();
    }

    /// Who waits to read sees a death inside, also if a writer has repaired it since.
    fn death_is_seen(&mut self) {
        let broken = |f: &File| f.state == State::Broken || f.unsure;
        self.death_is_seen_in(|model, lock| model.look_at(lock).is_some_and(broken));
    }

    fn death_is_seen_in(&mut self, seen: impl Fn(&Self, Handle) -> bool) {
        let waits = self.members.iter().flat_map(|(member, m)| {
            let waits =
                m.threads.iter().filter_map(|(thread, wait)| Some((thread, wait.as_ref()?)));
            waits.map(|(thread, wait)| ((*member, *thread), wait))
        });
        let reads = waits.filter(|(_, wait)| wait.verb == Verb::Read);
        let seen: Vec<_> =
            reads.filter(|(_, wait)| seen(self, wait.arg("on"))).map(|(who, _)| who).collect();
        self.saw_death.extend(seen);
    }

    fn let_go_of(&mut self, guard: Handle, of: Handle, verb: Verb) {
        let Some(file) = self.file_of(of) else { return };
        if verb == Verb::Leak {
            let mut readers = file.readers.iter_mut();
            if let Some(reader) = readers.find(|r| r.guard == guard) {
                reader.forgotten = true;
            }
        } else {
            file.readers.retain(|r| r.guard != guard);
        }
        let State::Held { guard: held, by, broken, .. } = file.state else { return };
        if held != guard {
            return;
        }
        file.state = match verb {
            Verb::Leak => State::Held { guard, by, forgotten: true, broken },
            Verb::Unwind => State::Broken,
            _ if broken => State::Lost,
            _ => State::Free,
        };
    }

    fn files(&mut self) -> impl Iterator<Item = &mut File> {
        self.locks.values_mut().flat_map(|m| m.files.values_mut())
    }

    /// A thread ended that has forgotten its guard: its process may still have references.
    pub(super) fn thread_ended(&mut self, member: usize, thread: usize) {
        for file in self.files() {
            if let State::Held { by, guard, .. } = file.state
                && by == (member, thread)
            {
                file.state = State::Leaked { member, guard };
            }
            let mut readers = file.readers.iter_mut();
            readers.by_ref().filter(|r| r.by == (member, thread)).for_each(|r| r.leaked = true);
        }
    }

    pub(super) fn owners_died(&mut self, dead: usize) {
        let waits = self.members.get(&dead).map(|m| m.threads.values().flatten());
        let waits = waits.into_iter().flatten().filter(|step| step.verb == Verb::Lock);
        // Nobody waited for its answer: it may have had the lock.
        let late = |step: &Step| {
            self.may_oversleep.contains(&(step.member, step.thread))
                || self.stopped_beside(step).any(|member| member != dead)
        };
        let waited = waits.filter_map(|step| {
            Some((self.place_of(step.arg("on"))?, late(step).then(|| step.arg("heal"))))
        });
        let waited: Vec<_> = waited.collect();
        for file in self.files() {
            let theirs = match file.state {
                State::Held { by, .. } => by.0 == dead,
                State::Leaked { member, .. } => member == dead,
                _ => false,
            };
            if theirs {
                file.state = State::Broken;
            }
            file.readers.retain(|r| r.by.0 != dead);
        }
        // Who was told, or looked, may have had the mutex.
        let awake = self.sleeps_of(dead).map(|(place, heal)| (place, Some(heal)));
        let waited: Vec<_> = waited.into_iter().chain(awake).collect();
        for (((kind, number), file), late) in waited {
            let file = self.locks.get_mut(&(kind, number)).and_then(|l| l.files.get_mut(&file));
            match file {
                Some(file) if file.state == State::Free => {
                    // As below, where somebody may have died inside before.
                    file.perhaps_lost |= file.unsure && late == Some(0);
                    file.perhaps_healed |= file.unsure && late == Some(1);
                    file.unsure |= kind == RWLOCK || late.is_some();
                }
                Some(file) if file.state == State::Broken => {
                    file.perhaps_lost |= late == Some(0);
                    file.perhaps_healed |= late == Some(1);
                }
                _ => {}
            }
        }
        self.sleepers_died(dead);
        self.death_is_seen();
    }

    /// What nobody has open is gone.
    pub(super) fn locks_cleaned(&mut self) {
        let open: Vec<_> = self
            .objects
            .values()
            .filter(|o| matches!(o.life, Life::Held | Life::Leaked))
            .filter_map(|o| match o.kind {
                Kind::Lock { name, file } => Some((name, file)),
                _ => None,
            })
            .collect();
        for (name, lock) in &mut self.locks {
            if !open.contains(&(*name, lock.newest)) {
                lock.replace();
            }
        }
    }
}
