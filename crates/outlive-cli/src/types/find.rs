//! Interface files on the disk, and which package each belongs to.

use std::fs;
use std::path::{Path, PathBuf};

use outlive_record::ros2::INTERFACE_BYTES_MAX;

use crate::exit::{Code, Failure};

/// Deepest directory that is looked into, and most files of one import.
const DEPTH_MAX: usize = 16;
const FILES_MAX: usize = 10_000;

/// What a file declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Message,
    Service,
    Action,
}

/// A file, not looked into yet.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    pub(super) package: String,
    pub(super) name: String,
    pub(super) sort: Sort,
    /// Asked for, and not only a neighbour of a file that was.
    pub(super) wanted: bool,
}

impl Sort {
    fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "msg" => Some(Self::Message),
            "srv" => Some(Self::Service),
            "action" => Some(Self::Action),
            _ => None,
        }
    }

    /// The folder that ROS has such files in.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Message => "msg",
            Self::Service => "srv",
            Self::Action => "action",
        }
    }

    /// What its parts are called, which `---` separates.
    pub(super) fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Message => &[""],
            Self::Service => &["Request", "Response"],
            Self::Action => &["Goal", "Result", "Feedback"],
        }
    }
}

/// The files given, those below the directories given, and the messages beside the former.
pub(super) fn sources(given: &[PathBuf], package: Option<&str>) -> Result<Vec<Source>, Failure> {
    let (mut wanted, mut beside) = (Vec::new(), Vec::new());
    for path in given {
        let failed = |e| Failure::io(&format!("reading {}", path.display()), &e);
        let whole = match fs::canonicalize(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(Failure::new(Code::NotFound, format!("no file {}", path.display())));
            }
            whole => whole.map_err(failed)?,
        };
        let before = wanted.len();
        if whole.is_dir() {
            walk(&whole, path, DEPTH_MAX, &mut wanted)?;
            if wanted.len() == before {
                let why = format!("{} has no .msg, .srv or .action file", path.display());
                return Err(Failure::new(Code::Usage, why));
            }
        } else {
            if Sort::of(&whole).is_none() || !whole.is_file() {
                let why = format!("{} is no .msg, .srv or .action file", path.display());
                return Err(Failure::new(Code::Usage, why));
            }
            if let Some((dir, shown)) = whole.parent().zip(path.parent()) {
                walk(dir, shown, 1, &mut beside)?;
            }
            wanted.push((whole, path.clone()));
        }
    }
    let mut all: Vec<(PathBuf, Source)> = Vec::new();
    let both = wanted.into_iter().map(|p| (p, true)).chain(beside.into_iter().map(|p| (p, false)));
    for ((whole, path), wanted) in both {
        let Some(sort) = Sort::of(&whole) else { continue };
        if all.iter().any(|(known, _)| *known == whole) {
            continue;
        }
        let name = whole.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let package = match package {
            Some(package) => package.to_owned(),
            None => package_of(&whole),
        };
        all.push((whole, Source { path, package, name, sort, wanted }));
    }
    Ok(all.into_iter().map(|(_, source)| source).collect())
}

/// Interface files below `dir`, which people know as `shown`; in the order of their names.
fn walk(
    dir: &Path,
    shown: &Path,
    depth: usize,
    into: &mut Vec<(PathBuf, PathBuf)>,
) -> Result<(), Failure> {
    let failed = |e| Failure::io(&format!("reading {}", shown.display()), &e);
    let mut entries = Vec::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        entries.push(entry.map_err(failed)?);
    }
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let (path, shown) = (entry.path(), shown.join(entry.file_name()));
        let sort = entry.file_type().map_err(failed)?;
        if sort.is_dir() && !hidden && depth > 1 {
            walk(&path, &shown, depth - 1, into)?;
        } else if Sort::of(&path).is_some() && path.is_file() {
            into.push((fs::canonicalize(&path).map_err(failed)?, shown));
        }
        if into.len() > FILES_MAX {
            let why = format!("{} has more than {FILES_MAX} files", dir.display());
            return Err(Failure::new(Code::Usage, why));
        }
    }
    Ok(())
}

/// The name in its `package.xml`, else the folder that has `msg`, `srv` or `action`, else the
/// folder that has the file.
fn package_of(path: &Path) -> String {
    let folder = path.parent().unwrap_or(path);
    let sorted = ["msg", "srv", "action"].map(Some);
    let root = match sorted.contains(&folder.file_name().and_then(|n| n.to_str())) {
        true => folder.parent().unwrap_or(folder),
        false => folder,
    };
    let declared = fs::read_to_string(root.join("package.xml")).ok();
    let declared = declared.as_deref().and_then(|xml| {
        let (_, rest) = xml.split_once("<name>")?;
        Some(rest.split_once("</name>")?.0.trim().to_owned())
    });
    let name = || root.file_name().unwrap_or_default().to_string_lossy().into_owned();
    declared.unwrap_or_else(name)
}

/// Its bytes; no more than a little over what a file may have.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    use std::io::Read;
    let failed = |e| Failure::io(&format!("reading {}", path.display()), &e);
    let file = fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(INTERFACE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}
