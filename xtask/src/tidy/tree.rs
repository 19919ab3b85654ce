//! The files of the tree, as the rules see them.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

/// Hidden names are skipped, except these.
const HIDDEN_BUT_OURS: [&str; 3] = [".ci", ".github", ".cargo"];
const SKIPPED: [&str; 2] = ["target", "__pycache__"];

/// Every path (files and folders, relative, `/`), and the text of those that are text.
#[derive(Default)]
pub(crate) struct Tree {
    pub(crate) paths: BTreeSet<String>,
    pub(crate) files: Vec<Source>,
}

impl Tree {
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut tree = Self::default();
        tree.walk(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    fn walk(&mut self, root: &Path, folder: &str) -> io::Result<()> {
        for entry in fs::read_dir(root.join(folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let hidden = name.starts_with('.') && !HIDDEN_BUT_OURS.contains(&name.as_str());
            let kind = entry.file_type()?;
            if SKIPPED.contains(&name.as_str()) || hidden && kind.is_dir() {
                continue;
            }
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            // Such a one is left out of packages, or fails them.
            if kind.is_symlink() && !entry.path().exists() {
                return Err(io::Error::other(format!("{path} is a link to nothing")));
            }
            if kind.is_dir() {
                self.walk(root, &path)?;
            } else if let Ok(text) = fs::read_to_string(entry.path()) {
                self.files.push(Source::new(&path, &text));
            }
            self.paths.insert(path);
        }
        Ok(())
    }

    /// Rust files of the crates' `src` folders.
    pub(crate) fn crate_sources(&self) -> impl Iterator<Item = &Source> {
        const ROOMS: [&str; 4] = ["crates/", "bench/", "demo/", "verify/"];
        let of_crate = |f: &&Source| {
            ROOMS.iter().any(|room| f.path.starts_with(room)) && f.path.contains("/src/")
        };
        self.files.iter().filter(|f| f.is_rust()).filter(of_crate)
    }

    /// A tree in memory, for the tests of the rules.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let mut tree = Self::default();
        for (path, text) in files {
            tree.files.push(Source::new(path, text));
            let mut part = *path;
            tree.paths.insert(part.into());
            while let Some((folder, _)) = part.rsplit_once('/') {
                tree.paths.insert(folder.into());
                part = folder;
            }
        }
        tree
    }
}

/// One text file; for Rust also its code without comments and literals, line for line.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) code: String,
}

impl Source {
    fn new(path: &str, text: &str) -> Self {
        let code = if path.ends_with(".rs") { code_only(text) } else { String::new() };
        Self { path: path.into(), text: text.into(), code }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// A file of tests as a whole, as opposed to one that ends in a test module.
    pub(crate) fn is_test_file(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }

    /// Lines of code before the test module, numbered from 1.
    pub(crate) fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        let end = if self.is_test_file() { 0 } else { self.tests_start() };
        self.code.lines().take(end).enumerate().map(|(i, line)| (i + 1, line))
    }

    /// Number of lines before the inline test module at the end; all lines where there is none.
    pub(crate) fn tests_start(&self) -> usize {
        let lines: Vec<&str> = self.code.lines().map(str::trim).collect();
        let is_mark = |line: &str| line.starts_with("#[cfg(") && line.contains("test");
        (0..lines.len())
            .filter(|&i| is_mark(lines[i]))
            .find(|&i| {
                let item = lines[i + 1..].iter().find(|l| !l.starts_with("#["));
                item.is_some_and(|l| l.starts_with("mod ") && l.ends_with('{'))
            })
            .unwrap_or(lines.len())
    }
}

/// `text` with comments and the insides of literals turned into spaces.
fn code_only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = at + blank_length(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
            continue;
        }
        out.extend(chars[at..end].iter().map(|&c| if c == '\n' { '\n' } else { ' ' }));
        at = end;
    }
    out
}

/// Length of the comment or literal that starts at `at`; 0 if none does.
fn blank_length(chars: &[char], at: usize) -> usize {
    let rest = &chars[at..];
    let next = rest.get(1).copied();
    let in_word = at > 0 && (chars[at - 1].is_alphanumeric() || chars[at - 1] == '_');
    match (rest[0], next) {
        ('/', Some('/')) => rest.iter().take_while(|&&c| c != '\n').count(),
        ('/', Some('*')) => block_comment_length(rest),
        ('"', _) => quoted_length(rest, '"'),
        ('r', Some('"' | '#')) if !in_word || matches!(chars[at - 1], 'b' | 'c') => {
            raw_string_length(rest)
        }
        // A lifetime has no closing quote two characters on.
        ('\'', Some('\\')) => quoted_length(rest, '\''),
        ('\'', Some(_)) if rest.get(2) == Some(&'\'') => 3,
        _ => 0,
    }
}

fn block_comment_length(rest: &[char]) -> usize {
    let (mut depth, mut i) = (0, 0);
    while i < rest.len() {
        match (rest[i], rest.get(i + 1)) {
            ('/', Some('*')) => (depth, i) = (depth + 1, i + 2),
            ('*', Some('/')) => (depth, i) = (depth - 1, i + 2),
            _ => i += 1,
        }
        if depth == 0 {
            break;
        }
    }
    i.min(rest.len())
}

fn quoted_length(rest: &[char], quote: char) -> usize {
    let mut i = 1;
    while i < rest.len() && rest[i] != quote {
        i += if rest[i] == '\\' { 2 } else { 1 };
    }
    (i + 1).min(rest.len())
}

fn raw_string_length(rest: &[char]) -> usize {
    let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
    if rest.get(1 + hashes) != Some(&'"') {
        return 0; // a raw identifier
    }
    let body = 2 + hashes;
    let closes =
        |i: &usize| rest[*i] == '"' && rest[i + 1..].iter().take(hashes).all(|&c| c == '#');
    (body..rest.len()).find(closes).map_or(rest.len(), |i| (i + 1 + hashes).min(rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_line_for_line() {
        let text =
            "a // unsafe\nb /* x /* unsafe */\n y */ c \"un\\\"safe\" d 'u' e r#\"un\"safe\"# f\n";
        let code = code_only(text);
        assert_eq!(code.lines().count(), text.lines().count());
        assert!(!code.contains("safe") && !code.contains('u'), "{code}");
        for word in ["a", "b", "c", "d", "e", "f"] {
            assert!(code.contains(word), "{word} lost in {code}");
        }
    }

    #[test]
    fn lifetimes_and_raw_identifiers_stay() {
        let text = "fn f<'a>(r#in: &'a str, n: char) -> &'static str { r'x' }";
        assert!(code_only(text).starts_with("fn f<'a>(r#in: &'a str, n: char) -> &'static str"));
    }

    #[test]
    fn an_unclosed_literal_ends_with_the_file() {
        for text in ["\"abc", "'\\", "/* abc", "r#\"abc\"", "r##\"a\"#"] {
            assert_eq!(code_only(text).chars().count(), text.chars().count());
        }
    }

    #[test]
    fn product_code_ends_at_the_inline_test_module() {
        let inline = "fn a() {}\n#[cfg(all(test, not(loom)))]\n#[allow(x)]\nmod tests {\n}\n";
        let tree = Tree::of(&[
            ("crates/x/src/a.rs", inline),
            ("crates/x/src/b.rs", "#[cfg(test)]\nmod tests;\nfn b() {}\n"),
            ("crates/x/src/a/tests.rs", "fn c() {}\n"),
        ]);
        let product: Vec<_> = tree.files.iter().map(|f| f.product_code().count()).collect();
        assert_eq!(product, [1, 3, 0]);
    }
}
