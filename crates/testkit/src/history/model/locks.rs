//! Mutexes: who may hold one, with which data, and who is told of which death.

use std::collections::BTreeMap;

use super::{Kind, Life, Model, Verdict, ok};
use crate::history::reply::Reply;
use crate::history::step::{Handle, Step, Verb};

/// A mutex by its name: its files, of which the last one is found by who opens it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mutex {
    newest: u64,
    files: BTreeMap<u64, File>,
}

#[derive(Clone, Debug, Default)]
struct File {
    data: [u64; 4],
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Free,
    /// By that thread, whose guard is forgotten or not; `broken`: inherited and not repaired.
    Held { guard: Handle, by: (usize, usize), forgotten: bool, broken: bool },
    /// Nobody's, after a death inside.
    Broken,
    /// Nobody's as long as that process lives, whose thread forgot its guard and ended.
    Leaked { member: usize },
    /// Given up.
    Lost,
}

/// What taking a mutex gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taking {
    Clean,
    OwnerDied,
    Waits,
    Deadlock,
    Unrecoverable,
}

impl Mutex {
    fn file(&mut self) -> &mut File {
        self.files.entry(self.newest).or_default()
    }

    /// Whether the one that is found by name is given up.
    pub(crate) fn is_lost(&self) -> bool {
        self.files.get(&self.newest).is_some_and(|f| f.state == State::Lost)
    }

    /// Whoever opens it next makes it again.
    pub(crate) fn replace(&mut self) {
        self.newest += 1;
    }
}

impl Model {
    pub(super) fn mutex(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let mutex = step.arg("mutex");
        let at = self.mutexes.entry(mutex).or_default();
        at.file();
        let file = at.newest;
        self.add(step, Kind::Mutex { mutex, file }, None);
        ok(reply)
    }

    fn file_of(&mut self, handle: Handle) -> Option<&mut File> {
        let Kind::Mutex { mutex, file } = self.objects.get(&handle)?.kind else { return None };
        self.mutexes.get_mut(&mutex)?.files.get_mut(&file)
    }

    fn taking(&self, step: &Step) -> Option<Taking> {
        let Kind::Mutex { mutex, file } = self.objects.get(&step.arg("on"))?.kind else {
            return None;
        };
        Some(match self.mutexes.get(&mutex)?.files.get(&file)?.state {
            State::Free => Taking::Clean,
            State::Broken => Taking::OwnerDied,
            State::Held { by, .. } if by == (step.member, step.thread) => Taking::Deadlock,
            State::Held { .. } => Taking::Waits,
            State::Leaked { .. } | State::Lost => Taking::Unrecoverable,
        })
    }

    /// Whether its holder has forgotten the guard and dropped the mutex.
    pub(super) fn is_orphaned(&self, step: &Step) -> bool {
        let Some(Kind::Mutex { mutex, file }) = self.objects.get(&step.arg("on")).map(|o| &o.kind)
        else {
            return false;
        };
        let file = self.mutexes.get(mutex).and_then(|m| m.files.get(file));
        let Some(State::Held { guard, forgotten: true, .. }) = file.map(|f| f.state) else {
            return false;
        };
        match self.objects.get(&guard).map(|o| &o.kind) {
            Some(Kind::Guard { of }) => !self.exists(*of),
            _ => false,
        }
    }

    pub(super) fn would_wait(&self, step: &Step) -> bool {
        self.taking(step) == Some(Taking::Waits)
    }

    pub(super) fn locked(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let Some(taking) = self.taking(step) else { return Err("no mutex".into()) };
        let got = match reply.outcome.as_str() {
            "ok" if reply.value == 1 => Taking::OwnerDied,
            "ok" => Taking::Clean,
            "Timeout" | "WouldBlock" => Taking::Waits,
            "Deadlock" => Taking::Deadlock,
            "Unrecoverable" => Taking::Unrecoverable,
            _ => return ok(reply),
        };
        // Nobody can let it go any more, nor use the data: that of a node that may have left.
        let excused = self.excused.remove(&(step.member, step.thread));
        let orphan = (excused || self.is_orphaned(step)) && got != Taking::Clean;
        if got != taking && !orphan {
            return Err(format!("taking the mutex gives {got:?}, it must give {taking:?}"));
        }
        if !reply.is_ok() {
            return Ok(());
        }
        let (died, heal) = (got == Taking::OwnerDied, step.arg("heal"));
        let guard = step.new_handle().unwrap_or_default();
        let by = (step.member, step.thread);
        let Some(file) = self.file_of(step.arg("on")) else { return Ok(()) };
        if reply.data != file.data {
            return Err(format!("under the lock is {:?}, it must be {:?}", reply.data, file.data));
        }
        if died && heal == 0 {
            file.state = State::Lost;
            return Ok(());
        }
        if died && heal == 1 {
            file.data = [file.data[0]; 4];
        }
        let broken = died && heal > 1;
        file.state = State::Held { guard, by, forgotten: false, broken };
        self.add(step, Kind::Guard { of: step.arg("on") }, Some(step.thread));
        Ok(())
    }

    pub(super) fn written(&mut self, step: &Step) {
        let Some(Kind::Guard { of }) = self.objects.get(&step.arg("on")).map(|o| &o.kind) else {
            return;
        };
        let (of, words) = (*of, if step.arg("half") == 1 { 2 } else { 4 });
        if let Some(file) = self.file_of(of) {
            file.data[..words].fill(step.arg("value"));
        }
    }

    pub(super) fn unlocked(&mut self, guard: Handle, of: Handle, verb: Verb) {
        let Some(file) = self.file_of(of) else { return };
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

    fn states(&mut self) -> impl Iterator<Item = &mut State> {
        self.mutexes.values_mut().flat_map(|m| m.files.values_mut()).map(|f| &mut f.state)
    }

    /// A thread ended that has forgotten its guard: its process may still have references.
    pub(super) fn thread_ended(&mut self, member: usize, thread: usize) {
        for state in self.states() {
            if matches!(*state, State::Held { by, .. } if by == (member, thread)) {
                *state = State::Leaked { member };
            }
        }
    }

    pub(super) fn owners_died(&mut self, dead: usize) {
        for state in self.states() {
            let theirs = match *state {
                State::Held { by, .. } => by.0 == dead,
                State::Leaked { member } => member == dead,
                _ => false,
            };
            if theirs {
                *state = State::Broken;
            }
        }
    }

    /// What nobody has open is gone.
    pub(super) fn mutexes_cleaned(&mut self) {
        let open: Vec<_> = self
            .objects
            .values()
            .filter(|o| matches!(o.life, Life::Held | Life::Leaked))
            .filter_map(|o| match o.kind {
                Kind::Mutex { mutex, file } => Some((mutex, file)),
                _ => None,
            })
            .collect();
        for (name, mutex) in &mut self.mutexes {
            if !open.contains(&(*name, mutex.newest)) {
                mutex.replace();
            }
        }
    }
}
