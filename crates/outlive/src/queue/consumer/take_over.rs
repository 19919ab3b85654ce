//! Becoming the consumer of a queue: its lock is free once the one before has left or is dead.

use crate::os::death::robust;
use crate::os::process::sched;
use crate::os::time::clock;
use crate::os::time::deadline::Deadline;
use crate::queue::membership::Queue;
use crate::queue::membership::table::Table;
use crate::sync::Ordering::Acquire;
use crate::sync::fault;
use crate::{Error, ErrorKind, Result};

/// How long a new consumer waits for one that is just leaving, ns.
const LEAVING_NS_MAX: u64 = 100_000_000;
/// How long a new consumer waits for the last traces of a dead one, ns.
const DYING_NS_MAX: u64 = 10_000_000_000;

/// Opens `consumer` and takes its lock.
///
/// # Errors
/// `ConsumerExists` while another one lives or dies; why that one cannot be looked at.
pub(super) fn lock_table(queue: &Queue) -> Result<Table> {
    let domain = queue.node.domain();
    let start = clock::now_ns();
    let mut pause_ns = 50_000;
    loop {
        let table = Table::open(&queue.dir, domain, true)?;
        if table.try_lock()? {
            return Ok(table);
        }
        // Held: by one that lives, or one whose death the file lock has not seen yet.
        let owner = table.owner();
        let (peer, unseen) = match owner.node().map(|node| queue.node.peer(node)).transpose() {
            Ok(peer) => (peer, None),
            // Its file is gone, and so is it.
            Err(e) if e.kind() == ErrorKind::NotFound => (None, None),
            Err(e) => (None, Some(e)),
        };
        let lives = peer.as_ref().is_some_and(|peer| peer.hint().is_alive());
        let dies = peer.as_ref().is_some_and(|p| robust::has_died(p.token().load(Acquire)));
        let now = clock::now_ns();
        let until = start + if dies { DYING_NS_MAX } else { LEAVING_NS_MAX };
        if lives || now >= until {
            let unseen = unseen.filter(|_| !fault("take_over.unseen_lives"));
            return Err(unseen.unwrap_or_else(|| exists(queue, peer.map(|p| p.id().get()))));
        }
        sched::sleep_until(Deadline::at_ns(now + pause_ns));
        pause_ns = (pause_ns * 2).min(2_000_000);
    }
}

#[cold]
fn exists(queue: &Queue, node: Option<u64>) -> Error {
    let who = node.map_or_else(|| "another process".into(), |n| format!("node {n}"));
    Error::new(
        ErrorKind::ConsumerExists,
        "consuming queue",
        queue.name.as_str(),
        format!("{who} consumes it: end that one first, or use another queue"),
    )
}
