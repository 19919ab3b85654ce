//! The whole: which stage runs where, and the lifelines of the core and of the guard.
//!
//! ```text
//! planner --plan--> ik --angles--> ethercat --frames--> drives
//!                                     ^                   |  ^
//!                                     +-----answers-------+  |
//!                  guard ---------------- frames of its own -+
//! ```
//!
//! Stages of one process hand on through the heap, others through files. The bus and the guard are
//! always between processes.

use std::ops::Range;
use std::time::Duration;

use outlive::rt::{
    Board, BoardView, Cause, Cycle, Input, LatestReader, LatestWriter, Lifeline, Member, NOBODY,
    Outcome, SpscWriter, Stage, StageOptions, Step, Stop, Wait, board_name, latest,
};
use outlive::{Node, Result, now_ns};

use crate::again::Again;
use crate::kinematics::{HOME, Joints, solve};
use crate::master::{GuardBus, Master};
use crate::messages::{Angles, BusFrame, Order, Plan};
pub use crate::options::CellOptions;
use crate::planner::Planner;

/// Name of the pipeline.
pub const PIPELINE: &str = "arm";
/// Its stages.
pub const STAGES: [&str; 3] = ["planner", "ik", "ethercat"];
/// The board of the guard.
pub const GUARD: &str = "guard";
/// Frames that the bus holds.
pub const BUS_DEPTH: usize = 64;
/// Cycles for which the planner stays at the begin, while the drives are being enabled.
pub const BEGIN_CYCLES: u64 = 20;
/// Cycles in time, in a row, before the lifeline is armed and the drives are enabled.
const SETTLED_CYCLES: u32 = 5;
/// Cycles of quick-stop before the guard brakes.
const GUARD_STOP_CYCLES: u32 = 30;
const PATIENCE: Duration = Duration::from_secs(20);

/// Where orders come from and what they do.
type Obeyed = (LatestReader<Order>, fn(Order));

/// Orders for one stage.
struct OrderReader {
    reader: Option<Obeyed>,
    order: Option<Order>,
}

impl OrderReader {
    fn open(node: &Node, options: &CellOptions, stage: &str) -> Result<Self> {
        let open = |act: fn(Order)| -> Result<_> {
            let reader = LatestReader::<Order>::open(node, &order_name(stage))?;
            Ok((reader.connect(PATIENCE)?, act))
        };
        Ok(Self { reader: options.on_order.map(open).transpose()?, order: None })
    }

    /// Does what was ordered for this phase.
    fn at(&mut self, phase: u64) {
        let Some((reader, act)) = &mut self.reader else { return };
        let order = reader.read().ok().flatten();
        self.order = order.map(|order| order.value).filter(|o| o.fault != 0);
        if let Some(order) = self.order.filter(|order| order.phase == phase) {
            act(order);
        }
    }

    /// The order that the stage itself has to act on.
    fn is(&self, fault: u64) -> bool {
        self.order.is_some_and(|order| order.fault == fault)
    }
}

/// Where a stage finds its orders.
pub fn order_name(stage: &str) -> String {
    format!("{PIPELINE}/order/{stage}")
}

enum Work {
    Planner { planner: Box<Planner>, out: LatestWriter<Plan>, period_s: f64 },
    Ik { plans: LatestReader<Plan>, out: LatestWriter<Angles>, last: Joints },
    Master(Box<MasterStage>),
}

impl Work {
    /// Goes on with whoever came in the place of a neighbour that is gone.
    fn reconnect(&mut self, again: &mut [Again; 2]) {
        let [one, other] = again;
        match self {
            Self::Planner { out, .. } => one.look(out.seems_alive(), |t| out.reconnect(t)),
            Self::Ik { plans, out, .. } => {
                one.look(plans.seems_alive(), |t| plans.reconnect(t));
                other.look(out.seems_alive(), |t| out.reconnect(t));
            }
            Self::Master(stage) => {
                let MasterStage { angles, master, .. } = &mut **stage;
                one.look(angles.seems_alive(), |t| angles.reconnect(t));
                master.reconnect();
            }
        }
    }
}

struct MasterStage {
    master: Master,
    angles: LatestReader<Angles>,
    lifeline: Option<Lifeline>,
    fresh: Option<outlive::rt::Freshness>,
    /// Cycles in a row whose input came in time, before arming.
    settled: u32,
    armed: bool,
}

struct CellStage {
    work: Work,
    orders: OrderReader,
    again: [Again; 2],
}

impl Stage for CellStage {
    fn cycle(&mut self, cycle: &Cycle) -> Outcome {
        self.orders.at(0);
        let outcome = match &mut self.work {
            Work::Planner { planner, out, period_s } => {
                let moving = cycle.number.saturating_sub(BEGIN_CYCLES) as f64;
                let pose = planner.pose(moving * *period_s);
                self.orders.at(1);
                let mut plan = Plan::new(&pose, cycle.number, cycle.release_ns);
                if self.orders.is(4) {
                    plan.pose[0][3] = f64::NAN;
                } else if self.orders.is(5) {
                    plan.pose[2][3] += 0.2;
                }
                // Nobody there: the next stage is late anyway, and the lifeline is told of that.
                let _ = out.write(&plan);
                Outcome::HandOn
            }
            Work::Ik { plans, out, last } => {
                let plan = plans.read().ok().flatten().map(|plan| plan.value);
                // Not one that a planner left which is gone.
                let fresh = |plan: &Plan| plan.cycle >= cycle.number;
                let plan = plan.filter(fresh).filter(|_| cycle.input != Input::Late);
                let Some(plan) = plan else {
                    self.work.reconnect(&mut self.again);
                    return Outcome::Skip;
                };
                // No solution becomes no number: the next stage trips on it.
                let joints = solve(&crate::pose::Pose(plan.pose), last);
                self.orders.at(1);
                if let Ok(joints) = joints {
                    *last = joints;
                }
                let joints = joints.unwrap_or([f64::NAN; 6]);
                let _ =
                    out.write(&Angles { joints, cycle: plan.cycle, planned_ns: plan.planned_ns });
                Outcome::HandOn
            }
            Work::Master(stage) => {
                stage.cycle(cycle, &mut self.orders);
                Outcome::HandOn
            }
        };
        self.orders.at(2);
        self.work.reconnect(&mut self.again);
        outcome
    }
}

impl MasterStage {
    fn cycle(&mut self, cycle: &Cycle, orders: &mut OrderReader) {
        let bus = self.master.read(cycle.number);
        let angles = match cycle.input {
            Input::Late => None,
            _ => self.angles.read().ok().flatten().map(|angles| angles.value),
        };
        let Some(lifeline) = &mut self.lifeline else {
            // What a master without one does: commands what is there, whatever its age.
            self.master.enable();
            orders.at(1);
            match self.angles.read() {
                Ok(Some(angles)) => {
                    let _ = self.master.command(&angles.value);
                }
                _ => self.master.repeat(),
            }
            return;
        };
        let now = now_ns();
        if let (Some(fresh), Some(angles)) = (self.fresh, &angles) {
            lifeline.saw(fresh, angles.planned_ns);
        }
        // First the lifeline, then power: who fails while drives are being enabled trips it.
        self.settled = if angles.is_some() { self.settled + 1 } else { 0 };
        if !self.armed && self.settled >= SETTLED_CYCLES {
            lifeline.arm(now);
            self.armed = true;
            self.master.enable();
        }
        if self.armed {
            match (bus, &angles) {
                (Err(cause), _) => lifeline.trip(cause, NOBODY, now, cycle.number),
                (_, None) => lifeline.trip(Cause::MissedDeadline, 1, now, cycle.number),
                _ => {}
            }
        }
        orders.at(1);
        if lifeline.step(now, cycle.number, &mut self.master) != Step::Run {
            return;
        }
        match angles {
            Some(angles) => {
                if let Err(cause) = self.master.command(&angles) {
                    lifeline.trip(cause, 1, now, cycle.number);
                    lifeline.step(now, cycle.number, &mut self.master);
                }
            }
            None => self.master.repeat(),
        }
    }
}

/// A stage that has joined, ready to run on a thread.
struct Ready {
    member: Member,
    options: StageOptions,
    stage: CellStage,
}

fn channel(name: &str) -> String {
    format!("{PIPELINE}/{name}")
}

/// Runs the stages `own` of this process, each on a thread, until `stop`.
///
/// # Errors
/// Those of joining: `Timeout` when another part has not come.
pub fn run_stages(
    node: &Node,
    options: &CellOptions,
    own: Range<usize>,
    stop: &Stop,
) -> Result<()> {
    let schedule = options.schedule()?;
    // Everything of ours is made before anything of others is waited for.
    let joining: Vec<_> = own
        .clone()
        .map(|at| Member::open(node, PIPELINE, &STAGES, at, schedule))
        .collect::<Result<_>>()?;
    let plan_out = own.contains(&0) && !own.contains(&1);
    let plan_in = own.contains(&1) && !own.contains(&0);
    let angles_out = own.contains(&1) && !own.contains(&2);
    let angles_in = own.contains(&2) && !own.contains(&1);
    let plan_out = open_if(plan_out, || LatestWriter::<Plan>::open(node, &channel("plan")))?;
    let plan_in = open_if(plan_in, || LatestReader::<Plan>::open(node, &channel("plan")))?;
    let angles_out =
        open_if(angles_out, || LatestWriter::<Angles>::open(node, &channel("angles")))?;
    let angles_in = open_if(angles_in, || LatestReader::<Angles>::open(node, &channel("angles")))?;
    let has_bus = own.contains(&2);
    let frames =
        open_if(has_bus, || SpscWriter::<BusFrame>::open(node, &channel("frames"), BUS_DEPTH))?;
    let answers = open_if(has_bus, || LatestReader::<BusFrame>::open(node, &channel("answers")))?;

    let (mut plan_w, mut plan_r) = match own.contains(&0) && own.contains(&1) {
        true => some_both(latest()),
        false => (connect(plan_out)?, connect(plan_in)?),
    };
    let (mut angles_w, mut angles_r) = match own.contains(&1) && own.contains(&2) {
        true => some_both(latest()),
        false => (connect(angles_out)?, connect(angles_in)?),
    };
    let (mut frames, mut answers) = (connect(frames)?, connect(answers)?);

    let period = options.period_ns;
    let mut ready = Vec::new();
    for (at, joining) in own.zip(joining) {
        let member = joining.connect(PATIENCE)?;
        let orders = OrderReader::open(node, options, STAGES[at])?;
        let period_s = period as f64 * 1e-9;
        let missing = "opened above for this stage";
        let work = match at {
            0 => {
                let out = plan_w.take().expect(missing);
                Work::Planner { planner: Box::default(), out, period_s }
            }
            1 => {
                let plans = plan_r.take().expect(missing);
                let out = angles_w.take().expect(missing);
                Work::Ik { plans, out, last: HOME }
            }
            _ => {
                let (frames, answers) =
                    (frames.take().expect(missing), answers.take().expect(missing));
                let master = Master::new(frames, answers, period_s);
                let angles = angles_r.take().expect(missing);
                let stage = master_stage(node, options, &member, master, angles)?;
                Work::Master(Box::new(stage))
            }
        };
        let stage = CellStage { work, orders, again: Default::default() };
        ready.push(Ready {
            member,
            options: options.stage_options(options.input_limit_ns(at), 0),
            stage,
        });
    }
    std::thread::scope(|scope| {
        for Ready { mut member, options, mut stage } in ready {
            scope.spawn(move || member.run(&options, &mut stage, stop));
        }
    });
    Ok(())
}

fn open_if<T>(wanted: bool, open: impl FnOnce() -> Result<T>) -> Result<Option<T>> {
    wanted.then(open).transpose()
}

fn connect<End>(opening: Option<outlive::rt::Opening<End>>) -> Result<Option<End>> {
    opening.map(|opening| opening.connect(PATIENCE)).transpose()
}

fn some_both<A, B>(both: (A, B)) -> (Option<A>, Option<B>) {
    (Some(both.0), Some(both.1))
}

fn master_stage(
    node: &Node,
    options: &CellOptions,
    member: &Member,
    master: Master,
    angles: LatestReader<Angles>,
) -> Result<MasterStage> {
    let (mut lifeline, mut fresh) = (None, None);
    if options.lifeline {
        let mut line = Lifeline::new(member.board()).stop_cycles(100);
        for stage in &STAGES[..2] {
            let board = BoardView::open(node, &board_name(PIPELINE, stage), PATIENCE)?;
            line.moves(stage, board, 2 * options.period_ns);
        }
        let guard = BoardView::open(node, &board_name(PIPELINE, GUARD), PATIENCE)?;
        // It moves at each deadline; one that is missing shows at the next cycle but one.
        line.moves(GUARD, guard, options.period_ns);
        fresh = Some(line.fresh("plan", options.age_ns_max()));
        lifeline = Some(line);
    }
    Ok(MasterStage { master, angles, lifeline, fresh, settled: 0, armed: false })
}

/// Runs the guard: looks at the core at each deadline, and stops the drives by its own ring.
///
/// # Errors
/// As [`run_stages`].
pub fn run_guard(node: &Node, options: &CellOptions, stop: &Stop) -> Result<()> {
    let schedule = options.schedule()?;
    let board = Board::create(node, &board_name(PIPELINE, GUARD))?;
    let frames = SpscWriter::<BusFrame>::open(node, &channel("guard-frames"), BUS_DEPTH)?;
    let core = BoardView::open(node, &board_name(PIPELINE, STAGES[2]), PATIENCE)?;
    let mut bus = GuardBus::new(frames.connect(PATIENCE)?);
    let mut orders = OrderReader::open(node, options, GUARD)?;
    let mut lifeline = Lifeline::new(board).hold_cycles(0).stop_cycles(GUARD_STOP_CYCLES);
    lifeline.on_time(STAGES[2], core.clone(), schedule);
    options.stage_options(options.period_ns, 1).realtime.apply();
    let mut n = 0;
    let mut armed = false;
    while !stop.is_stopped() {
        Wait::SpinThenSleep { spin_ns: 0 }.until(schedule.release_ns(n) + schedule.deadline_ns());
        orders.at(0);
        let now = now_ns();
        if !armed && core.cycles_done() >= u64::from(SETTLED_CYCLES) {
            lifeline.arm(now);
            armed = true;
        }
        // It moves once it is armed: without it the core trips before any drive follows.
        if armed {
            lifeline.board().moved(now);
        }
        orders.at(1);
        lifeline.step(now, n, &mut bus);
        orders.at(2);
        bus.reconnect();
        let due = schedule.start_ns() + schedule.deadline_ns();
        n = (n + 1).max(now_ns().saturating_sub(due) / schedule.period_ns());
    }
    Ok(())
}
