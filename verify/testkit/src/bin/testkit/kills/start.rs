//! Kills processes at random instants of their first 20 ms, all on one topic: it opens every time,
//! and one `clean` leaves nothing. 2,000 starts; quick: 200.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use outlive::{Domain, Node, NodeBuilder};
use testkit::spawn::Role;
use testkit::startup::kill_at_startup;
use testkit::{TempDomain, seed_from_env, spawn_self};

use crate::args::Quick;

/// The role of those who are killed.
pub(crate) const ROLE: &str = "start-kills member";

const TOPIC: &str = "/start/kills";
const WINDOW: Duration = Duration::from_millis(20);

fn settings(root: &Path) -> NodeBuilder {
    Node::builder().root(root).name("member")
}

/// Joins, sends and receives; `forever` for those who are killed.
fn take_part(root: &Path, forever: bool) -> outlive::Result<bool> {
    let node = settings(root).open()?;
    let publisher = node.topic::<[u64]>(TOPIC)?.depth(4).publisher()?;
    let mut subscriber = node.topic::<[u64]>(TOPIC)?.depth(4).history(4).subscriber()?;
    loop {
        for size in [3, 2000] {
            publisher.publish(&vec![size as u64; size])?;
        }
        let mut mine = false;
        while let Some(sample) = subscriber.receive()? {
            mine |= sample.publisher() == publisher.id() && sample.len() == 2000;
        }
        if !forever {
            return Ok(mine);
        }
    }
}

fn check(root: &Path, n: u64) -> Result<(), String> {
    match take_part(root, false) {
        Ok(true) => {}
        Ok(false) => return Err("its own message did not come back".into()),
        Err(error) => return Err(error.to_string()),
    }
    let domain = Domain::of(&settings(root)).map_err(|e| e.to_string())?;
    let audit = domain.audit().map_err(|e| e.to_string())?;
    if !audit.faults.is_empty() {
        return Err(audit.faults.join("; "));
    }
    if n % 50 == 49 {
        let report = domain.clean().map_err(|e| e.to_string())?;
        if root.exists() {
            return Err(format!("left: {:?} after {report:?}", testkit::temp::listing(root)));
        }
    }
    Ok(())
}

/// Takes part until it is killed.
pub(crate) fn play(role: &Role) -> ExitCode {
    match take_part(Path::new(&role.args[0]), true) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("start-kills: a member failed: {error}");
            ExitCode::FAILURE
        }
    }
}

pub(crate) fn run(args: Quick) -> ExitCode {
    let starts = if args.quick { 200 } else { 2000 };
    let temp = TempDomain::new("start-kills").expect("a directory on the RAM disk");
    let root = temp.path().join("root");
    let path = root.to_str().expect("an ASCII path").to_owned();
    let seed = seed_from_env("START_SEED");
    let command = |_| spawn_self(ROLE, &[&path]);
    let report = kill_at_startup(seed, starts, WINDOW, command, |n, _| check(&root, n));
    println!("{}", report.summary("one topic, first 20 ms"));
    for (n, what) in report.failures.iter().take(10) {
        println!("  start {n}: {what}");
    }
    let enough = report.kills * 2 > report.starts;
    if report.failures.is_empty() && enough { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
