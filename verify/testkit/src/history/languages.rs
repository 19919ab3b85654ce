//! Languages of members, and the programs of those that are not in Rust.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Languages of members, by number.
pub(super) const RUST: u64 = 0;
pub(super) const PYTHON: u64 = 1;
pub(super) const CPP: u64 = 2;

/// How members in other languages are started.
type Programs = BTreeMap<u64, Vec<PathBuf>>;
static PROGRAMS: OnceLock<Programs> = OnceLock::new();

/// From here on half of all members are Python programs under this interpreter, which has the
/// package, and C++ programs: `cpp.cpp`, built.
pub fn use_others(python: Option<&Path>, cpp: Option<&Path>) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/src/history/member/python.py");
    let python = python.map(|it| (PYTHON, vec![it.to_owned(), script.into()]));
    let cpp = cpp.map(|it| (CPP, vec![it.to_owned()]));
    let _ = PROGRAMS.set(python.into_iter().chain(cpp).collect());
}

pub(super) fn programs() -> &'static Programs {
    PROGRAMS.get_or_init(Programs::new)
}

/// The language of a member that was to be in `asked`: Rust, where there is no program for that.
pub(super) fn spoken(asked: u64) -> u64 {
    if programs().contains_key(&asked) { asked } else { RUST }
}
