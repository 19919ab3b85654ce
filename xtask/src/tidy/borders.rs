//! Borders inside the core crate.

use super::Finding;
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

fn is_word_char(c: Option<char>) -> bool {
    c.is_some_and(|c| c.is_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "crates/outlive/src/os/map.rs";

    fn unsafe_in(path: &str, text: &str) -> usize {
        unsafe_files(&Tree::of(&[(path, text)])).len()
    }

    fn atomics_in(path: &str, text: &str) -> usize {
        raw_atomics(&Tree::of(&[(path, text)])).len()
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
            assert_eq!(atomics_in("crates/outlive/src/os/map/tests.rs", text), 0, "{text}");
            assert_eq!(atomics_in("verify/testkit/src/a.rs", text), 0, "{text}");
            assert_eq!(atomics_in(FILE, &format!("#[cfg(test)]\nmod tests {{\n{text}\n}}")), 0);
        }
        assert_eq!(atomics_in(FILE, "use crate::sync::AtomicU64; fn atomic_u64() {}"), 0);
    }
}
