//! What happens, and what must be true of it.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use measure::cores::allowed_cpus;
use outlive::rt::{BoardView, Histogram, Latch, board_name};
use outlive::{Domain, Node, Shutdown, Subscriber, now_ns};
use outlive_run::{Answer, Identity, Request, RunDir, State, ask};
use robot::cell::{GUARD, PIPELINE, STAGES};

use crate::file::{CORE, SERVICES, may_fifo, robot_file, split};
use crate::parts::{DRIVES, DriveState};
use crate::stage::Stage;
use crate::tally::{Tally, Window, is_the_machine};
use crate::teller::{Failure, Teller, must, untrue};
use crate::witness::Witness;
use crate::{DemoArgs, builder, os};

/// Ends a demo that hangs; nothing is judged by the time it takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time spent in tries without a round that counts, one after the other, at most.
const LOST_MAX: Duration = Duration::from_secs(30);
/// Machines differ in what they can keep up with: each try takes twice the period, up to this, us.
const PERIOD_MAX_US: u64 = 32_000;

pub(crate) fn play(args: &DemoArgs) -> Result<(), Failure> {
    let teller = Teller::new();
    let shutdown = Shutdown::on_signals()?;
    let (mut period_us, mut tally) = (args.period_us, Tally::begin());
    let mut lost = Duration::ZERO;
    loop {
        let (begun, before) = (Instant::now(), tally.rounds);
        let stage = Stage::set()?;
        let mut story = Story::begin(args, (&teller, &shutdown), &stage, period_us)?;
        let (window, why) = match story.tell(&mut tally)? {
            Told::All => {
                story.end()?;
                drop(story);
                return Ok(());
            }
            Told::TooFast(window, why) => (window, why),
        };
        let worst = story.witness.worst();
        let what = format!(
            "with {period_us} us the core stopped itself after {} kills: {why}. A sleeper of its \
             priority beside it woke up to {worst:.1?} late",
            story.killed
        );
        if !is_the_machine(story.struck, worst, period_us) {
            return Err(untrue(format!("the core goes on while services are killed: {what}")));
        }
        tally.give_up(window);
        if let Some(p) = tally.is_uneven() {
            return Err(untrue(format!(
                "kills are not what makes the machine stand still (by chance with p = {p:.4}): \
                 {what}"
            )));
        }
        lost = if tally.rounds > before { Duration::ZERO } else { lost + begun.elapsed() };
        if !tally.has_hope() || lost > LOST_MAX {
            if tally.rounds > 0 {
                teller.more(format_args!("what the rounds before it came to:"));
                tally.tell(&teller, period_us);
            }
            if 2 * period_us > PERIOD_MAX_US || lost > LOST_MAX {
                let what = format!("the machine stood still, so this proves nothing: {what}");
                return Err(Failure::HeldUp(what));
            }
            (period_us, tally) = (2 * period_us, Tally::begin());
        }
        teller.more(format_args!("{what}. Once more with {period_us} us"));
    }
}

enum Told {
    All,
    /// A lifeline tripped before the core was touched, in this window if it was one.
    TooFast(Option<Window>, String),
}

/// What the lifelines tripped on.
fn why(core: &BoardView, guard: &BoardView) -> String {
    let told = |who: &str, board: &BoardView| {
        let of = |subject: u8| STAGES.get(usize::from(subject)).copied().unwrap_or(who);
        let tell = |l: Latch| format!("{who} in cycle {}: {} {}", l.cycle, of(l.subject), l.cause);
        board.latch().map(tell)
    };
    let both = [told("core", core), told("guard", guard)];
    both.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

struct Story<'a> {
    args: &'a DemoArgs,
    teller: &'a Teller,
    shutdown: &'a Shutdown,
    dir: RunDir,
    supervisor: Child,
    /// Ours, to look at boards and topics.
    node: Node,
    witness: Witness,
    period_us: u64,
    /// Services killed.
    killed: u32,
    /// Whether anything was killed, a part of the core too.
    struck: bool,
    random: u64,
}

impl<'a> Story<'a> {
    fn begin(
        args: &'a DemoArgs,
        (teller, shutdown): (&'a Teller, &'a Shutdown),
        stage: &Stage,
        period_us: u64,
    ) -> Result<Self, Failure> {
        let root = stage.dir().join("root");
        let here = || builder().root(&root);
        let fifo = if may_fifo(args.fifo) { args.fifo } else { 0 };
        let file = stage.dir().join("robot.toml");
        let start_ns = now_ns() + 1_500_000_000;
        let cpus = allowed_cpus()?;
        let text = robot_file(period_us, start_ns, fifo, &cpus)?;
        fs::write(&file, text).map_err(|e| Failure::io("write robot.toml", &e))?;
        let node = here().name("demo").open()?;
        let mut supervisor = Command::new("/proc/self/exe");
        // Killed, we leave no robot running.
        os::stop_with_parent(&mut supervisor);
        let supervisor = supervisor
            .arg0("demo-robot")
            .args(["supervise", "--root"])
            .arg(&root)
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|e| Failure::io("start the supervisor", &e))?;
        let how = match fifo {
            0 => "SCHED_OTHER (this user may not use SCHED_FIFO)".into(),
            n => format!("SCHED_FIFO {n}"),
        };
        let (core, services) = split(&cpus);
        let parts = CORE.join(", ");
        teller.more(format_args!("core: {parts} at {period_us} us, {how}, processor {core:?}"));
        let parts = SERVICES.join(", ");
        teller.more(format_args!("services: {parts}, processors {services:?}"));
        let dir = RunDir::of(&Domain::of(&here())?);
        let witness = Witness::start(fifo, &cpus, period_us * 1000 / 8);
        let (killed, struck, random) = (0, false, now_ns() | 1);
        Ok(Self {
            args,
            teller,
            shutdown,
            dir,
            supervisor,
            node,
            witness,
            period_us,
            killed,
            struck,
            random,
        })
    }

    /// Plays the rounds that `tally` lacks, then the end.
    fn tell(&mut self, tally: &mut Tally) -> Result<Told, Failure> {
        self.until("all processes are ready", |state| {
            state.processes.iter().all(|p| p.phase == outlive_run::Phase::Ready)
        })?;
        let open = |part: &str| {
            let name = board_name(PIPELINE, part);
            BoardView::open(&self.node, &name, Duration::from_secs(20))
        };
        let (core, guard) = (open(STAGES[2])?, open(GUARD)?);
        let mut drives = self.node.topic::<DriveState>(DRIVES)?.subscriber()?;
        let begun = Instant::now();
        // Two seconds of motion at most.
        while last(&mut drives)?[0] < (2_000_000 / self.period_us).clamp(20, 500) {
            if core.latch().is_some() || guard.latch().is_some() {
                return Ok(Told::TooFast(None, why(&core, &guard)));
            }
            self.patience(begun, "the drives move")?;
        }
        let before = self.identities(&CORE)?;
        while tally.rounds < self.args.rounds {
            if let Some(window) = self.round(tally, &core, &guard)? {
                return Ok(Told::TooFast(Some(window), why(&core, &guard)));
            }
        }
        let after = self.identities(&CORE)?;
        must(before == after, || "every process of the core is the one it was".into())?;
        self.teller.killed(format_args!("{} services; each came back", tally.kills));
        tally.tell(self.teller, self.period_us);
        self.kill_ik(&core, &guard, &mut drives)
    }

    /// A window without kills and one with; the window in which the core stopped itself.
    fn round(
        &mut self,
        tally: &mut Tally,
        core: &BoardView,
        guard: &BoardView,
    ) -> Result<Option<Window>, Failure> {
        let kills = self.args.kills * (tally.rounds + 1) / self.args.rounds - tally.kills;
        // Calm, killing, killing, calm, ...: what drifts falls on both alike.
        let order = match tally.rounds % 2 {
            0 => [Window::Calm, Window::Killing],
            _ => [Window::Killing, Window::Calm],
        };
        let (mut calm, mut killing) = (None, None);
        for window in order {
            match window {
                Window::Calm => calm = Some(self.window(core, 0)?),
                Window::Killing => killing = Some(self.window(core, kills)?),
            }
            if core.latch().is_some() || guard.latch().is_some() {
                return Ok(Some(window));
            }
        }
        self.until_all_are_back()?;
        let restarts: u64 = self.state()?.processes.iter().map(|p| p.restarts).sum();
        must(restarts == u64::from(self.killed), || {
            format!("each killed service is restarted once: {} kills, {restarts}", self.killed)
        })?;
        if let (Some(calm), Some(killing)) = (calm, killing) {
            tally.add(kills, calm, killing);
        }
        Ok(None)
    }

    fn until_all_are_back(&self) -> Result<(), Failure> {
        self.until("every killed service is back", |state| {
            let mut services = state.processes.iter().filter(|p| SERVICES.contains(&&*p.name));
            services.all(|p| p.phase == outlive_run::Phase::Ready)
        })
    }

    /// Lets a window pass in which `kills` services are killed, and says what the core did in it.
    fn window(&mut self, core: &BoardView, kills: u32) -> Result<Histogram, Failure> {
        let length = Duration::from_millis(self.args.window_ms);
        // The window before ends with restarts.
        self.until_all_are_back()?;
        self.witness.forget();
        let before = core.after_release();
        let begun = Instant::now();
        for n in 0..kills {
            let due = length * n / kills.max(1);
            while begun.elapsed() < due && core.latch().is_none() {
                self.rest()?;
            }
            self.kill_a_service()?;
        }
        while begun.elapsed() < length && core.latch().is_none() {
            self.rest()?;
        }
        Ok(core.after_release().since(&before))
    }

    fn kill_a_service(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            let name = SERVICES[(self.random % SERVICES.len() as u64) as usize];
            let state = self.state()?;
            let found = state.processes.iter().find(|p| p.name == name);
            let ready = found.filter(|p| p.phase == outlive_run::Phase::Ready);
            if ready.and_then(|p| p.process).is_some_and(|p| p.signal(libc::SIGKILL)) {
                (self.killed, self.struck) = (self.killed + 1, true);
                // It counts as ready until the supervisor has seen it: nobody is hit twice.
                return self.until("a killed service is missed", |state| {
                    let now = state.processes.iter().find(|p| p.name == name);
                    now.and_then(|p| p.process) != ready.and_then(|p| p.process)
                });
            }
            self.patience(begun, "some service lives")?;
        }
    }

    fn kill_ik(
        &mut self,
        core: &BoardView,
        guard: &BoardView,
        drives: &mut Subscriber<DriveState>,
    ) -> Result<Told, Failure> {
        let ik = self.identities(&["ik"])?[0];
        let killed_ns = now_ns();
        self.struck = true;
        ik.signal(libc::SIGKILL);
        let begun = Instant::now();
        while last(drives)?[2] == 0 {
            self.patience(begun, "the drives brake after the kinematics died")?;
        }
        let moved = last(drives)?[0];
        let latch = loop {
            // Whoever is quicker.
            match core.latch().or(guard.latch()) {
                Some(latch) => break latch,
                None => self.patience(begun, "the core says why it stopped")?,
            }
        };
        if latch.at_ns < killed_ns {
            return Ok(Told::TooFast(None, why(core, guard)));
        }
        let us = latch.at_ns.saturating_sub(killed_ns) / 1000;
        self.teller.killed("the inverse kinematics, part of the core");
        let cause = latch.cause;
        self.teller.more(format_args!("found after {us} us ({cause:?}), and the drives brake"));
        std::thread::sleep(Duration::from_micros(self.period_us * 100));
        let state = last(drives)?;
        must(state[1] == 0 && state[0] == moved, || {
            format!("nothing moves after the brake: {state:?}, then {moved} commands")
        })?;
        self.until("the end of the kinematics is known to the supervisor", |state| {
            state.processes.iter().any(|p| p.name == "ik" && p.phase == outlive_run::Phase::Failed)
        })?;
        Ok(Told::All)
    }

    fn end(&mut self) -> Result<(), Failure> {
        let children: Vec<Identity> =
            self.state()?.processes.iter().filter_map(|p| p.process).collect();
        let stopped = ask(&self.dir, &Request::Stop(None), Duration::from_secs(5));
        stopped.map_err(|e| Failure::io("stop the robot", &e))?;
        let begun = Instant::now();
        while self.supervisor.try_wait().ok().flatten().is_none() {
            self.patience(begun, "the robot stops")?;
        }
        let left = children.iter().filter(|child| child.is_alive()).count();
        must(left == 0, || format!("nothing runs any more: {left} processes do"))?;
        self.teller.good(
            "services died and came back, the core did not notice; when a part of \
            the core died, the drives stopped.",
        );
        Ok(())
    }

    fn state(&self) -> Result<State, Failure> {
        match ask(&self.dir, &Request::Ps, Duration::from_secs(10)) {
            Ok(Answer::Done(state)) => Ok(state),
            Ok(Answer::Refused(why)) => Err(self.broken(format!("the supervisor answers: {why}"))),
            Err(e) => Err(self.broken(format!("the supervisor answers: {e}"))),
        }
    }

    fn identities(&self, names: &[&str]) -> Result<Vec<Identity>, Failure> {
        let state = self.state()?;
        let of = |name: &&str| {
            let found = state.processes.iter().find(|p| p.name == **name);
            found.and_then(|p| p.process).ok_or_else(|| self.broken(format!("the {name} lives")))
        };
        names.iter().map(of).collect()
    }

    fn until(&self, what: &str, is: impl Fn(&State) -> bool) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            // At the beginning there may be no supervisor yet.
            if self.state().is_ok_and(|state| is(&state)) {
                return Ok(());
            }
            self.patience(begun, what)?;
        }
    }

    fn patience(&self, begun: Instant, what: &str) -> Result<(), Failure> {
        if begun.elapsed() >= PATIENCE {
            return Err(self.broken(format!("nobody hangs: {what}")));
        }
        self.rest()
    }

    /// What is said of a claim that does not hold, if that is not the machine's doing.
    fn broken(&self, claim: String) -> Failure {
        let worst = self.witness.worst();
        if !is_the_machine(self.struck, worst, self.period_us) {
            return untrue(claim);
        }
        Failure::HeldUp(format!(
            "the machine stood still, so this proves nothing (not shown: {claim}). A sleeper \
             beside the core woke up to {worst:.1?} late"
        ))
    }

    fn rest(&self) -> Result<(), Failure> {
        if self.shutdown.is_asked() {
            return Err(Failure::Failed("interrupted".into()));
        }
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    }
}

impl Drop for Story<'_> {
    fn drop(&mut self) {
        if self.supervisor.try_wait().ok().flatten().is_none() {
            let _ = ask(&self.dir, &Request::Stop(None), Duration::from_secs(5));
            let begun = Instant::now();
            while self.supervisor.try_wait().ok().flatten().is_none()
                && begun.elapsed() < Duration::from_secs(20)
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            let _ = self.supervisor.kill();
            let _ = self.supervisor.wait();
        }
    }
}

/// The newest state of the drives; zeroes before the first.
fn last(drives: &mut Subscriber<DriveState>) -> Result<DriveState, Failure> {
    let newest = drives.receive_timeout(Duration::from_millis(500))?;
    let mut state = newest.map_or([0; 3], |state| *state);
    while let Some(newer) = drives.receive()? {
        state = *newer;
    }
    Ok(state)
}
