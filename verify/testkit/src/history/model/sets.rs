//! Sets without locks: what was inserted and not removed since, by whomever.

use std::collections::BTreeSet;

use super::state::sets::File;
use super::{Kind, Life, Model, Verdict, ok};
use crate::history::reply::Reply;
use crate::history::step::{Handle, Step, Verb};

impl Model {
    pub(super) fn set_opens(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let (name, capacity) = (step.arg("set"), step.arg("capacity"));
        let at = self.sets.entry(name).or_default();
        if at.files.get(&at.newest).is_some_and(|f| f.capacity != capacity) {
            return match reply.outcome.as_str() {
                "TypeMismatch" => Ok(()),
                "ok" => Err("a set is opened with another capacity".into()),
                _ => ok(reply),
            };
        }
        ok(reply)?;
        let file = at.newest;
        at.files.entry(file).or_insert_with(|| File { capacity, ids: BTreeSet::new() });
        self.add(step, Kind::Set { name, file }, None);
        Ok(())
    }

    fn ids_of(&mut self, set: Handle) -> Option<&mut File> {
        let Kind::Set { name, file } = self.objects.get(&set)?.kind else { return None };
        self.sets.get_mut(&name)?.files.get_mut(&file)
    }

    pub(super) fn set_done(&mut self, step: &Step, reply: &Reply) -> Verdict {
        let Some(at) = self.ids_of(step.arg("on")) else { return Ok(()) };
        let id = step.arg("id");
        let full = at.ids.len() as u64 == at.capacity && !at.ids.contains(&id);
        let is_new = match step.verb {
            Verb::Insert if id == 0 => {
                let refused = reply.outcome == "InvalidArgument";
                return if refused { Ok(()) } else { ok(reply).and(Err("0 is inserted".into())) };
            }
            Verb::Insert if full && reply.outcome == "NoSpace" => return Ok(()),
            Verb::Insert if full => return Err(format!("a full set takes {id}")),
            Verb::Insert => at.ids.insert(id),
            Verb::Remove => at.ids.remove(&id),
            _ => {
                ok(reply)?;
                let ids: Vec<u64> = at.ids.iter().copied().collect();
                // Once as a list, once as it answers for each.
                let both = [&ids[..], &ids[..]].concat();
                return match reply.data == both {
                    true => Ok(()),
                    false => Err(format!("the set has twice {:?}, it must be {ids:?}", reply.data)),
                };
            }
        };
        ok(reply)?;
        match (reply.value == 1) == is_new {
            true => Ok(()),
            false => Err(format!("{id} was changed: {}, it must be {is_new}", reply.value)),
        }
    }

    /// What nobody has open is gone.
    pub(super) fn sets_cleaned(&mut self) {
        let open: Vec<_> = self
            .objects
            .values()
            .filter(|o| matches!(o.life, Life::Held | Life::Leaked))
            .filter_map(|o| match o.kind {
                Kind::Set { name, file } => Some((name, file)),
                _ => None,
            })
            .collect();
        for (name, set) in &mut self.sets {
            if !open.contains(&(*name, set.newest)) {
                set.newest += 1;
            }
        }
    }
}
