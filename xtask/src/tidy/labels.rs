//! Names that tie two places together: ordering labels, crash points, the tests that catch faults.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::tree::Tree;

/// Every label of an ordering note stands at two places or more: who is on the other side?
pub(super) fn orderings(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut places: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for file in tree.crate_sources() {
        for (i, line) in file.text.lines().enumerate() {
            for inside in after_each(line, "ORDERING(") {
                let inside = inside.split_once(')').map_or(inside, |(labels, _)| labels);
                for label in inside.split(',').map(str::trim) {
                    if is_label(label) {
                        places.entry(label).or_default().push((&file.path, i + 1));
                    } else {
                        let text =
                            format!("`{label}` is not a valid label: use capitals, digits and _");
                        findings.push(Finding::new(&file.path, i + 1, text));
                    }
                }
            }
        }
    }
    for (label, at) in places {
        if let [(path, line)] = at[..] {
            let text = format!("label {label} has no other end: name it where its partner is");
            findings.push(Finding::new(path, line, text));
        }
    }
    findings
}

/// A crash point's name is a literal and names one place.
pub(super) fn crash_points(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for file in tree.crate_sources() {
        for (i, (code, line)) in file.code.lines().zip(file.text.lines()).enumerate() {
            for rest in after_each(code, "crash_point!(") {
                // The same place in the text, where literals are still there; the two agree
                // character by character.
                let before = code.chars().count() - rest.chars().count();
                let inside: String = line.chars().skip(before).collect();
                let here = format!("{}:{}", file.path, i + 1);
                let mut say = |text| findings.push(Finding::new(&file.path, i + 1, text));
                let literal = inside.strip_prefix('"').and_then(|s| s.split_once('"'));
                match literal {
                    None if inside.starts_with('$') => {} // the macro handing its name on
                    None => say("a crash point needs a literal name on the same line".into()),
                    Some((name, _)) => {
                        if let Some(other) = first.insert(name.into(), here) {
                            say(format!("crash point {name} is already at {other}"));
                        }
                    }
                }
            }
        }
    }
    findings
}

/// A test that a planted fault names exists: `a::b::tests::name` in a file of the room `a` that has
/// `b` in its path. Else nobody notices before the faults run, half an hour later.
pub(super) fn tests_of_faults(tree: &Tree) -> Vec<Finding> {
    const CORE: &str = "crates/outlive/src/";
    let rust = || tree.files.iter().filter(|f| f.is_rust());
    let sources = rust().filter(|f| f.path.starts_with(CORE));
    let tests: BTreeSet<(&str, &str)> = sources
        .flat_map(|f| {
            let names = f.text.lines().filter_map(|line| line.trim().strip_prefix("fn "));
            let path = &f.path[CORE.len()..];
            names.filter_map(move |rest| Some((path, rest.split_once('(')?.0)))
        })
        .collect();
    let exists = |full: &str| {
        let Some((modules, name)) = full.rsplit_once("::") else { return false };
        let modules: Vec<&str> = modules.split("::").filter(|m| *m != "tests").collect();
        let is_of = |path: &str| modules.iter().all(|m| path.split(['/', '.']).any(|p| p == *m));
        tests.iter().any(|(path, found)| *found == name && is_of(path))
    };
    let mut findings = Vec::new();
    for file in rust().filter(|f| f.path.contains("/faults/")) {
        for (at, _) in file.text.match_indices("Unit(") {
            let rest = file.text[at + "Unit(".len()..].trim_start();
            let Some((text, _)) = rest.strip_prefix('"').and_then(|s| s.split_once('"')) else {
                continue;
            };
            let full: String = text.split(['\\', '\n']).map(str::trim_start).collect();
            if !exists(&full) {
                let line = file.text[..at].matches('\n').count() + 1;
                let text = format!("no test {full} is in {CORE}: was it moved?");
                findings.push(Finding::new(&file.path, line, text));
            }
        }
    }
    findings
}

/// What follows each occurrence of `mark` in `line`.
fn after_each<'a>(line: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    line.match_indices(mark).map(|(at, _)| &line[at + mark.len()..])
}

fn is_label(label: &str) -> bool {
    let ok = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    !label.is_empty() && label.chars().all(ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "crates/x/src/a.rs";
    const B: &str = "crates/y/src/b.rs";

    #[test]
    fn a_label_with_one_end_is_found() {
        let both = [(A, "// ORDERING(READY): pairs with b\n"), (B, "// ORDERING(READY, GONE)\n")];
        let found = orderings(&Tree::of(&both));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].line), (B, 1));
        assert!(found[0].text.contains("GONE"));
    }

    #[test]
    fn a_malformed_label_is_found() {
        assert_eq!(orderings(&Tree::of(&[(A, "// ORDERING(ready)\n// ORDERING()\n")])).len(), 2);
    }

    #[test]
    fn labels_outside_the_crates_do_not_count() {
        let tree = Tree::of(&[(A, "// ORDERING(READY)"), ("docs/a.rs", "// ORDERING(READY)")]);
        assert_eq!(orderings(&tree).len(), 1);
    }

    #[test]
    fn a_crash_point_used_twice_is_found() {
        let text = "/// crash_point!(\"p.a\")\ncrash_point!(\"p.a\");\ncrash_point!(\"p.b\");\n";
        assert_eq!(crash_points(&Tree::of(&[(A, text)])), []);
        let found = crash_points(&Tree::of(&[(A, text), (B, "crash_point!(\"p.b\");")]));
        assert_eq!(found.len(), 1);
        assert!(found[0].text.ends_with("crates/x/src/a.rs:3"));
    }

    #[test]
    fn a_crash_point_without_a_literal_is_found_but_the_macro_is_not() {
        let text = "é crash_point!($name)\ncrash_point!(NAME);\nf(\"crash_point!(\");\n";
        assert_eq!(crash_points(&Tree::of(&[(A, text)])).len(), 1);
    }

    #[test]
    fn a_fault_whose_test_was_moved_or_renamed_is_found() {
        let bell = ("crates/outlive/src/domain/bell.rs", "    fn a_bell_rings() {\n");
        let deep = ("crates/outlive/src/topic/tests/age.rs", "fn an_old_one_goes() {\n");
        let good = "Unit(\"domain::bell::tests::a_bell_rings\")\n\
                    Unit(\n  \"topic::tests::\\\n   age::an_old_one_goes\",\n)\n";
        let bad = "x\nUnit(\"domain::asking::tests::a_bell_rings\")\n\
                   Unit(\"topic::tests::age::a_bell_rings\")\n";
        let tree = |text| Tree::of(&[bell, deep, ("verify/kit/faults/list.rs", text)]);
        assert_eq!(tests_of_faults(&tree(good)), []);
        let lines: Vec<_> = tests_of_faults(&tree(bad)).iter().map(|f| f.line).collect();
        assert_eq!(lines, [2, 3]);
    }
}
