//! Random histories of processes against a model of what each may see; see `testkit::history`.
//!
//! A history that fails is made small and printed; put into a file it can be replayed, and kept
//! among those of `verify/testkit/histories`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use testkit::history::{self, Done, Found};
use testkit::rng::parse_u64;

use crate::args::{Slow, fresh_seed, number, time};

/// Its options.
#[derive(clap::Args, Debug)]
pub(crate) struct HistoriesArgs {
    /// How long
    #[arg(long = "for", value_name = "TIME", default_value = "2m", value_parser = time)]
    lasts: Duration,
    /// The first seed; the others follow it
    #[arg(long, value_name = "N", value_parser = number)]
    seed: Option<u64>,
    /// Only the history of a seed or in a file; HISTORIES_TRACE=1 shows every answer
    #[arg(long, value_name = "SEED|FILE")]
    replay: Option<String>,
    /// Members in Python, too, under this interpreter, which has the package
    #[arg(long, value_name = "PYTHON")]
    python: Option<PathBuf>,
    /// Members in C++, too: src/history/member/cpp.cpp, built
    #[arg(long, value_name = "PROGRAM")]
    cpp: Option<PathBuf>,
    /// The kept histories, which are all done first [default: verify/testkit/histories]
    #[arg(long, value_name = "DIR")]
    kept: Option<PathBuf>,
    #[command(flatten)]
    slow: Slow,
}

/// Whether all kept histories pass; how many there are.
fn kept(dir: &Path) -> Result<usize, Box<Found>> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    files.iter().try_for_each(|file| history::replay_file(file))?;
    Ok(files.len())
}

fn report(found: &Found, began: Instant) -> ExitCode {
    println!("histories: FAILED after {} s: {}", began.elapsed().as_secs(), found.failure.what);
    println!("{found}");
    if found.seed.is_some() {
        let small = history::shrink(found);
        println!("made small, {} steps:\n{small}", small.steps.len());
    }
    ExitCode::FAILURE
}

pub(crate) fn run(args: &HistoriesArgs) -> ExitCode {
    args.slow.apply();
    testkit::temp::remove_leftovers();
    if !history::mount_disk() {
        println!("histories: no RAM disk can be mounted here; none is filled");
    }
    history::use_others(args.python.as_deref(), args.cpp.as_deref());
    let began = Instant::now();
    if let Some(what) = &args.replay {
        let done = match parse_u64(what) {
            Some(seed) => history::run_seed(seed, &mut Done::default()),
            None => history::replay_file(Path::new(what)),
        };
        return match done {
            Ok(()) => {
                println!("histories: {what} passes");
                ExitCode::SUCCESS
            }
            Err(found) => report(&found, began),
        };
    }
    let dir = args.kept.clone().unwrap_or_else(history::kept_dir);
    let kept = match kept(&dir) {
        Ok(kept) => kept,
        Err(found) => return report(&found, began),
    };
    // Far from the seeds of another run.
    let seed = args.seed.unwrap_or_else(|| fresh_seed() * 1000);
    let (done, found) = history::run_for(seed, args.lasts);
    println!(
        "histories: {} from seed {seed}, {} steps, {kept} kept, {} failures",
        done.histories,
        done.steps,
        u64::from(found.is_some())
    );
    found.map_or(ExitCode::SUCCESS, |found| report(&found, began))
}
