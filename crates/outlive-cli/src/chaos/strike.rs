//! Signals, to the process of a node and to no other.

use std::fs;
use std::os::unix::fs::MetadataExt;

use outlive::Domain;
use outlive_run::Identity;

use crate::look::Node;

/// The process of a node; continued when it is dropped, so that nobody stays stopped.
#[derive(Debug)]
pub(super) struct Target {
    identity: Identity,
    stopped: std::cell::Cell<bool>,
}

impl Target {
    /// The process of `node`: what has its pid here and its node's file mapped. Another PID
    /// namespace has other numbers.
    pub(super) fn of(node: &Node, domain: &Domain) -> Result<Self, String> {
        let identity = Identity::of(node.pid as i32)
            .ok_or_else(|| format!("there is no process {} here", node.pid))?;
        let file = domain.dir().join("nodes").join(node.id.to_string());
        let maps = fs::read_to_string(format!("/proc/{}/maps", node.pid))
            .map_err(|e| format!("process {}: {e}", node.pid))?;
        // By inode: the file had no name when it was mapped.
        let inode = fs::metadata(&file).map(|m| m.ino().to_string());
        let inode = inode.map_err(|e| format!("{}: {e}", file.display()))?;
        let mapped = |line: &str| line.split_whitespace().nth(4) == Some(inode.as_str());
        if !maps.lines().any(mapped) || !identity.is_alive() {
            return Err(format!("process {} is not this node: it is left alone", node.pid));
        }
        Ok(Self { identity, stopped: false.into() })
    }

    pub(super) fn kill(&self) {
        self.identity.signal(libc::SIGKILL);
    }

    pub(super) fn stop(&self) {
        self.stopped.set(true);
        self.identity.signal(libc::SIGSTOP);
    }

    pub(super) fn go_on(&self) {
        if self.stopped.replace(false) {
            self.identity.signal(libc::SIGCONT);
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.go_on();
    }
}
