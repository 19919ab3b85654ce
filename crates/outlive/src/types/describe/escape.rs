//! Names in the stored form: what would end one is written as `%` and two digits.

use std::fmt;
use std::fmt::Write;

/// Longest name of a field or a value, bytes.
pub(super) const NAME_BYTES_MAX: usize = 128;

/// Writes a name. Escaped is what would end it or the line; nothing that an identifier has.
pub(super) fn escape(out: &mut impl Write, name: &str, more: impl Fn(char) -> bool) -> fmt::Result {
    name.chars().try_for_each(|c| match c {
        '\0'..=' ' | '%' | '\x7f' => write!(out, "%{:02X}", u32::from(c)),
        c if more(c) => write!(out, "%{:02X}", u32::from(c)),
        c => out.write_char(c),
    })
}

/// The name that `escape` wrote; `None` if it did not write that.
pub(super) fn unescape(name: &str) -> Option<String> {
    let mut out = Vec::with_capacity(name.len());
    let mut bytes = name.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                let digits = std::str::from_utf8(&digits).ok()?;
                out.push(u8::from_str_radix(digits, 16).ok()?);
            }
            0..=b' ' | 0x7f => return None,
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).ok()
}
