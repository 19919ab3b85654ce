//! A topic's attributes: what its creator wants people and tools to know, as keys and values.
//!
//! They lie in `meta` behind the schema, a line `KEY=VALUE` each, by key. Nobody decides by them.

use std::collections::BTreeMap;

/// Most attributes of a topic.
const COUNT_MAX: usize = 64;
/// Longest key, bytes.
const KEY_BYTES_MAX: usize = 64;
/// Longest value, bytes.
const VALUE_BYTES_MAX: usize = 1024;
/// Most bytes of all of them in `meta`.
pub(crate) const BYTES_MAX: usize = 16384;

/// As lines, or why they cannot be.
pub(crate) fn to_text(attributes: &BTreeMap<String, String>) -> Result<Vec<u8>, String> {
    if attributes.len() > COUNT_MAX {
        return Err(format!("{} attributes are more than {COUNT_MAX}", attributes.len()));
    }
    let mut text = String::new();
    for (key, value) in attributes {
        if !is_key(key) {
            return Err(format!(
                "'{}' is not a valid attribute key: use 1 to {KEY_BYTES_MAX} letters, digits, '_', \
                 '-', '.' and '/'",
                key.escape_debug()
            ));
        }
        if !is_value(value) {
            return Err(format!(
                "the value of attribute {key} has control characters or more than \
                 {VALUE_BYTES_MAX} bytes"
            ));
        }
        text.extend([key, "=", value, "\n"]);
    }
    if text.len() > BYTES_MAX {
        return Err(format!("{} bytes of attributes are more than {BYTES_MAX}", text.len()));
    }
    Ok(text.into_bytes())
}

/// Those lines that are attributes; somebody else wrote them.
pub(crate) fn parse(text: &[u8]) -> BTreeMap<String, String> {
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| str::from_utf8(line).ok());
    let pairs = lines.filter_map(|line| line.split_once('='));
    let good = pairs.filter(|(key, value)| is_key(key) && is_value(value));
    good.take(COUNT_MAX).map(|(key, value)| (key.into(), value.into())).collect()
}

fn is_key(key: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./".contains(&byte);
    (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(known)
}

fn is_value(value: &str) -> bool {
    value.len() <= VALUE_BYTES_MAX && !value.contains(char::is_control)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::node::Node;
    use crate::os::fixture::TempDir;
    use crate::{Domain, ErrorKind};

    fn of(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
    }

    #[test]
    fn what_is_written_is_read_and_what_is_no_attribute_is_left_out() {
        let some = of(&[("b", "2=1 + 1"), ("a/x.y", ""), ("unit", "m/s² %20")]);
        let text = to_text(&some).unwrap();
        assert_eq!(text, "a/x.y=\nb=2=1 + 1\nunit=m/s² %20\n".as_bytes());
        assert_eq!(parse(&text), some);
        assert_eq!(
            parse(b"no line\n=x\na b=1\nc=\x1b[1m\nd=\xff\ngood=1\ne"),
            of(&[("good", "1")])
        );
    }

    #[test]
    fn they_are_bounded() {
        let long = "x".repeat(VALUE_BYTES_MAX);
        assert!(to_text(&of(&[("k", &long)])).is_ok());
        for (key, value) in [("", "v"), ("a b", "v"), ("é", "v"), (&long, "v"), ("k", "a\nb")] {
            assert!(to_text(&of(&[(key, value)])).is_err(), "{key:?}");
        }
        assert!(to_text(&of(&[("k", &(long.clone() + "x"))])).is_err());
        let many = |n: usize, value: &str| (0..n).map(|i| (i.to_string(), value.into())).collect();
        assert!(
            to_text(&many(COUNT_MAX, "")).is_ok() && to_text(&many(COUNT_MAX + 1, "")).is_err()
        );
        assert!(to_text(&many(20, &long)).is_err());
    }

    #[test]
    fn the_first_member_gives_them_and_a_later_one_with_others_joins_all_the_same() {
        let dir = TempDir::new("attributes");
        let node = Node::builder().root(dir.join("root")).open().unwrap();
        let topic = || node.topic::<u64>("/speed").unwrap();
        let publisher = topic().attribute("unit", "m/s").attribute("unit", "km/h").publisher();
        let publisher = publisher.unwrap();
        let subscriber = topic().attribute("unit", "knots").subscriber().unwrap();
        let plain = topic().subscriber().unwrap();
        let mut seen = vec![publisher.attributes(), subscriber.attributes(), plain.attributes()];
        let domain = Domain::of(&Node::builder().root(dir.join("root"))).unwrap();
        seen.push(domain.topics().unwrap().remove(0).attributes);
        assert_eq!(seen, vec![of(&[("unit", "km/h")]); 4]);
        assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
        let error = topic().attribute("a b", "x").subscriber().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("'a b' is not a valid"), "{error}");
        let other = node.topic::<u64>("/other").unwrap().publisher().unwrap();
        assert!(other.attributes().is_empty());
    }
}
