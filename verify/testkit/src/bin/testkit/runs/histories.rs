//! Random histories of processes against a model of what each may see; see `testkit::history`.
//!
//! A history that fails is made small and printed; put into a file it can be replayed, and kept
//! among those of `verify/testkit/histories`.
//!
//! A history mostly waits, so several go on at once, each in a process with a disk of its own.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};

use testkit::history::{self, Done, Found};
use testkit::rng::parse_u64;
use testkit::spawn::spawn_program;

use crate::args::{Slow, fresh_seed, in_words, number, time};

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
    /// Begin populated, or like a kept history; judge each failure, since the model has gaps
    #[arg(long)]
    bold: bool,
    /// Histories at once; the seeds of each job are far from those of the others
    #[arg(long, value_name = "N", default_value_t = 4)]
    jobs: u64,
    /// One of those jobs
    #[arg(long, hide = true)]
    job: bool,
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

/// Seeds from one job to the next.
const JOB_SEEDS: u64 = 1 << 32;
/// What a line of counts begins with.
const DONE: &str = "histories: ";
/// Between two looks at the jobs.
const LOOK: Duration = Duration::from_millis(20);

/// A process with seeds of its own and without the kept ones.
struct Job {
    child: Child,
    /// A pipe would be full at some time.
    out: File,
}

impl Job {
    fn start(args: &HistoriesArgs, seed: u64) -> io::Result<Self> {
        // SAFETY: the name is a literal; the descriptor is the file's alone.
        let out = unsafe { libc::memfd_create(c"histories".as_ptr(), libc::MFD_CLOEXEC) };
        if out < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: as above.
        let out = unsafe { File::from_raw_fd(out) };
        let mut job = spawn_program(std::env::current_exe()?);
        job.args(["histories", "--job"]);
        job.args(["--seed", &seed.to_string(), "--for", &in_words(args.lasts)]);
        args.slow.pass_on(&mut job);
        if args.bold {
            job.arg("--bold");
        }
        let paths = [("--python", &args.python), ("--cpp", &args.cpp), ("--kept", &args.kept)];
        for (option, path) in paths {
            if let Some(path) = path {
                job.arg(option).arg(path);
            }
        }
        Ok(Self { child: job.stdout(out.try_clone()?).spawn()?, out })
    }

    fn said(&mut self) -> io::Result<String> {
        let mut said = String::new();
        self.out.seek(SeekFrom::Start(0))?;
        self.out.read_to_string(&mut said)?;
        Ok(said)
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a job says that it has done.
fn read_done(said: &str) -> Option<Done> {
    let line = said.lines().find_map(|line| line.strip_prefix(DONE))?;
    let (histories, rest) = line.split_once(" from seed ")?;
    let steps = rest.split_once(", ")?.1.split_once(" steps")?.0;
    Some(Done { histories: histories.parse().ok()?, steps: steps.parse().ok()? })
}

/// All jobs until one finds something; what they have done, or what that one says.
fn run_jobs(args: &HistoriesArgs, seed: u64) -> io::Result<Result<Done, String>> {
    let seeds = (0..args.jobs).map(|job| seed + job * JOB_SEEDS);
    let mut jobs = seeds.map(|seed| Job::start(args, seed)).collect::<io::Result<Vec<_>>>()?;
    let mut all = Done::default();
    while !jobs.is_empty() {
        let mut left = Vec::new();
        for mut job in jobs {
            let Some(status) = job.child.try_wait()? else {
                left.push(job);
                continue;
            };
            let said = job.said()?;
            match read_done(&said).filter(|_| status.success()) {
                Some(done) => {
                    all.histories += done.histories;
                    all.steps += done.steps;
                }
                None => return Ok(Err(format!("{said}histories: a job ended with {status}\n"))),
            }
        }
        jobs = left;
        std::thread::sleep(LOOK);
    }
    Ok(Ok(all))
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
    let dir = args.kept.clone().unwrap_or_else(history::kept_dir);
    if args.bold {
        history::be_bold(&dir);
    }
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
    let kept = match if args.job { Ok(0) } else { kept(&dir) } {
        Ok(kept) => kept,
        Err(found) => return report(&found, began),
    };
    // Far from the seeds of another run.
    let seed = args.seed.unwrap_or_else(|| fresh_seed() * 1000);
    if args.jobs > 1 && !args.job {
        return match run_jobs(args, seed) {
            Ok(Ok(done)) => {
                say(&done, seed, kept, 0);
                ExitCode::SUCCESS
            }
            Ok(Err(said)) => {
                print!("{said}");
                ExitCode::FAILURE
            }
            Err(e) => {
                println!("histories: a job cannot be run: {e}");
                ExitCode::FAILURE
            }
        };
    }
    let (done, found) = history::run_for(seed, args.lasts);
    say(&done, seed, kept, u64::from(found.is_some()));
    found.map_or(ExitCode::SUCCESS, |found| report(&found, began))
}

fn say(done: &Done, seed: u64, kept: usize, failures: u64) {
    println!(
        "{DONE}{} from seed {seed}, {} steps, {kept} kept, {failures} failures",
        done.histories, done.steps
    );
}
