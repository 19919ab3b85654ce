//! Notices changes of shared files, byte by byte.

use std::collections::HashSet;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A read-only view of one file and a copy of what it held.
#[derive(Debug)]
struct View {
    file: File,
    inode: u64,
    base: *const u8,
    copy: Vec<u8>,
    /// The victim maps it shared and writable: it may change without a system call.
    hot: bool,
}

/// All regular files below a directory, each up to a limit.
#[derive(Debug)]
pub(crate) struct Watch {
    dir: PathBuf,
    limit_bytes: usize,
    views: Vec<View>,
}

impl Watch {
    pub(crate) fn new(dir: &Path, limit_bytes: usize) -> Self {
        Self { dir: dir.to_path_buf(), limit_bytes, views: Vec::new() }
    }

    /// Takes up new files, new sizes and the victim's mappings; call it after each system call.
    ///
    /// Files that were unlinked stay: others may have them mapped.
    pub(crate) fn rescan(&mut self, victim: i32) {
        let known: HashSet<u64> = self.views.iter().map(|v| v.inode).collect();
        let mut todo = vec![self.dir.clone()];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                match entry.file_type() {
                    Ok(t) if t.is_dir() => todo.push(entry.path()),
                    Ok(t) if t.is_file() => {
                        if let Some(view) = View::open(&entry.path(), &known) {
                            self.views.push(view);
                        }
                    }
                    _ => {}
                }
            }
        }
        let writable = writable_inodes(victim);
        for view in &mut self.views {
            view.hot = writable.contains(&view.inode);
            view.fit(self.limit_bytes);
            view.refresh();
        }
    }

    /// True when bytes differ from the last look; only files the victim can write through memory.
    pub(crate) fn changed(&mut self) -> bool {
        // No short cut: every view must take its new copy.
        self.views.iter_mut().filter(|v| v.hot).fold(false, |any, view| view.refresh() | any)
    }
}

impl View {
    fn open(path: &Path, known: &HashSet<u64>) -> Option<Self> {
        let meta = fs::symlink_metadata(path).ok()?;
        if known.contains(&meta.ino()) {
            return None;
        }
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_CLOEXEC;
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        let base = std::ptr::null();
        Some(Self { file, inode: meta.ino(), base, copy: Vec::new(), hot: false })
    }

    /// Maps the file again when its size changed. Bytes past its end must not be touched.
    fn fit(&mut self, limit_bytes: usize) {
        let size = self.file.metadata().map_or(0, |m| m.len()).min(limit_bytes as u64) as usize;
        if size == self.copy.len() {
            return;
        }
        self.unmap();
        if size == 0 {
            return;
        }
        let fd = self.file.as_raw_fd();
        let (read, shared, any) = (libc::PROT_READ, libc::MAP_SHARED, std::ptr::null_mut());
        // SAFETY: a new mapping at an address the kernel picks cannot disturb existing memory.
        let at = unsafe { libc::mmap(any, size, read, shared, fd, 0) };
        if at != libc::MAP_FAILED {
            self.base = at.cast();
            self.copy = vec![0; size];
        }
    }

    /// Takes a new copy if the bytes differ.
    fn refresh(&mut self) -> bool {
        if self.copy.is_empty() {
            return false;
        }
        let (len, copy) = (self.copy.len(), self.copy.as_mut_ptr());
        // SAFETY: `base` maps `len` bytes and the file is that long: sizes change only by system
        // calls, after which `fit` ran, and the victim is stopped. Raw calls, no references, since
        // another process may write the bytes.
        unsafe {
            if libc::memcmp(self.base.cast(), copy.cast(), len) == 0 {
                return false;
            }
            libc::memcpy(copy.cast(), self.base.cast(), len);
        }
        true
    }

    fn unmap(&mut self) {
        if !self.copy.is_empty() {
            // SAFETY: base and length are those of the mapping made by `fit`.
            unsafe { libc::munmap(self.base as *mut _, self.copy.len()) };
            self.copy = Vec::new();
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.unmap();
    }
}

/// Inodes of the files a process has mapped shared and writable.
fn writable_inodes(pid: i32) -> HashSet<u64> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let inode = |line: &str| {
        let mut fields = line.split_whitespace();
        let permissions = fields.nth(1)?.as_bytes();
        let shared = permissions.get(1) == Some(&b'w') && permissions.get(3) == Some(&b's');
        let inode = fields.nth(2)?.parse().ok()?;
        shared.then_some(inode)
    };
    maps.lines().filter_map(inode).collect()
}
