//! Interface files on the disk, and which package each belongs to.

use std::fs;
use std::path::{Path, PathBuf};

use super::definition::Definitions;
use super::interface::{INTERFACE_BYTES_MAX, Interface};
use crate::Error;

/// Deepest directory that is looked into, and most files of one import.
const DEPTH_MAX: usize = 16;
const FILES_MAX: usize = 10_000;

/// What an interface file declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// `.msg`
    Message,
    /// `.srv`
    Service,
    /// `.action`
    Action,
}

/// An interface file, not looked into yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfaceFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its package: the name in `package.xml`, else that of the directory.
    pub package: String,
    /// Whether its package has that name wherever it lies, not only from the directory.
    pub named: bool,
    /// Its name without the extension.
    pub name: String,
    /// What it declares.
    pub sort: Sort,
    /// Asked for, and not only a neighbour of a file that was.
    pub wanted: bool,
}

impl InterfaceFile {
    /// The files given, those below the directories given, and the messages in the same directory
    /// as a file given. They belong to `package`, or else to the package they lie in.
    ///
    /// # Errors
    /// A path that does not exist, or has no interface files; more than 10,000 of them.
    pub fn find(given: &[PathBuf], package: Option<&str>) -> Result<Vec<Self>, Error> {
        find(given, package)
    }

    /// Its bytes; no more than a little over what a file may have.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        use std::io::Read;
        let failed = |e| Error::io("read", &self.path, e);
        let file = fs::File::open(&self.path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.take(INTERFACE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// What ROS calls it, like `my_msgs/msg/Goal`.
    pub fn full_name(&self) -> String {
        format!("{}/{}/{}", self.package, self.sort.folder(), self.name)
    }
}

impl Definitions {
    /// The messages, services and actions in the `.msg`, `.srv` and `.action` files of `paths`, and
    /// in those below directories among them.
    ///
    /// # Errors
    /// Those of [`InterfaceFile::find`]; what is wrong in a file, with its line.
    pub fn read(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut all = Self::default();
        all.add(paths)?;
        Ok(all)
    }

    /// Adds those; as [`Definitions::read`].
    ///
    /// # Errors
    /// Those of [`Definitions::read`].
    pub fn add(&mut self, paths: &[PathBuf]) -> Result<(), Error> {
        let mut faults = Vec::new();
        for file in find(paths, None)? {
            let bytes = file.read()?;
            let (expected, path) = (file.sort.parts().len(), file.path.display());
            match Interface::parse(&bytes) {
                Ok(parts) if parts.len() == expected => {
                    self.insert(&file.full_name(), &String::from_utf8_lossy(&bytes));
                }
                // A neighbour that nobody asked for may not be needed.
                _ if !file.wanted => {}
                Ok(parts) => faults.push(format!(
                    "{path}: expected {expected} parts separated by '---', found {}",
                    parts.len()
                )),
                Err(lines) => faults.extend(lines.iter().map(|line| format!("{path}:{line}"))),
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(Error::Usage(faults.join("\n"))) }
    }
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
    pub fn folder(self) -> &'static str {
        match self {
            Self::Message => "msg",
            Self::Service => "srv",
            Self::Action => "action",
        }
    }

    /// What its parts are called, which `---` separates.
    pub fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Message => &[""],
            Self::Service => &["Request", "Response"],
            Self::Action => &["Goal", "Result", "Feedback"],
        }
    }
}

fn find(given: &[PathBuf], package: Option<&str>) -> Result<Vec<InterfaceFile>, Error> {
    let (mut wanted, mut beside) = (Vec::new(), Vec::new());
    for path in given {
        let whole = fs::canonicalize(path).map_err(|e| Error::io("read", path, e))?;
        let before = wanted.len();
        if whole.is_dir() {
            walk(&whole, path, DEPTH_MAX, &mut wanted)?;
            if wanted.len() == before {
                let why = format!("{} has no .msg, .srv or .action file", path.display());
                return Err(Error::Usage(why));
            }
        } else {
            if Sort::of(&whole).is_none() || !whole.is_file() {
                let why = format!("{} is not a .msg, .srv or .action file", path.display());
                return Err(Error::Usage(why));
            }
            if let Some((dir, shown)) = whole.parent().zip(path.parent()) {
                walk(dir, shown, 1, &mut beside)?;
            }
            wanted.push((whole, path.clone()));
        }
    }
    let mut all: Vec<(PathBuf, InterfaceFile)> = Vec::new();
    let both = wanted.into_iter().map(|p| (p, true)).chain(beside.into_iter().map(|p| (p, false)));
    for ((whole, path), wanted) in both {
        let Some(sort) = Sort::of(&whole) else { continue };
        if all.iter().any(|(known, _)| *known == whole) {
            continue;
        }
        let name = whole.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (package, named) = match package {
            Some(package) => (package.to_owned(), true),
            None => package_of(&whole),
        };
        all.push((whole, InterfaceFile { path, package, named, name, sort, wanted }));
    }
    Ok(all.into_iter().map(|(_, source)| source).collect())
}

/// Interface files below `dir`, which people know as `shown`; in the order of their names.
fn walk(
    dir: &Path,
    shown: &Path,
    depth: usize,
    into: &mut Vec<(PathBuf, PathBuf)>,
) -> Result<(), Error> {
    let failed = |e| Error::io("read", shown, e);
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
            return Err(Error::Usage(why));
        }
    }
    Ok(())
}

/// The name in its `package.xml`, else the folder that has `msg`, `srv` or `action`, else the
/// folder that has the file; and whether it is the first.
fn package_of(path: &Path) -> (String, bool) {
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
    let named = declared.is_some();
    (declared.unwrap_or_else(name), named)
}
