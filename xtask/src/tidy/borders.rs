//! Borders inside the core crate.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::tree::Tree;
use super::words::has_word;

const CORE: &str = "crates/outlive/src/";
const ATOMICS_DOOR: &str = "crates/outlive/src/sync.rs";
const ALLOW: &str = "#![allow(unsafe_code)]";

/// A grep for the attribute is the audit list of unsafe code, so it is complete and has no more
/// than it needs: no file inherits it from a parent module, none has it in vain.
pub(super) fn unsafe_files(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.crate_sources().filter(|f| f.path.starts_with(CORE)) {
        let allowed = file.code.contains(ALLOW);
        let used = file.code.lines().position(|line| has_word(line, "unsafe"));
        match (used, allowed) {
            (Some(i), false) => {
                let text = format!("unsafe in a file without {ALLOW} at its top");
                findings.push(Finding::new(&file.path, i + 1, text));
            }
            (None, true) => {
                findings.push(Finding::new(&file.path, 1, format!("{ALLOW} without need")));
            }
            _ => {}
        }
    }
    findings
}

/// Atomics that loom cannot swap for its own escape its models.
pub(super) fn raw_atomics(tree: &Tree) -> Vec<Finding> {
    let is_core = |path: &str| path.starts_with(CORE) && path != ATOMICS_DOOR;
    let mut findings = Vec::new();
    for file in tree.crate_sources().filter(|f| is_core(&f.path)) {
        for (line, code) in file.product_code() {
            let module = code.match_indices("atomic").any(|(at, word)| {
                let path_before = at == 0 || !is_word_char(code[..at].chars().next_back());
                path_before && code[at + word.len()..].starts_with("::")
            });
            if module || code.contains("loom::sync") || code.contains("sync::atomic") {
                let text = "atomics come from crate::sync, so that loom can model them";
                findings.push(Finding::new(&file.path, line, text));
            }
        }
    }
    findings
}

/// Rooms of the core from the ground up: each may import from those of the rows before its own.
const ROOMS: [&[&str]; 9] = [
    &["sync", "crash"],
    &["error"],
    &["os"],
    &["domain"],
    &["types"],
    &["node"],
    &["wait"],
    &["topic", "queue", "lock", "rt"],
    &["service"],
];
/// These see all rooms.
const ABOVE_ROOMS: [&str; 2] = ["admin", "lib"];
/// What is imported from the root of the crate, by everybody.
const ROOT: [&str; 4] = ["Error", "ErrorKind", "Result", "crash_point"];

/// A room that imports from above itself has no ground: what is used by both belongs below both.
pub(super) fn rooms(tree: &Tree) -> Vec<Finding> {
    let row = |room: &str| ROOMS.iter().position(|row| row.contains(&room));
    let mut findings = Vec::new();
    for file in tree.crate_sources().filter(|f| f.path.starts_with(CORE)) {
        let inside = &file.path[CORE.len()..];
        let own = inside.split('/').next().unwrap_or_default().trim_end_matches(".rs");
        let Some(level) = row(own).filter(|_| !inside.contains("tests")) else { continue };
        for (line, code) in file.product_code() {
            for name in from_root(code) {
                let text = match row(name) {
                    Some(other) if other < level || name == own => continue,
                    Some(_) => format!("{own} imports from {name}, which is beside or above it"),
                    None if ROOT.contains(&name) => continue,
                    None => format!("{name} is imported from the root: name its home"),
                };
                findings.push(Finding::new(&file.path, line, text));
            }
        }
    }
    findings
}

/// What one look takes in.
const ENTRIES_MAX: usize = 8;

/// A folder has few files and folders: `x.rs` and `x/` are one, `mod.rs` and its tests are not
/// counted. At the top are the rooms and nothing else: what is new has a home in one of them.
pub(super) fn folders(tree: &Tree) -> Vec<Finding> {
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in tree.paths.iter().filter_map(|path| path.strip_prefix(CORE)) {
        let (folder, entry) = path.rsplit_once('/').unwrap_or(("", path));
        let entry = entry.trim_end_matches(".rs");
        if !["mod", "tests"].contains(&entry) {
            folders.entry(folder).or_default().insert(entry);
        }
    }
    let mut findings = Vec::new();
    for entry in folders.remove("").unwrap_or_default() {
        if !ABOVE_ROOMS.contains(&entry) && !ROOMS.iter().any(|row| row.contains(&entry)) {
            let text = "only rooms are at the top (ROOMS): which is the home of this?";
            findings.push(Finding::new(&format!("{CORE}{entry}"), 1, text));
        }
    }
    for (folder, entries) in folders.iter().filter(|(_, entries)| entries.len() > ENTRIES_MAX) {
        let text = format!("{} entries ({ENTRIES_MAX} at most): group them", entries.len());
        findings.push(Finding::new(&format!("{CORE}{folder}"), 1, text));
    }
    findings
}

/// A head says what lives in the folder and where to begin, that of a room also what it may use.
const HEAD_LINES: usize = 2;

/// Each folder's `mod.rs` has a head: comments, documentation or not, above its first code.
pub(super) fn heads(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_head = |path: &str| path.starts_with(CORE) && path.ends_with("/mod.rs");
    for file in tree.files.iter().filter(|f| is_head(&f.path) && !f.is_test_file()) {
        let above = file.text.lines().take_while(|line| line.is_empty() || line.starts_with("//"));
        let lines: Vec<_> =
            above.filter(|line| !line.trim_matches(['/', '!', ' ']).is_empty()).collect();
        let inside = &file.path[CORE.len()..];
        let is_room = inside.matches('/').count() == 1;
        let text = if lines.len() < HEAD_LINES {
            format!(
                "a head of {} lines ({HEAD_LINES} at least): what is here, where to begin",
                lines.len()
            )
        } else if is_room && !lines.iter().any(|line| line.contains("May use")) {
            "its head does not say what it 'May use' (ROOMS)".into()
        } else {
            continue;
        };
        findings.push(Finding::new(&file.path, 1, text));
    }
    findings
}

/// The names behind `crate::` in a line, also those of a list in braces that it opens.
fn from_root(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for (at, found) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        if is_word_char(before) || before == Some('$') {
            continue;
        }
        let rest = &code[at + found.len()..];
        let Some(list) = rest.strip_prefix('{') else {
            names.extend(first_word(rest));
            continue;
        };
        let mut depth = 0;
        for part in list.split_inclusive([',', '{', '}']) {
            if depth == 0 {
                names.extend(first_word(part.trim_start()));
            }
            match part.chars().next_back() {
                Some('{') => depth += 1,
                Some('}') => depth -= 1,
                _ => {}
            }
        }
    }
    names
}

fn first_word(text: &str) -> Option<&str> {
    let end = text.find(|c| !is_word_char(Some(c))).unwrap_or(text.len());
    Some(&text[..end]).filter(|word| !word.is_empty())
}

fn is_word_char(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/outlive/src/os/fs/map.rs";

    fn unsafe_in(path: &str, text: &str) -> usize {
        unsafe_files(&Tree::of(&[(path, text)])).len()
    }

    fn atomics_in(path: &str, text: &str) -> usize {
        raw_atomics(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn a_folder_without_a_head_is_found() {
        let found = |path: &str, text: &str| heads(&Tree::of(&[(path, text)])).len();
        let (room, folder) = ("crates/outlive/src/os/mod.rs", "crates/outlive/src/os/fs/mod.rs");
        assert_eq!(found(folder, "//! Files.\n//! Begin with `file`.\nmod file;"), 0);
        assert_eq!(found(folder, "// Begin with `file`.\n\n//! Files.\n#![x]\nmod file;"), 0);
        assert_eq!(found(folder, "//! Files.\n//!\n\nmod file;\n// Begin here.\n"), 1);
        assert_eq!(found(folder, "mod file;"), 1);
        assert_eq!(found(room, "//! The system.\n//! Begin with `fs`.\n"), 1, "May use what?");
        assert_eq!(found(room, "// May use `sync`.\n//! The system.\n"), 0);
        assert_eq!(found("crates/outlive/src/os/tests/mod.rs", "mod a;"), 0);
        assert_eq!(found("crates/outlive-cli/src/x/mod.rs", "mod a;"), 0);
    }

    #[test]
    fn a_full_folder_is_found_and_so_is_what_is_no_room() {
        let found = |paths: &[&str]| {
            let files: Vec<_> = paths.iter().map(|path| (format!("{CORE}{path}"), "")).collect();
            let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
            let found = folders(&Tree::of(&files)).into_iter();
            found.map(|f| f.path.replace(CORE, "")).collect::<Vec<_>>()
        };
        for folder in ["os/fs/", "topic/tests/"] {
            let names = ["a", "b", "c", "d", "e", "f", "g/x", "h", "i", "mod", "tests", "tests/j"];
            let mut all: Vec<_> = names.iter().map(|name| format!("{folder}{name}.rs")).collect();
            all.push(format!("{folder}a/y.rs"));
            let all: Vec<_> = all.iter().map(String::as_str).collect();
            assert_eq!(found(&all), [folder.trim_end_matches('/')]);
            assert_eq!(found(&all[1..]), [folder.trim_end_matches('/')], "a/ is an entry, too");
            assert_eq!(found(&all[1..all.len() - 1]), [""; 0]);
        }
        assert_eq!(found(&["lib.rs", "sync.rs", "admin/mod.rs", "os/mod.rs"]), [""; 0]);
        assert_eq!(found(&["prelude.rs", "net/mod.rs"]), ["net", "prelude"]);
    }

    #[test]
    fn a_room_may_import_from_below_alone() {
        let found = |path: &str, text: &str| rooms(&Tree::of(&[(path, text)])).len();
        let queue = "crates/outlive/src/queue/lane/tail.rs";
        assert_eq!(found(queue, "use crate::wait::WaitSet;\nuse crate::queue::lane::Ring;"), 0);
        assert_eq!(found(queue, "use crate::{Error, ErrorKind, Result, crash_point};"), 0);
        assert_eq!(found(queue, "use crate::topic::ring::Entry;"), 1, "beside it");
        assert_eq!(found(queue, "fn f(_: crate::service::Reply) {}"), 1, "above it");
        assert_eq!(found(queue, "use crate::{Message, os::{fs, time}, service::Reply};"), 2);
        assert_eq!(found("crates/outlive/src/admin/mod.rs", "use crate::rt::Board;"), 0);
        assert_eq!(found("crates/outlive/src/queue/tests/mod.rs", "use crate::Domain;"), 0);
        let own = "// crate::service\n$crate::Message\n\
                   #[cfg(test)]\nmod tests {\n    use crate::Node;\n}\n";
        assert_eq!(found(queue, own), 0, "comments, macros, tests");
    }

    #[test]
    fn unsafe_without_the_attribute_is_found() {
        assert_eq!(unsafe_in(FILE, "fn f() { unsafe { g() } }"), 1);
        assert_eq!(unsafe_in(FILE, "#![allow(unsafe_code)]\nfn f() { unsafe { g() } }"), 0);
        assert_eq!(unsafe_in(FILE, "// unsafe\nfn f() -> &str { \"unsafe\" }"), 0);
        assert_eq!(unsafe_in("verify/testkit/src/a.rs", "unsafe fn f() {}"), 0);
    }

    #[test]
    fn the_attribute_in_vain_is_found() {
        assert_eq!(unsafe_in(FILE, "#![allow(unsafe_code)]\nfn f() {}"), 1);
        assert_eq!(unsafe_in(FILE, "#![deny(unsafe_code)]\nfn f() {}"), 0);
    }

    #[test]
    fn atomics_past_the_door_are_found() {
        for text in [
            "use std::sync::atomic::AtomicU64;",
            "use core::sync::atomic;",
            "use std::sync::{Arc, atomic::Ordering};",
            "use std::sync::{\n    atomic::Ordering,\n};",
            "use loom::sync::Arc;",
        ] {
            assert_eq!(atomics_in(FILE, text), 1, "{text}");
            assert_eq!(atomics_in(ATOMICS_DOOR, text), 0, "{text}");
            assert_eq!(atomics_in("crates/outlive/src/os/fs/map/tests.rs", text), 0, "{text}");
            assert_eq!(atomics_in("verify/testkit/src/a.rs", text), 0, "{text}");
            assert_eq!(atomics_in(FILE, &format!("#[cfg(test)]\nmod tests {{\n{text}\n}}")), 0);
        }
        assert_eq!(atomics_in(FILE, "use crate::sync::AtomicU64; fn atomic_u64() {}"), 0);
    }
}
