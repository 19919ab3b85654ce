//! How a suite runs; every field can be set in the environment.

use super::point::Place;
use crate::rng::{Rng, parse_u64, seed_from_env};

/// Settings of a sweep.
#[derive(Clone, Debug)]
pub struct SweepOptions {
    /// Take every n-th point only (`SWEEP_STRIDE`, default 1).
    pub stride: u64,
    /// Take at most about so many points of a scenario, by a larger stride (`SWEEP_POINTS`).
    pub points_max: Option<u64>,
    /// The first point taken (`SWEEP_OFFSET`: a number, or `seeded`, the default).
    pub offset: Option<u64>,
    /// Seed of the offset (`SWEEP_SEED`).
    pub seed: u64,
    /// Drivers that share the points (`SWEEP_JOBS`, default: one for each processor, at most 8).
    pub jobs: u64,
    /// Run only scenarios whose name contains this (`SWEEP_ONLY`).
    pub only: Option<String>,
    /// Run only this point, in the short form of a report (`SWEEP_AT`).
    pub at: Option<Place>,
    /// Seconds without an answer that count as a hang (`SWEEP_HANG_S`, default 20).
    pub hang_s: u32,
    /// Keep driver, peer and victim on one processor, which steps about 5 times faster
    /// (`SWEEP_PIN=0` turns it off).
    pub pin: bool,
    /// Use hardware breakpoints to get near a point (`SWEEP_JUMP=0` turns it off).
    pub jump: bool,
    /// Watch so many bytes of each shared file (`SWEEP_WATCH_KIB`, default 128 KiB).
    pub watch_bytes: usize,
    /// Most instructions between two system calls (`SWEEP_STEPS_MAX`, default 2 million).
    pub steps_max: u64,
    /// Give a scenario up after so many failures (`SWEEP_FAILURES_MAX`, default 100) or 3 hangs.
    pub failures_max: u64,
}

impl Default for SweepOptions {
    fn default() -> Self {
        Self {
            stride: 1,
            points_max: None,
            offset: None,
            seed: 1,
            jobs: 1,
            only: None,
            at: None,
            hang_s: 20,
            pin: true,
            jump: true,
            watch_bytes: 128 << 10,
            steps_max: 2_000_000,
            failures_max: 100,
        }
    }
}

impl SweepOptions {
    /// Reads the environment and prints the seed.
    ///
    /// # Panics
    /// When `SWEEP_AT` is not a point.
    pub fn from_env() -> Self {
        let number = |name: &str| std::env::var(name).ok().and_then(|text| parse_u64(&text));
        let defaults = Self::default();
        let cpus = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
        let at = std::env::var("SWEEP_AT").ok();
        Self {
            stride: number("SWEEP_STRIDE").unwrap_or(1).max(1),
            points_max: number("SWEEP_POINTS"),
            offset: number("SWEEP_OFFSET"),
            seed: seed_from_env("SWEEP_SEED"),
            jobs: number("SWEEP_JOBS").unwrap_or(cpus.min(8)).max(1),
            only: std::env::var("SWEEP_ONLY").ok(),
            at: at.map(|code| Place::parse(&code).expect("SWEEP_AT names a point, such as i12")),
            hang_s: number("SWEEP_HANG_S").map_or(defaults.hang_s, |n| n as u32),
            pin: number("SWEEP_PIN") != Some(0),
            jump: number("SWEEP_JUMP") != Some(0),
            watch_bytes: number("SWEEP_WATCH_KIB")
                .map_or(defaults.watch_bytes, |n| (n << 10) as usize),
            steps_max: number("SWEEP_STEPS_MAX").unwrap_or(defaults.steps_max),
            failures_max: number("SWEEP_FAILURES_MAX").unwrap_or(defaults.failures_max),
        }
    }

    /// Which of `total` points driver `job` takes.
    pub(crate) fn selection(&self, total: u64, job: u64) -> impl Iterator<Item = u64> + use<> {
        let stride = self.stride_for(total);
        let offset = self.offset.unwrap_or_else(|| Rng::new(self.seed).below(stride)) % stride;
        let jobs = self.jobs;
        (offset..total).step_by(stride as usize).filter(move |at| at / stride % jobs == job)
    }

    /// How many of `total` points driver `job` answers for, taken or not.
    pub(crate) fn share(&self, total: u64, job: u64) -> u64 {
        let stride = self.stride_for(total);
        (0..total).filter(|at| at / stride % self.jobs == job).count() as u64
    }

    fn stride_for(&self, total: u64) -> u64 {
        let wanted = self.points_max.map_or(1, |max| total.div_ceil(max.max(1)));
        // A single point must not fall through.
        if self.at.is_some() { 1 } else { self.stride.max(wanted).max(1) }
    }
}
