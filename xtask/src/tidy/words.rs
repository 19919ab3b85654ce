//! Words that do not belong in the tree. Spelled in two halves here, so that this file passes.

use super::Finding;
use super::tree::{Source, Tree};

const MACHINE_PATHS: [&str; 3] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const MACROS: [&str; 2] = [concat!("to", "do!("), concat!("unimple", "mented!(")];

/// Whole outputs and help texts of the command.
const PRINTED: &str = "crates/outlive-cli/tests/snapshots/";
const REPORTS: &str = "bench/results/";
/// This file spells the turns.
const TURNS: &str = "xtask/src/tidy/words.rs";
/// Crates whose public items users read about.
const LIBRARIES: [&str; 6] =
    ["outlive", "outlive-c", "outlive-derive", "outlive-gpu", "outlive-record", "outlive-run"];
/// In small letters.
const TRANSLATED: [(&str, &str); 20] = [
    ("so many", "'N', 'this many' or 'up to N'"),
    ("is told", "'is reported' or 'gets an error'"),
    ("are told", "'are reported' or 'get an error'"),
    ("tells of", "'reports'"),
    ("also who", "'anyone who'"),
    ("anew", "'again'"),
    ("at the begin", "'at the start'"),
    ("whoever", "'anyone who', or name who it is"),
    ("in vain", "'without success', or say what failed"),
    ("to be had", "'available'"),
    ("is to be", "'must be'"),
    ("are to be", "'must be'"),
    ("written nowhere", "'not recorded'"),
    ("came in time", "'timed out'"),
    ("or no time", "'or timed out'"),
    ("is there yet", "'exists yet'"),
    ("what is so", "'the state'"),
    ("in whose form", "'format'"),
    ("several times over", "'repeatedly'"),
    ("holds nobody up", "'delays nobody'"),
];
/// What may follow "is no".
const AFTER_NO: [&str; 9] =
    ["longer", "more", "less", "larger", "smaller", "better", "worse", "other", "different"];
const NOT_A: &str = "'is no' denies a thing: write 'is not a valid NAME'";
/// Languages whose texts in quotes are looked at.
const QUOTING: [&str; 6] = [".rs", ".py", ".c", ".cpp", ".h", ".hpp"];

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

/// Turns that no native speaker writes, each with what to write instead. In pages, in what the
/// command prints, and in the documentation of libraries, in each language; reports of measurements
/// stay as they were written.
pub(super) fn translated(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        // The line before, and its end: a turn may begin there.
        let (mut last, mut end) = (0, String::new());
        for (i, line) in read_by_users(file) {
            let lower = line.trim_start_matches(|c: char| c.is_whitespace() || "/*#!".contains(c));
            let lower = lower.to_lowercase();
            let before = if i == last + 1 { end.as_str() } else { "" };
            let both = format!("{before} {lower}");
            let is_here = |turn: &str| has_word(&both, turn) && !has_word(before, turn);
            for (turn, better) in TRANSLATED.iter().filter(|(turn, _)| is_here(turn)) {
                let text = format!("'{turn}': write {better}");
                findings.push(Finding::new(&file.path, i + 1, text));
            }
            if denied(before, &lower).next().is_some() {
                findings.push(Finding::new(&file.path, i + 1, NOT_A));
            }
            let words: Vec<_> = lower.split_whitespace().collect();
            (last, end) = (i, words[words.len().saturating_sub(3)..].join(" "));
        }
    }
    findings
}

/// The same turns, and "X is no NAME", in texts in quotes: what programs print.
pub(super) fn quoted(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let spelled_here = |f: &Source| f.path == TURNS;
    let is_source = |f: &Source| QUOTING.iter().any(|end| f.path.ends_with(end));
    for file in tree.files.iter().filter(|f| is_source(f) && !spelled_here(f)) {
        let (mut codes, mut before) = (file.code.lines(), "");
        for (i, line) in file.text.lines().enumerate() {
            let code = codes.next();
            // A text may go on in the next line, after a backslash.
            let end = before.strip_suffix('\\').unwrap_or_default().trim_end();
            let both = format!("{end} {}", line.trim_start()).to_ascii_lowercase();
            let (start, begin) = (line.len() - line.trim_start().len(), end.len() + 1);
            for (turn, better) in TRANSLATED {
                let here = words_at(&both, turn).filter(|at| at + turn.len() > begin);
                let mut here = here.map(|at| start + at.saturating_sub(begin));
                if here.any(|at| is_quoted(line, at, code)) {
                    let text = format!("'{turn}': write {better}");
                    findings.push(Finding::new(&file.path, i + 1, text));
                }
            }
            if denied(before, line).any(|at| is_quoted(line, at, code)) {
                findings.push(Finding::new(&file.path, i + 1, NOT_A));
            }
            before = line;
        }
    }
    findings
}

/// Whether what is at `at` is inside a text in quotes; `code` has Rust's line without those.
fn is_quoted(line: &str, at: usize, code: Option<&str>) -> bool {
    let before = &line[..at];
    match code {
        _ if before.contains("//") => false,
        Some(code) => code.chars().nth(before.chars().count()).is_none_or(|c| c == ' '),
        None => {
            let is_comment = line.trim_start().starts_with(['#', '*', '/']);
            !is_comment && before.matches('"').count() % 2 == 1
        }
    }
}

/// Where `line`, which follows on `before`, denies that something is an X with "is no X": not
/// "there is no X", "is no longer".
fn denied<'a>(before: &'a str, line: &'a str) -> impl Iterator<Item = usize> + 'a {
    let words: Vec<&str> = line.split_whitespace().collect();
    (0..words.len().saturating_sub(2)).filter_map(move |i| {
        let (is, next) = (last_letters(words[i]), words[i + 2]);
        let subject = match i {
            _ if is != words[i] => "",
            0 => before.split_whitespace().map(last_letters).rfind(|w| !w.is_empty()).unwrap_or(""),
            _ => last_letters(words[i - 1]),
        };
        let next = next.trim_end_matches(|c: char| !c.is_alphanumeric());
        let kept = subject.eq_ignore_ascii_case("there") || AFTER_NO.contains(&next);
        // Parts of one text: the difference of their places.
        let at = words[i].as_ptr() as usize + words[i].len() - is.len() - line.as_ptr() as usize;
        (["is", "are"].contains(&is) && words[i + 1] == "no" && !kept).then_some(at)
    })
}

fn last_letters(word: &str) -> &str {
    word.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or_default()
}

/// The lines of `file` that users read, from 0.
fn read_by_users(file: &Source) -> Vec<(usize, &str)> {
    let path = file.path.as_str();
    let page = path.ends_with(".md") && !path.starts_with(REPORTS) || path.starts_with(PRINTED);
    if page || path.ends_with(".hpp") || path.ends_with(".pyi") {
        return file.text.lines().enumerate().collect();
    }
    let of_crate = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
    match of_crate {
        Some((krate, part)) if LIBRARIES.contains(&krate) && path.ends_with(".rs") => {
            let room = part.strip_suffix("/mod.rs").is_some_and(|room| !room.contains('/'));
            public_docs(&file.text, part == "lib.rs" || room)
        }
        _ => Vec::new(),
    }
}

/// The comments `///` before public items and their variants, and with `module` also `//!`.
fn public_docs(text: &str, module: bool) -> Vec<(usize, &str)> {
    let (mut found, mut block, mut variants) = (Vec::new(), Vec::new(), false);
    for (i, line) in text.lines().enumerate() {
        let start = line.trim_start();
        if start.starts_with("///") {
            block.push((i, line));
        } else if start.starts_with("//!") && module {
            found.push((i, line));
        } else if !start.starts_with("#[") {
            variants = variants && line != "}" || start.starts_with("pub enum ");
            let variant = variants && start.starts_with(|c: char| c.is_ascii_uppercase());
            if start.starts_with("pub ") || variant {
                found.append(&mut block);
            }
            block.clear();
        }
    }
    found
}

/// `word` in `line`, not as a part of a longer word.
pub(super) fn has_word(line: &str, word: &str) -> bool {
    words_at(line, word).next().is_some()
}

/// Where it is.
fn words_at<'a>(line: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let inner = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let (before, after) = (&line[..*at], &line[at + word.len()..]);
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
    fn translated_turns_are_found_where_users_read_them() {
        let found = |path: &str, line: &str| translated(&Tree::of(&[(path, line)])).len();
        let help = "crates/outlive-cli/tests/snapshots/help/x.txt";
        for (turn, better) in TRANSLATED {
            assert_eq!(turn, turn.to_lowercase());
            for path in ["README.md", "docs/book/a.md", "a.hpp", "a.pyi", help] {
                assert_eq!(found(path, &format!("x, {turn}.")), 1, "{turn}");
                assert_eq!(found(path, &turn.to_uppercase()), 1, "{turn}");
                assert_eq!(found(path, &format!("{turn}x")), 0, "{turn}");
            }
            assert_eq!(found("crates/a/src/lib.rs", turn) + found("bench/results/a.md", turn), 0);
            assert!(!better.is_empty());
        }
        assert_eq!(found("docs/a.md", "so many, told anew"), 2);
        assert_eq!(found("docs/a.md", "It is so\nmany of them"), 1);
        assert_eq!(found("docs/a.md", "It is so\n\nmany of them"), 0);
        assert_eq!(found("crates/outlive/src/lib.rs", "/// Is\n/// told.\npub fn x()"), 1);
        let lib = |text: &str| found("crates/outlive/src/lib.rs", text);
        assert_eq!(lib("/// Done anew.\n#[must_use]\npub enum X {\n/// Anew.\nKind,"), 2);
        assert_eq!(lib("enum X {\n/// Anew.\nKind,\n}\npub enum Y {\n}\n/// Anew.\nKind"), 0);
        assert_eq!(lib("//! Anew.\n/// Anew.\nfn x()\n/// Anew.\npub(crate) fn y() // anew"), 1);
        assert_eq!(found("crates/outlive/src/topic/ring.rs", "//! Anew."), 0);
        assert_eq!(found("crates/outlive-cli/src/main.rs", "/// Anew.\npub fn x()"), 0);
    }

    #[test]
    fn translated_turns_are_found_in_quotes() {
        let found = |path: &str, text: &str| quoted(&Tree::of(&[(path, text)])).len();
        for (turn, _) in TRANSLATED {
            for path in ["a.rs", "a.py", "a.hpp"] {
                assert_eq!(found(path, &format!("    f(\"x, {turn}.\")")), 1, "{path}: {turn}");
                assert_eq!(found(path, &format!("f(1) // {turn}")), 0, "{path}: {turn}");
            }
            assert_eq!(found(TURNS, &format!("f(\"{turn}\")")), 0);
        }
        assert_eq!(found("a.rs", "f(\"x is \\\n   to be y\")"), 1);
        assert_eq!(found("a.rs", "// x is \\\n// to be y"), 0);
        assert_eq!(found("a.py", "x = 1  # so many"), 0);
    }

    #[test]
    fn a_message_that_something_is_no_name_is_found() {
        let found = |path: &str, line: &str| quoted(&Tree::of(&[(path, line)])).len();
        let no = "is no";
        for (line, expected) in [
            (format!("f(\"{{x}} {no} name: use /\")"), 1),
            (format!("f(\"x {no} longer here\")"), 0),
            (format!("f(\"there {no} topic {{x}}\")"), 0),
            (format!("f(\"There {no} topic {{x}}\")"), 0),
            (format!("f(\"{no} field\")"), 1),
            (format!("f(1); // \"x {no} name\""), 0),
            (format!("// x {no} name"), 0),
        ] {
            assert_eq!(found("a.rs", &line), expected, "{line}");
            assert_eq!(found("a.hpp", &line), expected, "{line}");
            assert_eq!(found("a.toml", &line), 0);
        }
        assert_eq!(found("a.rs", &format!("f(\"x: \\\n  it {no} name\")")), 1);
        assert_eq!(found("a.rs", &format!("f(\"there \\\n  {no} name\")")), 0);
        assert_eq!(found("a.py", &format!("f(\"a\")  # it {no} name")), 0);
        let page = |text: String| translated(&Tree::of(&[("docs/a.md", &text)])).len();
        assert_eq!(page(format!("Then it {no} topic.")), 1);
        assert_eq!(page(format!("There\n{no} topic.")), 0);
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
