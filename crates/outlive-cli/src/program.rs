//! Programs of their own that `outlive` becomes, so that nobody else needs what they bring along.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::exit::{Code, Failure};
use crate::options::DomainOptions;

/// Beside this program, else whatever PATH has.
pub(crate) fn find(name: &str) -> OsString {
    let own = std::env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(|dir| dir.join(name));
    beside.filter(|path| path.is_file()).map_or(name.into(), PathBuf::into_os_string)
}

/// Becomes `command`, which is that of program `name`; returns only why it cannot.
pub(crate) fn become_it(
    name: &str,
    mut command: Command,
    install: &str,
    options: &DomainOptions,
) -> Failure {
    if let Some(domain) = &options.domain {
        command.args(["--domain", domain]);
    }
    if let Some(root) = &options.root {
        command.env("OUTLIVE_DIR", root);
    }
    let error = command.exec();
    match error.kind() {
        ErrorKind::NotFound => Failure::new(
            Code::Failed,
            format!("{name} is neither beside this program nor in PATH; install it: {install}"),
        ),
        _ => Failure::io(&format!("starting {name}"), &error),
    }
}
