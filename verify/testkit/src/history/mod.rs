//! Histories against a model: processes that live, leave, end and are replaced in every order, and
//! an oracle that knows what each may see.
//!
//! # Theory of operation
//! A seeded generator makes up steps: a member opens, sends, receives, keeps, drops, forgets,
//! panics; its thread ends; it exits, is killed, is stopped. They are done one after the other
//! through the public API, each answered before the next, so there is one truth at each. Waits are
//! left to go on beside the next steps, and must end as soon as the model says that they can.
//!
//! | file | what |
//! |---|---|
//! | `step` | the steps, and their form as text |
//! | `generate` | what comes next |
//! | `member`, `reply` | a process that does steps; what it says |
//! | `languages` | in which languages members are, and their programs |
//! | `director` | processes, and who does what when |
//! | `disk`, `ordinals` | the disk they have files on; the domain's counters |
//! | `model` | the oracle, for each kind of object |
//! | `shrink` | a small history out of one that fails |
//!
//! What this does not look at is what happens *within* an operation: that is for the sweeps.

mod director;
mod disk;
mod generate;
mod languages;
mod member;
mod model;
mod ordinals;
mod reply;
mod shrink;
mod step;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::spawn::Role;
use director::{Director, failure};
pub use director::{Ending, Failure};
pub use disk::mount as mount_disk;
use generate::Generator;
pub use generate::be_bold;
pub use languages::use_others;
pub use member::ROLE;
pub use step::{Step, parse};

/// So long a failing history is made smaller.
const SHRINK: Duration = Duration::from_secs(60);

/// A history that fails.
#[derive(Clone, Debug)]
pub struct Found {
    /// Of the generator; `None` for one that was read.
    pub seed: Option<u64>,
    /// What is wrong.
    pub failure: Failure,
    /// Its steps.
    pub steps: Vec<Step>,
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "# {}", self.failure.what)?;
        writeln!(f, "# at: {}", self.failure.at)?;
        if let Some(seed) = self.seed {
            writeln!(f, "# seed {seed}")?;
        }
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

/// What a series of histories did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Done {
    /// Histories.
    pub histories: u64,
    /// Steps of all.
    pub steps: u64,
}

/// Does what the director says, as a member, and ends the process.
pub fn play(role: &Role) -> ! {
    member::run(&role.args)
}

fn ending(seed: u64) -> Ending {
    if seed % 2 == 0 { Ending::Kill } else { Ending::Exit }
}

/// Does the history of that seed.
///
/// # Errors
/// How it fails.
pub fn run_seed(seed: u64, done: &mut Done) -> Result<(), Box<Found>> {
    let mut steps = Vec::new();
    let result = (|| {
        let mut director = Director::new()?;
        let mut generator = Generator::new(seed);
        let mut result = Ok(());
        for _ in 0..generator.length() {
            let step = generator.next(&director.model);
            result = director.run(&step).map(|_| ());
            if result.is_err() {
                break;
            }
        }
        done.steps += director.steps.len() as u64;
        steps = director.steps.clone();
        result.and_then(|()| director.finish(ending(seed)))
    })();
    done.histories += 1;
    result.map_err(|failure| Box::new(Found { seed: Some(seed), failure, steps }))
}

/// Does these steps, and ends as a history does.
///
/// # Errors
/// How it fails.
pub fn replay(steps: &[Step], ending: Ending) -> Result<(), Failure> {
    let mut director = Director::new()?;
    for step in steps {
        director.run(step)?;
    }
    director.finish(ending)
}

/// The same failure with fewer steps.
pub fn shrink(found: &Found) -> Found {
    let ending = found.seed.map_or(Ending::Kill, ending);
    let mut failure = found.failure.clone();
    let kind =
        |what: &str| what.chars().filter(|c| !c.is_ascii_digit()).take(12).collect::<String>();
    let wanted = kind(&found.failure.what);
    let steps = shrink::shrink(found.steps.clone(), SHRINK, |steps| match replay(steps, ending) {
        Err(other) if kind(&other.what) == wanted => {
            failure = other;
            true
        }
        _ => false,
    });
    Found { seed: found.seed, failure, steps }
}

/// Histories of fresh seeds from `seed` on, until the time is over or one fails.
///
/// # Errors
/// The first that fails, as it was.
pub fn run_for(seed: u64, limit: Duration) -> (Done, Option<Found>) {
    let (end, mut done) = (Instant::now() + limit, Done::default());
    for seed in seed.. {
        if Instant::now() >= end {
            break;
        }
        if let Err(found) = run_seed(seed, &mut done) {
            return (done, Some(*found));
        }
    }
    (done, None)
}

/// The folder of the kept histories.
pub fn kept_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("histories")
}

/// Does the history of a kept file.
///
/// # Errors
/// What is wrong with the file, or how the history fails.
pub fn replay_file(path: &Path) -> Result<(), Box<Found>> {
    let no_file = |what: String| {
        let failure = failure(&what, &path.display());
        Box::new(Found { seed: None, failure, steps: Vec::new() })
    };
    let text = std::fs::read_to_string(path).map_err(|e| no_file(e.to_string()))?;
    let steps = parse(&text).map_err(no_file)?;
    for ending in [Ending::Kill, Ending::Exit] {
        if let Err(failure) = replay(&steps, ending) {
            return Err(Box::new(Found { seed: None, failure, steps }));
        }
    }
    Ok(())
}
