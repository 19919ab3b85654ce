//! Options that every subcommand has: which domain, where.

use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs};

use clap::Args;
use outlive::{Deadline, Domain, Node, NodeBuilder};

use crate::exit::{Code, Failure};
use crate::os;

/// Apart from a subcommand's own options.
const HEAD: &str = "Where";

/// Which domain to look at or to join.
#[derive(Args, Clone, Debug)]
pub(crate) struct DomainOptions {
    /// Domain to use; domains do not see each other [default: $OUTLIVE_DOMAIN, else default].
    #[arg(long, global = true, value_name = "NAME", help_heading = HEAD)]
    pub(crate) domain: Option<String>,
    /// Directory of the domains [default: $OUTLIVE_DIR, else /dev/shm/outlive-<uid>].
    #[arg(long, global = true, value_name = "DIR", help_heading = HEAD)]
    pub(crate) root: Option<PathBuf>,
}

impl DomainOptions {
    fn builder(&self) -> NodeBuilder {
        let mut builder = Node::builder();
        if let Some(domain) = &self.domain {
            builder = builder.domain(domain);
        }
        match &self.root {
            Some(root) => builder.root(root),
            None => builder,
        }
    }

    /// The library would name what lies there, which may be anybody's, for removal.
    fn check_root(&self) -> Result<(), Failure> {
        let (root, remedy) = match (&self.root, env::var_os("OUTLIVE_DIR")) {
            (Some(root), _) => (root.clone(), "give another --root"),
            (None, Some(root)) => (root.into(), "set OUTLIVE_DIR to another, or give --root"),
            (None, None) => return Ok(()),
        };
        if fs::metadata(&root).is_ok_and(|of| !of.is_dir()) {
            let message = format!("{} is not a directory: {remedy}", root.display());
            return Err(Failure::new(Code::Usage, message));
        }
        Ok(())
    }

    /// Joins the domain under `name`.
    pub(crate) fn node(&self, name: &str) -> Result<Node, Failure> {
        self.check_root()?;
        Ok(self.builder().name(name).open()?)
    }

    /// The domain as seen from outside; makes nothing.
    pub(crate) fn domain(&self) -> Result<Domain, Failure> {
        self.check_root()?;
        Ok(Domain::of(&self.builder())?)
    }
}

/// Reads a number of seconds for clap: `0`, `2.5`, `inf`.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let wrong = || "write seconds like 2.5, or inf".to_owned();
    let value: f64 = text.parse().map_err(|_| wrong())?;
    match value {
        v if v == f64::INFINITY => Ok(Duration::MAX),
        v => Duration::try_from_secs_f64(v).map_err(|_| wrong()),
    }
}

/// `deadline`, or earlier, to look whether a signal came.
pub(crate) fn slice_of(deadline: Deadline) -> Deadline {
    deadline.min(Deadline::after(Duration::from_nanos(os::SLICE_NS)))
}

/// Sleeps until `deadline`, or until a signal.
pub(crate) fn sleep_until(deadline: Deadline) {
    while !deadline.has_passed() && !os::stop_asked() {
        std::thread::sleep(slice_of(deadline).remaining());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_numbers_that_a_clock_can_count() {
        assert_eq!(seconds("2.5"), Ok(Duration::from_millis(2500)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        assert_eq!(seconds("inf"), Ok(Duration::MAX));
        for wrong in ["", "-1", "nan", "-inf", "1s", "1e300"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
