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
fn translated_turns_are_found_in_the_help_of_programs() {
    let found = |text: &str| translated(&Tree::of(&[("bench/src/main.rs", text)])).len();
    let options = "/// Anew.\n#[derive(Debug, Parser)]\n#[command(about)]\nstruct X {\n    \
                   /// So many\n    /// anew.\n    #[arg(long)]\n    count: u32,\n}\n";
    assert_eq!(found(options), 3);
    assert_eq!(found(&format!("{options}/// Anew.\nfn x() {{\n    /// Anew.\n}}")), 3);
    assert_eq!(found("#[derive(Args)]\nstruct None;\n/// Anew.\nfn x() {}"), 0);
    assert_eq!(found("/// Anew.\n#[derive(Debug)]\nstruct Options {\n    /// Anew.\n}"), 0);
    assert_eq!(found("#[derive(Clone, ValueEnum)]\nenum X {\n    /// Anew.\n    Kind,\n}"), 1);
}

#[test]
fn translated_turns_are_found_in_headers_for_c_and_docs_for_python() {
    let found = |path: &str, line: &str| translated(&Tree::of(&[(path, line)])).len();
    assert_eq!(found("crates/outlive-c/include/outlive/msg.h", "/* anew */"), 1);
    // Made from the crate's own documentation, where it is found.
    assert_eq!(found("crates/outlive-c/include/outlive.h", "/* anew */"), 0);
    assert_eq!(found("crates/outlive-py/src/lib.rs", "/// Anew.\nfn x() {} // anew"), 1);
}

#[test]
fn translated_turns_are_found_in_texts_of_python_that_have_several_lines() {
    let found = |path: &str, text: &str| {
        let tree = Tree::of(&[(path, text)]);
        translated(&tree).len() + quoted(&tree).len()
    };
    let text = "def x():\n    \"\"\"Done.\n\n    Sent so\n    many times, anew.\n    \"\"\"\n\
                # anew";
    assert_eq!(found("a.py", text), 2);
    assert_eq!(found("scripts/a", &format!("#!/usr/bin/env python3\n{text}")), 2);
    assert_eq!(found("scripts/a", text), 0);
    assert_eq!(found("a.py", "\"\"\"Done anew.\"\"\"\nanew = 1\nf(\"anew\")"), 2);
}

#[test]
fn translated_turns_are_found_in_what_scripts_print() {
    let found = |path: &str, text: &str| translated(&Tree::of(&[(path, text)])).len();
    let script = "# anew\necho 'done anew' \\\n    'so many'\nanew=1\nprintf 'anew %s' x\n\
                  # echo anew\n";
    assert_eq!(found("Makefile", script), 3);
    assert_eq!(found("scripts/a", &format!("#!/usr/bin/env bash\n{script}")), 3);
    assert_eq!(found("scripts/a", &format!("#!/bin/sh\n{script}")), 3);
    assert_eq!(found("scripts/a.txt", script), 0);
}

#[test]
fn stands_is_found_where_it_means_is_written_only() {
    let found = |line: &str| translated(&Tree::of(&[("docs/a.md", line)])).len();
    assert_eq!(found("The name stands in the header, its length stands nowhere."), 2);
    assert_eq!(found("Ids stand in the file as it stands."), 2);
    assert_eq!(found("It stands in for the server; `*` stands for one part; it stands still."), 0);
    assert_eq!(found("A stand-in the bridge made. Each unlink stands alone."), 0);
}

#[test]
fn translated_turns_are_found_in_quotes() {
    let found = |path: &str, text: &str| quoted(&Tree::of(&[(path, text)])).len();
    for (turn, _) in TRANSLATED {
        for path in ["a.rs", "a.py", "a.hpp"] {
            assert_eq!(found(path, &format!("    f(\"x, {turn}.\")")), 1, "{path}: {turn}");
            assert_eq!(found(path, &format!("f(1) // {turn}")), 0, "{path}: {turn}");
        }
        assert_eq!(found(&format!("{TURNS}.rs"), &format!("f(\"{turn}\")")), 0);
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
