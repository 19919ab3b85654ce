//! Relative links in Markdown.

use super::finding::Finding;
use super::tree::Tree;

/// A link that is neither a web address nor an anchor names a file or folder of the tree.
pub(super) fn relative(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| f.path.ends_with(".md")) {
        let mut fenced = false;
        for (i, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            if fenced {
                continue;
            }
            for target in targets(&without_code(line)) {
                let path = target.split(['#', '?']).next().unwrap_or_default();
                let outside = target.contains("://") || target.starts_with("mailto:");
                let to = resolve(&file.path, path);
                let lives = to.as_ref().is_some_and(|to| to.is_empty() || tree.paths.contains(to));
                if outside || lives && has_part(tree, to.as_deref(), &file.path, &target) {
                    continue;
                }
                findings.push(Finding::new(&file.path, i + 1, format!("dead link: {target}")));
            }
        }
    }
    findings
}

/// Targets of `[text](target)`, `[text](target "title")` and `[name]: target`.
fn targets(line: &str) -> Vec<String> {
    let mut found: Vec<&str> = line
        .match_indices("](")
        .filter_map(|(at, _)| line[at + 2..].split_once(')').map(|(inside, _)| inside))
        .collect();
    if line.starts_with('[') {
        found.extend(line.split_once("]: ").map(|(_, target)| target));
    }
    let bare = |t: &str| t.split_whitespace().next().unwrap_or_default().replace(['<', '>'], "");
    found.into_iter().map(bare).collect()
}

/// The line with its `code spans` taken out.
fn without_code(line: &str) -> String {
    if line.matches('`').count() % 2 == 1 {
        return line.into();
    }
    line.split('`').step_by(2).collect()
}

/// The path of `target`, seen from the folder of `from`; `None` outside the tree.
fn resolve(from: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(from.into());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Whether the page at `to` has the heading behind the `#` of `target`, if there is one.
fn has_part(tree: &Tree, to: Option<&str>, from: &str, target: &str) -> bool {
    let Some((_, part)) = target.split_once('#') else { return true };
    let to = to.unwrap_or(from);
    let page = tree.files.iter().find(|f| f.path == to && to.ends_with(".md"));
    let (mut fenced, mut found) = (false, page.is_none());
    for line in page.into_iter().flat_map(|page| page.text.lines()) {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        found |= !fenced && heading.len() < line.len() && anchor(heading) == part;
    }
    found
}

/// What forges and mdBook make of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Decisions and pages of the book are listed where people look for them.
pub(super) fn unlisted(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, index) in [("docs/adr/", "README.md"), ("docs/", "SUMMARY.md")] {
        let index = format!("{folder}{index}");
        let list = tree.files.iter().find(|f| f.path == index);
        let list = list.map_or("", |f| &f.text);
        for file in tree.files.iter().filter(|f| f.path != index) {
            let name = file.path.strip_prefix(folder).filter(|name| name.ends_with(".md"));
            if name.is_some_and(|name| !list.contains(&format!("({name})"))) {
                findings.push(Finding::new(&file.path, 1, format!("not listed in {index}")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dead(line: &str) -> usize {
        let readme = "# Top\n## It's `this`, a-b\n```\n# no\n```\n";
        let files = [("docs/A.md", line), ("docs/adr/0001-x.md", ""), ("README.md", readme)];
        relative(&Tree::of(&files)).len()
    }

    #[test]
    fn dead_links_are_found() {
        for line in [
            "[x](gone.md)",
            "[x](../docs/gone.md#part)",
            "[x](../../README.md)",
            "[x](/README.md)",
            "[x]: gone.md",
            "![picture](p.png \"title\")",
            "[x](../README.md#no)",
            "[x](../README.md#tops)",
            "[x](#part)",
        ] {
            assert_eq!(dead(line), 1, "{line}");
        }
    }

    #[test]
    fn living_links_pass() {
        for line in [
            "[x](A.md) [y](../README.md#top) [z](adr/) [w](./adr/0001-x.md \"t\") [r](..)",
            "[x](https://a.b/c.md#d) [z](mailto:a@b.c)",
            "`[x](gone.md)`",
            "```\n[x](gone.md)\n```",
            "[x]: https://a.b",
            "text [x]: gone.md",
            "[x](../README.md#its-this-a-b)",
            "[x](#its)\n## Its",
        ] {
            assert_eq!(dead(line), 0, "{line}");
        }
    }

    #[test]
    fn decisions_and_pages_that_no_index_lists_are_found() {
        let list = "- [a](0001-a.md)\n- [b](0002-b.md)";
        let pages = "- [a](adr/0001-a.md)\n- [b](adr/README.md)\n- [c](adr/0003-c.md)";
        let files = [
            ("docs/SUMMARY.md", pages),
            ("docs/adr/README.md", list),
            ("docs/adr/0001-a.md", ""),
            ("docs/adr/0003-c.md", ""),
            ("docs/book/x.md", ""),
        ];
        let found = unlisted(&Tree::of(&files));
        let paths: Vec<_> = found.iter().map(|f| f.path.as_str()).collect();
        assert_eq!(paths, ["docs/adr/0003-c.md", "docs/book/x.md"]);
    }
}
