//! Services as tools see them.

use std::path::{Path, PathBuf};

use super::wire::site;
use crate::domain::name::named_dirs;
use crate::domain::path::DomainPath;
use crate::node::NodeId;
use crate::os::fs::file;
use crate::queue::admin;
use crate::queue::membership::meta::Meta;
use crate::types::PayloadType;
use crate::{ErrorKind, Result};

/// A service and who is there.
///
/// Example: [`Domain::services`](crate::Domain::services).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Info {
    /// Its name.
    pub name: String,
    /// The type of requests.
    pub request: PayloadType,
    /// The type of responses.
    pub response: PayloadType,
    /// The node of the live server.
    pub server: Option<NodeId>,
    /// Nodes of the live clients.
    pub clients: Vec<NodeId>,
    /// Requests that the server has not received yet.
    pub unread: u64,
    /// Shared memory of all its queues, bytes.
    pub memory_bytes: u64,
}

/// The files in `dir`; none if it is gone.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>> {
    Ok(file::names_in(dir)?.iter().map(|name| dir.join(name)).collect())
}

/// All services by name. Services that are being made or removed are left out.
pub(crate) fn list(domain: &DomainPath) -> Result<Vec<Info>> {
    let mut out = Vec::new();
    for (name, dir) in named_dirs(&domain.services())? {
        let requests = site::requests(domain, &name).dir;
        let looked = admin::info(domain, &name, &requests)
            .and_then(|info| Ok((info, Meta::read(&requests, &domain.access)?)));
        let (info, meta) = match looked {
            Ok(found) => found,
            Err(e) if e.is_absent() => continue,
            Err(e) => return Err(e),
        };
        let Some(answer) = meta.answer.clone() else { continue };
        let (request, response) = site::names(meta.of.name());
        let mut memory_bytes = 0;
        for queue in files_in(&dir)? {
            for file in files_in(&queue)? {
                memory_bytes += file.metadata().map_or(0, |m| m.len());
            }
        }
        let live = info.lanes.iter().filter(|lane| lane.alive && !lane.closed);
        out.push(Info {
            name: info.name,
            request: meta.payload_type(request),
            response: answer.renamed(response),
            server: info.consumer,
            clients: live.map(|lane| lane.producer.node).collect(),
            unread: info.lanes.iter().map(|lane| lane.unread).sum(),
            memory_bytes,
        });
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}

/// Removes what no live member needs; returns files and whole services.
pub(crate) fn clean(domain: &DomainPath) -> Result<(usize, usize)> {
    let (mut files, mut services, mut strange) = (0, 0, None);
    for (_, dir) in named_dirs(&domain.services())? {
        match site::sweep(domain, &dir) {
            Ok(removed) => files += removed,
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            // Told in the end: what is strange in one place keeps nobody from the others.
            Err(e) => strange = strange.or(Some(e)),
        }
        services += usize::from(file::remove_dir(&dir)?);
    }
    strange.map_or(Ok((files, services)), Err)
}

/// Checks the queues of all services; returns the number of files looked at.
pub(crate) fn check(domain: &DomainPath, faults: &mut Vec<String>) -> Result<usize> {
    let mut files = 0;
    for (_, dir) in named_dirs(&domain.services())? {
        for queue in files_in(&dir)? {
            match admin::check_queue(domain, &queue, faults) {
                Ok(n) => files += n,
                Err(e) if e.kind() == ErrorKind::NotFound => {}
                Err(e) => faults.push(e.into_fault()?),
            }
        }
    }
    Ok(files)
}
