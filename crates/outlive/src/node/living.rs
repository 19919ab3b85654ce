//! Who keeps the type of a topic or queue: its live members, by name, for people.

use std::fmt;

use super::NodeId;
use super::peer::Peer;
use crate::Result;
use crate::domain::path::DomainPath;
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;
use crate::sync::fault;

/// Live members, as an error names them.
#[derive(Debug, Default)]
pub(crate) struct Living {
    all: Vec<String>,
    looks_alive: bool,
}

/// Between two looks at one that dies, ns.
const PAUSE_NS: u64 = 1_000_000;
/// Names of nodes in one error.
const NAMES_MAX: usize = 8;

/// The members that keep another type from being opened, once what has no live member is removed.
/// `reclaim` removes that and answers with the nodes of live members; `None` while somebody else
/// joins or removes.
///
/// # Errors
/// Those of `reclaim`; a lack of what it takes to look at a member, which may be dead.
pub(crate) fn living_members(
    domain: &DomainPath,
    deadline: Deadline,
    mut reclaim: impl FnMut() -> Result<Option<Vec<NodeId>>>,
) -> Result<Living> {
    loop {
        match reclaim()? {
            Some(nodes) => {
                let living = Living::of(domain, nodes)?;
                // Who is dying lets its token go some time before its lock.
                if living.is_empty() || living.looks_alive || deadline.has_passed() {
                    return Ok(living);
                }
            }
            None if deadline.has_passed() => return Ok(Living::default()),
            None => {}
        }
        sched::sleep_until(Deadline::in_ns(PAUSE_NS));
    }
}

impl Living {
    fn of(domain: &DomainPath, mut nodes: Vec<NodeId>) -> Result<Self> {
        nodes.sort();
        nodes.dedup();
        let mut living = Self::default();
        for node in nodes {
            let peer = match Peer::open(&domain.nodes(), node, &domain.access) {
                Err(e) if e.is_lack() && !fault("living.unseen_lives") => return Err(e),
                peer => peer,
            };
            living.looks_alive |= peer.as_ref().map_or(true, |peer| peer.hint().is_alive());
            let name = peer.and_then(|peer| peer.describe()).map(|(_, _, name)| name);
            living.all.push(name.map_or(format!("node {node}"), |n| format!("{n} (node {node})")));
        }
        Ok(living)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

impl fmt::Display for Living {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.all.len().min(NAMES_MAX);
        f.write_str(&self.all[..shown].join(", "))?;
        match self.all.len() - shown {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}
