//! The `console` blocks of `docs` and of the book: each command prints what its page shows.
//!
//! A page is one shell session, its blocks in order. `...` alone stands for any lines. Numbers
//! that differ from run to run (three digits and more, times, rates) are compared as `#`, runs of
//! blanks as one; the directory is that of user 1000. Lines that begin with `outlive: ` are on
//! standard error, so their order among the others is not compared. After a command in the
//! background, whose own news are not looked at, the next one waits until that has made its topic.

mod common;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::{env, fs};

use common::*;

const BEGIN: &str = "\
exec 2>&1
cd \"$(dirname \"$OUTLIVE_DIR\")\" || exit
topics() { outlive topic list 2>/dev/null | wc -l; }
await_more_than() { while [ \"$(topics)\" -le \"$1\" ]; do sleep 0.02; done; }
";
const ROOT: &str = "/dev/shm/outlive-1000";

/// A command of a page and what follows it there.
#[derive(Debug, Default, PartialEq)]
struct Step {
    line: usize,
    command: String,
    says: Vec<String>,
}

#[test]
fn every_command_of_the_pages_says_what_the_page_says() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut pages: Vec<PathBuf> = [docs.join("book"), docs]
        .iter()
        .flat_map(|folder| fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()))
        .collect();
    pages.sort();
    let (mut commands, mut faults) = (0, Vec::new());
    for page in pages {
        let steps = steps(&fs::read_to_string(&page).unwrap_or_default());
        let said = play(&steps);
        commands += steps.len();
        for (step, said) in steps.iter().zip(&said) {
            let (news, lines): (Vec<_>, Vec<_>) = step.says.iter().partition(|l| is_news(l));
            let (said_news, said_lines): (Vec<_>, Vec<_>) = said.iter().partition(|l| is_news(l));
            if !(agree(&news, &said_news) && agree(&lines, &said_lines)) {
                let name = page.file_name().unwrap().display();
                let Step { line, command, says } = step;
                let (says, said) = (says.join("\n  "), said.join("\n  "));
                faults.push(format!("{name}:{line}: $ {command}\n  {says}\nbut:\n  {said}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(commands > 20, "the pages have console blocks");
}

/// On standard error, told from standard output by how it begins.
fn is_news(line: &str) -> bool {
    line.starts_with("outlive: ")
}

/// The commands of the `console` blocks of a page.
fn steps(page: &str) -> Vec<Step> {
    let (mut steps, mut inside): (Vec<Step>, bool) = (Vec::new(), false);
    for (i, text) in page.lines().enumerate() {
        if let Some(tag) = text.strip_prefix("```") {
            inside = tag == "console";
        } else if let (true, Some(command)) = (inside, text.strip_prefix("$ ")) {
            steps.push(Step { line: i + 1, command: command.into(), says: Vec::new() });
        } else if let (true, Some(last)) = (inside, steps.last_mut()) {
            match text.strip_prefix("> ") {
                Some(more) => last.command += &format!("\n{more}"),
                None => last.says.push(text.into()),
            }
        }
    }
    steps
}

/// What each command said, line by line.
fn play(steps: &[Step]) -> Vec<Vec<String>> {
    if steps.is_empty() {
        return Vec::new();
    }
    let home = Home::new("book");
    let mut script = String::from(BEGIN);
    for step in steps {
        let (before, command, wait) = match step.command.strip_suffix('&') {
            Some(command) => {
                ("before=$(topics)", format!("{command} 2>/dev/null &"), "await_more_than $before")
            }
            None => ("", step.command.clone(), ""),
        };
        script += &format!("{before}\n{command}\nstatus=$?\n{wait}\necho; echo @@@\n");
        script += "(exit $status)\n";
    }
    script += "kill $(jobs -p) 2>/dev/null; wait";
    let bin = Path::new(env!("CARGO_BIN_EXE_outlive")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), env::var("PATH").unwrap_or_default());
    let mut bash = testkit::spawn::spawn_program("bash");
    bash.args(["-c", &script]).env("PATH", path).env("OUTLIVE_DIR", home.root());
    let out = bash.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).replace(&*home.root().to_string_lossy(), ROOT);
    let parts = text.split("\n@@@\n").map(|part| {
        // The shell's own word on a job that was killed, which an interactive one words otherwise.
        let own = |line: &&str| {
            !line.is_empty() && !line.starts_with("bash: line ") && !line.contains(" Killed ")
        };
        part.lines().filter(own).map(String::from).collect()
    });
    parts.collect()
}

/// Whether `said` is what the page says, up to what `...` stands for.
fn agree(page: &[&String], said: &[&String]) -> bool {
    let Some((first, rest)) = page.split_first() else { return said.is_empty() };
    match first.trim() {
        "" => agree(rest, said),
        "..." => (0..=said.len()).any(|n| agree(rest, &said[n..])),
        _ => said
            .split_first()
            .is_some_and(|(line, more)| normal(first) == normal(line) && agree(rest, more)),
    }
}

/// `line` without what changes from run to run.
fn normal(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace() {
        let unit = ["ns", "us", "ms", "s", "Hz", "s,"].contains(&word);
        if let (true, Some(last)) = (unit, words.last_mut())
            && last.starts_with(|c: char| c.is_ascii_digit() || c == '#')
        {
            *last = "#".into();
            continue;
        }
        let is_time = word.len() == 12 && word.matches(':').count() == 2;
        words.push(if is_time { "#".into() } else { numbers_out(word) });
    }
    words.join(" ")
}

/// `word` with each number of three digits or more as `#`.
fn numbers_out(word: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(from.len());
        let (number, after) = from.split_at(end);
        out += before;
        let digits = number.chars().filter(char::is_ascii_digit).count();
        out += if digits >= 3 { "#" } else { number };
        rest = after;
    }
    out + rest
}

#[test]
fn pages_are_read_and_compared_as_said() {
    let page = "x\n```console\n$ a \\\n> b\nout 1\n\n$ c\n```\n```sh\n$ no\n```\n";
    let says = vec!["out 1".into(), String::new()];
    let a = Step { line: 3, command: "a \\\nb".into(), says };
    let c = Step { line: 7, command: "c".into(), says: vec![] };
    assert_eq!(steps(page), [a, c]);

    let lines = |text: &str| text.lines().map(String::from).collect::<Vec<_>>();
    for (page, said, same) in [
        ("a\nb", "a\nb", true),
        ("a\nb", "a", false),
        ("a", "a\nb", false),
        ("", "a", false),
        ("a\n...\nz", "a\nz", true),
        ("a\n...\nz", "a\nb\nc\nz", true),
        ("...", "anything", true),
        ("n 7   alive 0.4 s", "n 7 alive 12 s", true),
        ("n 7 alive 0.4 s", "n 7 alive 12.5 ms", true),
        ("n 7 alive", "n 8 alive", false),
        ("pid 24878", "pid 312", true),
        ("@1.2 #27 14:03:05.123", "@1.2 #27 07:59:00.000", true),
        ("took 11481.444567 s", "took 9.1 s", true),
    ] {
        let (page, said) = (lines(page), lines(said));
        assert_eq!(agree(&page.iter().collect::<Vec<_>>(), &said.iter().collect::<Vec<_>>()), same);
    }
}
