//! Ordinals that the domain has given.

use crate::history::reply::Reply;
use crate::history::step::{Step, Verb};

/// What the domain has given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ordinals {
    /// The newest node's.
    pub(crate) newest: u64,
    /// So many are left at least, of nodes and of threads; `None`: more than a history needs.
    pub(crate) left: Option<[u64; 2]>,
}

impl Ordinals {
    /// Which it may take, by their place in `left`.
    fn taken_by(step: &Step) -> &'static [usize] {
        match step.verb {
            Verb::Node => &[0],
            Verb::Lock | Verb::Read | Verb::RemoveLock | Verb::Acquire | Verb::Sleep => &[1],
            // A life of its own.
            Verb::Fork if step.arg("how") == 6 => &[0, 1, 1],
            _ => &[],
        }
    }

    /// Whether there is surely one of each that it needs.
    pub(crate) fn suffice(&self, step: &Step) -> bool {
        let needed = Self::taken_by(step);
        let has = |(which, left): (usize, &u64)| {
            *left >= needed.iter().filter(|n| **n == which).count() as u64
        };
        self.left.is_none_or(|left| left.iter().enumerate().all(has))
    }

    /// A step that takes some: one that waits long when it begins.
    pub(crate) fn take(&mut self, step: &Step) {
        for which in Self::taken_by(step) {
            if let Some(left) = &mut self.left {
                left[*which] = left[*which].saturating_sub(1);
            }
        }
    }

    /// After a step; `true`: it was refused, and rightly, as there were none.
    pub(crate) fn took(&mut self, step: &Step, reply: &Reply) -> bool {
        let sufficed = self.suffice(step);
        if !step.is_long() {
            self.take(step);
        }
        !sufficed && reply.outcome == "TooManyMembers"
    }
}
