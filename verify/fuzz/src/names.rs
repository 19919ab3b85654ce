//! Names of things, and names of files where things should be.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use outlive::{Domain, Node};

use crate::input::Input;
use crate::world::{Dir, done, settings};

thread_local! {
    static HOME: OnceCell<(Dir, Node)> = const { OnceCell::new() };
}

fn home() -> (Dir, Node) {
    let dir = Dir::new();
    let node = settings(&dir.root(), "names").open().expect("a domain can be made");
    (dir, node)
}

/// A name for everything that has one, or a file with that name.
pub fn run(data: &[u8]) {
    HOME.with(|cell| {
        let (dir, node) = cell.get_or_init(home);
        let mut input = Input(data);
        let way = input.byte() % 4;
        match way {
            0 => strange_file(dir, input.0, input.0.len() % 4),
            _ => name(dir, node, &String::from_utf8_lossy(input.0)),
        }
    });
}

fn name(dir: &Dir, node: &Node, name: &str) {
    done(node.queue::<u64>(name));
    done(node.service::<u64, u64>(name));
    done(settings(&dir.root(), name).domain(name).open());
    let Some(topic) = done(node.topic::<u64>(name)) else { return };
    let Some(publisher) = done(topic.publisher()) else { return };
    let domain = Domain::of(&settings(&dir.root(), "look")).expect("it exists");
    let found = done(domain.find_topic(name)).flatten().expect("it has a publisher");
    assert_eq!(found.name, publisher.topic());
    let listed = done(domain.topics()).expect("readable");
    assert!(listed.iter().any(|t| t.name == found.name), "{name:?} is not listed");
    drop(publisher);
    done(domain.clean());
}

fn strange_file(dir: &Dir, name: &[u8], place: usize) {
    let name: Vec<u8> = name.iter().copied().filter(|b| !matches!(b, 0 | b'/')).collect();
    if name.is_empty() || name == b"." || name == b".." {
        return;
    }
    let folder = ["topics", "queues", "locks", "nodes"][place];
    let path = dir.root().join("default").join(folder).join(OsStr::from_bytes(&name));
    let made = match name.len() % 2 {
        0 => fs::create_dir(&path),
        _ => fs::write(&path, b"x"),
    };
    let settings = settings(&dir.root(), "look");
    let domain = Domain::of(&settings).expect("it exists");
    done(domain.nodes());
    done(domain.topics());
    done(domain.queues());
    done(domain.locks());
    done(domain.audit());
    done(settings.open());
    done(domain.clean());
    if made.is_ok() {
        let _ = fs::remove_file(&path);
        let _ = fs::remove_dir_all(&path);
    }
}
