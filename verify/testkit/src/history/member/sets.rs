//! Sets without locks, as a member uses them.

use outlive::lock::LocklessSet;

use super::fails::Fails;
use super::shared::Shared;
use super::things::Thing;
use crate::history::reply::Reply;
use crate::history::step::{IDS, Step, Verb};

pub(super) fn open(shared: &Shared, step: &Step) -> Result<Thing, Fails> {
    let node = shared.node(step.arg("node"));
    let name = format!("/h/set{}", step.arg("set"));
    Ok(Thing::Set(node.lockless_set(&name, step.arg("capacity") as usize)?))
}

pub(super) fn act(set: &LocklessSet, step: &Step, reply: &mut Reply) -> Result<(), Fails> {
    match step.verb {
        Verb::Insert => reply.value = u64::from(set.insert(step.arg("id"))?),
        Verb::Remove => reply.value = u64::from(set.remove(step.arg("id"))),
        _ => {
            reply.data = set.ids();
            reply.data.extend((0..IDS).filter(|id| set.contains(*id)));
        }
    }
    Ok(())
}

/// How one that was inherited by a forked child answers: it removes nothing, either.
pub(super) fn refuses(set: &LocklessSet) -> String {
    let removed = (0..IDS).any(|id| set.remove(id));
    let said = set.insert(1).map_err(|e| e.kind());
    match said {
        Err(kind) if !removed => format!("{kind:?}"),
        _ => "ok".into(),
    }
}
