//! `outlive logs NAME`: what a process of the robot said.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use outlive_run::{RunDir, State};

use super::ps;
use crate::complete;
use crate::exit::{Code, Failure, Outcome, note};
use crate::options::DomainOptions;
use crate::os;
use crate::output::{Halt, Output};

/// Looked through backwards for the last lines, bytes.
const TAIL_MAX: u64 = 16 << 20;
/// A rotated log has no higher number.
const ROTATED_MAX: u32 = 100;
/// Read at once, bytes.
const READ_MAX: u64 = 1 << 20;
/// Between two looks at a log that is followed.
const PAUSE: Duration = Duration::from_millis(50);

/// Print the end of a process's log; `run` is the supervisor's own.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  outlive logs camera                             its last lines
  outlive logs run -n 100 -f                      what the supervisor does")]
pub(crate) struct LogsArgs {
    /// Process, as `outlive ps` shows it.
    #[arg(add = complete::processes())]
    name: String,
    /// Lines to print.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    lines: usize,
    /// Keep printing new lines, until Ctrl-C.
    #[arg(long, short)]
    follow: bool,
}

pub(crate) fn run(args: &LogsArgs, options: &DomainOptions) -> Outcome {
    let path = path(args, options)?;
    let failed = |e| Failure::io("read the log", &e);
    os::catch_stop_signals()?;
    let Some((mut file, lines)) = first(&path, args)? else { return Ok(Code::Done) };
    let mut out = Output::standard()?;
    let len = file.metadata().map_err(failed)?.len();
    let mut at = len.saturating_sub(TAIL_MAX);
    file.seek(SeekFrom::Start(at)).map_err(failed)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    at += bytes.len() as u64;
    let mut tail = before(&path, &file, &bytes, lines).map_err(failed)?;
    tail.extend(&bytes);
    let mut halt = write(&mut out, last_lines(&tail, lines));
    while args.follow && halt.is_none() && !os::stop_asked() {
        // Asked before reading: what is written up to the rotation is in the file by then.
        let next = next(&path, &file).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() < at {
            at = 0; // somebody cut it
        }
        bytes.clear();
        file.seek(SeekFrom::Start(at)).map_err(failed)?;
        (&file).take(READ_MAX).read_to_end(&mut bytes).map_err(failed)?;
        at += bytes.len() as u64;
        halt = write(&mut out, &bytes);
        match next {
            _ if bytes.len() as u64 == READ_MAX => {}
            Some(Next::File(newer)) => (file, at) = (newer, 0),
            Some(Next::After(newer)) => {
                note(format_args!("lines are missing: their file was removed before it was read"));
                (file, at) = (newer, 0);
            }
            None => std::thread::sleep(PAUSE),
        }
    }
    match halt {
        Some(Halt::Failed(failure)) => Err(failure),
        _ => Ok(Code::Done),
    }
}

/// The file to begin with, and how many lines of it to print. A process that has printed nothing
/// has none: then `None`, or, if it is to be followed, its first one, of which every line is new.
fn first(path: &Path, args: &LogsArgs) -> Result<Option<(File, usize)>, Failure> {
    let mut lines = args.lines;
    loop {
        match File::open(path) {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            Err(e) => return Err(Failure::io(&format!("open {path:?}"), &e)),
            Ok(file) => return Ok(Some((file, lines))),
        }
        // In the midst of a rotation.
        if let Ok(file) = File::open(place(path, 1)) {
            return Ok(Some((file, lines)));
        }
        if !args.follow || os::stop_asked() {
            return Ok(None);
        }
        lines = usize::MAX;
        std::thread::sleep(PAUSE);
    }
}

/// What rotated files say before `ours`, of which the end is `bytes`: at least as much as the last
/// `lines` need.
fn before(path: &Path, ours: &File, bytes: &[u8], lines: usize) -> io::Result<Vec<u8>> {
    let count = |bytes: &[u8]| bytes.iter().filter(|b| **b == b'\n').count();
    let (mut found, mut room) = (count(bytes), TAIL_MAX.saturating_sub(bytes.len() as u64));
    let mut seen = vec![ours.metadata()?.ino()];
    let mut pieces = Vec::new();
    // Of a log that is rotated meanwhile a file comes twice, and none is missed.
    let is_ours = |n: &u32| fs::metadata(place(path, *n)).is_ok_and(|m| m.ino() == seen[0]);
    let first = (0..=ROTATED_MAX).find(is_ours).unwrap_or(0);
    for n in first + 1..=ROTATED_MAX {
        if found >= lines || room == 0 {
            break;
        }
        let mut file = match File::open(place(path, n)) {
            Err(e) if e.kind() == ErrorKind::NotFound => continue,
            opened => opened?,
        };
        let of = file.metadata()?;
        if seen.contains(&of.ino()) {
            continue;
        }
        seen.push(of.ino());
        let from = of.len().saturating_sub(room);
        file.seek(SeekFrom::Start(from))?;
        let mut piece = Vec::new();
        file.read_to_end(&mut piece)?;
        found += count(&piece);
        room = if from > 0 { 0 } else { room.saturating_sub(piece.len() as u64) };
        pieces.push(piece);
    }
    Ok(pieces.into_iter().rev().flatten().collect())
}

/// Where the `n`th rotated file of a log is; 0 is the newest.
fn place(path: &Path, n: u32) -> PathBuf {
    match n {
        0 => path.to_path_buf(),
        n => path.with_extension(format!("log.{n}")),
    }
}

/// What comes after a file that was rotated.
enum Next {
    File(File),
    /// The oldest one that is left: the file itself, and perhaps others, are gone.
    After(File),
}

/// The file that follows `ours` in the log `path`; `None` while `ours` is the newest, or the newest
/// is not made yet.
fn next(path: &Path, ours: &File) -> io::Result<Option<Next>> {
    let (own, written) = (ours.metadata()?.ino(), ours.metadata()?.modified()?);
    let place = |n| place(path, n);
    // Files move upwards only, so upwards none is missed.
    let is_ours = |n: u32| fs::metadata(place(n)).is_ok_and(|m| m.ino() == own);
    loop {
        let Some(at) = (0..=ROTATED_MAX).find(|n| is_ours(*n)) else {
            let newer = |file: &File| {
                file.metadata().and_then(|m| m.modified()).is_ok_and(|time| time >= written)
            };
            let mut files = (0..=ROTATED_MAX).rev().filter_map(|n| File::open(place(n)).ok());
            return Ok(files.find(newer).map(Next::After));
        };
        let newer = match at.checked_sub(1).map(|newer| File::open(place(newer))) {
            None => return Ok(None),
            Some(Err(e)) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Some(opened) => opened?,
        };
        // Rotated meanwhile, it would be one too new.
        if is_ours(at) {
            return Ok(Some(Next::File(newer)));
        }
    }
}

/// Where the log is. A supervisor that hangs need not answer for that: it has written it down.
fn path(args: &LogsArgs, options: &DomainOptions) -> Result<PathBuf, Failure> {
    let dir = RunDir::of(&options.domain()?);
    let written = dir.read().ok().flatten();
    if let Some(path) = written.and_then(|state| log_of(&state, &args.name)) {
        return Ok(path);
    }
    // Written before there was such a process, or not at all: the RAM disk was full.
    let (state, _) = ps::state(&dir, options)?;
    log_of(&state, &args.name).ok_or_else(|| {
        let names: Vec<_> = state.processes.iter().map(|s| s.name.as_str()).collect();
        let what = format!("no process '{}': choose one of run, {}", args.name, names.join(", "));
        Failure::new(Code::Usage, what)
    })
}

fn log_of(state: &State, name: &str) -> Option<PathBuf> {
    if name == "run" {
        return state.processes.first().map(|first| first.log.with_file_name("run.log"));
    }
    state.processes.iter().find(|s| s.name == name).map(|s| s.log.clone())
}

fn write(out: &mut Output, bytes: &[u8]) -> Option<Halt> {
    out.write(bytes).and_then(|()| out.flush()).err()
}

fn last_lines(bytes: &[u8], lines: usize) -> &[u8] {
    let body = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut starts =
        body.iter().enumerate().rev().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1);
    match lines {
        0 => &[],
        n => &bytes[starts.nth(n - 1).unwrap_or(0)..],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole() {
        let text = b"a\nbb\nccc\n";
        assert_eq!(last_lines(text, 0), b"");
        assert_eq!(last_lines(text, 1), b"ccc\n");
        assert_eq!(last_lines(text, 2), b"bb\nccc\n");
        assert_eq!(last_lines(text, 9), text);
        assert_eq!(last_lines(b"x\ny", 1), b"y");
        assert_eq!(last_lines(b"", 3), b"");
    }
}
