//! outlive beside other libraries, in one run: `make bench-peers`.
//!
//! Each rival alternates with outlive, A B A B; the ratio is the median of the rounds' ratios, and
//! above 1 outlive is quicker. Rivals that only work between threads of one process are measured
//! so; they have it easier. `--rounds N` takes more than 9 rounds, `--only NAME` one rival; other
//! arguments are for the benchmarks beside this one.

mod aeron;
mod boost;
mod queues;
mod stage;
mod topics;

use std::cell::RefCell;

use aeron::Aeron;
use stage::{Failed, median};

/// What is to be reached beside Aeron, 8 B.
const AERON_TIMES_MIN: f64 = 8.0;

type Run<'a> = Box<dyn Fn(u64) -> Result<f64, Failed> + 'a>;

/// What is measured, and how many messages of it take some fifty milliseconds: the first lap of a
/// fresh ring, whose pages the kernel still has to give, takes two.
struct Subject<'a> {
    name: &'static str,
    run: Run<'a>,
    count: u64,
}

fn subject<'a>(
    name: &'static str,
    run: impl Fn(u64) -> Result<f64, Failed> + 'a,
    count: u64,
) -> Subject<'a> {
    Subject { name, run: Box::new(run), count }
}

/// The same thing of outlive beside some rivals.
struct Group<'a> {
    what: &'static str,
    ours: Subject<'a>,
    /// Less is better.
    is_time: bool,
    ratio_min: Option<f64>,
}

fn rates<'a>(what: &'static str, ours: Subject<'a>) -> Group<'a> {
    Group { what, ours, is_time: false, ratio_min: None }
}

fn times<'a>(what: &'static str, ours: Subject<'a>) -> Group<'a> {
    Group { is_time: true, ..rates(what, ours) }
}

struct Args {
    rounds: usize,
    only: Option<String>,
}

fn main() {
    let all: Vec<String> = std::env::args().collect();
    let value = |name: &str| all.iter().position(|arg| arg == name).and_then(|i| all.get(i + 1));
    let rounds = value("--rounds").and_then(|n| n.parse().ok()).unwrap_or(9);
    let args = Args { rounds, only: value("--only").cloned() };

    let _rests = stage::Rests::new();
    heading("messages/s");
    rates("queue, 8 B", subject("", queues::outlive::<1>, 20_000_000)).beside(
        &args,
        &[
            subject("rtrb, in process", queues::rtrb::<1>, 15_000_000),
            subject("crossbeam, in process", queues::crossbeam::<1>, 5_000_000),
            subject("Boost spsc_queue", boost::spsc::<1>, 15_000_000),
            subject("Boost message_queue", boost::message_queue::<1>, 200_000),
            subject("ZeroMQ, PUSH to PULL", queues::zeromq::<1>, 1_000_000),
            subject("iceoryx2", queues::iceoryx2::<1>, 100_000),
        ],
    );
    rates("queue, 64 B", subject("", queues::outlive::<8>, 5_000_000)).beside(
        &args,
        &[
            subject("rtrb, in process", queues::rtrb::<8>, 3_000_000),
            subject("crossbeam, in process", queues::crossbeam::<8>, 3_000_000),
            subject("Boost spsc_queue", boost::spsc::<8>, 3_000_000),
            subject("Boost message_queue", boost::message_queue::<8>, 200_000),
            subject("ZeroMQ, PUSH to PULL", queues::zeromq::<8>, 1_000_000),
            subject("iceoryx2", queues::iceoryx2::<8>, 100_000),
        ],
    );
    rates("topic, 8 B", subject("", topics::stream::<1>, 1_000_000))
        .beside(&args, &[subject("iceoryx2", queues::iceoryx2::<1>, 100_000)]);
    rates("topic, 64 B", subject("", topics::stream::<8>, 1_000_000))
        .beside(&args, &[subject("iceoryx2", queues::iceoryx2::<8>, 100_000)]);
    heading("one way, ns");
    times("topic, 64 B", subject("", topics::one_way, 20_000))
        .beside(&args, &[subject("iceoryx2", topics::iceoryx2, 20_000)]);
    if args.wants("Aeron") {
        // Last: its processes need some of both cores even when nobody asks them for anything.
        match Aeron::start() {
            Ok(aeron) => beside_aeron(&args, &RefCell::new(aeron)),
            Err(why) => println!("\nAeron: left out: {why}"),
        }
    }
}

fn beside_aeron(args: &Args, aeron: &RefCell<Aeron>) {
    let stream = |bytes| {
        let run = move |count| aeron.borrow_mut().stream(count, bytes);
        [subject("Aeron", run, 3_000_000)]
    };
    let trip = [subject("Aeron", |count| aeron.borrow_mut().one_way(count), 20_000)];
    heading("messages/s");
    let group = rates("queue, 8 B", subject("", queues::outlive::<1>, 20_000_000));
    Group { ratio_min: Some(AERON_TIMES_MIN), ..group }.beside(args, &stream(8));
    rates("queue, 64 B", subject("", queues::outlive::<8>, 5_000_000)).beside(args, &stream(64));
    rates("topic, 8 B", subject("", topics::stream::<1>, 1_000_000)).beside(args, &stream(8));
    rates("topic, 64 B", subject("", topics::stream::<8>, 1_000_000)).beside(args, &stream(64));
    heading("one way, ns");
    times("queue, 64 B", subject("", queues::one_way, 20_000)).beside(args, &trip);
    times("topic, 64 B", subject("", topics::one_way, 20_000)).beside(args, &trip);
}

fn heading(unit: &str) {
    println!("\n{unit:<44} {:>12} {:>12} {:>8}", "outlive", "rival", "ratio");
}

impl Args {
    fn wants(&self, rival: &str) -> bool {
        self.only.as_deref().is_none_or(|only| rival.contains(only))
    }
}

impl Group<'_> {
    fn beside(&self, args: &Args, rivals: &[Subject]) {
        for rival in rivals.iter().filter(|rival| args.wants(rival.name)) {
            let name = format!("{} / {}", self.what, rival.name);
            match alternate(args.rounds, &self.ours, rival) {
                Ok([mine, theirs, ratio]) => {
                    // Above 1 outlive is quicker, whatever is counted.
                    let ratio = if self.is_time { 1.0 / ratio } else { ratio };
                    let (mine, theirs) = (short(mine), short(theirs));
                    let verdict = self.verdict(ratio);
                    println!("{name:<44} {mine:>12} {theirs:>12} {ratio:>8.2}{verdict}");
                }
                Err(why) => println!("{name:<44} left out: {why}"),
            }
        }
    }

    fn verdict(&self, ratio: f64) -> String {
        let Some(min) = self.ratio_min else { return String::new() };
        format!("  >= {min}{}", if ratio < min { "  MISS" } else { "" })
    }
}

/// Medians of ours, of theirs, and of ours to theirs.
fn alternate(rounds: usize, ours: &Subject, rival: &Subject) -> Result<[f64; 3], Failed> {
    let (mut mine, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut before = (rival.run)(rival.count)?;
    for _ in 0..rounds.max(1) {
        let middle = (ours.run)(ours.count)?;
        let after = (rival.run)(rival.count)?;
        ratios.push(middle * 2.0 / (before + after));
        mine.push(middle);
        theirs.push(after);
        before = after;
    }
    Ok([median(&mut mine), median(&mut theirs), median(&mut ratios)])
}

fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.1} M", v / 1e6),
        v if v >= 1e4 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}
