//! Which topics: names, globs, regular expressions.

use regex_lite::Regex;

use crate::Error;

/// Selects topics by name.
#[derive(Clone, Debug)]
pub struct Selection {
    patterns: Vec<Pattern>,
    except: Vec<Pattern>,
}

#[derive(Clone, Debug)]
enum Pattern {
    /// With `*` and `?` that do not match a `/`, and `**` that does.
    Glob(Vec<char>),
    Regex(Regex),
}

impl Selection {
    /// Topics that match any of `patterns`: names and globs like `/camera/*`, `/arm/**`, or, with
    /// `regex`, regular expressions that match the whole name.
    ///
    /// In a glob `?` is any character and `*` any number of them, but not `/`; `**` is any number
    /// of any characters.
    ///
    /// # Errors
    /// [`Error::Usage`] for an invalid regular expression.
    pub fn new(patterns: &[impl AsRef<str>], regex: bool) -> Result<Self, Error> {
        Ok(Self { patterns: read(patterns, regex)?, except: Vec::new() })
    }

    /// The same without those that match any of `patterns`, which are as in [`Selection::new`].
    ///
    /// # Errors
    /// As [`Selection::new`].
    pub fn except(mut self, patterns: &[impl AsRef<str>], regex: bool) -> Result<Self, Error> {
        self.except.extend(read(patterns, regex)?);
        Ok(self)
    }

    /// Every topic.
    pub fn all() -> Self {
        Self { patterns: vec![Pattern::Glob("/**".chars().collect())], except: Vec::new() }
    }

    /// Whether topic `name` was asked for.
    pub fn matches(&self, name: &str) -> bool {
        let name = rooted(name);
        let matches = |pattern: &Pattern| match pattern {
            Pattern::Glob(glob) => glob_matches(glob, &name.chars().collect::<Vec<_>>()),
            Pattern::Regex(regex) => regex.is_match(&name),
        };
        self.patterns.iter().any(matches) && !self.except.iter().any(matches)
    }
}

fn read(patterns: &[impl AsRef<str>], regex: bool) -> Result<Vec<Pattern>, Error> {
    let pattern = |text: &str| {
        if !regex {
            return Ok(Pattern::Glob(rooted(text).chars().collect()));
        }
        let whole = Regex::new(&format!("^(?:{text})$"));
        let why = |e| Error::Usage(format!("'{text}' is not a valid regular expression: {e}"));
        whole.map(Pattern::Regex).map_err(why)
    };
    patterns.iter().map(|p| pattern(p.as_ref())).collect()
}

/// Names may be given without their first `/`.
pub(crate) fn rooted(name: &str) -> String {
    if name.starts_with('/') { name.into() } else { format!("/{name}") }
}

/// Row by row over the pattern: which beginnings of `name` it matches so far.
fn glob_matches(glob: &[char], name: &[char]) -> bool {
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    let mut rest = glob;
    while let [first, tail @ ..] = rest {
        let any = *first == '*' && tail.first() == Some(&'*');
        rest = if any { &tail[1..] } else { tail };
        if *first == '*' {
            for i in 0..name.len() {
                reached[i + 1] |= reached[i] && (any || name[i] != '/');
            }
        } else {
            for i in (0..name.len()).rev() {
                let fits = name[i] == *first || *first == '?' && name[i] != '/';
                reached[i + 1] = reached[i] && fits;
            }
            reached[0] = false;
        }
    }
    reached[name.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Selection::new(&[pattern], false).unwrap().matches(name)
    }

    #[test]
    fn a_star_stays_in_its_part_of_the_name_and_two_do_not() {
        assert!(matches("/camera", "/camera") && matches("camera", "/camera"));
        assert!(!matches("/camera", "/camera/front") && !matches("/camera/front", "/camera"));
        assert!(matches("/camera/*", "/camera/front") && matches("/*/front", "/camera/front"));
        assert!(!matches("/*", "/camera/front") && matches("/**", "/camera/front"));
        assert!(matches("/**/raw", "/a/b/raw") && !matches("/**/raw", "/a/b/rawer"));
        assert!(matches("/cam?", "/cam1") && !matches("/cam?", "/cam") && !matches("?", "/"));
        assert!(matches("/*a*b*", "/xxaxxbxx") && !matches("/*a*b*", "/xxbxxaxx"));
        assert!(matches("/ö*", "/öl"));
        let long = "a".repeat(200);
        assert!(!matches(&format!("/{}b", "*a".repeat(60)), &format!("/{long}")), "in time");
    }

    #[test]
    fn a_regular_expression_matches_the_whole_name() {
        let both = Selection::new(&["/cam[0-9]+", "/imu|/gps"], true).unwrap();
        assert!(["/cam1", "/cam12", "/imu", "/gps"].iter().all(|n| both.matches(n)));
        assert!(!["/cam", "/cam1/raw", "/imu2", "/x/gps"].iter().any(|n| both.matches(n)));
        let wrong = Selection::new(&["/cam("], true).unwrap_err().to_string();
        assert!(wrong.contains("'/cam('"), "{wrong}");
        assert!(Selection::all().matches("/a/b/c") && Selection::all().matches("x"));
        let but = Selection::all().except(&["/camera/*", "log"], false).unwrap();
        assert!(but.matches("/a") && !but.matches("/camera/front") && !but.matches("/log"));
    }
}
