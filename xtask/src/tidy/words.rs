//! Words that do not belong in the tree. Spelled in two halves here, so that this file passes.

use super::finding::Finding;
use super::tree::{Source, Tree};

const MACHINE_PATHS: [&str; 3] =
    [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
const MARKS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
const MACROS: [&str; 2] = [concat!("to", "do!("), concat!("unimple", "mented!(")];

/// Whole outputs and help texts of the command.
const PRINTED: &str = "crates/outlive-cli/tests/snapshots/";
const REPORTS: &str = "bench/results/";
/// This file and its tests spell the turns.
const TURNS: &str = "xtask/src/tidy/words";
/// Crates whose public items users read about.
const LIBRARIES: [&str; 6] =
    ["outlive", "outlive-c", "outlive-derive", "outlive-gpu", "outlive-record", "outlive-run"];
/// The headers that `outlive.h` is not: most are written by hand.
const HEADERS: &str = "crates/outlive-c/include/outlive/";
/// What clap derives options and help for.
const CLAP: [&str; 4] = ["Args", "Parser", "Subcommand", "ValueEnum"];
/// In small letters.
const TRANSLATED: [(&str, &str); 30] = [
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
    ("stands in the", "'is in' or 'is written in'"),
    ("stand in the", "'be in' or 'are written in'"),
    ("stands in a", "'is in' or 'is written in'"),
    ("stands in its", "'is in' or 'is written in'"),
    ("stands nowhere", "'is not recorded'"),
    ("stands there", "'is there' or 'is written there'"),
    ("as it stands", "'as it is', 'unchanged'"),
    ("is to stand", "'is written', 'goes'"),
    ("are to stand", "'are written', 'go'"),
    ("where there is none", "'if there is none'"),
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
/// command and scripts print, in programs' help, and in the documentation of libraries, in each
/// language; reports of measurements stay as they were written.
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
    let spelled_here = |f: &Source| f.path.starts_with(TURNS);
    let is_source = |f: &Source| QUOTING.iter().any(|end| f.path.ends_with(end));
    for file in tree.files.iter().filter(|f| is_source(f) && !spelled_here(f)) {
        let (mut codes, mut before) = (file.code.lines(), "");
        // Those are read by `translated`.
        let longer: Vec<_> = python_texts(file).into_iter().map(|(i, _)| i).collect();
        for (i, line) in file.text.lines().enumerate().filter(|(i, _)| !longer.contains(i)) {
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
    let header = path.ends_with(".hpp") || path.starts_with(HEADERS) && path.ends_with(".h");
    if page || header || path.ends_with(".pyi") {
        return file.text.lines().enumerate().collect();
    }
    if !file.is_rust() {
        return [python_texts(file), echoed(file)].concat();
    }
    let of_crate = path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"));
    match of_crate {
        Some((krate, part)) if LIBRARIES.contains(&krate) => {
            let room = part.strip_suffix("/mod.rs").is_some_and(|room| !room.contains('/'));
            public_docs(&file.text, part == "lib.rs" || room)
        }
        // What Python sees is public without the word.
        Some(("outlive-py", _)) => {
            let is_doc = |(_, line): &(usize, &str)| line.trim_start().starts_with("///");
            file.text.lines().enumerate().filter(is_doc).collect()
        }
        _ => help_texts(&file.text),
    }
}

/// The comments `///` that clap prints.
fn help_texts(text: &str) -> Vec<(usize, &str)> {
    let (mut found, mut block, mut inside) = (Vec::new(), Vec::new(), false);
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("///") {
            block.push((i, line));
            continue;
        }
        let derives = line.starts_with("#[derive(") && CLAP.iter().any(|name| has_word(line, name));
        inside |= derives;
        match inside {
            true => found.append(&mut block),
            false if line.starts_with("#[") => {}
            false => block.clear(),
        }
        let is_whole = line.ends_with(';') && !line.starts_with([' ', '#', '/']);
        inside &= line != "}" && !is_whole;
    }
    found
}

/// The lines of Python's texts in three quotes.
fn python_texts(file: &Source) -> Vec<(usize, &str)> {
    let (mut found, mut inside) = (Vec::new(), false);
    if file.path.ends_with(".py") || is_run_by(file, &["python3"]) {
        for (i, line) in file.text.lines().enumerate() {
            let quotes = line.matches("\"\"\"").count();
            if inside || quotes > 0 {
                found.push((i, line));
            }
            inside ^= quotes % 2 == 1;
        }
    }
    found
}

/// The lines of a shell script or the Makefile that print something.
fn echoed(file: &Source) -> Vec<(usize, &str)> {
    let (mut found, mut goes_on) = (Vec::new(), false);
    if file.path == "Makefile" || is_run_by(file, &["bash", "sh"]) {
        for (i, line) in file.text.lines().enumerate() {
            let prints = ["echo", "printf"].iter().any(|word| has_word(line, word));
            if goes_on || prints && !line.trim_start().starts_with('#') {
                found.push((i, line));
                goes_on = line.ends_with('\\');
            }
        }
    }
    found
}

/// Whether the first line of `file` names one of these `programs` to run it.
fn is_run_by(file: &Source, programs: &[&str]) -> bool {
    let first = file.text.lines().next().unwrap_or_default();
    first.starts_with("#!") && programs.iter().any(|program| has_word(first, program))
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
mod tests;
