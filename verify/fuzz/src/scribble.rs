//! Changes files as an input says.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::input::Input;

/// Most changes of one input.
const CHANGES_MAX: usize = 12;
/// Most bytes that a file is made longer or a range is filled.
const RANGE_MAX: u64 = 1 << 16;

/// Whether files may lose bytes or vanish, or only change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Bytes change.
    Bytes,
    /// Also lengths and names.
    Files,
}

/// Changes `files` as `input` says until it is used up.
pub fn scribble(files: &[PathBuf], input: &mut Input<'_>, how: How) {
    for _ in 0..CHANGES_MAX {
        if input.is_empty() || files.is_empty() {
            return;
        }
        let file = &files[input.byte() as usize % files.len()];
        // A file may be gone by now, which is as good.
        let _ = change(files, file, input, how);
    }
}

fn change(files: &[PathBuf], path: &Path, input: &mut Input<'_>, how: How) -> std::io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let len = file.metadata()?.len();
    if len == 0 {
        return Ok(());
    }
    let what = input.byte();
    // Headers are what is parsed: half of the changes are there.
    let at = match input.byte() % 4 {
        0 | 1 => input.word(1) * 8 % len.min(512),
        2 => input.word(2) * 8 % len,
        _ => input.word(3) % len,
    };
    let room = (len - at) as usize;
    match what % 12 {
        0..=3 => {
            let value = interesting(input, at, len).to_le_bytes();
            file.write_all_at(&value[..room.min(8)], at)
        }
        4 => file.write_all_at(&input.word(8).to_le_bytes()[..room.min(8)], at),
        5 => {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at)?;
            byte[0] ^= 1 << (input.byte() % 8);
            file.write_all_at(&byte, at)
        }
        6 => {
            let count = (input.word(2) % RANGE_MAX).min(room as u64) as usize;
            file.write_all_at(&vec![input.byte(); count], at)
        }
        7 => {
            // What lies elsewhere in the same file.
            let from = input.word(3) % len;
            let count = (input.word(2)).min(len - from).min(room as u64) as usize;
            let mut bytes = vec![0; count];
            file.read_exact_at(&mut bytes, from)?;
            file.write_all_at(&bytes, at)
        }
        8 => {
            let part = input.bytes(16);
            file.write_all_at(&part[..part.len().min(room)], at)
        }
        _ if how == How::Bytes => file.write_all_at(&[input.byte()], at),
        9 => file.set_len(at),
        10 => file.set_len(len + input.word(2) % RANGE_MAX),
        _ => match input.byte() % 3 {
            0 => fs::remove_file(path),
            1 => fs::rename(path, &files[input.byte() as usize % files.len()]),
            _ => fs::copy(path, &files[input.byte() as usize % files.len()]).map(drop),
        },
    }
}

/// Numbers at which something changes.
fn interesting(input: &mut Input<'_>, at: u64, len: u64) -> u64 {
    let base = match input.byte() % 16 {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => 1 << 63,
        4 => 1 << 32,
        5 => (1 << 31) - 1,
        6 => len,
        7 => at,
        8 => 1 << 40,
        9 => 1 << 62,
        10 => 4096,
        11 => 64,
        12 => 1 << (input.byte() % 64),
        13 => 0x4000_0000,
        14 => 0x3fff_ffff,
        _ => input.word(4),
    };
    match input.byte() % 4 {
        0 => base,
        1 => base.wrapping_add(1),
        2 => base.wrapping_sub(1),
        _ => base.wrapping_add(input.word(1)),
    }
}
