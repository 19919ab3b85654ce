//! Standard input as frames of one size, read without a copy in between, or line by line.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use crate::exit::Failure;
use crate::os;

/// Read at once for lines.
const PIECE_BYTES: usize = 64 << 10;

/// Standard input without a buffer: bytes go from the pipe to where they are wanted.
#[derive(Debug)]
pub(crate) struct Input {
    file: File,
}

/// How filling a frame ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// The frame is whole.
    Whole,
    /// Input ended after so many bytes of it.
    End(usize),
    /// A signal asks to stop.
    Stopped,
}

impl Input {
    pub(crate) fn standard() -> Result<Self, Failure> {
        let fd = io::stdin().as_fd().try_clone_to_owned();
        let file = File::from(fd.map_err(|e| Failure::io("open standard input", &e))?);
        os::widen_pipe(&file);
        Ok(Self { file })
    }

    /// Reads exactly one frame.
    pub(crate) fn fill(&mut self, frame: &mut [u8]) -> Result<Filled, Failure> {
        let mut at = 0;
        while at < frame.len() {
            match self.read(&mut frame[at..])? {
                None => return Ok(Filled::Stopped),
                Some(0) => return Ok(Filled::End(at)),
                Some(n) => at += n,
            }
        }
        Ok(Filled::Whole)
    }

    /// Reads what is there, at least a byte; 0 at the end, `None` if a signal asks to stop.
    fn read(&mut self, into: &mut [u8]) -> Result<Option<usize>, Failure> {
        let failed = |e: &io::Error| Failure::io("read standard input", e);
        loop {
            if os::stop_asked() {
                return Ok(None);
            }
            // Waits in slices: a signal between the look at the flag and `read` is not missed.
            if !os::wait_readable(&self.file).map_err(|e| failed(&e))? {
                continue;
            }
            match self.file.read(into) {
                Ok(n) => return Ok(Some(n)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(failed(&e)),
            }
        }
    }
}

/// Standard input line by line; a line is any bytes.
#[derive(Debug)]
pub(crate) struct Lines {
    input: Input,
    /// What was read, and where in it the next line begins.
    bytes: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Lines {
    pub(crate) fn standard() -> Result<Self, Failure> {
        Ok(Self { input: Input::standard()?, bytes: Vec::new(), at: 0, ended: false })
    }

    /// The next line without its end; `None` after the last one, or if a signal asks to stop.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        let mut looked = self.at;
        let (end, next) = loop {
            if let Some(n) = self.bytes[looked..].iter().position(|b| *b == b'\n') {
                break (looked + n, looked + n + 1);
            }
            if self.ended {
                let end = self.bytes.len();
                if self.at == end {
                    return Ok(None);
                }
                break (end, end);
            }
            self.bytes.drain(..std::mem::take(&mut self.at));
            looked = self.bytes.len();
            self.bytes.resize(looked + PIECE_BYTES, 0);
            let read = self.input.read(&mut self.bytes[looked..]);
            self.bytes.truncate(looked + read.as_ref().ok().copied().flatten().unwrap_or(0));
            match read? {
                None => return Ok(None),
                Some(0) => self.ended = true,
                Some(_) => {}
            }
        };
        let line = &self.bytes[self.at..end];
        self.at = next;
        Ok(Some(line.strip_suffix(b"\r").unwrap_or(line)))
    }
}
