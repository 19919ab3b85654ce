//! Commands of `outlive` that documents name exist, and those that exist are documented.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::Finding;
use super::tree::{Source, Tree};
use super::words::has_word;

const CLI: &str = "crates/outlive-cli/src/";
const PAGE: &str = "docs/book/cli.md";

/// Top commands with their subcommands, as clap's enums have them; hidden ones are none.
type Commands = BTreeMap<String, BTreeSet<String>>;

/// Every `outlive command` in a code span or a shell block is one, and `docs/book/cli.md` has all.
pub(super) fn documented(tree: &Tree) -> Vec<Finding> {
    let commands = commands(tree);
    let mut findings = Vec::new();
    let Some(page) = tree.files.iter().find(|f| f.path == PAGE) else { return findings };
    for (command, subs) in &commands {
        let full = |sub: &String| format!("`outlive {command} {sub}");
        let names: Vec<_> = subs.iter().map(full).collect();
        let whole = if subs.is_empty() { vec![format!("`outlive {command}")] } else { names };
        for name in whole.iter().filter(|name| !page.text.contains(*name)) {
            findings.push(Finding::new(PAGE, 1, format!("{}` is not there", &name)));
        }
    }
    for file in tree.files.iter().filter(|f| f.path.ends_with(".md")) {
        for (line, words) in calls(file) {
            if let Some(text) = unknown(&commands, &words) {
                findings.push(Finding::new(&file.path, line, text));
            }
        }
    }
    findings
}

/// What is wrong with a call of these words, if anything.
fn unknown(commands: &Commands, words: &[&str]) -> Option<String> {
    let command = words.first().filter(|word| is_name(word))?;
    let Some(subs) = commands.get(*command) else {
        return Some(format!("there is no command `outlive {command}`"));
    };
    let sub = words.get(1).filter(|word| is_name(word))?;
    let missing = sub.split('|').find(|sub| !subs.is_empty() && !subs.contains(*sub))?;
    Some(format!("there is no command `outlive {command} {missing}`"))
}

/// A word in small letters: no option, path, variable or placeholder.
fn is_name(word: &str) -> bool {
    !word.is_empty()
        && word.chars().all(|c| c.is_ascii_lowercase() || "-|".contains(c))
        && !word.starts_with('-')
}

/// The words behind each `outlive ` that is called in code spans, with line numbers.
fn calls(file: &Source) -> Vec<(usize, Vec<&str>)> {
    let (mut found, mut shell, mut fenced) = (Vec::new(), false, false);
    for (i, line) in file.text.lines().enumerate() {
        if let Some(tag) = line.trim_start().strip_prefix("```") {
            fenced = !fenced;
            shell = fenced && matches!(tag, "console" | "sh");
        } else if shell {
            let line = line.strip_prefix("$ ").unwrap_or(line);
            found.extend(in_shell(line).map(|words| (i, words)));
        } else if !fenced {
            let spans = line.split('`').skip(1).step_by(2);
            found.extend(spans.filter_map(words).map(|words| (i, words)));
        }
    }
    found.into_iter().map(|(i, words)| (i + 1, words)).collect()
}

/// Calls in a line of a shell: at its beginning or behind a pipe, `;` or `&`, and variables.
fn in_shell(line: &str) -> impl Iterator<Item = Vec<&str>> {
    let code = line.split(" # ").next().unwrap_or_default();
    code.split(['|', ';', '&']).filter_map(words)
}

/// The words behind `outlive`, if that is what `call` calls.
fn words(call: &str) -> Option<Vec<&str>> {
    let mut words = call.split_whitespace().skip_while(|word| word.contains('='));
    (words.next()? == "outlive").then(|| words.collect())
}

/// Reads clap's enums: `Command`, and those that its variants hold.
fn commands(tree: &Tree) -> Commands {
    let mut enums: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for file in tree.files.iter().filter(|f| f.path.starts_with(CLI)) {
        let mut lines = file.code.lines();
        while let Some(line) = lines.next() {
            if !(line.starts_with("#[derive(") && has_word(line, "Subcommand")) {
                continue;
            }
            let head = lines.by_ref().find(|l| l.contains("enum "));
            let name = head.and_then(|l| l.split("enum ").nth(1));
            let name = name.unwrap_or_default().trim_end_matches(" {");
            let (mut variants, mut hidden) = (Vec::new(), false);
            for line in lines.by_ref().map(str::trim).take_while(|l| *l != "}") {
                let variant: String = line.chars().take_while(|c| c.is_alphanumeric()).collect();
                if line.starts_with("#[") {
                    hidden |= line.contains("hide = true");
                } else if !variant.is_empty() {
                    let inner = line.split(['(', ')']).nth(1).unwrap_or_default();
                    let inner = inner.rsplit("::").next().unwrap_or_default();
                    if !std::mem::take(&mut hidden) {
                        variants.push((kebab(&variant), inner.to_owned()));
                    }
                }
            }
            enums.insert(name.to_owned(), variants);
        }
    }
    let names = |of: &str| enums.get(of).into_iter().flatten().map(|(name, _)| name.clone());
    let top = enums.get("Command").into_iter().flatten();
    top.map(|(name, inner)| (name.clone(), names(inner).collect())).collect()
}

fn kebab(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('-');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAIN: &str = "\
#[derive(Debug, Subcommand)]
enum Command {
    /// Topics.
    #[command(subcommand)]
    Topic(topic::TopicCommand),
    Clean(CleanArgs),
    #[command(hide = true)]
    DemoRole(Args),
}
#[derive(Debug, Subcommand)]
pub(crate) enum TopicCommand {
    List(ListArgs),
    EchoAll(Args),
}
";
    const WHOLE: &str = "`outlive topic list [--json]` `outlive topic echo-all` `outlive clean`";

    fn said(page: &str, other: &str) -> Vec<String> {
        let files = [("crates/outlive-cli/src/main.rs", MAIN), (PAGE, page), ("README.md", other)];
        documented(&Tree::of(&files)).into_iter().map(|f| f.text).collect()
    }

    #[test]
    fn what_is_documented_and_exists_passes() {
        for other in [
            "`outlive`, `outlive --help`, `outlive COMMAND --help`, `outlive topic`",
            "`outlive topic list|echo-all`, `outlive clean --json`",
            "```sh\nX=1 outlive topic list | outlive clean # outlive gone\n```",
            "```rust\noutlive gone\n```\noutlive gone",
        ] {
            assert_eq!(said(WHOLE, other), [""; 0], "{other}");
        }
    }

    #[test]
    fn what_does_not_exist_is_found() {
        for other in [
            "`outlive gone`",
            "`outlive topic gone`",
            "`outlive topic list|gone`",
            "`outlive demo-role`",
            "```console\n$ outlive topic list; outlive gone\n```",
            "```sh\nX=1 outlive gone\n```",
        ] {
            assert_eq!(said(WHOLE, other).len(), 1, "{other}");
        }
    }

    #[test]
    fn what_is_not_documented_is_found() {
        assert_eq!(said("`outlive topic list` `outlive clean`", "").len(), 1);
        assert_eq!(said("", "").len(), 3);
    }
}
