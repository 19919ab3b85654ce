//! From one layout to another: a domain whose files say that they are of another one.

mod common;

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use common::*;

/// Where the layout version is in every file: docs/internals/SHM_LAYOUT.md.
const LAYOUT_AT: u64 = 8;

/// What looks at a domain or joins it, at names that are there and at others.
const LOOKS: [&str; 23] = [
    "node list",
    "node info 1",
    "node info nobody",
    "topic list",
    "topic info /n",
    "topic info /other",
    "topic find u64",
    "topic pub /n 7",
    "topic pub /other 7",
    "topic echo /n --timeout 1",
    "topic echo /other --timeout 1",
    "topic hz /n --for 1",
    "topic hz /other --for 1",
    "topic bw /n --for 1",
    "topic delay /n",
    "queue list",
    "queue send /q 7",
    "queue echo /other",
    "service list",
    "service call /other 7",
    "lock list",
    "lock remove /lock",
    "metrics",
];

/// Stores another layout version in every file below `dir` that has one.
fn make_strange(dir: &Path) -> usize {
    let mut changed = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let (path, kind) = (entry.as_ref().unwrap().path(), entry.unwrap().file_type().unwrap());
        if kind.is_dir() {
            changed += make_strange(&path);
        } else if kind.is_file() && fs::metadata(&path).unwrap().len() >= 64 {
            let file = OpenOptions::new().write(true).open(&path).unwrap();
            file.write_all_at(&(outlive::LAYOUT_VERSION + 1).to_ne_bytes(), LAYOUT_AT).unwrap();
            changed += 1;
        }
    }
    changed
}

#[test]
fn a_domain_of_another_layout_is_refused_while_it_lives_and_removed_when_nobody_is_left() {
    let home = Home::new("upgrade");
    let old = home.start("topic pub /n --type u64 --json 7 --linger inf", b"");
    home.await_messages(1);
    let node = outlive::Node::builder().root(home.root()).name("holder").open().unwrap();
    let queue = node.queue::<u64>("/q").unwrap().producer().unwrap();
    let lock = node.mutex::<u64>("/lock").unwrap();
    let strange = make_strange(&home.root());
    assert!(strange > 6, "{strange} files");

    // While its members live, nobody else comes in and nothing of theirs is taken.
    let before = home.listing();
    let refused = home.run("topic pub /n --type u64 --json 7").expect(CORRUPT);
    assert!(refused.err.contains("layout version mismatch"), "{}", refused.err);
    let kept = home.run("clean").expect(DONE);
    assert!(kept.text().contains("2 live nodes left alone"), "{}", kept.text());
    let (theirs, ours) = (outlive::LAYOUT_VERSION + 1, outlive::LAYOUT_VERSION);
    let told = format!("it has layout version {theirs}, this program {ours}: its topics");
    assert!(kept.text().contains(&told), "{}", kept.text());
    // It does not look like a robot on which nothing runs.
    for look in LOOKS {
        let refused = home.run(look).expect(CORRUPT);
        assert!(refused.err.contains(&format!("layout {theirs}")), "{look}: {}", refused.err);
    }
    assert_eq!(home.listing(), before);

    drop((lock, queue, node));
    assert!(home.run("clean").expect(DONE).text().contains("1 live node left alone"));
    old.signal(libc::SIGKILL);
    old.end();
    let cleaned = home.run("clean").expect(DONE);
    assert!(cleaned.text().contains("nobody is left"), "{}", cleaned.text());
    assert!(!home.root().exists(), "{:?}", home.listing());
    let new = home.start("topic pub /n --type u64 --json 7 --linger inf", b"");
    home.await_messages(1);
    new.signal(libc::SIGINT);
    new.end();
}
