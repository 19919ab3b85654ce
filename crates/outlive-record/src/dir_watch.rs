//! Which topics appeared in a domain, as the kernel tells it.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

/// Where the directories of topics are (docs/internals/SHM_LAYOUT.md).
const TOPICS: &str = "topics";

/// Watches a domain; never waits.
#[derive(Debug)]
pub(crate) struct DirWatch {
    fd: OwnedFd,
    topics: PathBuf,
    /// The watch of the directory of topics; before the first topic there is none.
    of_topics: Option<i32>,
}

impl DirWatch {
    /// `None` where the kernel has no watch left for us.
    pub(crate) fn new(domain: &Path) -> Option<Self> {
        let fd = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        add_watch(&fd, domain, WatchFlags::CREATE | WatchFlags::MOVED_TO).ok()?;
        let mut new = Self { fd, topics: domain.join(TOPICS), of_topics: None };
        new.watch_topics();
        Some(new)
    }

    fn watch_topics(&mut self) {
        let flags = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        if self.of_topics.is_none() {
            self.of_topics = add_watch(&self.fd, &self.topics, flags).ok();
        }
    }

    /// Whether something appeared since the last call, and the names of topics among it.
    pub(crate) fn changed(&mut self) -> (bool, Vec<String>) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        let (mut any, mut names) = (false, Vec::new());
        while let Ok(event) = reader.next() {
            any = true;
            let name = event.file_name().map(|name| name.to_string_lossy().into_owned());
            // Unfinished ones begin with a point.
            let is_topic = Some(event.wd()) == self.of_topics;
            let name = name.filter(|name| is_topic && !name.starts_with('.'));
            names.extend(name.and_then(|name| decoded(&name)));
        }
        self.watch_topics();
        (any, names)
    }
}

/// The topic of a directory; `None` if it is none.
fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    let name = String::from_utf8(bytes).ok()?;
    Some(if name.starts_with('/') { name } else { format!("/{name}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories_become_those_of_topics() {
        assert_eq!(decoded("camera%2Ffront").as_deref(), Some("/camera/front"));
        assert_eq!((decoded("a%2"), decoded("%ff")), (None, None));
    }
}
