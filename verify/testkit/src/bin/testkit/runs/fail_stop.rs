//! Kills, stops and hangs of every part of the reference robot, in every form: how long until the
//! drives are told to be safe, and whether anything moved them after that.
//!
//! Two tables. The verdicts must hold on any machine: no command moves or enables a motor after the
//! stop, and the drives are always safe in the end; else it fails. The times are printed with the
//! load and the steal they were measured under, never asserted.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use testkit::failstop::{
    End, Fault, Form, Log, Moment, Plan, Round, Since, Tally, Victim, When, print_time_header,
    print_verdict_header, run as run_round,
};
use testkit::{Rng, TempDomain, Watchdog, seed_from_env};

/// Its options.
#[derive(clap::Args, Debug)]
#[command(after_help = "Exit code 3: the minutes are over; call it again with the same log.")]
pub(crate) struct FailStopArgs {
    /// 2 rounds of each combination
    #[arg(long)]
    quick: bool,
    /// 200 rounds of each
    #[arg(long, conflicts_with = "quick")]
    full: bool,
    /// Rounds of each [default: 20]
    #[arg(long, value_name = "N")]
    rounds: Option<u64>,
    /// The period of the robot
    #[arg(long, value_name = "N", default_value_t = 2000)]
    period_us: u64,
    /// SCHED_FIFO at this priority, 90 at most; 0: none
    #[arg(long, value_name = "N", default_value_t = 0)]
    fifo: u8,
    /// Only robots of this form
    #[arg(long)]
    form: Option<Form>,
    /// Only this fault
    #[arg(long)]
    fault: Option<Fault>,
    /// Only faults of this part
    #[arg(long)]
    victim: Option<Victim>,
    /// Without lifelines and guard: what happens then
    #[arg(long)]
    no_lifeline: bool,
    /// Rounds go to this file, and those in it already count
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// End after this long; the same log continues it
    #[arg(long, value_name = "N")]
    minutes: Option<u64>,
    /// Only the tables of the log
    #[arg(long)]
    report: bool,
}

impl FailStopArgs {
    fn rounds(&self) -> u64 {
        let usual = if self.full { 200 } else { 20 };
        self.rounds.unwrap_or(if self.quick { 2 } else { usual })
    }
}

/// Rounds that may be repeated because the robot tripped before the fault.
const RETRIES: u64 = 20;
/// Of so many rounds one is hit while the drives are being enabled.
const ENABLING_EVERY: u64 = 5;

/// All combinations that were asked for.
fn plans(args: &FailStopArgs) -> Vec<Plan> {
    let mut plans = Vec::new();
    for form in Form::ALL.into_iter().filter(|f| args.form.is_none_or(|form| form == *f)) {
        for victim in Victim::ALL.into_iter().filter(|v| args.victim.is_none_or(|w| w == *v)) {
            for fault in Fault::ALL.into_iter().filter(|f| args.fault.is_none_or(|w| w == *f)) {
                let own = matches!(fault, Fault::NotANumber | Fault::Jump);
                // Without lifelines nothing stands still for a part to be replaced.
                let needs_lifeline = victim == Victim::Guard || fault == Fault::Replace;
                if (needs_lifeline && args.no_lifeline) || (own && victim != Victim::Planner) {
                    continue;
                }
                plans.push(Plan {
                    form,
                    victim,
                    fault,
                    moment: Moment::Phase(0),
                    when: When::Moving,
                    period_ns: args.period_us * 1000,
                    lifeline: !args.no_lifeline,
                    priority: args.fifo.min(90),
                    run_ns: 0,
                });
            }
        }
    }
    plans
}

/// The base with the moment of round `n`.
fn varied(base: Plan, rng: &mut Rng, n: u64) -> Plan {
    let from_outside = matches!(base.fault, Fault::Kill | Fault::Stop | Fault::Replace);
    // What is not sent yet cannot be wrong: those two need a robot that moves.
    let own = matches!(base.fault, Fault::NotANumber | Fault::Jump);
    let early = n % ENABLING_EVERY == 0 && base.lifeline && !own;
    Plan {
        moment: match n % 4 {
            3 if from_outside => Moment::Anywhere,
            n => Moment::Phase(n % 3),
        },
        when: if early { When::Enabling } else { When::Moving },
        run_ns: rng.below(4 * base.period_ns),
        ..base
    }
}

/// Runs what is missing of one combination; whether time is left.
fn combination(
    args: &FailStopArgs,
    ends: Option<Instant>,
    rng: &mut Rng,
    domain: &TempDomain,
    base: Plan,
    log: &mut Log,
) -> std::io::Result<bool> {
    let key = Round::key(&base);
    let mut count = log.of(&key).filter(|r| !r.ended(End::TooEarly)).count() as u64;
    let (mut n, mut repeated) = (rng.below(60), 0);
    let rounds = args.rounds();
    while count < rounds && repeated < rounds + RETRIES {
        if ends.is_some_and(|ends| Instant::now() >= ends) {
            return Ok(false);
        }
        let plan = varied(base, rng, n);
        let since = Since::now();
        match run_round(domain.path(), &plan) {
            Ok(verdict) => {
                let early = verdict.end == End::TooEarly;
                let bad = verdict.moved_after > 0
                    || (!args.no_lifeline && matches!(verdict.end, End::Never | End::NotReplaced));
                let slow = verdict.net_ns().is_some_and(|ns| ns > 2 * plan.period_ns);
                if !early && (bad || (!args.no_lifeline && slow)) {
                    println!("{}: {plan:?}: {verdict:?}", if bad { "bad" } else { "slow" });
                }
                log.add(Round::new(&plan, &verdict, since.load()))?;
                count += u64::from(!early);
                repeated += u64::from(early);
                n += u64::from(!early);
            }
            // A robot that stopped itself before the order ends the round.
            Err(e) => {
                println!("round repeated: {e}");
                repeated += 1;
            }
        }
    }
    Ok(true)
}

fn report(plans: &[Plan], log: &Log) -> Tally {
    let (mut all, mut tallies) = (Tally::default(), Vec::new());
    for plan in plans {
        let (key, mut tally) = (Round::key(plan), Tally::default());
        for round in log.of(&key) {
            tally.add(round);
            all.add(round);
        }
        let name = format!("{}, {}, {}", plan.form.name(), plan.victim.name(), plan.fault.name());
        tallies.push((name, tally));
    }
    print_verdict_header();
    tallies.iter().for_each(|(name, tally)| tally.print_verdicts(name));
    all.print_verdicts("all");
    print_time_header();
    tallies.iter().for_each(|(name, tally)| tally.print_times(name));
    all.print_times("all");
    println!();
    tallies.iter().for_each(|(name, tally)| tally.print_details(name));
    all
}

/// What the robots left in their directory once the dead are cleaned away.
fn left(domain: &TempDomain) -> Vec<String> {
    outlive::Domain::of(&outlive::Node::builder().root(domain.path()))
        .and_then(|d| d.clean().map(|_| d))
        .map(|d| testkit::temp::listing(d.dir()))
        .unwrap_or_else(|e| vec![e.to_string()])
}

pub(crate) fn run(args: &FailStopArgs) -> ExitCode {
    check(args).unwrap_or_else(|e| {
        eprintln!("fail-stop: {e}");
        ExitCode::from(2)
    })
}

fn check(args: &FailStopArgs) -> std::io::Result<ExitCode> {
    let mut log = Log::open(args.log.as_deref())?;
    let ends = args.minutes.map(|n| Instant::now() + Duration::from_secs(60 * n));
    let plans = plans(args);
    let (mut complete, mut left_over) = (true, Vec::new());
    if !args.report {
        let mut rng = Rng::new(seed_from_env("FAILSTOP_SEED"));
        let _watchdog = Watchdog::start("fail-stop", Duration::from_secs(3600));
        let domain = TempDomain::new("failstop").expect("a directory in shared memory");
        for plan in &plans {
            complete &= combination(args, ends, &mut rng, &domain, *plan, &mut log)?;
        }
        left_over = left(&domain);
    }
    println!(
        "period {} us, deadline {} us, {}, lifeline {}\n",
        args.period_us,
        args.period_us / 4 * 3,
        if args.fifo > 0 { "SCHED_FIFO" } else { "SCHED_OTHER" },
        if args.no_lifeline { "off" } else { "on" }
    );
    let all = report(&plans, &log);
    println!(
        "fail-stop: {} faults; {} commands moved a motor after the stop, {} stale ones moved one, \
         {} rounds never safe, {} by the watchdog, {} parts not replaced, {} files left",
        all.rounds,
        all.moved_after,
        all.stale_moves,
        all.never,
        all.watchdog,
        all.not_replaced,
        left_over.len()
    );
    if (!args.no_lifeline && (all.is_bad() || all.rounds == 0)) || !left_over.is_empty() {
        println!("left: {left_over:?}");
        return Ok(ExitCode::FAILURE);
    }
    if !complete {
        println!("fail-stop: not complete yet: call it again with the same log");
        return Ok(ExitCode::from(3));
    }
    Ok(ExitCode::SUCCESS)
}
