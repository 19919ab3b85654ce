//! The files of a domain whose members are dead, changed at will.

use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::input::Input;
use crate::scribble::{How, scribble};
use crate::world::{self, Dir, Ports};

/// Files as two live members left them, relative to the root.
static LEFT: OnceLock<Vec<(PathBuf, Vec<u8>)>> = OnceLock::new();

fn left() -> Vec<(PathBuf, Vec<u8>)> {
    let dir = Dir::new();
    let root = dir.root();
    let mut first = Ports::open(&root, "first").expect("a domain can be made");
    let mut second = Ports::open(&root, "second").expect("a second one can join");
    first.carry_on();
    second.carry_on();
    let read = |path: PathBuf| {
        let bytes = fs::read(&path).expect("our own file");
        (path.strip_prefix(&root).expect("below it").to_owned(), bytes)
    };
    world::files(&root).into_iter().map(read).collect()
}

/// Changes the files as `data` says, then looks, joins, reads, locks and cleans.
pub fn run(data: &[u8]) {
    let dir = Dir::new();
    let root = dir.root();
    let mut paths = Vec::new();
    for (path, bytes) in LEFT.get_or_init(left) {
        let path = root.join(path);
        make_parents(&path, &root);
        fs::write(&path, bytes).expect("the RAM disk has room");
        private(&path, 0o600);
        paths.push(path);
    }
    let mut input = Input(data);
    let order = input.byte();
    scribble(&paths, &mut input, How::Files);
    world::look(&root);
    if order & 1 == 0 {
        world::read_any(&root);
    }
    if order & 2 == 0
        && let Some(mut ports) = world::done(Ports::open(&root, "survivor"))
    {
        ports.carry_on();
    }
    if order & 4 == 0 {
        world::clean(&root);
    }
    world::look(&root);
}

/// As a member makes them: nobody else may look in.
fn make_parents(path: &std::path::Path, root: &std::path::Path) {
    for dir in path.ancestors().skip(1).take_while(|dir| dir.starts_with(root)) {
        let _ = fs::create_dir_all(dir);
        private(dir, 0o700);
    }
}

fn private(path: &std::path::Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
}
