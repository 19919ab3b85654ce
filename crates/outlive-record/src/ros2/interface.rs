//! Interface files of ROS 2 as they are written: `.msg`, `.srv`, `.action`.

use std::fmt;

use outlive::describe::Scalar;

use super::base::Base;

/// Longest text of a file that is read, bytes.
pub const INTERFACE_BYTES_MAX: usize = 1 << 20;

/// What is wrong in a file, and in which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub why: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.line, self.why)
    }
}

/// A message, or a part of a service or an action, as it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Interface {
    /// The comment at its beginning, line by line.
    pub doc: Vec<String>,
    /// In their order.
    pub constants: Vec<Item>,
    /// In their order.
    pub fields: Vec<Item>,
}

/// A field or a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Its type.
    pub of: TypeName,
    /// Its name, an ASCII identifier.
    pub name: String,
    /// A constant's value, or a field's default.
    pub value: Option<Literal>,
    /// Comments above and behind it, line by line.
    pub doc: Vec<String>,
    /// Where it is, from 1.
    pub line: usize,
}

/// A type as it is written: `uint8`, `string<=10`, `Point[<=4]`, `geometry_msgs/Point[3]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// Without bounds and brackets.
    pub name: String,
    /// Most bytes of a bounded `string` or `wstring`.
    pub text_max: Option<usize>,
    /// How many of it.
    pub many: Many,
}

/// How many values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "the language has no other form")]
pub enum Many {
    /// A single one.
    One,
    /// `[3]`
    Fixed(usize),
    /// `[<=3]`
    AtMost(usize),
    /// `[]`
    Any,
}

/// A value as it is written; it fits the type it was written for.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::exhaustive_enums, reason = "the language has no other form")]
pub enum Literal {
    /// `true`, `false`
    Bool(bool),
    /// `-5`, `0x1f`
    Int(i128),
    /// `1.5`; finite.
    Float(f64),
    /// `"text"`
    Text(String),
    /// `[1, 2]`
    List(Vec<Literal>),
}

/// A line that declares something.
pub(crate) struct Statement<'a> {
    pub(crate) of: TypeName,
    pub(crate) name: &'a str,
    pub(crate) is_constant: bool,
    /// A value and a comment, or nothing.
    rest: &'a str,
}

/// Reads a line that is neither empty nor a comment. Lenient: files of others may have anything.
pub(crate) fn statement(line: &str) -> Result<Statement<'_>, String> {
    let wrong = || format!("'{line}' is not a field");
    let (of, rest) = line.split_once(char::is_whitespace).ok_or_else(wrong)?;
    let rest = rest.trim_start();
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    if name.is_empty() {
        return Err(wrong());
    }
    let after = after.trim_start();
    let (is_constant, rest) = after.strip_prefix('=').map_or((false, after), |rest| (true, rest));
    let of = type_name(of).ok_or_else(wrong)?;
    Ok(Statement { of, name, is_constant, rest: rest.trim() })
}

fn type_name(text: &str) -> Option<TypeName> {
    let (of, many) = match text.strip_suffix(']').and_then(|of| of.rsplit_once('[')) {
        None => (text, Many::One),
        Some((of, "")) => (of, Many::Any),
        Some((of, len)) => match len.strip_prefix("<=") {
            Some(bound) => (of, Many::AtMost(bound.parse().ok()?)),
            None => (of, Many::Fixed(len.parse().ok()?)),
        },
    };
    let (name, text_max) = match of.split_once("<=") {
        Some((name @ ("string" | "wstring"), bound)) => (name, Some(bound.parse().ok()?)),
        Some(_) => return None,
        None => (of, None),
    };
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'/');
    name.bytes().all(plain).then(|| TypeName { name: name.into(), text_max, many })
}

impl TypeName {
    /// What one of it is, if it is a number or a truth value.
    pub fn scalar(&self) -> Option<Scalar> {
        Some(Base::of(&self.name)?.scalar())
    }
}

impl fmt::Display for TypeName {
    /// As it is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(most) = self.text_max {
            write!(f, "<={most}")?;
        }
        match self.many {
            Many::One => Ok(()),
            Many::Fixed(len) => write!(f, "[{len}]"),
            Many::AtMost(most) => write!(f, "[<={most}]"),
            Many::Any => f.write_str("[]"),
        }
    }
}

impl Interface {
    /// The parts of a file: one of a message, two of a service, three of an action.
    ///
    /// # Errors
    /// Everything that is wrong in it, by line.
    ///
    /// # Examples
    /// ```
    /// use outlive_record::ros2::Interface;
    ///
    /// let parts = Interface::parse(b"# A speed.\nuint8 SLOW=1\nfloat64 x 0.5 # m/s\n")?;
    /// assert_eq!(parts[0].doc, ["A speed."]);
    /// assert_eq!(parts[0].fields[0].doc, ["m/s"]);
    ///
    /// let faults = Interface::parse(b"float64 x\nuint8 x\n").unwrap_err();
    /// assert_eq!(faults[0].to_string(), "2: the name x is taken by line 1");
    /// # Ok::<(), Vec<outlive_record::ros2::Fault>>(())
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Vec<Self>, Vec<Fault>> {
        let fault = |line, why: String| Err(vec![Fault { line, why }]);
        if bytes.len() > INTERFACE_BYTES_MAX {
            return fault(1, format!("the file has more than {INTERFACE_BYTES_MAX} bytes"));
        }
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
            Err(e) => {
                let before = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count();
                return fault(before + 1, "the text is not UTF-8".into());
            }
        };
        let mut reader = Reader::default();
        for (i, line) in text.lines().enumerate() {
            reader.line(i + 1, line.trim());
        }
        let Reader { mut parts, part, faults, .. } = reader;
        parts.push(part);
        if faults.is_empty() { Ok(parts) } else { Err(faults) }
    }
}

#[derive(Default)]
struct Reader {
    parts: Vec<Interface>,
    part: Interface,
    faults: Vec<Fault>,
    /// Comments that belong to what comes next.
    above: Vec<String>,
    /// Something other than comments was in this part.
    begun: bool,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) {
        if line == "---" {
            self.parts.push(std::mem::take(&mut self.part));
            (self.above, self.begun) = (Vec::new(), false);
        } else if line.is_empty() {
            self.end_doc();
            self.above.clear();
        } else if let Some(comment) = line.strip_prefix('#') {
            self.above.push(comment_text(comment));
        } else {
            self.end_doc();
            let doc = std::mem::take(&mut self.above);
            if let Err(why) = self.item(number, line, doc) {
                self.faults.push(Fault { line: number, why });
            }
        }
    }

    /// The first comment of a part is that of the whole.
    fn end_doc(&mut self) {
        if !self.begun && !self.above.is_empty() {
            self.part.doc = std::mem::take(&mut self.above);
        }
        self.begun |= !self.part.doc.is_empty();
    }

    fn item(&mut self, line: usize, text: &str, mut doc: Vec<String>) -> Result<(), String> {
        self.begun = true;
        let said = statement(text).map_err(|_| {
            format!(
                "'{text}' is not a field: write TYPE NAME, TYPE NAME DEFAULT or TYPE NAME=VALUE"
            )
        })?;
        let name = said.name;
        if !name.is_ascii() || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err(format!("the name {name} does not begin with a letter, or is not ASCII"));
        }
        let mut known = self.part.fields.iter().chain(&self.part.constants);
        if let Some(taken) = known.find(|item| item.name == name) {
            return Err(format!("the name {name} is taken by line {}", taken.line));
        }
        if let Many::Fixed(0) | Many::AtMost(0) = said.of.many {
            return Err(format!("{} {name} has room for nothing: give it a length", said.of));
        }
        if said.of.text_max == Some(0) {
            return Err(format!("{} {name} has room for nothing: give it a length", said.of));
        }
        let (value, comment) = value(&said)?;
        if let Some(comment) = comment {
            doc.push(comment_text(comment));
        }
        let item = Item { of: said.of.clone(), name: name.into(), value, doc, line };
        match said.is_constant {
            true => self.part.constants.push(item),
            false => self.part.fields.push(item),
        }
        Ok(())
    }
}

fn comment_text(comment: &str) -> String {
    let text = comment.trim_start_matches('#').trim();
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// The value behind a name, and the comment behind that.
fn value<'a>(said: &Statement<'a>) -> Result<(Option<Literal>, Option<&'a str>), String> {
    let (text, comment) = split_comment(said.rest);
    let what = if said.is_constant { "constant" } else { "default" };
    if text.is_empty() && !said.is_constant {
        return Ok((None, comment));
    }
    if said.is_constant && said.of.many != Many::One {
        return Err(format!("{} {}: a constant is a single value", said.of, said.name));
    }
    let literal = literal(&said.of, text)
        .map_err(|why| format!("{} {}: {text} cannot be its {what}: {why}", said.of, said.name))?;
    Ok((Some(literal), comment))
}

/// Before and behind a `#` outside of quotes.
fn split_comment(rest: &str) -> (&str, Option<&str>) {
    let (mut quote, mut escaped) = (None, false);
    for (i, c) in rest.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(q), c) if c == q => quote = None,
            (None, '#') => return (rest[..i].trim_end(), Some(&rest[i + 1..])),
            (None, '"' | '\'') => quote = Some(c),
            _ => {}
        }
    }
    // An apostrophe in a comment, or a quote that nobody closed.
    match quote.and_then(|_| rest.find('#')) {
        Some(at) => (rest[..at].trim_end(), Some(&rest[at + 1..])),
        None => (rest, None),
    }
}

fn literal(of: &TypeName, text: &str) -> Result<Literal, String> {
    let most = match of.many {
        Many::One => return single(of, text),
        Many::Fixed(len) | Many::AtMost(len) => len,
        Many::Any => usize::MAX,
    };
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    let inner = inner.ok_or("write a list: [1, 2]")?;
    let items = split_list(inner).into_iter().map(|item| single(of, item.trim()));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    let right = if let Many::Fixed(len) = of.many { items.len() == len } else { true };
    match right && items.len() <= most {
        true => Ok(Literal::List(items)),
        false => Err(format!("it has {} values", items.len())),
    }
}

/// At commas outside of quotes.
fn split_list(text: &str) -> Vec<&str> {
    let (mut items, mut from, mut quote, mut escaped) = (Vec::new(), 0, None, false);
    for (i, c) in text.char_indices() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (None, ',') => {
                items.push(&text[from..i]);
                from = i + 1;
            }
            (None, '"' | '\'') => quote = Some(c),
            (Some(q), c) if c == q => quote = None,
            _ => {}
        }
    }
    if !text[from..].trim().is_empty() {
        items.push(&text[from..]);
    }
    items
}

fn single(of: &TypeName, text: &str) -> Result<Literal, String> {
    if of.name == "string" {
        let text = unquoted(text)?;
        // No source code holds them as they are; what stood for them would have another length.
        if text.contains(|c: char| c.is_control() && !['\n', '\t', '\r'].contains(&c)) {
            return Err("it has a control character in it".into());
        }
        return match of.text_max {
            Some(most) if text.len() > most => Err(format!("it has {} bytes", text.len())),
            _ => Ok(Literal::Text(text)),
        };
    }
    let base = Base::of(&of.name).ok_or("only numbers, bool and string have values")?;
    match base {
        Base::Bool => match text {
            "true" | "True" | "1" => Ok(Literal::Bool(true)),
            "false" | "False" | "0" => Ok(Literal::Bool(false)),
            _ => Err("write true or false".into()),
        },
        Base::F32 | Base::F64 => {
            let value: f64 = text.parse().map_err(|_| "it is not a number")?;
            let fits = value.is_finite() && (base == Base::F64 || (value as f32).is_finite());
            if fits { Ok(Literal::Float(value)) } else { Err("it is not a finite number".into()) }
        }
        integer => {
            let value = whole(text).ok_or("it is not an integer")?;
            let (least, most) = integer.range();
            match (least..=most).contains(&value) {
                true => Ok(Literal::Int(value)),
                false => Err(format!("it is not from {least} to {most}")),
            }
        }
    }
}

fn whole(text: &str) -> Option<i128> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let radix = |prefixes: [&str; 2]| prefixes.iter().find_map(|p| digits.strip_prefix(p));
    let (digits, base) = match (radix(["0x", "0X"]), radix(["0b", "0B"]), radix(["0o", "0O"])) {
        (Some(digits), ..) => (digits, 16),
        (_, Some(digits), _) => (digits, 2),
        (.., Some(digits)) => (digits, 8),
        _ => (digits, 10),
    };
    let plain = digits.chars().all(|c| c.is_digit(base)) && digits.len() <= 64;
    plain.then(|| i128::from_str_radix(digits, base).ok()).flatten().map(|value| sign * value)
}

/// Text in quotes, with its escapes resolved; text without quotes as it is.
fn unquoted(text: &str) -> Result<String, String> {
    let Some(quote) = text.chars().next().filter(|c| ['"', '\''].contains(c)) else {
        return Ok(text.into());
    };
    let inner = text[1..].strip_suffix(quote).ok_or("its quote is not closed")?;
    let (mut out, mut chars) = (String::new(), inner.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some(c @ ('\\' | '"' | '\'')) => c,
                _ => return Err(r#"its escape is not one of \n \t \r \\ \" \'"#.into()),
            }),
            c if c == quote => return Err("a quote inside it is not escaped".into()),
            c => out.push(c),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Interface {
        let mut parts = Interface::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e:?}"));
        assert_eq!(parts.len(), 1);
        parts.remove(0)
    }

    #[test]
    fn constants_defaults_bounds_and_comments_are_read() {
        let made = one("# What it is.\n# More.\n\n# lost\n\nint8 A=-0x10 # least\n\
             string B = 'a # b'\n# above\nfloat32[<=3] xs [1, 2.5] # behind\n\
             string<=4 name \"x=y\"\nbool on true\ngeometry_msgs/Point[2] at # don't\n");
        assert_eq!(made.doc, ["What it is.", "More."]);
        let values: Vec<_> = made.constants.iter().map(|c| c.value.clone().unwrap()).collect();
        assert_eq!(values, [Literal::Int(-16), Literal::Text("a # b".into())]);
        assert_eq!(
            (made.constants[0].doc.clone(), made.constants[0].line),
            (vec!["least".into()], 6)
        );
        let shown: Vec<_> = made.fields.iter().map(|f| format!("{} {}", f.of, f.name)).collect();
        let all = ["float32[<=3] xs", "string<=4 name", "bool on", "geometry_msgs/Point[2] at"];
        assert_eq!(shown, all);
        let xs = Literal::List(vec![Literal::Float(1.0), Literal::Float(2.5)]);
        assert_eq!(made.fields[0].value, Some(xs));
        assert_eq!(made.fields[0].doc, ["above", "behind"]);
        assert_eq!(made.fields[1].value, Some(Literal::Text("x=y".into())));
        assert_eq!((made.fields[3].value.clone(), &*made.fields[3].doc[0]), (None, "don't"));
    }

    #[test]
    fn a_quote_in_a_text_of_a_list_does_not_end_it() {
        let made = one("string[] names [\"a\\\", b\", 'c', \"\\\\\"]\n");
        let texts = ["a\", b", "c", "\\"].map(|text| Literal::Text(text.into()));
        assert_eq!(made.fields[0].value, Some(Literal::List(texts.into())));
    }

    #[test]
    fn parts_are_counted_and_lines_go_on() {
        let parts = Interface::parse(b"bool a\n---\n---\nint8 b 1\n").unwrap();
        assert_eq!(parts.len(), 3);
        assert_eq!((parts[1].fields.len(), parts[2].fields[0].line), (0, 4));
    }

    #[test]
    fn every_fault_is_told_with_its_line() {
        for (text, line, why) in [
            ("bool a\n\nx", 3, "'x' is not a field"),
            ("bool a\nbool a", 2, "the name a is taken by line 1"),
            ("bool A=true\nbool A", 2, "taken by line 1"),
            ("int8 A=128", 1, "it is not from -128 to 127"),
            ("uint64 A=-1", 1, "it is not from 0 to 18446744073709551615"),
            ("uint8 A=", 1, "it is not an integer"),
            ("uint8 A=1.5", 1, "it is not an integer"),
            ("bool A=2", 1, "write true or false"),
            ("float32 A=1e39", 1, "not a finite number"),
            ("float64 a nan", 1, "not a finite number"),
            ("uint8[2] A=1", 1, "a constant is a single value"),
            ("Point p 1", 1, "only numbers, bool and string have values"),
            ("int8[3] a [1, 2]", 1, "it has 2 values"),
            ("int8[<=1] a [1, 2]", 1, "it has 2 values"),
            ("int8[] a 1", 1, "write a list"),
            ("string<=2 a 'abc'", 1, "it has 3 bytes"),
            ("string a 'abc", 1, "its quote is not closed"),
            ("string a 'a\\x'", 1, "its escape"),
            ("string a 'a\u{1}b'", 1, "it has a control character in it"),
            ("string A=a\u{85}b", 1, "it has a control character in it"),
            ("string a 'a\0b'", 1, "it has a control character in it"),
            ("int8[0] a", 1, "room for nothing"),
            ("string<=0 a", 1, "room for nothing"),
            ("int8[99999999999999999999] a", 1, "is not a field"),
            ("int8<=3 a", 1, "is not a field"),
            // A mark of byte order, where no file begins.
            ("bool a\n\u{feff}bool b", 2, "is not a field"),
            ("int8 1a", 1, "begin with a letter"),
            ("int8 ä", 1, "not ASCII"),
        ] {
            let faults = Interface::parse(text.as_bytes()).expect_err(text);
            assert_eq!(faults.len(), 1, "{text}: {faults:?}");
            assert!(faults[0].line == line && faults[0].why.contains(why), "{text}: {faults:?}");
        }
        let faults = Interface::parse(b"bool a\nbool \xff\n").unwrap_err();
        assert_eq!(faults[0].to_string(), "2: the text is not UTF-8");
        assert_eq!(Interface::parse(b"x\ny\n").unwrap_err().len(), 2);
        assert!(Interface::parse(&vec![b'#'; INTERFACE_BYTES_MAX + 1]).is_err());
    }
}
