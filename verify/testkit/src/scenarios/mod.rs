//! What is killed: operations of nodes and topics, each with what its survivors must still see.

pub mod baselines;
pub mod join;
pub mod life;
pub mod locks;
pub mod merged;
pub mod modes;
pub mod queue;
pub mod realtime;
pub mod service;
pub mod topic;
pub mod value;
pub mod waitset;

use std::path::{Path, PathBuf};

use outlive::{Domain, Node, NodeBuilder};

/// Where the domains of a scenario live, below the directory that the sweep gives it.
pub(crate) fn root(dir: &Path) -> PathBuf {
    dir.join("root")
}

pub(crate) fn settings(dir: &Path, name: &str) -> NodeBuilder {
    Node::builder().root(root(dir)).name(name)
}

pub(crate) fn node(dir: &Path, name: &str) -> Result<Node, String> {
    settings(dir, name).open().map_err(text)
}

pub(crate) fn text(error: outlive::Error) -> String {
    error.to_string()
}

/// The audit finds nothing wrong.
pub(crate) fn audit(dir: &Path) -> Result<(), String> {
    let domain = Domain::of(&settings(dir, "audit")).map_err(text)?;
    let report = domain.audit().map_err(text)?;
    if report.faults.is_empty() { Ok(()) } else { Err(report.faults.join("; ")) }
}

/// With all members gone, one `clean` leaves nothing at all.
pub(crate) fn nothing_left(dir: &Path) -> Result<(), String> {
    let domain = Domain::of(&settings(dir, "clean")).map_err(text)?;
    let report = domain.clean().map_err(text)?;
    if root(dir).exists() {
        let left = crate::temp::listing(&root(dir));
        return Err(format!("left after clean: {left:?} ({report:?})"));
    }
    Ok(())
}
