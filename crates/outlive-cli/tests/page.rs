//! The tables of options in `docs/book/cli.md`, made from `--help`.
//!
//! ```sh
//! UPDATE_EXPECT=1 cargo test -p outlive-cli --test page
//! ```

mod common;

use std::fs;
use std::path::Path;

use common::*;

const BEGIN: &str = "<!-- options: ";
const END: &str = "<!-- end -->\n";

/// Options that every command has, which the page describes once.
const EVERYWHERE: [&str; 3] = ["--help", "--domain", "--root"];

#[test]
fn the_tables_of_options_are_those_of_help() {
    let home = Home::new("page");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/cli.md");
    let page = fs::read_to_string(&path).unwrap();
    let (mut made, mut rest, mut tables) = (String::new(), page.as_str(), 0);
    while let Some((before, from)) = rest.split_once(BEGIN) {
        let (command, old) = from.split_once(" -->\n").unwrap();
        let (_, after) = old.split_once(END).unwrap();
        let help = home.run(&format!("{command} --help")).expect(DONE);
        made += &format!("{before}{BEGIN}{command} -->\n{}{END}", table(help.text()));
        (rest, tables) = (after, tables + 1);
    }
    made += rest;
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &made).unwrap();
    } else {
        assert!(made == page, "stale: UPDATE_EXPECT=1 cargo test -p outlive-cli --test page");
    }
    assert!(tables > 5, "only {tables} tables");
}

/// Fifteen had none.
#[test]
fn every_command_with_options_has_a_table() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(here.join("../../docs/book/cli.md")).unwrap();
    let mut without = Vec::new();
    for entry in fs::read_dir(here.join("tests/snapshots/help")).unwrap() {
        let path = entry.unwrap().path();
        let command = path.file_stem().unwrap().to_string_lossy().replace('-', " ");
        let table = table(&fs::read_to_string(&path).unwrap());
        // A heading has room for one option. `topic bw` has the table of `topic hz`.
        let rows: Vec<_> = table.lines().skip(2).collect();
        let in_heading = |row: &&&str| {
            let name = row.trim_start_matches("| `").split([' ', '`']).next().unwrap();
            let (head, option) = (format!("## `outlive {command} "), format!("[{name}"));
            page.lines().any(|line| line.starts_with(&head) && line.contains(&option))
        };
        let named = rows.iter().filter(in_heading).count();
        if command != "outlive" && named < rows.len() && !page.contains(&table) {
            without.push(command);
        }
    }
    without.sort();
    assert_eq!(without, [""; 0]);
}

/// A row for each option: its names, and what is said of it in one line.
fn table(help: &str) -> String {
    let mut rows: Vec<(String, String)> = Vec::new();
    for line in help.lines().take_while(|line| *line != "Examples:") {
        let text = line.trim();
        match line.len() - line.trim_start().len() {
            // `  -o, --output <FILE>`, `      --raw`; in short pages what is said follows.
            2..=6 if text.starts_with('-') => {
                let (names, said) = text.split_once("  ").unwrap_or((text, ""));
                rows.push((names.into(), said.trim().into()));
            }
            10 if !text.is_empty() => {
                let Some((_, said)) = rows.last_mut() else { continue };
                *said = format!("{said} {text}").trim().into();
            }
            _ => {}
        }
    }
    rows.retain(|(names, _)| !EVERYWHERE.iter().any(|name| names.contains(name)));
    let cell = |text: &str| text.replace('|', "\\|");
    let row =
        |(names, said): &(String, String)| format!("| `{}` | {} |\n", cell(names), cell(said));
    "| option | |\n|---|---|\n".to_owned() + &rows.iter().map(row).collect::<String>()
}

#[test]
fn help_becomes_rows() {
    let help = "x\n\nOptions:\n      --raw\n          Bytes\n\n          [default: a|b]\n\n  \
        -a, --all\n          All\n  -h, --help\n          Help\nExamples:\n      --no\n";
    let rows = "| `--raw` | Bytes [default: a\\|b] |\n| `-a, --all` | All |\n";
    assert_eq!(table(help), format!("| option | |\n|---|---|\n{rows}"));
    let short = "Options:\n      --every <SECONDS>  Time [default: 0.5]\n";
    assert!(table(short).ends_with("| `--every <SECONDS>` | Time [default: 0.5] |\n"));
}
