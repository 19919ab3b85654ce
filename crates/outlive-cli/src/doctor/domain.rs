//! Directories, the RAM disk, and what dead processes left.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use outlive::{Domain, ErrorKind};

use super::check::Check;
use crate::options::DomainOptions;
use crate::os_probe as os;
use crate::output::bytes;

/// Below this much room the next large message may be refused.
const ROOM_LOW_BYTES: u64 = 64 << 20;

pub(super) fn checks(options: &DomainOptions) -> Vec<Check> {
    let domain = match options.domain() {
        Ok(domain) => domain,
        Err(e) => {
            let remedy = "give another --root, or set OUTLIVE_DIR";
            return vec![Check::bad("directory", e.to_string(), remedy)];
        }
    };
    let dir = domain.dir();
    let mut all = vec![directory(dir), ram_disk(dir)];
    all.extend(leftovers(&domain));
    all.push(audit(&domain));
    all
}

/// The nearest directory that exists.
fn existing(dir: &Path) -> &Path {
    dir.ancestors().find(|d| d.exists()).unwrap_or(dir)
}

fn directory(dir: &Path) -> Check {
    let Ok(about) = fs::symlink_metadata(dir) else {
        let parent = existing(dir);
        let found = format!("{} is not there yet", dir.display());
        return match os::can_write(parent) {
            true => Check::ok("directory", found),
            false => Check::bad(
                "directory",
                format!("{found}, and {} cannot be written", parent.display()),
                "make it writable for this user, or set OUTLIVE_DIR to a directory that is",
            ),
        };
    };
    let mode = about.permissions().mode() & 0o7777;
    let found = format!("{}, mode {mode:04o}, owner {}", dir.display(), about.uid());
    let ours = about.uid() == os::uid();
    match (about.is_dir(), ours, mode & 0o002 != 0) {
        (true, true, false) => Check::ok("directory", found),
        (true, false, false) if mode & 0o070 == 0o070 => Check::ok("directory", found),
        _ => Check::bad(
            "directory",
            found,
            "it must be this user's, and not world-writable: remove it, or set OUTLIVE_DIR",
        ),
    }
}

fn ram_disk(dir: &Path) -> Check {
    let at = existing(dir);
    let Some(disk) = os::disk(at) else {
        return Check::warn("ram-disk", format!("{} is unknown", at.display()), "see 'df'");
    };
    let found =
        format!("{}: {} of {} free", at.display(), bytes(disk.free_bytes), bytes(disk.total_bytes));
    if !disk.in_memory {
        let remedy = "the kernel writes messages to this disk: use a tmpfs such as /dev/shm";
        return Check::warn("ram-disk", format!("{found}, no RAM disk"), remedy);
    }
    let resize = "'outlive clean', or a larger one: 'mount -o remount,size=2G /dev/shm', \
                  'docker run --shm-size=2g'";
    match disk.free_bytes {
        free if free < 1 << 20 => Check::bad("ram-disk", found, resize),
        free if free < ROOM_LOW_BYTES || free < disk.total_bytes / 10 => {
            Check::warn("ram-disk", found, resize)
        }
        _ => Check::ok("ram-disk", found),
    }
}

/// Nodes that died, topics and queues in which nobody lives.
fn leftovers(domain: &Domain) -> Vec<Check> {
    let look = || -> outlive::Result<_> {
        let nodes = domain.nodes()?;
        let topics = domain.topics()?;
        let alive: Vec<_> = nodes.iter().filter(|n| n.alive).map(|n| n.id).collect();
        let deserted = |t: &&outlive::topic::Info| {
            !t.publishers.iter().any(|p| p.alive && !p.closed)
                && !t.subscribers.iter().any(|s| alive.contains(s))
        };
        let memory = topics.iter().filter(deserted).flat_map(|t| &t.publishers);
        let memory: u64 = memory.map(|p| p.memory_bytes).sum();
        let deserted = topics.iter().filter(deserted).count();
        Ok((nodes.len(), nodes.len() - alive.len(), topics.len(), deserted, memory))
    };
    let (nodes, dead, topics, deserted, memory) = match look() {
        Ok(seen) => seen,
        Err(e) => {
            return vec![Check::bad("leftovers", e.to_string(), "see docs/CRASH_MODEL.md")];
        }
    };
    let remedy = "'outlive clean' removes them; the next member that joins does, too";
    let dead_found = format!("{dead} of {nodes} nodes are dead");
    let topics_found =
        format!("{deserted} of {topics} topics have no live member, {}", bytes(memory));
    vec![
        match dead {
            0 => Check::ok("dead-nodes", format!("{nodes} nodes, all alive")),
            _ => Check::warn("dead-nodes", dead_found, remedy),
        },
        match deserted {
            0 => Check::ok("dead-topics", format!("{topics} topics, all with live members")),
            _ => Check::warn("dead-topics", topics_found, remedy),
        },
    ]
}

fn audit(domain: &Domain) -> Check {
    match domain.audit() {
        Ok(report) if report.faults.is_empty() => {
            Check::ok("audit", format!("{} files are sound", report.files))
        }
        Ok(report) => Check::bad(
            "audit",
            report.faults.join("; "),
            "end the processes that use these files, then 'outlive clean'",
        ),
        Err(e) => {
            let remedy = match e.kind() {
                ErrorKind::OutOfMemory | ErrorKind::Io => "free what is lacking, and ask again",
                _ => "see the directory's permissions",
            };
            Check::bad("audit", e.to_string(), remedy)
        }
    }
}
