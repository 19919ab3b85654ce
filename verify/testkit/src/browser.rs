//! Chromium without a screen, where a test can have it.

use std::path::PathBuf;

/// Says so in the environment where a missing browser is a failure.
const REQUIRED: &str = "OUTLIVE_NEED_CHROMIUM";

/// The browser; `None` where there is none and none is needed.
pub fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("OUTLIVE_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path).flat_map(|dir| names.map(|name| dir.join(name)));
    let program = named.into_iter().chain(found).find(|program| program.is_file());
    if program.is_none() {
        assert!(std::env::var_os(REQUIRED).is_none(), "no Chromium: apt-get install chromium");
        println!(
            "skipped: no Chromium here; apt-get install chromium, or name it in OUTLIVE_CHROMIUM"
        );
    }
    program
}

/// Width and height of a PNG, from its header.
pub fn png_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let head = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let number = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    Some((number(8)?, number(12)?))
}
