//! What is wrong in a file, where, and what to do about it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// One fault of a robot file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// Line, counted from 1.
    pub line: usize,
    /// Column in characters, counted from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
    /// The line itself.
    source: String,
    /// Characters that are wrong.
    width: usize,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, what, remedy, source, width } = self;
        write!(f, "{}:{line}:{column}: {what}: {remedy}", file.display())?;
        if !source.trim().is_empty() {
            let number = line.to_string();
            let (pad, before) = (" ".repeat(number.len()), " ".repeat(column - 1));
            let marks = "^".repeat((*width).max(1));
            write!(f, "\n{number} | {source}\n{pad} | {before}{marks}")?;
        }
        Ok(())
    }
}

/// All faults of a file, in order of lines; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The faults.
    pub problems: Vec<Problem>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, problem) in self.problems.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// The text of a file and the places in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a Path,
    pub(crate) text: &'a str,
}

impl Source<'_> {
    /// A fault at the bytes `span`.
    pub(crate) fn problem(
        &self,
        span: Range<usize>,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Problem {
        let start = self.floor(span.start);
        let begin = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let stop = self.floor(span.end.clamp(start, end));
        Problem {
            file: self.file.into(),
            line: self.text[..start].matches('\n').count() + 1,
            column: self.text[begin..start].chars().count() + 1,
            what: what.into(),
            remedy: remedy.into(),
            // A tab would push the marks away from what they mark.
            source: self.text[begin..end].trim_end().replace('\t', " "),
            width: self.text[start..stop].trim_end().chars().count(),
        }
    }

    fn floor(&self, at: usize) -> usize {
        let mut at = at.min(self.text.len());
        while !self.text.is_char_boundary(at) {
            at -= 1;
        }
        at
    }
}

/// The name of `known` that is least far from `word`, if it is near enough to be meant.
pub(crate) fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let limit = 1 + word.chars().count() / 3;
    let with_distance = known.into_iter().map(|name| (distance(word, name), name));
    let best = with_distance.min_by_key(|(distance, _)| *distance);
    best.filter(|(distance, _)| *distance <= limit).map(|(_, name)| name)
}

/// Edits (insert, remove, replace, swap of neighbours) from `a` to `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let edited = replaced.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                let swaps = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swaps { edited.min(rows[i - 2][j - 2] + 1) } else { edited }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_and_lines_from_one() {
        let source = Source { file: Path::new("r.toml"), text: "a = 1\nkäse = 2\n" };
        let at = source.text.find('2').unwrap();
        let problem = source.problem(at..at + 1, "wrong", "do right");
        assert_eq!((problem.line, problem.column), (2, 8));
        let text = problem.to_string();
        assert_eq!(text, "r.toml:2:8: wrong: do right\n2 | käse = 2\n  |        ^");
        // Spans of a parser at the very end, or inside a character, do no harm.
        for span in [99..120, 7..9, 8..8] {
            source.problem(span, "", "");
        }
    }

    #[test]
    fn the_nearest_name_is_one_that_may_be_meant() {
        let known = ["command", "cores", "nice"];
        assert_eq!(nearest("comand", known), Some("command"));
        assert_eq!(nearest("ocres", known), Some("cores"));
        assert_eq!(nearest("whatever", known), None);
    }
}
