//! The real-time core: stages, guard, and the drives at the end of the bus.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use outlive::rt::{LatestWriter, Realtime, SpscReader, Stop, Wait};
use outlive::{Node, Result, now_ns};
use robot::again::Again;
use robot::cell::{self, BUS_DEPTH, CellOptions};
use robot::cia402::State;
use robot::drive::{Drives, Sender};
use robot::kinematics::{HOME, solve};
use robot::messages::BusFrame;
use robot::planner::Planner;

use crate::{Part, PartArgs};

/// Where the drives say how they are.
pub(crate) const DRIVES: &str = "/drives";
/// Commands kept; older ones are of no use here.
const LOG_MAX: usize = 1;
const PATIENCE: Duration = Duration::from_secs(20);

/// `[commands that moved them, 1 while they follow, 1 once they have stopped]`.
pub(crate) type DriveState = [u64; 3];

pub(crate) fn run(args: &PartArgs, node: &Node) -> Result<()> {
    let options = CellOptions {
        period_ns: args.period_us * 1000,
        start_ns: args.start_ns,
        lifeline: true,
        priority: args.fifo,
        on_order: None,
    };
    let stop = Stop::new();
    match args.part {
        Part::Planner => cell::run_stages(node, &options, 0..1, &stop),
        Part::Ik => cell::run_stages(node, &options, 1..2, &stop),
        Part::Ethercat => cell::run_stages(node, &options, 2..3, &stop),
        Part::Guard => cell::run_guard(node, &options, &stop),
        _ => drives(node, &options),
    }
}

/// Plays the drives: takes frames eight times a period; another thread says how they are.
fn drives(node: &Node, options: &CellOptions) -> Result<()> {
    let frames = SpscReader::<BusFrame>::open(node, "arm/frames", BUS_DEPTH)?;
    let guard_frames = SpscReader::<BusFrame>::open(node, "arm/guard-frames", BUS_DEPTH)?;
    let answers = LatestWriter::<BusFrame>::open(node, "arm/answers")?;
    let seen: Arc<[AtomicU64; 3]> = Arc::default();
    let told = Arc::clone(&seen);
    let publisher = node.topic::<DriveState>(DRIVES)?.publisher()?;
    thread::spawn(move || {
        loop {
            let state: DriveState = std::array::from_fn(|i| told[i].load(Relaxed));
            if publisher.publish(&state).is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    });
    let mut frames = frames.connect(PATIENCE)?;
    let mut guard_frames = guard_frames.connect(PATIENCE)?;
    let mut answers = answers.connect(PATIENCE)?;
    let begin = solve(&Planner::default().pose(0.0), &HOME).unwrap_or(HOME);
    let mut drives = Drives::new(begin, now_ns(), LOG_MAX);
    let priority = (options.priority > 0).then_some(options.priority + 2);
    Realtime { priority, ..Realtime::default() }.apply();
    let tick_ns = options.period_ns / 8;
    let (mut next_ns, mut followed, mut moved) = (now_ns(), false, 0);
    let mut again: [Again; 3] = Default::default();
    loop {
        next_ns = (next_ns + tick_ns).max(now_ns());
        Wait::SpinThenSleep { spin_ns: 0 }.until(next_ns);
        drives.advance(now_ns());
        let mut took = 0;
        while let Ok(Some(frame)) = frames.pop() {
            let mut frame = frame.value;
            drives.take(&mut frame, Sender::Master, now_ns());
            // A master that is gone needs no answer.
            let _ = answers.write(&frame);
            took += u64::from(frame.step == 0 && frame.planned_ns > 0);
        }
        while let Ok(Some(frame)) = guard_frames.pop() {
            drives.take(&mut { frame.value }, Sender::Guard, now_ns());
        }
        again[0].look(frames.seems_alive(), |t| frames.reconnect(t));
        again[1].look(answers.seems_alive(), |t| answers.reconnect(t));
        again[2].look(guard_frames.seems_alive(), |t| guard_frames.reconnect(t));
        let follows = drives.states().contains(&State::OperationEnabled);
        if follows {
            moved += took;
        }
        seen[0].store(moved, Relaxed);
        seen[1].store(u64::from(follows), Relaxed);
        seen[2].store(u64::from(followed && !follows), Relaxed);
        followed |= follows;
    }
}
