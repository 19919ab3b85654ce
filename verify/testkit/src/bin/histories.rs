//! Random histories of processes against a model of what each may see; see `testkit::history`.
//!
//! `histories [--for 2m] [--seed N] [--replay SEED|FILE] [--kept DIR]`: a history that fails is
//! made small and printed; put into a file it can be replayed, and kept among those of
//! `verify/testkit/histories`, which are all done first.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use testkit::history::{self, Done, Found};
use testkit::rng::{parse_duration, parse_u64};

const USAGE: &str = "usage: histories [--for 2m] [--seed N] [--replay SEED|FILE] [--kept DIR]";

struct Settings {
    lasts: Duration,
    seed: u64,
    replay: Option<String>,
    kept: PathBuf,
}

fn settings() -> Option<Settings> {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos() as u64;
    let kept = history::kept_dir();
    let seed = (since >> 16 & 0xffff_ffff) * 1000;
    let mut settings = Settings { lasts: Duration::from_secs(120), seed, replay: None, kept };
    let mut args = std::env::args().skip(1);
    while let Some(name) = args.next() {
        let value = args.next()?;
        match name.as_str() {
            "--for" => settings.lasts = parse_duration(&value)?,
            "--seed" => settings.seed = parse_u64(&value)?,
            "--replay" => settings.replay = Some(value),
            "--kept" => settings.kept = value.into(),
            _ => return None,
        }
    }
    Some(settings)
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

fn main() -> ExitCode {
    history::play_part();
    let Some(settings) = settings() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    testkit::temp::remove_leftovers();
    let began = Instant::now();
    if let Some(what) = &settings.replay {
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
    let kept = match kept(&settings.kept) {
        Ok(kept) => kept,
        Err(found) => return report(&found, began),
    };
    let (done, found) = history::run_for(settings.seed, settings.lasts);
    println!(
        "histories: {} from seed {}, {} steps, {kept} kept, {} failures",
        done.histories,
        settings.seed,
        done.steps,
        u64::from(found.is_some())
    );
    found.map_or(ExitCode::SUCCESS, |found| report(&found, began))
}
