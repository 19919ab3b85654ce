//! Starts, kills, stops and continues the members, and watches their calls.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use super::board::{
    ALL_END, Board, FLOOR, Fault, LIVES_MAX, OPENING, RECEIVERS_END, RUN, SENDERS_END, TOPICS_END,
};
use super::cast::{CAST, Role};
use super::part::{HANG, Part};
use super::{Plan, Report, Sabotage, account};
use crate::{Child, Rng, TempDomain, fork_child, slow};

/// Mean time between two kills; between two stops while there are stops.
const KILL_EVERY_US: u64 = 15_000;
const STOP_EVERY_US: u64 = 50_000;
/// Stops come in the first part of each of these, so that hangs show in the rest.
const ROUND_MS: u128 = 4500;
const STOPS_MS: u128 = 1500;
const STOPPED_US: u64 = 300_000;
/// One step of the clear clock at most, so that time without a processor does not count.
const STEP: Duration = Duration::from_millis(20);
const TICK: Duration = Duration::from_millis(3);
/// Without kills and stops; each member must get on in it.
const CALM: Duration = Duration::from_millis(2500);
/// For a phase of the end.
const PHASE: Duration = Duration::from_secs(20);

/// Who is started again when it has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Restarts {
    All,
    /// Somebody must drain what was sent.
    Receivers,
    Nobody,
}

struct Member {
    role: Role,
    child: Option<Child>,
    lives: usize,
    start_at: Instant,
    kill_at: Option<Instant>,
    continue_at: Option<Instant>,
    /// The call it was seen in, for how long in one stretch of clear time, and whether that was
    /// told.
    call: u64,
    in_call: Duration,
    told: bool,
}

struct Director<'p> {
    plan: &'p Plan,
    board: &'static Board,
    root: PathBuf,
    rng: Rng,
    members: Vec<Member>,
    report: Report,
    began: Instant,
    last_tick: Instant,
    peak_at: Instant,
    restarts: Restarts,
    /// Whether somebody was stopped since the last tick.
    was_stopped: bool,
}

/// Runs it all; the process must have one thread.
///
/// # Errors
/// When there is no room for the domain or no process can be started.
pub fn run(plan: &Plan) -> io::Result<Report> {
    let temp = TempDomain::new("chaos")?;
    let now = Instant::now();
    let member = |&role| Member {
        role,
        child: None,
        lives: 0,
        start_at: now,
        kill_at: None,
        continue_at: None,
        call: 0,
        in_call: Duration::ZERO,
        told: false,
    };
    let mut director = Director {
        plan,
        board: Board::new(),
        root: temp.path().join("root"),
        rng: Rng::new(plan.seed),
        members: CAST.iter().map(member).collect(),
        report: Report { seed: plan.seed, members: CAST.len(), ..Report::default() },
        began: now,
        last_tick: now,
        peak_at: now,
        restarts: Restarts::Nobody,
        was_stopped: false,
    };
    director.direct()?;
    let mut report = director.report;
    report.faults = director.board.faults();
    report.files = temp.listing().len() as u64;
    for left in temp.listing() {
        eprintln!("chaos: left: {left}");
    }
    Ok(report)
}

impl Director<'_> {
    fn direct(&mut self) -> io::Result<()> {
        self.start(0)?;
        self.await_anchor(FLOOR)?;
        let floor = account::files(&self.root);
        self.phase(OPENING);
        self.await_anchor(OPENING)?;
        self.phase(RUN);
        self.restarts = Restarts::All;
        self.began = Instant::now();
        self.make_chaos()?;
        self.report.lasted = self.began.elapsed();
        self.calm_down()?;
        self.restarts = Restarts::Receivers;
        self.phase(SENDERS_END);
        self.await_members(|role| role != Role::Anchor && !role.receives())?;
        while self.members.iter().any(|m| m.role.receives() && m.child.is_none()) {
            self.tick()?;
        }
        self.restarts = Restarts::Nobody;
        self.phase(RECEIVERS_END);
        self.await_members(|role| role != Role::Anchor)?;
        self.await_anchor(RECEIVERS_END)?;
        let lives: Vec<usize> = self.members.iter().map(|m| m.lives).collect();
        self.report.lives = lives.iter().sum::<usize>() as u64;
        self.report.messages = self.board.messages.load(Acquire);
        account::settle(self.board, &self.root, &lives);
        self.phase(TOPICS_END);
        self.await_anchor(TOPICS_END)?;
        account::clean(self.board, &self.root, false);
        self.compare_with(&floor);
        self.phase(ALL_END);
        self.await_members(|_| true)?;
        if self.plan.sabotage == Some(Sabotage::File) {
            std::fs::write(self.root.join("default/stray"), "what is this?")?;
        }
        account::clean(self.board, &self.root, true);
        Ok(())
    }

    fn phase(&self, phase: u64) {
        self.board.phase.store(phase, Release);
    }

    /// What is left beside the anchor must be what there was before anybody else came.
    fn compare_with(&self, floor: &[(String, u64)]) {
        let mut now = account::files(&self.root);
        // Without `futex_waitv` the anchor's waits have a page, from the first of them on.
        now.retain(|(name, _)| name != "default/nodes/1.bells");
        let bytes = |files: &[(String, u64)]| files.iter().map(|(_, b)| b).sum::<u64>();
        if bytes(&now) != bytes(floor) {
            let extra: Vec<_> = now.iter().filter(|file| !floor.contains(file)).collect();
            let (now, floor) = (bytes(&now), bytes(floor));
            let what = format!("{now} bytes are left, {floor} at the floor: {extra:?}");
            self.board.fault(Fault::Other, 1, what);
        }
    }

    fn start(&mut self, i: usize) -> io::Result<()> {
        let member = &mut self.members[i];
        if member.lives >= LIVES_MAX {
            member.start_at += Duration::from_secs(3600);
            return Ok(());
        }
        let (role, life) = (member.role, member.lives);
        let mut part = Part {
            board: self.board,
            slot: i,
            life,
            root: self.root.clone(),
            rng: Rng::new(self.rng.next_u64()),
            sabotage: self.plan.sabotage,
        };
        self.board.slot(i).begin();
        let child = fork_child(|| match role.live(&mut part) {
            Ok(()) => 0,
            Err(e) => {
                part.fault(Fault::Other, 1, format!("{role:?}: {e}"));
                0
            }
        })?;
        member.child = Some(child);
        member.lives += 1;
        Ok(())
    }

    fn make_chaos(&mut self) -> io::Result<()> {
        let mut next_kill = Instant::now();
        let mut next_stop = Instant::now();
        while self.began.elapsed() < self.plan.lasts {
            self.tick()?;
            let now = Instant::now();
            if now >= next_kill {
                next_kill = now + self.random_us(2 * KILL_EVERY_US);
                let victim = 1 + self.rng.below(CAST.len() as u64 - 1) as usize;
                self.kill(victim);
                // Now and then many at once.
                if self.rng.one_in(100) {
                    let at_once = self.rng.below(CAST.len() as u64 / 2);
                    for _ in 0..at_once {
                        let victim = 1 + self.rng.below(CAST.len() as u64 - 1) as usize;
                        self.kill(victim);
                    }
                }
            }
            if self.stops_now() && now >= next_stop {
                next_stop = now + self.random_us(2 * STOP_EVERY_US);
                let victim = self.rng.below(CAST.len() as u64) as usize;
                self.stop(victim);
            }
        }
        Ok(())
    }

    /// No kills, no stops: everybody must get on.
    fn calm_down(&mut self) -> io::Result<()> {
        for i in 0..self.members.len() {
            self.go_on(i);
            self.members[i].kill_at = None;
        }
        let end = Instant::now() + CALM * slow::times();
        let calls: Vec<u64> = (0..CAST.len()).map(|i| self.board.slot(i).call().0).collect();
        while Instant::now() < end {
            self.tick()?;
        }
        for (i, before) in calls.into_iter().enumerate() {
            let (now, what, _) = self.board.slot(i).call();
            if now <= before + 1 {
                let what = format!("{:?} {i} does not get on, last in {what:?}", CAST[i]);
                self.board.fault(Fault::Hang, 1, what);
            }
        }
        Ok(())
    }

    fn await_anchor(&mut self, phase: u64) -> io::Result<()> {
        let end = Instant::now() + PHASE * slow::times();
        while self.board.anchor.load(Acquire) <= phase {
            self.tick()?;
            if Instant::now() > end || self.members[0].child.is_none() {
                return Err(io::Error::other(format!(
                    "the anchor does not get past phase {phase}"
                )));
            }
        }
        Ok(())
    }

    /// Waits until all of a kind have ended.
    fn await_members(&mut self, kind: impl Fn(Role) -> bool) -> io::Result<()> {
        let end = Instant::now() + PHASE * slow::times();
        loop {
            self.tick()?;
            let runs = |m: &Member| kind(m.role) && m.child.is_some();
            let Some(i) = self.members.iter().position(runs) else { return Ok(()) };
            if Instant::now() > end {
                let (_, what, _) = self.board.slot(i).call();
                let what = format!("{:?} {i} does not end, last in {what:?}", CAST[i]);
                self.board.fault(Fault::Hang, 1, what);
                self.kill(i);
            }
        }
    }

    /// Time passes: who ended, who is due, who hangs.
    fn tick(&mut self) -> io::Result<()> {
        std::thread::sleep(TICK);
        let now = Instant::now();
        // On a slow machine the clock runs as slowly as the members.
        let step = now.duration_since(self.last_tick).min(STEP) / slow::times();
        self.last_tick = now;
        self.keep_clear_time(step);
        for i in 0..self.members.len() {
            self.see(i, now)?;
        }
        if now >= self.peak_at {
            self.peak_at = now + Duration::from_millis(500);
            let bytes = account::files(&self.root).iter().map(|(_, bytes)| bytes).sum();
            self.report.peak_bytes = self.report.peak_bytes.max(bytes);
        }
        Ok(())
    }

    fn keep_clear_time(&mut self, step: Duration) {
        let stopped = self.members.iter().any(|m| m.continue_at.is_some());
        let clear = self.board.clear_ns.load(Acquire);
        if stopped || self.was_stopped {
            self.board.window_ns.store(clear, Release);
            for member in &mut self.members {
                member.in_call = Duration::ZERO;
            }
        } else {
            self.board.clear_ns.store(clear + step.as_nanos() as u64, Release);
            for (i, member) in self.members.iter_mut().enumerate() {
                time_call(self.board, i, member, step);
            }
        }
        self.was_stopped = stopped;
    }

    fn see(&mut self, i: usize, now: Instant) -> io::Result<()> {
        let member = &mut self.members[i];
        let Some(child) = &mut member.child else {
            let restarts = match self.restarts {
                Restarts::All => true,
                Restarts::Receivers => member.role.receives(),
                Restarts::Nobody => false,
            };
            if restarts && now >= member.start_at {
                self.start(i)?;
                if i > 0 && self.kills_now() && self.rng.one_in(4) {
                    self.members[i].kill_at = Some(now + self.random_us(4000));
                }
                if self.rng.one_in(32) && self.stops_now() {
                    self.stop(i);
                }
            }
            return Ok(());
        };
        if let Some(exit) = child.wait_timeout(Duration::ZERO) {
            if !exit.success() {
                let what = format!("{:?} {i} ended by itself with {exit}", member.role);
                self.board.fault(Fault::Other, 1, what);
            }
            self.bury(i);
        } else if member.kill_at.is_some_and(|at| now >= at) {
            self.kill(i);
        } else if member.continue_at.is_some_and(|at| now >= at) {
            self.go_on(i);
        }
        Ok(())
    }

    fn kills_now(&self) -> bool {
        self.board.phase() == RUN && self.began.elapsed() < self.plan.lasts
    }

    fn stops_now(&self) -> bool {
        let round_ms = self.began.elapsed().as_millis() / u128::from(slow::times()) % ROUND_MS;
        self.kills_now() && round_ms < STOPS_MS
    }

    fn kill(&mut self, i: usize) {
        let member = &mut self.members[i];
        let Some(child) = &mut member.child else { return };
        self.board.slot(i).killed.store(member.lives as u64, Release);
        if self.plan.out_of_memory {
            child.kill_for_memory().expect("root, in a process that is shielded");
        } else {
            child.kill();
        }
        self.report.kills += 1;
        self.bury(i);
    }

    fn bury(&mut self, i: usize) {
        let pause = if self.rng.one_in(3) { Duration::ZERO } else { self.random_us(40_000) };
        let member = &mut self.members[i];
        member.child = None;
        member.kill_at = None;
        member.continue_at = None;
        member.start_at = Instant::now() + pause;
    }

    fn stop(&mut self, i: usize) {
        let pause = self.random_us(STOPPED_US) / slow::times();
        let member = &mut self.members[i];
        let Some(child) = &member.child else { return };
        member.continue_at = Some(Instant::now() + pause);
        child.signal(libc::SIGSTOP);
        self.report.stops += 1;
    }

    fn go_on(&mut self, i: usize) {
        let member = &mut self.members[i];
        if member.continue_at.take().is_some()
            && let Some(child) = &member.child
        {
            child.signal(libc::SIGCONT);
            self.was_stopped = true;
        }
    }

    fn random_us(&mut self, us: u64) -> Duration {
        Duration::from_micros(self.rng.below(us)) * slow::times()
    }
}

/// Adds `step` to the time of the call that a member is in.
fn time_call(board: &Board, i: usize, member: &mut Member, step: Duration) {
    let (call, what, limit_ms) = board.slot(i).call();
    let Some(child) = member.child.as_ref().filter(|_| call % 2 == 1) else { return };
    if call != member.call {
        (member.call, member.in_call, member.told) = (call, Duration::ZERO, false);
        return;
    }
    member.in_call += step;
    if member.in_call > HANG + Duration::from_millis(limit_ms) && !member.told {
        member.told = true;
        let (role, place) = (member.role, inside_kernel(child.pid()));
        let life = member.lives - 1;
        let text = format!("{role:?} {i}, life {life} is in {what:?} for too long: {place}");
        board.fault(Fault::Hang, 1, text);
    }
}

/// Where a process is, as far as the kernel tells.
fn inside_kernel(pid: i32) -> String {
    let read = |name: &str| {
        let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join(name));
        text.unwrap_or_default().trim().to_owned()
    };
    format!("pid {pid}, syscall {}, wchan {}", read("syscall"), read("wchan"))
}
