//! Runs scenarios one after another, on several processors, and sums up.

use super::driver::{Driver, InstallHook};
use super::report::Report;
use super::{Scenario, SweepOptions, every, failing, long, named, processors, timed};
use crate::process::{Affinity, Child, fork_child, thread_count};
use std::fs;
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What is killed.
#[derive(Clone, Copy)]
enum Mode {
    Every,
    Long,
    Failing,
    Named(InstallHook),
    Asleep,
    Random { kills: u64, window_ns: u64 },
}

/// A series of sweeps.
///
/// It forks, so it needs a process with a single thread: a test with `harness = false`.
#[derive(Debug)]
pub struct Suite {
    options: SweepOptions,
    reports: Vec<Report>,
}

impl Suite {
    /// Starts a suite.
    pub fn new(options: SweepOptions) -> Self {
        processors::allowed();
        crate::temp::remove_leftovers();
        Self { options, reports: Vec::new() }
    }

    /// Kills after every instruction of the operation. `None`: the settings skip this scenario.
    pub fn every_instruction<S: Scenario>(&mut self, scenario: &S) -> Option<&Report> {
        self.run(scenario, "every instruction", Mode::Every)
    }

    /// Kills at every system call and at every change of shared bytes.
    pub fn long_path<S: Scenario>(&mut self, scenario: &S) -> Option<&Report> {
        self.run(scenario, "system calls and changes", Mode::Long)
    }

    /// Lets each system call of the operation answer each error that Linux can give it there, once
    /// and from then on. The victim lives on and ends by itself: with an error that it returns, or
    /// with success. The peer judges as after a kill.
    pub fn failing_calls<S: Scenario>(&mut self, scenario: &S) -> Option<&Report> {
        self.run(scenario, "failing calls", Mode::Failing)
    }

    /// Kills at named crash points; `install` hands a hook to the code under test.
    pub fn crash_points<S: Scenario>(
        &mut self,
        scenario: &S,
        install: InstallHook,
    ) -> Option<&Report> {
        self.run(scenario, "crash points", Mode::Named(install))
    }

    /// Kills a victim that has fallen asleep in its operation.
    pub fn asleep<S: Scenario>(&mut self, scenario: &S) -> Option<&Report> {
        self.run(scenario, "asleep", Mode::Asleep)
    }

    /// Kills victims that repeat their operation at full speed, at random instants in a window.
    ///
    /// The victim calls `gate.mark` after each operation. This reaches what single steps cannot:
    /// stores not yet visible to others, and kills inside system calls.
    pub fn random_instants<S: Scenario>(
        &mut self,
        scenario: &S,
        kills: u64,
        window: Duration,
    ) -> Option<&Report> {
        let window_ns = window.as_nanos() as u64;
        self.run(scenario, "random instants", Mode::Random { kills, window_ns })
    }

    /// The reports so far.
    pub fn reports(&self) -> &[Report] {
        &self.reports
    }

    /// The sum over all scenarios, in one line.
    pub fn summary(&self) -> String {
        self.summary_of("kill sweep", "kills")
    }

    fn summary_of(&self, what: &str, victims: &str) -> String {
        let sum = |field: fn(&Report) -> u64| self.reports.iter().map(field).sum::<u64>();
        let (covered, points) = (sum(|r| r.covered), sum(|r| r.points));
        let part = if covered == points { String::new() } else { format!(" of {points}") };
        format!(
            "{what}: {} scenarios, {covered}{part} points, {} steps, {} {victims}, {} failures",
            self.reports.len(),
            sum(|r| r.steps),
            sum(|r| r.kills),
            sum(|r| r.failure_count)
        )
    }

    /// Prints the summary; fails when a scenario did, or when none ran.
    pub fn finish(self) -> ExitCode {
        self.end("kill sweep", "kills")
    }

    /// The same for a sweep of failing calls.
    pub fn finish_failing(self) -> ExitCode {
        self.end("fail sweep", "faults")
    }

    fn end(self, what: &str, victims: &str) -> ExitCode {
        println!("{}", self.summary_of(what, victims));
        let passed = !self.reports.is_empty() && self.reports.iter().all(Report::passed);
        if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// Kills after every instruction of something that need not survive it: for figures of others.
    /// It counts neither in the summary nor as a failure.
    pub fn figures<S: Scenario>(&self, scenario: &S) -> Option<Report> {
        self.report(scenario, "every instruction", Mode::Every)
    }

    fn run<S: Scenario>(&mut self, scenario: &S, how: &str, mode: Mode) -> Option<&Report> {
        let report = self.report(scenario, how, mode)?;
        println!("{report}");
        self.reports.push(report);
        self.reports.last()
    }

    fn report<S: Scenario>(&self, scenario: &S, how: &str, mode: Mode) -> Option<Report> {
        let name = format!("{}: {how}", scenario.name());
        let start = Instant::now();
        if !self.options.only.as_ref().is_none_or(|part| name.contains(part.as_str())) {
            return None;
        }
        assert_eq!(thread_count(), 1, "a sweep forks: it needs a process with one thread");
        let mut report = Report::new(name.clone());
        match self.drive(scenario, &name, mode) {
            Ok(parts) => parts.into_iter().for_each(|part| report.merge(part)),
            Err(error) => panic!("{name}: cannot run: {error}"),
        }
        // Which outcomes a failing call can lead to depends on the calls.
        if !matches!(mode, Mode::Failing) {
            report.demand(scenario.must_see());
        }
        report.seconds = start.elapsed().as_secs_f64();
        Some(report)
    }

    /// Forks the drivers and collects their reports.
    fn drive<S: Scenario>(&self, scenario: &S, name: &str, mode: Mode) -> io::Result<Vec<Report>> {
        let results = crate::temp::TempDomain::new("reports")?;
        let path = |job: u64| results.path().join(job.to_string());
        let cpus = processors::allowed().cpus();
        let mut drivers: Vec<Child> = Vec::new();
        for job in 0..self.options.jobs {
            let body = || {
                if self.options.pin && !cpus.is_empty() {
                    Affinity::one(cpus[job as usize % cpus.len()]).apply();
                }
                let report = match self.sweep(scenario, name, mode, job) {
                    Ok(report) => report,
                    Err(_) => return 1,
                };
                i32::from(fs::write(path(job), report.encode()).is_err())
            };
            drivers.push(fork_child(body)?);
        }
        let mut reports = Vec::new();
        for (job, driver) in drivers.iter_mut().enumerate() {
            let exit = driver.wait();
            let text = fs::read_to_string(path(job as u64)).unwrap_or_default();
            let broken = || io::Error::other(format!("driver {job} left no report: {exit}"));
            reports.push(Report::decode(name, &text).ok_or_else(broken)?);
        }
        Ok(reports)
    }

    fn sweep<S: Scenario>(
        &self,
        scenario: &S,
        name: &str,
        mode: Mode,
        job: u64,
    ) -> io::Result<Report> {
        let mut driver = Driver::new(scenario, &self.options, name.to_owned(), job)?;
        match mode {
            Mode::Every => every::sweep(&mut driver),
            Mode::Long => long::sweep(&mut driver),
            Mode::Failing => failing::sweep(&mut driver),
            Mode::Named(install) => {
                driver.hook = Some(install);
                named::sweep(&mut driver);
            }
            Mode::Asleep => timed::asleep(&mut driver),
            Mode::Random { kills, window_ns } => timed::at_random(&mut driver, kills, window_ns),
        }
        Ok(std::mem::take(&mut driver.report))
    }
}
