//! `outlive chaos`: kills and stops named nodes of a running robot, and reports what that did.
//!
//! | file | what |
//! |---|---|
//! | `plan` | who, what, when: made from the seed before anything is done |
//! | `strike` | signals, to that process and no other |
//! | `account` | silences, losses, returns; what is told in the end |

mod account;
mod plan;
mod strike;

use std::time::Duration;

use clap::Args;

use crate::exit::{Code, Failure, Outcome, note};
use crate::look::{Life, Look};
use crate::options::{DomainOptions, seconds};
use crate::os;
use crate::output::{print, print_json};
use account::Account;
use plan::{Act, Blow, Patterns};
use strike::Target;

/// Between two looks.
const LOOK_NS: u64 = 20_000_000;

/// Kill and stop named nodes of this domain, and report what broke.
///
/// For a running robot: something else, such as 'outlive run', must restart what is killed. It
/// touches only nodes whose names match, and only processes that have this domain mapped. Code 1
/// when something broke: a victim did not come back, another node stayed silent, or a file is
/// damaged.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  outlive chaos --for 60s --seed 7 --nodes 'camera*,planner' --kill
  outlive chaos --for 60s --seed 7 --nodes 'camera*,planner' --plan     only the plan")]
pub(crate) struct ChaosArgs {
    /// Names of nodes, with * and ?, separated by commas.
    #[arg(long, value_name = "PATTERNS")]
    nodes: String,
    /// Allow patterns that match every node.
    #[arg(long)]
    all: bool,
    /// Duration, like 60s or 60.
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = time)]
    length: Duration,
    /// Seed: with the same nodes it repeats the same kills and stops.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Mean time between two kills or stops.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    every: Duration,
    /// Kill [default: kill and stop].
    #[arg(long)]
    kill: bool,
    /// Stop for a while, then continue.
    #[arg(long)]
    stop: bool,
    /// Time a victim has to come back.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    patience: Duration,
    /// Only print the plan.
    #[arg(long)]
    plan: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Seconds, with or without their unit.
fn time(text: &str) -> Result<Duration, String> {
    seconds(text.strip_suffix('s').unwrap_or(text))
        .ok()
        .filter(|d| *d <= Duration::from_secs(86_400))
        .ok_or_else(|| format!("'{text}' is not a time of up to a day: write it like 60s or 0.5s"))
}

pub(crate) fn run(args: &ChaosArgs, options: &DomainOptions) -> Outcome {
    let usage = |why: String| Failure::new(Code::Usage, why);
    let patterns = Patterns::new(&args.nodes).map_err(usage)?;
    if patterns.match_all() && !args.all {
        let why = "these patterns match every node: name those that may be hit, or add --all";
        return Err(usage(why.into()));
    }
    let domain = options.domain()?;
    let first = Look::at(&domain, None)?;
    let live = first.nodes.iter().filter(|n| n.life != Life::Dead);
    let mut names: Vec<String> =
        live.map(|n| n.name.clone()).filter(|name| patterns.matches(name)).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        let what = format!("no live node matches '{}': 'outlive node list' shows them", args.nodes);
        return Err(Failure::new(Code::NotFound, what));
    }
    let acts: &[Act] = match (args.kill, args.stop) {
        (true, false) => &[Act::Kill],
        (false, true) => &[Act::Stop],
        _ => &[Act::Kill, Act::Stop],
    };
    let blows = plan::blows(&names, acts, args.seed, args.length, args.every);
    if args.plan {
        return print(&blows.iter().map(|blow| format!("{blow}\n")).collect::<String>());
    }
    os::catch_stop_signals()?;
    let mut account = Account::new(&first, args.patience.as_nanos() as u64);
    let begun_ns = outlive::now_ns();
    let mut stopped: Vec<(Target, u64)> = Vec::new();
    let mut left = blows.iter().peekable();
    let mut look = first;
    let end_ns = begun_ns + args.length.as_nanos() as u64;
    loop {
        let now_ns = outlive::now_ns();
        stopped.retain(|(target, until_ns)| {
            let over = now_ns >= *until_ns;
            if over {
                target.go_on();
            }
            !over
        });
        let interrupted = os::stop_asked();
        if let Some(blow) = left.next_if(|b| now_ns >= begun_ns + b.at_ns && !interrupted) {
            strike_one(blow, &domain, &look, &mut stopped, &mut account);
        }
        look = Look::at(&domain, Some(&look))?;
        account.see(&look);
        let over = interrupted || (now_ns >= end_ns && stopped.is_empty());
        if over && (interrupted || account.is_settled(&look)) {
            break;
        }
        std::thread::sleep(Duration::from_nanos(LOOK_NS));
    }
    // Nobody stays stopped: dropping a target continues it.
    drop(stopped);
    let faults = domain.audit()?.faults;
    let report = account.report(args.seed, &look, faults);
    if args.json {
        print_json(&report)?
    } else {
        print(&report.text())?
    };
    match report.broke.is_empty() {
        true => Ok(Code::Done),
        false => Err(Failure::new(Code::Failed, "something broke, as reported")),
    }
}

fn strike_one(
    blow: &Blow,
    domain: &outlive::Domain,
    look: &Look,
    stopped: &mut Vec<(Target, u64)>,
    account: &mut Account,
) {
    let node = look.nodes.iter().find(|n| n.name == blow.name && n.life == Life::Alive);
    let Some(node) = node else {
        account.missed(blow);
        return;
    };
    match Target::of(node, domain) {
        Err(why) => {
            note(format_args!("{}: {why}", blow.name));
            account.missed(blow);
        }
        Ok(target) => {
            account.hit(blow, node, outlive::now_ns());
            match blow.act {
                Act::Kill => target.kill(),
                Act::Stop => {
                    target.stop();
                    stopped.push((target, outlive::now_ns() + blow.for_ns));
                }
            }
        }
    }
}
