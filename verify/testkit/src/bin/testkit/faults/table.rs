//! The table of faults and layers in docs/internals/faults.md, and the sum of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::all::all;
use super::check::{Check, Fault};

const BEGIN: &str = "<!-- faults: begin, written by testkit's `faults --write` -->";
const END: &str = "<!-- faults: end -->";
const LAYERS: [&str; 6] = ["loom", "unit test", "kill sweep", "garbage", "processes", "histories"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> PathBuf {
    repository().join("docs/internals/faults.md")
}

/// The faults that the loom models plant, from their sources: `caught("name"`.
pub(crate) fn models() -> Result<BTreeSet<String>, String> {
    let dir = repository().join("crates/outlive/tests/loom");
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?.flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        for (at, _) in text.match_indices("caught(\"") {
            let not = text[..at].ends_with("not_");
            let name = text[at..].split('"').nth(1).unwrap_or_default();
            if !not && !name.is_empty() {
                names.insert(name.to_owned());
            }
        }
    }
    if names.is_empty() { Err("the loom models plant no fault".into()) } else { Ok(names) }
}

/// Which layers catch which fault.
fn cells(models: &BTreeSet<String>) -> BTreeMap<&str, BTreeSet<&'static str>> {
    let mut cells: BTreeMap<&str, BTreeSet<&'static str>> = BTreeMap::new();
    for name in models {
        cells.entry(name).or_default().insert("loom");
    }
    for fault in all() {
        let layers = fault.caught_by.iter().map(|check| check.layer());
        cells.entry(fault.name).or_default().extend(layers);
    }
    cells
}

fn render(models: &BTreeSet<String>) -> String {
    let mut text = format!("| fault | what it does | {} |\n", LAYERS.join(" | "));
    text += &format!("|---|---|{}\n", "---|".repeat(LAYERS.len()));
    for (name, layers) in cells(models) {
        let known = all().find(|fault| fault.name == name);
        let what = known.map_or_else(|| in_words(name), |fault| fault.what.to_owned());
        text += &format!("| `{name}` | {what} |");
        for layer in LAYERS {
            text += if layers.contains(layer) { " x |" } else { " |" };
        }
        text.push('\n');
    }
    text
}

/// What the name of a model's fault says.
fn in_words(name: &str) -> String {
    match name.rsplit_once('.') {
        Some((at, "relaxed")) => format!("an ordering relaxed: {at}"),
        Some((at, "no_fence" | "no_barrier")) => format!("a fence dropped: {at}"),
        Some((at, what)) => format!("{at}: {}", what.replace('_', " ")),
        None => String::new(),
    }
}

/// The document with the table put in.
fn renewed(models: &BTreeSet<String>) -> Result<(String, String), String> {
    let path = document();
    let old = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let lines = || format!("{} has no lines {BEGIN} and {END}", path.display());
    let (before, rest) = old.split_once(BEGIN).ok_or_else(lines)?;
    let (_, after) = rest.split_once(END).ok_or_else(lines)?;
    let new = format!("{before}{BEGIN}\n{}{END}{after}", render(models));
    Ok((old, new))
}

/// Whether the document holds the table as it would be written.
pub(crate) fn is_current(models: &BTreeSet<String>) -> Result<bool, String> {
    renewed(models).map(|(old, new)| old == new)
}

/// Writes the table into the document.
pub(crate) fn write(models: &BTreeSet<String>) -> Result<(), String> {
    let (old, new) = renewed(models)?;
    if old == new { Ok(()) } else { fs::write(document(), new).map_err(|e| e.to_string()) }
}

/// One line for the log of all tests: faults, and how many each layer that ran was seen to catch.
pub(crate) fn summary(
    models: &BTreeSet<String>,
    with_loom: bool,
    meant: impl Iterator<Item = &'static Fault>,
    takes_part: impl Fn(Check) -> bool,
    wrong: usize,
) -> String {
    let mut layers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut planted: BTreeSet<&str> = BTreeSet::new();
    if with_loom {
        planted.extend(models.iter().map(String::as_str));
        layers.insert("loom", models.len());
    }
    for fault in meant {
        let checks = fault.caught_by.iter().copied().filter(|check| takes_part(*check));
        let seen: BTreeSet<_> = checks.map(Check::layer).collect();
        if !seen.is_empty() {
            planted.insert(fault.name);
        }
        seen.into_iter().for_each(|layer| *layers.entry(layer).or_default() += 1);
    }
    let layers: Vec<_> = layers.iter().map(|(layer, n)| format!("{layer} {n}")).collect();
    let caught = if wrong == 0 { planted.len().to_string() } else { "NOT all".into() };
    format!("faults: {} planted, {caught} caught ({})", planted.len(), layers.join(", "))
}
