//! `xtask tidy`: rules of the house that rustc, rustfmt and clippy do not know.
//!
//! | rule | says |
//! |---|---|
//! | `sizes` | files <= 800 lines without tests (hint over 400), Rust lines <= 100 columns |
//! | `labels` | an ordering label is at both ends; a crash point's name is unique; the tests |
//! | | that planted faults name exist |
//! | `words` | no paths of one machine, no marks of unfinished work; in pages, in what the |
//! | | command prints and in what libraries document no turns that no native speaker writes |
//! | `borders` | in the core: unsafe only in files that say so, atomics only through `sync.rs`, |
//! | | no room imports from one beside or above it, each folder has at most 8 entries and its |
//! | | `mod.rs` a head |
//! | `circles` | no files of a crate use each other in a circle |
//! | `links` | relative links in Markdown lead somewhere, decisions and pages are listed |
//! | `walk` | one-message.md names functions that its files have, and no file twice in a way |
//! | `commands` | commands of `outlive` that documents name exist, and the other way round |
//! | `examples` | each public type, trait and free function of the core shows its use |

mod borders;
mod circles;
mod commands;
mod examples;
mod finding;
mod imports;
mod labels;
mod links;
mod sizes;
mod tree;
mod walk;
mod words;

use std::path::Path;
use std::process::ExitCode;

use finding::Finding;
use tree::Tree;

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: [Rule; 20] = [
    sizes::long_files,
    sizes::wide_lines,
    labels::orderings,
    labels::crash_points,
    labels::tests_of_faults,
    words::machine_paths,
    words::unfinished,
    words::translated,
    words::quoted,
    borders::unsafe_files,
    borders::raw_atomics,
    borders::rooms,
    borders::folders,
    borders::heads,
    circles::of_files,
    links::relative,
    links::unlisted,
    walk::named,
    commands::documented,
    examples::of_types,
];

/// Reads the tree, applies every rule, prints what they found.
pub(crate) fn run(root: &Path) -> ExitCode {
    let tree = match Tree::read(root) {
        Ok(tree) => tree,
        Err(error) => {
            eprintln!("tidy: cannot read {}: {error}", root.display());
            return ExitCode::from(2);
        }
    };
    let mut findings: Vec<_> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    for f in &findings {
        let kind = if f.hint { "hint: " } else { "" };
        println!("{}:{}: {kind}{}", f.path, f.line, f.text);
    }
    let hints = findings.iter().filter(|f| f.hint).count();
    let errors = findings.len() - hints;
    println!("tidy: {} files, {errors} findings, {hints} hints", tree.files.len());
    if errors == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
