//! One robot, one fault, one verdict.

use std::io::{self, Read};
use std::path::Path;
use std::process::Child;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use outlive::rt::{BoardView, Latch, LatestWriter, Phase, board_name};
use outlive::{Node, now_ns};
use robot::cell::{CellOptions, GUARD, PIPELINE, STAGES, order_name};
use robot::messages::Order;

use super::drives::DriveThread;
use super::judge::{Hit, Verdict, judge};
use super::parts::command;
use super::plan::{Fault, Moment, Plan, Victim, When};

const PATIENCE: Duration = Duration::from_secs(20);

struct Robot {
    children: Vec<Child>,
    victim: usize,
}

impl Drop for Robot {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs one round in the domain under `root`.
///
/// # Errors
/// When the robot does not start.
pub fn run(root: &Path, plan: &Plan) -> io::Result<Verdict> {
    let options = CellOptions {
        period_ns: plan.period_ns,
        start_ns: now_ns() + 30_000_000,
        lifeline: plan.lifeline,
        priority: plan.priority,
        on_order: None,
    };
    let other = |e: outlive::Error| io::Error::other(e.to_string());
    let node = Node::builder().root(root).name("drives").open().map_err(other)?;
    let drives = DriveThread::start(node.clone(), options);
    let mut writers = Vec::new();
    let parts = STAGES.iter().chain(plan.lifeline.then_some(&GUARD));
    for part in parts.clone() {
        writers.push(LatestWriter::<Order>::open(&node, &order_name(part)).map_err(other)?);
    }
    let mut robot = Robot { children: Vec::new(), victim: 0 };
    for own in plan.form.parts() {
        if own.contains(&(plan.victim as usize)) {
            robot.victim = robot.children.len();
        }
        robot.children.push(command(root, &options, Some(own)).spawn()?);
    }
    if plan.lifeline {
        if plan.victim == Victim::Guard {
            robot.victim = robot.children.len();
        }
        robot.children.push(command(root, &options, None).spawn()?);
    }
    let mut boards = Vec::new();
    for part in parts {
        boards.push(BoardView::open(&node, &board_name(PIPELINE, part), PATIENCE).map_err(other)?);
    }
    let mut orders = Vec::new();
    for writer in writers {
        orders.push(writer.connect(PATIENCE).map_err(other)?);
    }

    let began = Instant::now();
    let latched = |boards: &[BoardView]| boards.iter().any(|board| board.latch().is_some());
    // Without lifelines they are let come to speed: what a stale command does shows then only.
    let commands = if plan.lifeline { 6 } else { 100 };
    let ready = || match plan.when {
        When::Enabling => drives.seen.powered.load(Relaxed) > 0,
        When::Moving => drives.seen.moved.load(Relaxed) >= commands,
    };
    while !ready() && !latched(&boards) {
        if began.elapsed() > PATIENCE {
            return Err(io::Error::other("the robot does not move"));
        }
        std::thread::sleep(Duration::from_micros(300));
    }
    std::thread::sleep(Duration::from_nanos(plan.run_ns));

    if latched(&boards) {
        return Ok(Verdict::too_early(latches(&boards)));
    }
    let mut hit = strike(plan, &mut robot, &mut orders, &boards)?;
    let period = Duration::from_nanos(plan.period_ns);
    let began = Instant::now();
    let limit = if plan.lifeline { Duration::from_secs(2) } else { period * 60 };
    while began.elapsed() < limit {
        if plan.lifeline && drives.seen.stopped.load(Relaxed) == 1 {
            break;
        }
        std::thread::sleep(period / 4);
    }
    std::thread::sleep(period * 10);
    // Those of now: a stopped one that is continued may find something more.
    let latches = latches(&boards);
    if plan.fault.signal().is_some() {
        hit.moved_ns = moved_last(plan, &boards);
    }
    if plan.fault == Fault::Stop {
        signal(&robot.children[robot.victim], libc::SIGCONT);
        std::thread::sleep(period * 20);
    }
    if plan.fault == Fault::Replace {
        hit.replaced = Some(replace(root, plan, &options, &node, &mut robot, &mut orders)?);
        std::thread::sleep(period * 20);
    }
    let watched = drives.end().map_err(other)?;
    drop(robot);
    Ok(judge(plan, &options, &watched, latches, &hit))
}

/// Starts the dead part again, as a supervisor does; whether it and the whole core work then.
fn replace(
    root: &Path,
    plan: &Plan,
    options: &CellOptions,
    node: &Node,
    robot: &mut Robot,
    orders: &mut [LatestWriter<Order>],
) -> io::Result<bool> {
    let part = plan.form.parts().find(|part| part.contains(&(plan.victim as usize)));
    let child = &mut robot.children[robot.victim];
    child.wait()?;
    // The order that killed it is not its successor's.
    for order in orders.iter_mut() {
        let _ = order.write(&Order { fault: 0, phase: 0 });
    }
    *child = command(root, options, part.clone()).spawn()?;
    let board = |name: &str| BoardView::open(node, &board_name(PIPELINE, name), Duration::ZERO);
    let last = |board: &BoardView| board.counts().run - board.counts().late;
    let (began, mut in_time) = (Instant::now(), None);
    while began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_nanos(options.period_ns));
        for order in orders.iter_mut().filter(|order| !order.seems_alive()) {
            let _ = order.reconnect(Duration::ZERO);
        }
        let own = match &part {
            Some(own) => own.clone().all(|at| board(STAGES[at]).is_ok_and(|b| b.counts().run > 5)),
            None => board(GUARD).is_ok_and(|board| board.moved_ns() > 0),
        };
        let Ok(ethercat) = board(STAGES[2]) else { continue };
        // From when the new part works: cycles that came through all stages in time.
        if own && last(&ethercat) > *in_time.get_or_insert(last(&ethercat)) + 5 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What the core's lifeline says, and the guard's.
fn latches(boards: &[BoardView]) -> [Option<Latch>; 2] {
    [2, 3].map(|at| boards.get(at)?.latch())
}

/// When a stage of the victim's process last showed that it moved, ns.
fn moved_last(plan: &Plan, boards: &[BoardView]) -> u64 {
    let victim = plan.victim as usize;
    let own = plan.form.parts().find(|part| part.contains(&victim)).unwrap_or(victim..victim + 1);
    own.filter_map(|at| boards.get(at)).map(BoardView::moved_ns).max().unwrap_or(0)
}

/// To the newest thread, a stage's: the first one has no real-time priority, and a signal that
/// it has to take waits until it runs.
fn signal_newest_thread(child: &Child, signal: i32) {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id()));
    let ids = tasks.into_iter().flatten().flatten();
    let newest = ids.filter_map(|id| id.file_name().to_str()?.parse::<i32>().ok()).max();
    let thread = newest.unwrap_or(child.id() as i32);
    // SAFETY: a system call without pointers; the child is not reaped, so its id is its own.
    unsafe { libc::syscall(libc::SYS_tgkill, child.id() as i32, thread, signal) };
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: a system call without pointers; the child is not reaped, so its id is its own.
    unsafe { libc::kill(child.id() as i32, signal) };
}

fn place(plan: &Plan, name: &str) -> String {
    match plan.when {
        When::Enabling => format!("enabling: {name}"),
        When::Moving => name.into(),
    }
}

/// Lets the fault happen; when it did, and where.
fn strike(
    plan: &Plan,
    robot: &mut Robot,
    orders: &mut [LatestWriter<Order>],
    boards: &[BoardView],
) -> io::Result<Hit> {
    let victim = plan.victim as usize;
    let child = &mut robot.children[robot.victim];
    if let (Moment::Anywhere, Some(number)) = (plan.moment, plan.fault.signal()) {
        let at_ns = now_ns();
        signal_newest_thread(child, number);
        let took_ns = now_ns() - at_ns;
        // The board of the dead or stopped says where.
        std::thread::sleep(Duration::from_micros(200));
        let hit = match (plan.victim, boards[victim].doing().phase) {
            (Victim::Guard, _) => "outside",
            (_, Phase::Idle) => "outside: idle",
            (_, Phase::Waiting) => "outside: waiting",
            (_, Phase::Running) => "outside: running",
            (_, Phase::HandingOn) => "outside: handing on",
        };
        return Ok(Hit { at_ns, took_ns, moved_ns: 0, place: place(plan, hit), replaced: None });
    }
    let Moment::Phase(phase) = plan.moment else {
        return Err(io::Error::other("no such fault from outside"));
    };
    let order = Order { fault: plan.fault.order(), phase };
    orders[victim].write(&order).map_err(io::Error::other)?;
    // It says when it obeys.
    let mut said = Vec::new();
    let out = child.stdout.as_mut().expect("piped");
    let mut byte = [0];
    while said.last() != Some(&b'\n') {
        if out.read(&mut byte)? == 0 {
            return Err(io::Error::other(format!("{:?} ended before its order", plan.victim)));
        }
        said.push(byte[0]);
    }
    let at_ns = String::from_utf8_lossy(&said).trim().parse().map_err(io::Error::other)?;
    let name = ["before its work", "in its work", "after its work"][phase as usize];
    Ok(Hit { at_ns, took_ns: 0, moved_ns: 0, place: place(plan, name), replaced: None })
}
