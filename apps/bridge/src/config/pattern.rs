//! Which names a rule is for.

use outlive::NAME_BYTES_MAX;

/// A pattern of names: `*` stands for one part, `**` for any number of parts, also none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<String>);

impl Pattern {
    /// Why it is none, and what to write instead.
    pub(crate) fn new(text: &str) -> Result<Self, (String, &'static str)> {
        let wrong =
            |why: &str, remedy| Err((format!("'{text}' is not a valid pattern: {why}"), remedy));
        let Some(bare) = text.strip_prefix('/') else {
            return wrong("it does not start with '/'", "write it like \"/camera/**\"");
        };
        if text.len() > NAME_BYTES_MAX {
            return wrong("it is too long", "use at most 200 bytes");
        }
        let parts: Vec<String> = bare.split('/').map(str::to_owned).collect();
        for part in &parts {
            let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
            if part != "*" && part != "**" && (part.is_empty() || !part.chars().all(plain)) {
                return wrong(
                    &format!("part '{part}' is empty or has invalid characters"),
                    "use letters, digits, '_', '-' and '.'; '*' for one part, '**' for any number",
                );
            }
        }
        Ok(Self(parts))
    }

    /// Whether `name` is one of them.
    pub(crate) fn matches(&self, name: &str) -> bool {
        let parts: Vec<&str> = bare(name).split('/').collect();
        // reached[j]: the patterns so far can stand for the first j parts.
        let mut reached = vec![false; parts.len() + 1];
        reached[0] = true;
        for pattern in &self.0 {
            let mut next = vec![false; parts.len() + 1];
            if pattern == "**" {
                let mut any = false;
                for (j, r) in reached.iter().enumerate() {
                    any |= r;
                    next[j] = any;
                }
            } else {
                for (j, part) in parts.iter().enumerate() {
                    next[j + 1] = reached[j] && (pattern == "*" || pattern == part);
                }
            }
            reached = next;
        }
        reached[parts.len()]
    }
}

/// A name without the '/' in front.
pub(crate) fn bare(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).expect(pattern).matches(name)
    }

    #[test]
    fn a_star_is_one_part_and_two_are_any_number() {
        for (pattern, name, expected) in [
            ("/camera/front", "/camera/front", true),
            ("/camera/front", "camera/front", true),
            ("/camera/*", "/camera/front", true),
            ("/camera/*", "/camera", false),
            ("/camera/*", "/camera/front/left", false),
            ("/camera/**", "/camera/front/left", true),
            ("/camera/**", "/camera", true),
            ("/camera/**", "/cameras", false),
            ("/**", "/a", true),
            ("/**/raw", "/a/b/raw", true),
            ("/**/raw", "/raw", true),
            ("/**/raw", "/a/raw/b", false),
            ("/*/**/x/*", "/a/x/x/b", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} for {name}");
        }
    }

    #[test]
    fn a_long_row_of_stars_is_no_work() {
        let pattern = format!("{}/end", "/**".repeat(60));
        assert!(!matches(&pattern, &"/a".repeat(99)));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in ["", "camera", "/", "/a//b", "/a*", "/a b", "/$x", "/***"] {
            assert!(Pattern::new(text).is_err(), "{text}");
        }
    }
}
