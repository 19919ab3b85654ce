//! Kills, stops and hangs of every part of the reference robot, in every form: how long until the
//! drives are told to be safe, and whether anything moved them after that.
//!
//! Two tables. The verdicts must hold on any machine: no command moves or enables a motor after the
//! stop, and the drives are always safe in the end; else it fails. The times are printed with the
//! load and the steal they were measured under, never asserted.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use testkit::failstop::{
    End, Fault, Form, Log, Moment, Plan, Round, Since, Tally, Victim, When, print_time_header,
    print_verdict_header, run, run_role,
};
use testkit::{Rng, TempDomain, Watchdog, seed_from_env};

const USAGE: &str = "usage: fail-stop [--quick | --full] [--rounds N] [--period-us N] [--fifo N]
    [--form threads|hybrid|processes] [--fault kill|stop|loop|nan|jump|replaced]
    [--victim planner|ik|ethercat|guard] [--no-lifeline] [--log FILE] [--minutes N] [--report]
--full: 200 of each. --log: rounds go to FILE, and those in it already count. --minutes: ends after
so long with status 3; call it again with the same log to go on. --report: only the tables.";

struct Args {
    rounds: u64,
    period_us: u64,
    fifo: u8,
    form: Option<Form>,
    fault: Option<Fault>,
    victim: Option<Victim>,
    lifeline: bool,
    log: Option<PathBuf>,
    ends: Option<Instant>,
    report: bool,
}

/// Rounds that may be repeated because the robot tripped before the fault.
const RETRIES: u64 = 20;
/// Of so many rounds one is hit while the drives are being enabled.
const ENABLING_EVERY: u64 = 5;

fn args() -> Result<Args, String> {
    let mut args = Args {
        rounds: 20,
        period_us: 2000,
        fifo: 0,
        form: None,
        fault: None,
        victim: None,
        lifeline: true,
        log: None,
        ends: None,
        report: false,
    };
    let mut given = std::env::args().skip(1);
    while let Some(name) = given.next() {
        let mut value = || given.next().ok_or(format!("{name} needs a value"));
        let number = |text: String| text.parse().map_err(|_| format!("no number: {text}"));
        match name.as_str() {
            "--quick" => args.rounds = 2,
            "--full" => args.rounds = 200,
            "--no-lifeline" => args.lifeline = false,
            "--report" => args.report = true,
            "--rounds" => args.rounds = number(value()?)?,
            "--period-us" => args.period_us = number(value()?)?,
            "--fifo" => args.fifo = number(value()?)?.min(90) as u8,
            "--log" => args.log = Some(value()?.into()),
            "--minutes" => {
                args.ends = Some(Instant::now() + Duration::from_secs(60 * number(value()?)?));
            }
            "--form" => {
                let text = value()?;
                args.form = Some(match text.as_str() {
                    "threads" => Form::Threads,
                    "hybrid" => Form::Hybrid,
                    "processes" => Form::Processes,
                    _ => return Err(format!("no form: {text}")),
                });
            }
            "--fault" => {
                let text = value()?;
                args.fault = Some(match text.as_str() {
                    "kill" => Fault::Kill,
                    "stop" => Fault::Stop,
                    "loop" => Fault::Loop,
                    "nan" => Fault::NotANumber,
                    "jump" => Fault::Jump,
                    "replaced" => Fault::Replace,
                    _ => return Err(format!("no fault: {text}")),
                });
            }
            "--victim" => {
                let text = value()?;
                let found = Victim::ALL.into_iter().find(|v| v.name() == text);
                args.victim = Some(found.ok_or(format!("no victim: {text}"))?);
            }
            _ => return Err(format!("unknown argument {name}\n{USAGE}")),
        }
    }
    Ok(args)
}

/// All combinations that were asked for.
fn plans(args: &Args) -> Vec<Plan> {
    let mut plans = Vec::new();
    for form in Form::ALL.into_iter().filter(|f| args.form.is_none_or(|form| form == *f)) {
        for victim in Victim::ALL.into_iter().filter(|v| args.victim.is_none_or(|w| w == *v)) {
            for fault in Fault::ALL.into_iter().filter(|f| args.fault.is_none_or(|w| w == *f)) {
                let own = matches!(fault, Fault::NotANumber | Fault::Jump);
                // Without lifelines nothing stands still for a part to be replaced.
                let needs_lifeline = victim == Victim::Guard || fault == Fault::Replace;
                if (needs_lifeline && !args.lifeline) || (own && victim != Victim::Planner) {
                    continue;
                }
                plans.push(Plan {
                    form,
                    victim,
                    fault,
                    moment: Moment::Phase(0),
                    when: When::Moving,
                    period_ns: args.period_us * 1000,
                    lifeline: args.lifeline,
                    priority: args.fifo,
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
    args: &Args,
    rng: &mut Rng,
    domain: &TempDomain,
    base: Plan,
    log: &mut Log,
) -> std::io::Result<bool> {
    let key = Round::key(&base);
    let mut count = log.of(&key).filter(|r| !r.ended(End::TooEarly)).count() as u64;
    let (mut n, mut repeated) = (rng.below(60), 0);
    while count < args.rounds && repeated < args.rounds + RETRIES {
        if args.ends.is_some_and(|ends| Instant::now() >= ends) {
            return Ok(false);
        }
        let plan = varied(base, rng, n);
        let since = Since::now();
        match run(domain.path(), &plan) {
            Ok(verdict) => {
                let early = verdict.end == End::TooEarly;
                let bad = verdict.moved_after > 0
                    || (args.lifeline && matches!(verdict.end, End::Never | End::NotReplaced));
                let slow = verdict.net_ns().is_some_and(|ns| ns > 2 * plan.period_ns);
                if !early && (bad || (args.lifeline && slow)) {
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

fn main() {
    if let Some(role) = testkit::role() {
        std::process::exit(run_role(&role));
    }
    let refuse = |why: String| -> ! {
        eprintln!("fail-stop: {why}");
        std::process::exit(2);
    };
    let args = args().unwrap_or_else(|why| refuse(why));
    let mut log = Log::open(args.log.as_deref()).unwrap_or_else(|e| refuse(e.to_string()));
    let plans = plans(&args);
    let (mut complete, mut left_over) = (true, Vec::new());
    if !args.report {
        let mut rng = Rng::new(seed_from_env("FAILSTOP_SEED"));
        let _watchdog = Watchdog::start("fail-stop", Duration::from_secs(3600));
        let domain = TempDomain::new("failstop").expect("a directory in shared memory");
        for plan in &plans {
            match combination(&args, &mut rng, &domain, *plan, &mut log) {
                Ok(time_left) => complete &= time_left,
                Err(e) => refuse(e.to_string()),
            }
        }
        left_over = left(&domain);
    }
    println!(
        "period {} us, deadline {} us, {}, lifeline {}\n",
        args.period_us,
        args.period_us / 4 * 3,
        if args.fifo > 0 { "SCHED_FIFO" } else { "SCHED_OTHER" },
        if args.lifeline { "on" } else { "off" }
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
    if (args.lifeline && (all.is_bad() || all.rounds == 0)) || !left_over.is_empty() {
        println!("left: {left_over:?}");
        std::process::exit(1);
    }
    if !complete {
        println!("fail-stop: not complete yet: call it again with the same log");
        std::process::exit(3);
    }
}
