//! What those do alike who join a topic or a queue, or open a lock.

use std::path::Path;

use super::name::TopicName;
use crate::os::fs::file::Dir;
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;
use crate::sync::fault;
use crate::{Error, ErrorKind, Result};

/// Between two tries.
const PAUSE_NS: u64 = 50_000;

/// Held while a member joins; frees the directory for removal when dropped.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) _dir: Dir,
}

/// Tries to join or open `object` until it is `deadline`; `attempt` answers `None` where another
/// try may succeed.
///
/// # Errors
/// `Timeout`; those of `attempt`.
pub(crate) fn join_until<J>(
    what: &str,
    object: &TopicName,
    deadline: Deadline,
    attempt: impl Fn() -> Result<Option<J>>,
) -> Result<J> {
    loop {
        if let Some(joined) = attempt()? {
            return Ok(joined);
        }
        if deadline.has_passed() {
            let remedy = "a stopped process that opens or cleans it holds it: continue or end it";
            return Err(Error::new(ErrorKind::Timeout, what, object.as_str(), remedy));
        }
        // Whoever is in the way may need this core.
        sched::sleep_until(deadline.min(Deadline::in_ns(PAUSE_NS)));
    }
}

/// Reads what all members agree on, or makes it if nobody has yet; somebody may make or remove it
/// meanwhile.
///
/// # Errors
/// Those of both; `NotFound` where it is removed each time.
///
/// # Crash safety
/// **Strict.** As `create`.
pub(crate) fn read_or_create<M>(
    read: impl Fn() -> Result<M>,
    create: impl Fn() -> Result<()>,
) -> Result<M> {
    for _ in 0..3 {
        match read() {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            done => return done,
        }
        match create() {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    read()
}

/// What comes before the first member and goes after the last: beside members it is not made anew,
/// since they would have another. `has_members` is asked where it is missing.
///
/// # Errors
/// `Corrupt` where it was removed; those of `has_members`.
pub(crate) fn must_not_be_missing(
    joining: &str,
    path: &Path,
    has_members: impl FnOnce() -> Result<bool>,
) -> Result<()> {
    let missing = || path.symlink_metadata().is_err();
    // Looked at again: a quicker joiner may have made both between the two looks.
    if missing() && !fault("join.remade") && has_members()? && missing() {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!("joining {joining} by"),
            path.display().to_string(),
            format!(
                "somebody removed it: stop the members of the {joining} and run 'outlive clean'"
            ),
        ));
    }
    Ok(())
}
