//! Tests with several processes: this program, started again in another role.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::process::Command;

const ROLE: &str = "TESTKIT_ROLE";
const ARGS: &str = "TESTKIT_ARGS";
const SEPARATOR: char = '\u{1f}';

/// What this process was started for, if by [`spawn_self`] or [`spawn_test`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The name given at the start.
    pub name: String,
    /// The arguments given at the start.
    pub args: Vec<String>,
}

/// The role of this process; `None` in the first one.
pub fn role() -> Option<Role> {
    let name = std::env::var(ROLE).ok()?;
    let args = std::env::var(ARGS).unwrap_or_default();
    let args = args.split(SEPARATOR).filter(|a| !a.is_empty()).map(str::to_owned).collect();
    Some(Role { name, args })
}

/// A command that starts this program again in a role; `main` must look at [`role`] first.
///
/// The process dies with the thread that starts it.
pub fn spawn_self(role: &str, args: &[&str]) -> Command {
    let program = std::env::current_exe().expect("the path of this program");
    let mut command = Command::new(program);
    command.env(ROLE, role).env(ARGS, args.join(&SEPARATOR.to_string()));
    kill_with_parent(&mut command);
    command
}

/// Like [`spawn_self`] for a program of `#[test]`s: runs only `test`, which looks at [`role`].
pub fn spawn_test(test: &str, role: &str, args: &[&str]) -> Command {
    let mut command = spawn_self(role, args);
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command
}

/// A command for another program that dies with the thread that starts it.
pub fn spawn_program(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    kill_with_parent(&mut command);
    command
}

fn kill_with_parent(command: &mut Command) {
    let parent = std::process::id();
    let hook = move || {
        crate::process::die_with_parent(parent);
        Ok(())
    };
    // SAFETY: the hook makes three system calls and touches no memory of the parent.
    unsafe { command.pre_exec(hook) };
}
