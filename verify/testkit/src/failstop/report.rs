//! Many rounds as lines of two tables: what must always hold, and the times.

use std::collections::BTreeMap;

use super::judge::End;
use super::log::Round;

/// Rounds of one form, victim and fault.
#[derive(Debug, Default)]
pub struct Tally {
    /// Rounds that count.
    pub rounds: u64,
    /// Rounds that tripped before the fault.
    pub too_early: u64,
    /// Rounds in which a drive followed to the end, or nobody told them anything.
    pub never: u64,
    /// Those in which the part that was started again did not find its place.
    pub not_replaced: u64,
    /// Rounds in which the drives' own watchdog was first.
    pub watchdog: u64,
    /// Commands that moved or enabled a motor after the stop.
    pub moved_after: u64,
    /// Stale commands that moved a motor.
    pub stale_moves: u64,
    /// Periods until the first command of the safe state.
    safe: Vec<f64>,
    /// The same less the time in which those who had to act did not run.
    net: Vec<f64>,
    quick: Vec<f64>,
    /// Rounds beyond the target; those of them that are so without the gaps as well.
    beyond: [u64; 2],
    gap_max: f64,
    steal: f64,
    load: f64,
    hits: BTreeMap<String, u64>,
    causes: BTreeMap<String, u64>,
}

/// Target, periods: one, and a deadline of three quarters.
const TARGET: f64 = 1.75;

/// Nearest rank; `-` where it is the largest one and not asked for as such.
fn percentile(sorted: &[f64], q: f64) -> String {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    match sorted.get(rank.max(1) - 1) {
        Some(_) if q < 1.0 && rank >= sorted.len() => "-".into(),
        Some(x) => format!("{x:.2}"),
        None => "-".into(),
    }
}

fn percentiles(values: &[f64], which: &[f64]) -> String {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    which.iter().map(|q| percentile(&sorted, *q)).collect::<Vec<_>>().join(" / ")
}

impl Tally {
    /// Adds a round; one that tripped too early only counts as such.
    pub fn add(&mut self, round: &Round) {
        if round.ended(End::TooEarly) {
            self.too_early += 1;
            return;
        }
        self.rounds += 1;
        let periods = |ns: u64| ns as f64 / round.period_ns() as f64;
        self.never += u64::from(round.ended(End::Never));
        self.not_replaced += u64::from(round.ended(End::NotReplaced));
        self.watchdog += u64::from(round.ended(End::Watchdog));
        self.moved_after += round.moved_after;
        self.stale_moves += round.stale_moves;
        self.quick.extend(round.quick_stop_ns.map(periods));
        if let (Some(safe), Some(net)) = (round.safe_ns.map(periods), round.net_ns().map(periods)) {
            self.safe.push(safe);
            self.net.push(net);
            self.beyond[0] += u64::from(safe > TARGET);
            self.beyond[1] += u64::from(net > TARGET);
            self.gap_max = self.gap_max.max(safe - net);
        }
        self.steal += round.load.steal;
        self.load += round.load.running;
        *self.hits.entry(round.hit.clone()).or_default() += 1;
        let who = round.causes.iter().zip(["core", "guard"]);
        let said: Vec<_> = who
            .filter(|(cause, _)| !cause.is_empty())
            .map(|(cause, who)| format!("{who}: {cause}"))
            .collect();
        *self.causes.entry(said.join(", ")).or_default() += 1;
    }

    /// Whether a round broke what must always hold.
    pub fn is_bad(&self) -> bool {
        self.never > 0 || self.not_replaced > 0 || self.moved_after > 0
    }

    /// The line of the first table.
    pub fn print_verdicts(&self, name: &str) {
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} |",
            self.rounds,
            self.moved_after,
            self.never,
            self.watchdog,
            self.stale_moves,
            self.too_early
        );
    }

    /// The line of the second table.
    pub fn print_times(&self, name: &str) {
        const ALL: [f64; 3] = [0.5, 0.99, 1.0];
        let mean = |sum: f64| sum / self.rounds.max(1) as f64;
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} | {:.1} | {:.1} | {:.1} |",
            self.safe.len(),
            percentiles(&self.safe, &ALL),
            percentiles(&self.net, &ALL),
            percentiles(&self.quick, &ALL),
            self.beyond[0],
            self.beyond[1],
            self.gap_max,
            mean(self.steal) * 100.0,
            mean(self.load)
        );
    }

    /// Where the hits were and what tripped.
    pub fn print_details(&self, name: &str) {
        let list = |map: &BTreeMap<String, u64>| {
            map.iter().map(|(what, n)| format!("{what} {n}")).collect::<Vec<_>>().join("; ")
        };
        println!("{name}: hit {}", list(&self.hits));
        println!("{name}: tripped {}", list(&self.causes));
    }
}

/// The head of the table of verdicts.
pub fn print_verdict_header() {
    println!(
        "| form, victim, fault | rounds | moved after the stop | never safe | by the watchdog | \
         stale moves | tripped too early |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|");
}

/// The head of the table of times.
pub fn print_time_header() {
    println!(
        "\nTimes in periods, p50 / p99 / max; the target is {TARGET}. Gaps: times in which the \
         one who found the fault or the drives' thread was due and did not run.\n\
         | form, victim, fault | rounds | safe state | less gaps | quick-stop | beyond the target \
         | also less gaps | largest gaps | steal, % | load |"
    );
    println!("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
}
