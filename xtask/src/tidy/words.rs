//! Words that do not belong in the tree. Spelled in two halves here, so that this file passes.

use super::Finding;
use super::tree::Tree;

const MACHINE_PATHS: [&str; 3] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const MACROS: [&str; 2] = [concat!("to", "do!("), concat!("unimple", "mented!(")];

/// Absolute paths that exist on one machine only.
pub(super) fn machine_paths(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| !f.path.ends_with(".lock")) {
        for (i, line) in file.text.lines().enumerate() {
            for path in MACHINE_PATHS {
                if line.match_indices(path).any(|(at, _)| starts_a_path(&line[..at])) {
                    let text = format!("{path} is a path of one machine");
                    findings.push(Finding::new(&file.path, i + 1, text));
                }
            }
        }
    }
    findings
}

/// False in the middle of a longer path: `src/x`, `../x`, `~/x`, `$HOME/x`, `${dir}/x`, `*/x`.
fn starts_a_path(before: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || "_.-~}*".contains(c);
    !before.chars().next_back().is_some_and(inner)
}

/// Work left for later belongs in an issue, not in the tree.
pub(super) fn unfinished(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| !f.path.ends_with(".md")) {
        let mut say = |i: usize, word: &str| {
            findings.push(Finding::new(&file.path, i + 1, format!("{word} left in the tree")));
        };
        for (i, line) in file.text.lines().enumerate() {
            MARKS.iter().filter(|m| has_word(line, m)).for_each(|m| say(i, m));
        }
        for (i, line) in file.code.lines().enumerate() {
            MACROS.iter().filter(|m| line.contains(*m)).for_each(|m| say(i, m));
        }
    }
    findings
}

/// `word` in `line`, not as a part of a longer word.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    let inner = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + word.len()..]);
        !inner(before.chars().next_back()) && !inner(after.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths_in(line: &str) -> usize {
        machine_paths(&Tree::of(&[("docs/a.md", line)])).len()
    }

    #[test]
    fn machine_paths_are_found_in_any_text() {
        for path in MACHINE_PATHS {
            assert_eq!(paths_in(&format!("{path}x")), 1);
            assert_eq!(paths_in(&format!("see `{path}x`, \"{path}y\"")), 1);
            assert_eq!(paths_in(&format!("file://{path}x")), 1);
            assert_eq!(paths_in(&format!("src{path}x ~{path} ..{path} ${{d}}{path}")), 0);
            assert_eq!(machine_paths(&Tree::of(&[("Cargo.lock", path)])), []);
        }
    }

    #[test]
    fn marks_and_macros_of_unfinished_work_are_found() {
        for mark in MARKS {
            assert_eq!(unfinished(&Tree::of(&[("a.rs", &format!("// {mark}: x"))])).len(), 1);
            assert_eq!(unfinished(&Tree::of(&[("a.sh", &format!("# {mark}"))])).len(), 1);
            assert_eq!(unfinished(&Tree::of(&[("a.rs", &format!("{mark}_LIST"))])), []);
        }
        for name in MACROS {
            assert_eq!(unfinished(&Tree::of(&[("a.rs", &format!("{name})"))])).len(), 1);
            assert_eq!(unfinished(&Tree::of(&[("a.rs", &format!("// {name})"))])), []);
        }
    }
}
