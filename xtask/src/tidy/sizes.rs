//! Files and lines stay small enough to read.

use super::finding::Finding;
use super::tree::Tree;

const LINES_MAX: usize = 800;
const LINES_HINT: usize = 400;
const INLINE_TEST_LINES_HINT: usize = 150;
const COLUMNS_MAX: usize = 100;

/// Made by a program from sources that have the right size.
const MADE: [&str; 1] = ["crates/outlive-c/include/outlive.h"];

/// Source files of any language: at most 800 lines without tests.
pub(super) fn long_files(tree: &Tree) -> Vec<Finding> {
    let is_source = |path: &str| {
        !MADE.contains(&path)
            && [".rs", ".c", ".h", ".cpp", ".hpp", ".py", ".sh"]
                .iter()
                .any(|end| path.ends_with(end))
    };
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| is_source(&f.path)) {
        let total = file.text.lines().count();
        let product = if file.is_rust() { file.tests_start() } else { total };
        let mut say = |text| findings.push(Finding::new(&file.path, product, text));
        if product > LINES_MAX {
            say(format!("{product} lines without tests: split it ({LINES_MAX} at most)"));
            continue;
        }
        let mut hint = |text| findings.push(Finding::new(&file.path, product, text).hint());
        if product > LINES_HINT && !file.is_test_file() {
            hint(format!("{product} lines without tests: over {LINES_HINT}, is it one idea?"));
        }
        let tests = total - product.min(total);
        if tests > INLINE_TEST_LINES_HINT {
            hint(format!("{tests} lines of inline tests: move them to a tests.rs"));
        }
    }
    findings
}

/// rustfmt leaves long comments and strings alone; this does not.
pub(super) fn wide_lines(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|f| f.is_rust()) {
        for (i, line) in file.text.lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX {
                let text = format!("{columns} columns ({COLUMNS_MAX} at most)");
                findings.push(Finding::new(&file.path, i + 1, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(product: usize, tests: usize) -> Vec<Finding> {
        let tail = if tests == 0 { String::new() } else { "#[cfg(test)]\nmod tests {\n".into() };
        let text = "//\n".repeat(product) + &tail + &"//\n".repeat(tests.saturating_sub(2));
        long_files(&Tree::of(&[("crates/x/src/a.rs", &text)]))
    }

    #[test]
    fn a_file_over_800_lines_fails_and_over_400_is_a_hint() {
        assert_eq!(file_of(400, 0), []);
        assert!(file_of(401, 0)[0].hint);
        assert!(file_of(800, 0)[0].hint);
        assert!(!file_of(801, 0)[0].hint);
    }

    #[test]
    fn tests_do_not_count_but_long_inline_tests_are_a_hint() {
        assert_eq!(file_of(300, 150), []);
        let found = file_of(300, 900);
        assert!(found.len() == 1 && found[0].hint && found[0].text.contains("inline tests"));
    }

    #[test]
    fn other_languages_have_the_same_limit() {
        let text = "#\n".repeat(801);
        assert_eq!(long_files(&Tree::of(&[("crates/p/a.py", &text)])).len(), 1);
        assert_eq!(long_files(&Tree::of(&[("docs/a.md", &text)])), []);
    }

    #[test]
    fn width_counts_characters_not_bytes() {
        let wide =
            |n: usize| wide_lines(&Tree::of(&[("a.rs", &format!("// {}", "é".repeat(n - 3)))]));
        assert_eq!(wide(100), []);
        assert_eq!(wide(101)[0].line, 1);
    }
}
