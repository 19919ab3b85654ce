//! The walk of one message names functions that exist, and in each way a file once.

use super::finding::Finding;
use super::tree::{Source, Tree};
use super::words::has_word;

const PAGE: &str = "docs/internals/one-message.md";
const CORE: &str = "crates/outlive/src/";

/// A row `file | functions | what` of the page: the file has each of the functions. Files are
/// relative to the folder in the heading above, `## Publish (topic/)`, or to the core. A table is
/// one way, which goes back to no file that it has left.
pub(super) fn named(tree: &Tree) -> Vec<Finding> {
    let page = tree.files.iter().find(|f| f.path == PAGE);
    let (mut findings, mut folder, mut rows, mut way) = (Vec::new(), "", 0, Vec::new());
    for (i, line) in page.map_or("", |page| &page.text).lines().enumerate() {
        if line.starts_with("## ") {
            folder = spans(line).find(|span| span.ends_with('/')).unwrap_or_default();
        }
        if !line.starts_with('|') {
            way.clear();
        }
        let Some((file, functions)) = row(line) else { continue };
        rows += 1;
        let mut say = |text| findings.push(Finding::new(PAGE, i + 1, text));
        if way.contains(&file) {
            say(format!("{file} is in this way already: one line with all its functions"));
        }
        way.push(file);
        let places = [format!("{CORE}{folder}{file}"), format!("{CORE}{file}")];
        let there = |place: &String| tree.files.iter().find(|f| f.path == *place);
        let Some(source) = places.iter().find_map(there) else {
            say(format!("{file}: no such file in {CORE}{folder} or {CORE}"));
            continue;
        };
        for function in functions.filter(|function| !has(source, function)) {
            say(format!("{} has no function {function}", source.path));
        }
    }
    if rows == 0 {
        findings.push(Finding::new(PAGE, 1, "names no function of any file"));
    }
    findings
}

/// The file of a row, and its functions.
fn row(line: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let mut cells = line.strip_prefix('|')?.split('|');
    let file = spans(cells.next()?).next().filter(|file| file.ends_with(".rs"))?;
    Some((file, spans(cells.next()?)))
}

/// What stands between backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Whether `source` has `name` or, of `Type::name`, both, outside of its tests.
fn has(source: &Source, name: &str) -> bool {
    let (owner, name) = name.rsplit_once("::").unwrap_or(("", name));
    let defines = |line: &str| {
        let rest = line.split_once("fn ").and_then(|(_, rest)| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['(', '<']))
    };
    let mut lines = source.product_code();
    let owned = owner.is_empty() || source.product_code().any(|(_, line)| has_word(line, owner));
    owned && lines.any(|(_, line)| defines(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(page: &str) -> Vec<String> {
        let tail = "impl Tail {\n    pub(crate) fn begin<'a>(&self) {}\n    // fn gone()\n}\n\
                    fn committed() {}\n#[cfg(test)]\nmod tests {\n    fn tested() {}\n}\n";
        let files = [
            (PAGE, page),
            ("crates/outlive/src/queue/lane/tail.rs", tail),
            ("crates/outlive/src/os/clock.rs", "pub fn now() {}\n"),
        ];
        named(&Tree::of(&files)).into_iter().map(|f| format!("{} {}", f.line, f.text)).collect()
    }

    #[test]
    fn functions_that_exist_pass() {
        let page = "## Send (`queue/`, small)\n\n| file | function | does |\n|---|---|---|\n\
                    | `lane/tail.rs` | `Tail::begin`, then `committed` | stores `gone` |\n\
                    | `os/clock.rs` | `now` | |\n";
        assert_eq!(found(page), [""; 0]);
    }

    #[test]
    fn a_wrong_name_is_found_and_so_is_a_wrong_file() {
        for (row, wrong) in [
            ("| `lane/tail.rs` | `begin`, `gone` | |", "gone"),
            ("| `lane/tail.rs` | `commit` | |", "commit"),
            ("| `lane/tail.rs` | `tested` | |", "tested"),
            ("| `lane/tail.rs` | `Head::begin` | |", "Head::begin"),
            ("| `tail.rs` | `begin` | |", "tail.rs"),
            ("| `os/clock.rs` | `begin` | |", "begin"),
        ] {
            let found = found(&format!("## Send (`queue/`)\n{row}\n"));
            assert!(found.len() == 1 && found[0].starts_with("2 "), "{row}: {found:?}");
            assert!(found[0].contains(wrong), "{row}: {found:?}");
        }
    }

    #[test]
    fn a_file_that_comes_again_in_one_way_is_found() {
        let row = "| `lane/tail.rs` | `begin` | |\n";
        let page =
            format!("## Send (`queue/`)\n{row}\nThen:\n\n{row}| `os/clock.rs` | `now` | |\n{row}");
        let found = found(&page);
        assert!(found.len() == 1 && found[0].starts_with("8 "), "{found:?}");
        assert!(found[0].contains("already"), "{found:?}");
    }

    #[test]
    fn a_page_without_rows_is_found() {
        assert_eq!(found("## Send (`queue/`)\n").len(), 1);
        assert_eq!(named(&Tree::of(&[])).len(), 1);
    }
}
