//! Ordinals of nodes and of threads: each is given once in the life of a domain, and who finds no
//! more is told so.

use super::{Kind, Model, Object, Verdict, ok};
use crate::history::ordinals::NODE_LAST;
use crate::history::reply::Reply;
use crate::history::step::{Handle, Step};

impl Model {
    /// Whether a node may be refused as all numbers are taken.
    pub(in crate::history) fn out_of_nodes(&self) -> bool {
        self.ordinals.left.is_some_and(|[nodes, _]| nodes == 0)
    }

    /// Whether that is a node whose number is no other's: not of a domain that was removed, where
    /// another has it now.
    pub(super) fn has_its_number(&self, node: Handle) -> bool {
        let number = |o: &Object| match o.kind {
            Kind::Node { ordinal } => Some(ordinal),
            _ => None,
        };
        let Some(own) = self.objects.get(&node).and_then(number) else { return false };
        let mut others = self.objects.iter().filter(|(handle, _)| **handle != node);
        self.exists(node) || !others.any(|(_, other)| number(other) == Some(own))
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
