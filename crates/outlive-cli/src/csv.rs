//! Cells of a CSV table.

use std::fmt::Write as _;

use outlive_record::decode::{Path, Tree};

/// The head of a table with these columns. Of what is not known there is one, in hexadecimal.
pub(crate) fn head(columns: &[Path]) -> String {
    let name = |path: &Path| if path.0.is_empty() { "value".into() } else { path.to_string() };
    let names = columns.iter().map(name).chain(columns.is_empty().then(|| "hex".into()));
    names.map(|name| format!(",{}", quoted(&name))).collect()
}

/// A value as a cell: bare numbers and text, everything else as JSON.
pub(crate) fn cell(of: &Tree) -> String {
    match of {
        Tree::Nothing => String::new(),
        Tree::Text(text) | Tree::Name(text) => quoted(text),
        Tree::List(_) | Tree::Fields(_) => quoted(&serde_json::to_string(of).unwrap_or_default()),
        Tree::Bytes(bytes) => bytes.shown().iter().fold(String::new(), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        }),
        number => number.to_string(),
    }
}

/// A CSV cell after RFC 4180: in quotes where it has to be. Text that spreadsheets would execute
/// gets a `'` in front.
pub(crate) fn quoted(text: &str) -> String {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        return format!("\"'{}\"", text.replace('"', "\"\""));
    }
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(json: &str) -> Tree {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_name_with_a_dot_is_one_key() {
        let tree = tree(r#"{"a.b": 1, "a": {"b": 2, "c[0]": 3}}"#);
        let leaves = tree.leaves();
        let values: Vec<_> = leaves.iter().map(|path| cell(tree.at(path).unwrap())).collect();
        assert_eq!(head(&leaves), ",a.b,a.b,a.c[0]");
        assert_eq!(values, ["1", "2", "3"]);
    }

    #[test]
    fn cells_are_quoted_where_a_reader_would_split_them() {
        let cells = |json: &str| cell(&tree(json));
        assert_eq!(cells("\"plain\""), "plain");
        assert_eq!(cells(r#""a,\"b\"""#), r#""a,""b""""#);
        assert_eq!(cells("[1,2]"), "\"[1,2]\"");
        assert_eq!(cells(r#""=SUM(A1)""#), r#""'=SUM(A1)""#);
        assert_eq!(cells("-5"), "-5", "a number stays one");
        assert_eq!((cells("null"), cells("1.5")), (String::new(), "1.5".into()));
    }
}
