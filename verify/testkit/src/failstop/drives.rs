//! The drives at the end of the bus: a thread that ticks sixteen times a cycle.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;

use outlive::rt::{LatestWriter, Realtime, SpscReader, Stamped, Stop, Wait};
use outlive::{Node, Result, now_ns};
use robot::again::Again;
use robot::cell::{BUS_DEPTH, CellOptions};
use robot::cia402::State;
use robot::drive::{Drives, Sender};
use robot::kinematics::{HOME, solve};
use robot::messages::BusFrame;
use robot::planner::Planner;

/// Ticks a period: a real drive takes a frame as it passes.
const TICKS: u64 = 16;
/// Commands and late ticks that are logged.
const LOG_MAX: usize = 20_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// What the harness may know while the drives run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// 1 once power may be switched on.
    pub(super) powered: AtomicU64,
    /// Commands with a new target since they follow.
    pub(super) moved: AtomicU64,
    /// 1 once a command of the safe state came and none follows, or their watchdog stopped them.
    pub(super) stopped: AtomicU64,
}

/// The drives at the end of a round, and how they were served.
#[derive(Debug)]
pub(super) struct Watched {
    pub(super) drives: Drives,
    /// When each command of the log was sent, ns.
    pub(super) sent_ns: Vec<u64>,
    /// When the thread ticked late, and by how much, ns.
    pub(super) late: Vec<(u64, u64)>,
    /// Whether their watchdog stopped them.
    pub(super) watchdog: bool,
}

impl Watched {
    /// The longest delay of the thread's own ticks between two moments, ns.
    pub(super) fn late_between(&self, from_ns: u64, to_ns: u64) -> u64 {
        let hit = |(at, late): &&(u64, u64)| *at >= from_ns && at - late <= to_ns;
        self.late.iter().filter(hit).map(|(_, late)| *late).max().unwrap_or(0)
    }
}

/// The running thread.
#[derive(Debug)]
pub(super) struct DriveThread {
    stop: Stop,
    thread: Option<JoinHandle<Result<Watched>>>,
    pub(super) seen: Arc<Seen>,
}

impl DriveThread {
    pub(super) fn start(node: Node, options: CellOptions) -> Self {
        let (stop, seen) = (Stop::new(), Arc::<Seen>::default());
        let (ends, sees) = (stop.clone(), Arc::clone(&seen));
        let thread = std::thread::spawn(move || run(&node, &options, &ends, &sees));
        Self { stop, thread: Some(thread), seen }
    }

    /// Ends it; the drives with their log.
    pub(super) fn end(mut self) -> Result<Watched> {
        self.stop.stop();
        let thread = self.thread.take().expect("ended once");
        thread.join().expect("the drives do not panic")
    }
}

impl Drop for DriveThread {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(node: &Node, options: &CellOptions, stop: &Stop, seen: &Seen) -> Result<Watched> {
    let open = |name: &str| SpscReader::<BusFrame>::open(node, name, BUS_DEPTH);
    let frames = open("arm/frames")?;
    let guard_frames = if options.lifeline { Some(open("arm/guard-frames")?) } else { None };
    let answers = LatestWriter::<BusFrame>::open(node, "arm/answers")?;
    let mut frames = frames.connect(PATIENCE)?;
    let mut guard_frames = guard_frames.map(|g| g.connect(PATIENCE)).transpose()?;
    let mut answers = answers.connect(PATIENCE)?;

    let begin = solve(&Planner::default().pose(0.0), &HOME).expect("the path begins in reach");
    let drives = Drives::new(begin, now_ns(), LOG_MAX);
    let (sent_ns, late) = (Vec::with_capacity(LOG_MAX), Vec::with_capacity(LOG_MAX));
    let mut watched = Watched { drives, sent_ns, late, watchdog: false };
    let priority = (options.priority > 0).then_some(options.priority + 2);
    Realtime { priority, ..Realtime::default() }.apply();
    let tick_ns = options.period_ns / TICKS;
    let mut next_ns = now_ns();
    let (mut told, mut moved) = (false, 0);
    let mut again: [Again; 3] = Default::default();
    while !stop.is_stopped() {
        next_ns = (next_ns + tick_ns).max(now_ns());
        Wait::SpinThenSleep { spin_ns: 0 }.until(next_ns);
        let now = now_ns();
        if now > next_ns + tick_ns && watched.late.len() < LOG_MAX {
            watched.late.push((now, now - next_ns));
        }
        let Watched { drives, sent_ns, watchdog, .. } = &mut watched;
        drives.advance(now);
        let fault = |s: &State| matches!(s, State::FaultReactionActive | State::Fault);
        *watchdog |= drives.states().iter().any(fault);
        let mut take = |frame: Stamped<BusFrame>, sender| {
            let (mut bus, before) = (frame.value, drives.log().len());
            drives.take(&mut bus, sender, now_ns());
            if let Some(record) = drives.log().get(before) {
                sent_ns.push(frame.sent_ns);
                told |= record.step > 0;
                // What is sent before the planner's first pose only names where they are.
                moved += u64::from(record.new_target && record.planned_ns > 0);
            }
            bus
        };
        while let Ok(Some(frame)) = frames.pop() {
            // A master that is gone needs no answer.
            let _ = answers.write(&take(frame, Sender::Master));
        }
        if let Some(guard_frames) = &mut guard_frames {
            while let Ok(Some(frame)) = guard_frames.pop() {
                take(frame, Sender::Guard);
            }
            again[2].look(guard_frames.seems_alive(), |t| guard_frames.reconnect(t));
        }
        again[0].look(frames.seems_alive(), |t| frames.reconnect(t));
        again[1].look(answers.seems_alive(), |t| answers.reconnect(t));
        let powered = drives.states().iter().any(|s| *s != State::SwitchOnDisabled);
        seen.powered.store(u64::from(powered), Relaxed);
        seen.moved.store(moved, Relaxed);
        let stopped = (told || *watchdog) && !drives.follow();
        seen.stopped.store(u64::from(stopped), Relaxed);
    }
    Ok(watched)
}
