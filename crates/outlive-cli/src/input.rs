//! Standard input as frames of one size, read without a copy in between.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;

use crate::exit::Failure;
use crate::os;

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
        let failed = |e: &io::Error| Failure::io("read standard input", e);
        let mut at = 0;
        while at < frame.len() {
            if os::stop_asked() {
                return Ok(Filled::Stopped);
            }
            // Waits in slices: a signal between the look at the flag and `read` is not missed.
            if !os::wait_readable(&self.file).map_err(|e| failed(&e))? {
                continue;
            }
            match self.file.read(&mut frame[at..]) {
                Ok(0) => return Ok(Filled::End(at)),
                Ok(n) => at += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) => return Err(failed(&e)),
            }
        }
        Ok(Filled::Whole)
    }
}
