//! The processes of a robot, and what they do when a fault is ordered.

use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use outlive::rt::Stop;
use outlive::{Node, now_ns};
use robot::cell::{self, CellOptions};
use robot::messages::Order;

use crate::spawn::{Role, spawn_self};

/// The role of the process beside the stages.
pub const GUARD: &str = "guard";
/// The role of a process with stages.
pub const STAGES: &str = "stages";

/// How the stages are spread. The guard is always a process of its own, and so are the drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// All stages in one process, a thread each.
    Threads,
    /// The planner in its own process, the others together.
    Hybrid,
    /// A process each.
    Processes,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Threads, Self::Hybrid, Self::Processes];

    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Threads => "one process",
            Self::Hybrid => "hybrid",
            Self::Processes => "processes",
        }
    }

    /// The stages of each process.
    pub(super) fn parts(self) -> impl Iterator<Item = Range<usize>> {
        let ends: &[usize] = match self {
            Self::Threads => &[0, 3],
            Self::Hybrid => &[0, 1, 3],
            Self::Processes => &[0, 1, 2, 3],
        };
        ends.windows(2).map(|pair| pair[0]..pair[1])
    }
}

/// The command that starts a part of the robot; its standard output tells of faults.
pub(super) fn command(root: &Path, options: &CellOptions, part: Option<Range<usize>>) -> Command {
    let role = if part.is_some() { STAGES } else { GUARD };
    let part = part.unwrap_or(0..0);
    let args = [
        root.display().to_string(),
        options.period_ns.to_string(),
        options.start_ns.to_string(),
        u8::from(options.lifeline).to_string(),
        options.priority.to_string(),
        part.start.to_string(),
        part.end.to_string(),
    ];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut command = spawn_self(role, &args);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

/// Plays the part that `role` names.
pub fn play(role: &Role) -> ExitCode {
    let number = |at: usize| role.args[at].parse::<u64>().expect("arguments of `command`");
    let options = CellOptions {
        period_ns: number(1),
        start_ns: number(2),
        lifeline: number(3) == 1,
        priority: number(4) as u8,
        on_order: Some(act),
    };
    let own = number(5) as usize..number(6) as usize;
    let name = if own.is_empty() { "guard".into() } else { cell::STAGES[own.start].to_owned() };
    let ran = Node::builder().root(&role.args[0]).name(name).open().and_then(|node| {
        match role.name.as_str() {
            GUARD => cell::run_guard(&node, &options, &Stop::new()),
            _ => cell::run_stages(&node, &options, own, &Stop::new()),
        }
    });
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{}: {e}", role.name);
            ExitCode::FAILURE
        }
    }
}

/// Does what was ordered, and says when.
fn act(order: Order) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Relaxed) {
        let mut out = std::io::stdout();
        let _ = writeln!(out, "{}", now_ns()).and_then(|()| out.flush());
    }
    match order.fault {
        // SAFETY: a system call without pointers, to this very process.
        1 => unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
        },
        // To this thread: another one would take its time, and this one would go on meanwhile.
        // SAFETY: a system call without pointers.
        2 => unsafe {
            libc::syscall(libc::SYS_tgkill, libc::getpid(), libc::gettid(), libc::SIGSTOP);
        },
        3 => loop {
            std::hint::spin_loop();
        },
        _ => {}
    }
}
