//! Each public type, trait and free function of the core shows how it is used.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::tree::{Source, Tree};

const CORE: &str = "crates/outlive/src/";
const KINDS: [&str; 5] = ["struct ", "enum ", "trait ", "union ", "fn "];
/// Before the link to another item's example, for what is got from one call only.
const ELSEWHERE: &str = "Example: [`";

/// An example of its own, or `Example: [`Domain::topics`].` where that one has an example.
pub(super) fn of_types(tree: &Tree) -> Vec<Finding> {
    let core = || tree.files.iter().filter(|f| f.path.starts_with(CORE) && f.is_rust());
    let exported: Vec<_> = core().map(|f| (folder(&f.path), exports(f))).collect();
    let shown: BTreeSet<_> = core()
        .flat_map(items)
        .filter(|item| item.docs.contains("```"))
        .map(|item| item.name)
        .collect();
    let mut findings = Vec::new();
    for file in core().filter(|f| !f.path.contains("tests")) {
        let reachable = |name: &str| {
            let here = |(room, names): &(&str, BTreeSet<&str>)| {
                let names_it = names.contains(name) || names.contains(module(&file.path));
                file.path.starts_with(room) && names_it
            };
            file.path == format!("{CORE}lib.rs") || exported.iter().any(here)
        };
        for item in items(file).filter(|i| i.is_outermost && !i.docs.contains("```")) {
            if !reachable(item.name) || item.is_hidden {
                continue;
            }
            let elsewhere = item.docs.split_once(ELSEWHERE).map(|(_, after)| {
                let path = after.split('`').next().unwrap_or_default();
                path.rsplit("::").next().unwrap_or(path).trim_end_matches("()")
            });
            let text = match elsewhere {
                Some(name) if shown.contains(name) => continue,
                Some(name) => format!("{}: there is no example at {name}", item.name),
                None => format!("{} has no example, nor '{ELSEWHERE}...`]'", item.name),
            };
            findings.push(Finding::new(&file.path, item.line, text));
        }
    }
    findings
}

struct Item<'a> {
    name: &'a str,
    line: usize,
    docs: String,
    is_outermost: bool,
    is_hidden: bool,
}

/// What is `pub` in the file, at any depth, with the documentation above it.
fn items(file: &Source) -> impl Iterator<Item = Item<'_>> {
    let (mut docs, mut is_hidden, mut in_attribute) = (String::new(), false, false);
    let lines = file.text.lines().enumerate();
    lines.filter_map(move |(i, line)| {
        let code = line.trim_start();
        if let Some(said) = code.strip_prefix("///") {
            docs += said;
            docs += "\n";
            return None;
        }
        // Not a part of the documentation, nor its end.
        if code.starts_with("//") {
            return None;
        }
        if in_attribute || code.starts_with("#[") {
            is_hidden |= code.starts_with("#[doc(hidden)]");
            in_attribute = !code.ends_with(']');
            return None;
        }
        let (docs, is_hidden) = (std::mem::take(&mut docs), std::mem::take(&mut is_hidden));
        let rest = code.strip_prefix("pub ")?;
        let rest = rest.strip_prefix("const ").unwrap_or(rest);
        let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
        let rest = rest.strip_prefix("async ").unwrap_or(rest);
        let name = KINDS.iter().find_map(|kind| rest.strip_prefix(kind))?;
        let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
        let is_outermost = code.len() == line.len();
        Some(Item { name: &name[..end], line: i + 1, docs, is_outermost, is_hidden })
    })
}

/// What the file's `pub use` and `pub mod` name, unless hidden.
fn exports(file: &Source) -> BTreeSet<&str> {
    let statements = file.code.split(';').filter(|s| !s.contains("#[doc(hidden)]"));
    let exported = statements.filter_map(|s| {
        s.rsplit_once("pub use ").or_else(|| s.rsplit_once("pub mod ")).map(|(_, names)| names)
    });
    let parts = exported.flat_map(|names| names.split([',', '{', '}']));
    parts.filter_map(|part| part.trim().rsplit("::").next()).collect()
}

/// The name of the module in `a/b.rs` or `a/b/mod.rs`.
fn module(path: &str) -> &str {
    let stem = path.trim_end_matches(".rs").trim_end_matches("/mod");
    &stem[stem.rfind('/').map_or(0, |at| at + 1)..]
}

/// The folder of a module's children: of `a/b.rs` also `a/`.
fn folder(path: &str) -> &str {
    &path[..path.rfind('/').map_or(0, |at| at + 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(docs: &str) -> Vec<String> {
        let room = format!("{docs}pub struct Lane;\nimpl Lane {{\n    pub fn len() {{}}\n}}\n");
        let shown = "/// ```\n/// ```\npub fn shown() {}\nstruct Own;\n";
        let tree = Tree::of(&[
            (
                "crates/outlive/src/lib.rs",
                "mod queue;\npub use queue::{\n    Lane, inside::Other,\n};\n",
            ),
            ("crates/outlive/src/queue/lane.rs", &room),
            ("crates/outlive/src/other.rs", shown),
            ("crates/outlive/src/inside.rs", "/// Not exported.\npub struct Inside;\n"),
        ]);
        of_types(&tree).into_iter().map(|f| format!("{}:{} {}", f.path, f.line, f.text)).collect()
    }

    #[test]
    fn an_exported_type_without_an_example_is_found() {
        let found = found("/// A lane.\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/outlive/src/queue/lane.rs:2 Lane"), "{found:?}");
    }

    #[test]
    fn its_own_example_or_that_of_another_item_will_do() {
        assert_eq!(found("/// ```\n/// let a = 1;\n/// ```\n// Why.\n#[derive(Debug)]\n"), [""; 0]);
        assert_eq!(found("/// A lane. Example: [`other::shown`].\n"), [""; 0]);
        let wrong = found("/// A lane. Example: [`Lane::len`].\n");
        assert!(wrong[0].ends_with("there is no example at len"), "{wrong:?}");
    }
}
