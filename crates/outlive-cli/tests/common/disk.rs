//! A disk of any size, for a test of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::role;
use testkit::spawn::{spawn_program, spawn_test};

use super::Home;

/// Each test body runs in a mount namespace with a tmpfs of its own.
pub(crate) fn on_a_disk_of(size: &str, test: &str, body: impl FnOnce(&Path)) {
    const MOUNT: &str = "mount -t tmpfs -o size=$0 none \"$1\" && shift && exec \"$@\"";
    if let Some(role) = role() {
        body(Path::new(&role.args[0]));
        println!("was on the disk");
        return;
    }
    let home = Home::new("disk");
    let dir = home.root().with_file_name("disk");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.to_str().unwrap();
    let may = Command::new("unshare").args(["-rm", "sh", "-c", MOUNT, size, path, "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        println!("full disk: skipped, no tmpfs can be mounted in a namespace here");
        return;
    }
    let this = spawn_test(test, "on the disk", &[path]);
    let mut command = spawn_program("unshare");
    command.args(["-rm", "sh", "-c", MOUNT, size, path]);
    command.arg(this.get_program()).args(this.get_args());
    command.envs(this.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = command.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains("was on the disk"), "{}: {told}", ran.status);
    print!("{told}");
}
