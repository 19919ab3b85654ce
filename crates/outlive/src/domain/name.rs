//! Names of topics, domains and nodes, and how a name becomes a file name.

use std::path::{Path, PathBuf};

use crate::os::fs::file;
use crate::{Error, ErrorKind, Result};

/// Longest name, in bytes of UTF-8.
pub const NAME_BYTES_MAX: usize = 200;

/// A checked topic name such as `/camera/front`, and the file name it is stored under.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TopicName {
    name: String,
    file: String,
}

impl TopicName {
    /// Checks `name`; a missing leading `/` is added.
    pub(crate) fn new(name: &str) -> Result<Self> {
        Self::of("topic name", name)
    }

    /// The same for the name of another kind of object; `what` is for messages.
    pub(crate) fn of(what: &str, name: &str) -> Result<Self> {
        let bare = name.strip_prefix('/').unwrap_or(name);
        check(what, name, bare, true)?;
        Ok(Self { name: format!("/{bare}"), file: encode(bare) })
    }

    /// Reads the name back from the name of its directory; `None` if it is not one of ours.
    pub(crate) fn from_file(file: &str) -> Option<Self> {
        let bare = decode(file)?;
        Self::new(&bare).ok().filter(|t| t.file == file)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.name
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }
}

/// Checks the name of a domain or of a node: one part, no `/`.
pub(crate) fn check_part(what: &str, name: &str) -> Result<()> {
    check(what, name, name, false)
}

fn check(what: &str, shown: &str, bare: &str, slashes: bool) -> Result<()> {
    let bad = |why: &str| {
        let shown: String = shown.chars().take(80).flat_map(char::escape_default).collect();
        Err(Error::new(
            ErrorKind::InvalidName,
            format!("checking {what}"),
            format!("'{shown}'"),
            why,
        ))
    };
    if shown.len() > NAME_BYTES_MAX {
        return bad("use at most 200 bytes");
    }
    if !slashes && bare.contains('/') {
        return bad("use letters, digits, '_', '-' and '.' only: no '/', as in names of topics");
    }
    for part in bare.split('/') {
        if part.is_empty() {
            return bad(match slashes {
                true => "no part of a name may be empty: write it like /camera/front",
                false => "it may not be empty: write it like camera",
            });
        }
        if part == "." || part == ".." {
            return bad("'.' and '..' are not names");
        }
        if !part.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.')) {
            return bad(match slashes {
                true => "use letters, digits, '_', '-' and '.', parts separated by '/'",
                false => "use letters, digits, '_', '-' and '.' only",
            });
        }
    }
    // A file name is limited to 255 bytes; each '/' and every byte beyond ASCII takes three.
    if encode(bare).len() > 255 {
        return bad("too long once encoded: use fewer parts, or fewer letters outside ASCII");
    }
    Ok(())
}

fn encode(bare: &str) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(bare.len() + 8);
    for (i, b) in bare.bytes().enumerate() {
        let plain = b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-') || (b == b'.' && i > 0);
        if plain {
            out.push(b as char);
        } else {
            let _ = write!(out, "%{b:02X}");
        }
    }
    out
}

fn decode(file: &str) -> Option<String> {
    let mut out = Vec::with_capacity(file.len());
    let mut bytes = file.bytes();
    while let Some(b) = bytes.next() {
        if b == b'%' {
            let hex = [bytes.next()?, bytes.next()?];
            out.push(u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?);
        } else {
            out.push(b);
        }
    }
    String::from_utf8(out).ok()
}

/// What the name of a member's file says: a kind, and the numbers behind it; `None` where one of
/// these is no number.
pub(crate) fn kind_and_numbers(file: &str) -> (&str, Option<Vec<u64>>) {
    let mut parts = file.split('.');
    let kind = parts.next().unwrap_or("");
    (kind, parts.map(|part| part.parse().ok()).collect())
}

/// The directories in `parent` that bear a name; none while that is missing.
pub(crate) fn named_dirs(parent: &Path) -> Result<Vec<(TopicName, PathBuf)>> {
    let named = |file: &String| TopicName::from_file(file).map(|name| (name, parent.join(file)));
    Ok(file::names_in(parent)?.iter().filter_map(named).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names_survive_the_round_trip() {
        for name in ["/a/b", "a", "/camera/front.left_1-x", "/käse/über", "/.hidden", "/日本/語"]
        {
            let t = TopicName::new(name).unwrap();
            assert_eq!(TopicName::from_file(t.file()).unwrap(), t, "{name}");
            assert!(!t.file().contains('/') && !t.file().starts_with('.'));
        }
        assert_eq!(TopicName::new("a/b").unwrap(), TopicName::new("/a/b").unwrap());
    }

    #[test]
    fn illegal_names_are_refused_with_a_remedy() {
        let long = format!("/{}", "x".repeat(200));
        for name in
            ["", "/", "//", "/a//b", "/a/", "/..", "/a/../b", "/.", "a\0b", "/a b", "/a%2F", &long]
        {
            let e = TopicName::new(name).unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidName, "{name:?}");
            assert!(!e.remedy().is_empty());
        }
        assert!(TopicName::new(&format!("/{}", "x".repeat(199))).is_ok());
        assert!(check_part("domain", "a/b").is_err());
    }
}
