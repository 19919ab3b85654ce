//! Standard output: tables, JSON, and a stream that ends quietly with its reader.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;

use serde::Serialize;

use crate::exit::{Code, Failure, Outcome, one_line};
use crate::os;

/// Why writing goes on no more.
#[derive(Debug)]
pub(crate) enum Halt {
    /// Nobody reads any more, or a signal asks to stop: a good end.
    Quiet,
    Failed(Failure),
}

/// Standard output for a stream of messages, buffered.
#[derive(Debug)]
pub(crate) struct Output {
    to: BufWriter<Unbuffered>,
}

#[derive(Debug)]
struct Unbuffered(File);

/// Bytes that a pipe takes without blocking once it says that it can be written.
const PIPE_BUF: usize = 4096;

impl Write for Unbuffered {
    /// Blocks like any pipe until a signal asks to stop. Then a reader that takes nothing for a
    /// while must not keep us, and one that goes on reading gets whole messages.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut now = bytes;
            if os::stop_asked() {
                if !os::wait_writable(&self.0)? {
                    return Err(io::ErrorKind::BrokenPipe.into());
                }
                now = &bytes[..bytes.len().min(PIPE_BUF)];
            }
            match self.0.write(now) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output {
    pub(crate) fn standard() -> Result<Self, Failure> {
        let fd = io::stdout().as_fd().try_clone_to_owned();
        let file = File::from(fd.map_err(|e| Failure::io("open standard output", &e))?);
        os::widen_pipe(&file);
        Ok(Self { to: BufWriter::with_capacity(64 * 1024, Unbuffered(file)) })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Halt> {
        self.to.write_all(bytes).map_err(halt)
    }

    /// Hands over what is buffered; notices a reader that left without it.
    pub(crate) fn flush(&mut self) -> Result<(), Halt> {
        self.to.flush().map_err(halt)?;
        if os::reader_is_gone(&self.to.get_ref().0) { Err(Halt::Quiet) } else { Ok(()) }
    }
}

fn halt(error: io::Error) -> Halt {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Halt::Quiet,
        _ => Halt::Failed(Failure::io("write to standard output", &error)),
    }
}

/// Prints a finished text; a reader that left is no failure.
pub(crate) fn print(text: &str) -> Outcome {
    let mut out = Output::standard()?;
    match out.write(text.as_bytes()).and_then(|()| out.to.flush().map_err(halt)) {
        Ok(()) | Err(Halt::Quiet) => Ok(Code::Done),
        Err(Halt::Failed(failure)) => Err(failure),
    }
}

/// Colours for a person at a terminal; none when output is piped or `NO_COLOR` is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    pub(crate) fn standard() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Self { on: io::stdout().is_terminal() && !unwanted }
    }

    fn with(self, ansi: &str, text: &str) -> String {
        if self.on { format!("\x1b[{ansi}m{text}\x1b[0m") } else { text.into() }
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.with("32", text)
    }

    pub(crate) fn warning(self, text: &str) -> String {
        self.with("33", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.with("1;31", text)
    }
}

/// Prints `value` as JSON, indented.
pub(crate) fn print_json(value: &impl Serialize) -> Outcome {
    let text = serde_json::to_string_pretty(value)
        .map_err(|e| Failure::new(Code::Failed, format!("make JSON: {e}")))?;
    print(&(as_escapes(text) + "\n"))
}

/// `value` as JSON in one line.
pub(crate) fn json_line(value: &impl Serialize) -> String {
    as_escapes(serde_json::to_string(value).unwrap_or_default())
}

/// JSON leaves control characters of 8 bits as they are, and terminals act on them.
fn as_escapes(json: String) -> String {
    let acts = |c: char| ('\u{7f}'..='\u{9f}').contains(&c);
    if !json.contains(acts) {
        return json;
    }
    // They can only be in texts.
    let escape = |c: char| format!("\\u{:04x}", u32::from(c));
    json.chars().map(|c| if acts(c) { escape(c) } else { c.into() }).collect()
}

/// Rows as aligned columns; columns named in `right` (by index) to the right. Names in cells may be
/// anybody's: control characters are written out.
pub(crate) fn table(rows: &[Vec<String>], right: &[usize]) -> String {
    let plain = |row: &Vec<String>| row.iter().map(|cell| one_line(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(plain).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (i, (cell, &w)) in row.iter().zip(&widths).enumerate() {
            line += &if right.contains(&i) { format!("{cell:>w$}") } else { format!("{cell:<w$}") };
            line += "  ";
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// `1 message`, `2 messages`.
pub(crate) fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A size for people: `999 B`, `6.2 MB`.
pub(crate) fn bytes(n: u64) -> String {
    let mut value = n as f64;
    let mut unit = "B";
    for larger in ["kB", "MB", "GB", "TB"] {
        // What would be printed as 1000.0 is one of the next unit.
        if value < 999.95 {
            break;
        }
        value /= 1000.0;
        unit = larger;
    }
    if unit == "B" { format!("{n} B") } else { format!("{value:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_no_line_ends_in_blanks() {
        let row = |cells: [&str; 3]| cells.map(String::from).to_vec();
        let text = table(&[row(["a", "long", "x"]), row(["käse", "5", ""])], &[1]);
        assert_eq!(text, "a     long  x\nkäse     5\n");
        assert_eq!(table(&[], &[]), "");
    }

    #[test]
    fn no_control_character_is_in_json() {
        let text = "a\u{7f}\u{9b}31m\x1bü";
        let json = json_line(&text);
        assert_eq!(json, r#""a\u007f\u009b31m\u001bü""#);
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn sizes_keep_one_digit_after_the_point() {
        for (n, shown) in [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (6_220_800, "6.2 MB")] {
            assert_eq!(bytes(n), shown);
        }
        assert_eq!(bytes(999_999), "1.0 MB");
        assert!(bytes(u64::MAX).ends_with(" TB"));
    }
}
