//! Ordinals of nodes and of threads: each is given once in the life of a domain, and who finds no
//! more is told so.

use super::{Kind, Model, Verdict, ok};
use crate::history::ordinals::NODE_LAST;
use crate::history::reply::Reply;
use crate::history::step::{Step, Verb};

/// What the domain has given.
#[derive(Clone, Debug, Default)]
pub(super) struct Ordinals {
    /// The newest node's.
    newest: u64,
    /// So many are left at least, of nodes and of threads; `None`: more than a history needs.
    pub(super) left: Option<[u64; 2]>,
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
    pub(super) fn suffice(&self, step: &Step) -> bool {
        let needed = Self::taken_by(step);
        let has = |(which, left): (usize, &u64)| {
            *left >= needed.iter().filter(|n| **n == which).count() as u64
        };
        self.left.is_none_or(|left| left.iter().enumerate().all(has))
    }

    /// A step that takes some: one that waits long when it begins.
    pub(super) fn take(&mut self, step: &Step) {
        for which in Self::taken_by(step) {
            if let Some(left) = &mut self.left {
                left[*which] = left[*which].saturating_sub(1);
            }
        }
    }

    /// After a step; `true`: it was refused, and rightly, as there were none.
    pub(super) fn took(&mut self, step: &Step, reply: &Reply) -> bool {
        let sufficed = self.suffice(step);
        if !step.is_long() {
            self.take(step);
        }
        !sufficed && reply.outcome == "TooManyMembers"
    }
}

impl Model {
    /// Whether a node may be refused as all numbers are taken.
    pub(in crate::history) fn out_of_nodes(&self) -> bool {
        self.ordinals.left.is_some_and(|[nodes, _]| nodes == 0)
    }

    /// Numbers of a domain are in the order of birth; one that nobody was in begins again.
    pub(super) fn node_opens(&mut self, step: &Step, reply: &Reply) -> Verdict {
        ok(reply)?;
        let ordinal = reply.id.0;
        let inhabited = self.living().any(|(_, o)| matches!(o.kind, Kind::Node { .. }));
        if inhabited && ordinal <= self.ordinals.newest || ordinal > NODE_LAST {
            let newest = self.ordinals.newest;
            return Err(format!("a node gets the number {ordinal} after {newest}"));
        }
        if ordinal < self.ordinals.newest {
            self.ordinals.left = None;
        }
        self.ordinals.newest = ordinal;
        self.add(step, Kind::Node { ordinal }, None);
        Ok(())
    }
}
