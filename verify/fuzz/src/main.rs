//! Runs the targets without libFuzzer: their corpus, then seeded inputs.
//!
//! `fuzz [--seconds S] [--seed N] [--one FILE] [TARGET...]`: each target for so long. Inputs are
//! mutations of the corpus and noise; a failing one is written to `failed/` and named with its
//! seed. A case that takes 20 s counts as a hang.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, fs, panic, process, thread};

use outlive_fuzz::world::TOLD;
use outlive_fuzz::{TARGETS, Target};

const HANG: Duration = Duration::from_secs(20);

/// The input that is being run, for the watchdog and for who panics.
static NOW: Mutex<(String, Vec<u8>)> = Mutex::new((String::new(), Vec::new()));
static CASES: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Args {
    seconds: f64,
    seed: u64,
    one: Option<PathBuf>,
    targets: Vec<Target>,
}

fn args() -> Result<Args, String> {
    let mut args = Args { seconds: 5.0, seed: 1, one: None, targets: Vec::new() };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let number = |e| format!("{word}: {e}");
        match word.as_str() {
            "--seconds" => args.seconds = value()?.parse().map_err(|e| format!("{word}: {e}"))?,
            "--seed" => args.seed = value()?.parse().map_err(number)?,
            "--one" => args.one = Some(value()?.into()),
            name => match TARGETS.iter().find(|(target, ..)| *target == name) {
                Some(target) => args.targets.push(*target),
                None => return Err(format!("no target {name}")),
            },
        }
    }
    if args.targets.is_empty() {
        args.targets = TARGETS.to_vec();
    }
    Ok(args)
}

fn main() -> ExitCode {
    let args = match args() {
        Ok(args) => args,
        Err(why) => {
            eprintln!("fuzz: {why}");
            return ExitCode::from(2);
        }
    };
    panic::set_hook(Box::new(|info| {
        let at = keep();
        eprintln!("fuzz: failed: {info}\nfuzz: the input is in {}", at.display());
        process::exit(1);
    }));
    thread::spawn(watch);
    // Else a run that is stopped leaves the directory of its case.
    let stop = outlive::Shutdown::on_signals().expect("a handler for SIGTERM");
    let mut said = Vec::new();
    for (name, run, length) in &args.targets {
        if let Some(file) = &args.one {
            case(name, *run, fs::read(file).expect("a file with an input"));
            continue;
        }
        let before = CASES.load(Relaxed);
        let corpus = corpus(name);
        for input in corpus.iter().take_while(|_| !stop.is_asked()) {
            case(name, *run, input.clone());
        }
        let mut rng = Rng(args.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ name.len() as u64);
        let end = Instant::now() + Duration::from_secs_f64(args.seconds);
        while Instant::now() < end && !stop.is_asked() {
            case(name, *run, input(&mut rng, &corpus, *length));
        }
        let (all, kept) = (CASES.load(Relaxed) - before, corpus.len());
        let told = TOLD.swap(0, Relaxed);
        said.push(format!("{name} {all} ({kept} kept, {told} answers)"));
        if stop.is_asked() {
            eprintln!("fuzz: stopped by a signal: {}", said.join(", "));
            return ExitCode::FAILURE;
        }
    }
    println!(
        "fuzz: seed {}: {} inputs, no fault: {}",
        args.seed,
        CASES.load(Relaxed),
        said.join(", ")
    );
    ExitCode::SUCCESS
}

fn case(name: &str, run: fn(&[u8]), input: Vec<u8>) {
    *NOW.lock().expect("nobody panics with it") = (name.into(), input.clone());
    run(&input);
    CASES.fetch_add(1, Relaxed);
}

/// Ends the process when a case does not end.
fn watch() {
    let mut last = (u64::MAX, Instant::now());
    loop {
        thread::sleep(Duration::from_millis(200));
        let cases = CASES.load(Relaxed);
        if cases != last.0 {
            last = (cases, Instant::now());
        } else if last.1.elapsed() > HANG {
            eprintln!("fuzz: hangs; the input is in {}", keep().display());
            process::exit(1);
        }
    }
}

/// Writes the input that is being run to a file.
fn keep() -> PathBuf {
    let (name, input) = NOW.lock().map(|now| now.clone()).unwrap_or_default();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("failed");
    let sum = input.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let path = dir.join(format!("{name}-{sum:016x}"));
    let _ = fs::create_dir_all(&dir).and_then(|()| fs::write(&path, input));
    path
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut paths: Vec<_> =
        fs::read_dir(dir).into_iter().flatten().flatten().map(|e| e.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| fs::read(path).ok()).collect()
}

/// Noise, or a kept input with changes.
fn input(rng: &mut Rng, corpus: &[Vec<u8>], length: usize) -> Vec<u8> {
    let noise = |rng: &mut Rng, len| (0..len).map(|_| rng.next() as u8).collect::<Vec<_>>();
    if corpus.is_empty() || rng.below(4) == 0 {
        let len = rng.below(length + 1);
        return noise(rng, len);
    }
    let mut input = corpus[rng.below(corpus.len())].clone();
    for _ in 0..=rng.below(4) {
        let at = rng.below(input.len() + 1);
        match rng.below(5) {
            0 => input.insert(at, rng.next() as u8),
            1 if at < input.len() => drop(input.remove(at)),
            2 if at < input.len() => input[at] = rng.next() as u8,
            3 if at < input.len() => input[at] ^= 1 << rng.below(8),
            _ => {
                let other = &corpus[rng.below(corpus.len())];
                let from = rng.below(other.len() + 1);
                let end = (from + rng.below(16)).min(other.len());
                input.splice(at..at, other[from..end].iter().copied());
            }
        }
    }
    input.truncate(4 * length);
    input
}

struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
