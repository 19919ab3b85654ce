//! Histories that begin as a variation of a kept one.
//!
//! What failed once tells which steps in a row matter. The same steps on another kind of lock, with
//! another end, another size or something else in between have often failed, too, and what is made
//! up step by step rarely gets that far.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::OnceLock;

use crate::history::member::WAYS;
use crate::history::model::Model;
use crate::history::step::{FOREVER_MS, Handle, Step, Verb, WORDS, parse};
use crate::rng::Rng;

/// Steps of all kept histories, in the order of their names, of a run that is bold.
static KEPT: OnceLock<Vec<Vec<Step>>> = OnceLock::new();

/// From here on histories are bold: some begin like those in that folder, others populated.
pub fn be_bold(dir: &Path) {
    let mut files: Vec<_> =
        std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    let texts = files.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    let _ = KEPT.set(texts.filter_map(|text| parse(&text).ok()).collect());
}

pub(super) fn is_bold() -> bool {
    KEPT.get().is_some()
}

/// What opens a lock, by the number of its kind.
const LOCKS: [Verb; 3] = [Verb::Mutex, Verb::RwLock, Verb::PiMutex];

fn one_of(verbs: &[Verb], rng: &mut Rng) -> Verb {
    verbs[rng.below(verbs.len() as u64) as usize]
}

/// A kept history, of which the steps are taken one by one.
#[derive(Clone, Debug, Default)]
pub(super) struct Theme {
    steps: VecDeque<Step>,
    /// What all locks of a kind become.
    lock: Option<Verb>,
}

impl Theme {
    /// One of them, or none.
    pub(super) fn new(rng: &mut Rng) -> Self {
        let kept = KEPT.get().map_or(&[][..], Vec::as_slice);
        if kept.is_empty() || !rng.one_in(3) {
            return Self::default();
        }
        let steps = kept[rng.below(kept.len() as u64) as usize].clone().into();
        Self { steps, lock: rng.one_in(2).then(|| one_of(&LOCKS, rng)) }
    }

    /// Members and handles from these on are not in it.
    pub(super) fn free(&self) -> (usize, Handle) {
        let members = self.steps.iter().map(|step| step.member);
        let handles = self.steps.iter().filter_map(|step| match step.verb {
            Verb::Crowd => Some(step.arg("new") + Model::handles(step)),
            _ => step.new_handle(),
        });
        (members.max().unwrap_or(0) + 1, handles.max().unwrap_or(0) + 1)
    }

    /// The next step, or one like it; now and then one is left out.
    pub(super) fn next(&mut self, rng: &mut Rng) -> Option<Step> {
        while rng.one_in(16) {
            self.steps.pop_front()?;
        }
        let step = self.steps.pop_front()?;
        Some(self.vary(step, rng))
    }

    fn vary(&self, mut step: Step, rng: &mut Rng) -> Step {
        let (member, thread) = (step.member, step.thread);
        let other = |verb, args: &[u64]| Step::new(member, thread, verb, args);
        let all = step.args.clone();
        match (step.verb, self.lock) {
            (Verb::Mutex | Verb::RwLock | Verb::PiMutex, Some(lock)) => step = other(lock, &all),
            (Verb::Read, Some(lock)) if lock != Verb::RwLock => {
                step = other(Verb::Lock, &[&all[..], &[1]].concat());
            }
            (Verb::RemoveLock, Some(lock)) => {
                step.set("rw", LOCKS.iter().position(|it| *it == lock).unwrap_or(0) as u64);
            }
            (Verb::Drop | Verb::Leak | Verb::Unwind, _) if rng.one_in(6) => {
                step = other(one_of(&[Verb::Drop, Verb::Leak, Verb::Unwind], rng), &all);
            }
            (Verb::End | Verb::Crash, _) if rng.one_in(4) => {
                step = other(one_of(&[Verb::End, Verb::Crash], rng), &[]);
            }
            (Verb::Kill | Verb::Exit | Verb::Quit, _) if rng.one_in(4) => {
                step = match rng.below(4) {
                    0 => Step::new(member, 0, Verb::Quit, &[]),
                    1 => other(Verb::Exit, &[]),
                    2 => other(Verb::Kill, &[libc::SIGSEGV as u64]),
                    _ => other(Verb::Kill, &[libc::SIGKILL as u64]),
                };
            }
            _ => {}
        }
        if rng.one_in(4) && !matches!(step.verb, Verb::Pause | Verb::Crowd | Verb::Call) {
            change(&mut step, rng);
        }
        step
    }
}

/// Another value for one of its arguments that has several that make sense.
fn change(step: &mut Step, rng: &mut Rng) {
    let [flag, few, many] = [2, 4, 40].map(|most| rng.below(most));
    let changes = [
        ("words", WORDS[few as usize]),
        ("count", 1 + many),
        ("max", 1 + few),
        ("depth", 1 << few),
        ("history", many),
        ("borrows", 1 + few),
        ("how", rng.below(WAYS)),
        ("ms", flag * FOREVER_MS),
        ("heal", rng.below(3)),
        ("half", flag),
        ("volatile", flag),
        ("reliable", flag),
        ("all", flag),
        ("fd", flag),
        ("late", flag),
        ("resume", flag),
        ("permits", 1 + few),
    ];
    let theirs: Vec<_> = changes.iter().filter(|(name, _)| step.has(name)).collect();
    if let Some((name, value)) = theirs.get(rng.below(theirs.len().max(1) as u64) as usize) {
        step.set(name, *value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::kept_dir;

    #[test]
    fn variations_are_steps_and_leave_numbers_free() {
        be_bold(&kept_dir());
        let (mut themes, mut others) = (0, 0);
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let mut theme = Theme::new(&mut rng);
            let (kept, (member, handle)) = (theme.steps.clone(), theme.free());
            themes += u64::from(!kept.is_empty());
            while let Some(step) = theme.next(&mut rng) {
                assert!(step.member < member && step.new_handle().unwrap_or(0) < handle, "{step}");
                assert_eq!(Step::parse(&step.to_string()), Ok(step.clone()), "{step}");
                others += u64::from(!kept.contains(&step));
            }
        }
        assert!(themes > 50 && others > 100, "{themes} themes, {others} steps varied");
    }
}
