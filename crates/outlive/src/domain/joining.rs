//! What members of a topic and of a queue do alike when they join.

use super::name::TopicName;
use crate::os::fs::file::Dir;
use crate::os::process::sched;
use crate::os::time::deadline::Deadline;
use crate::{Error, ErrorKind, Result};

/// Between two tries to join.
const PAUSE_NS: u64 = 50_000;

/// Held while a member joins; frees the directory for removal when dropped.
#[derive(Debug)]
pub(crate) struct Joining {
    pub(crate) _dir: Dir,
}

/// Tries to join `object` until it is `deadline`; `attempt` answers `None` where the next may do.
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
            let remedy =
                "a stopped process that joins or cleans it holds its directory: continue or end it";
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
