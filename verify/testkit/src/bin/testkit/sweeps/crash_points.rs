//! Kills the scenarios of the kill sweep at every named crash point, and checks that every name
//! in the sources was met.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use testkit::crash::names_in_sources;
use testkit::scenarios::join::Step;
use testkit::scenarios::locks::Op;
use testkit::scenarios::merged::Merged;
use testkit::scenarios::modes::Mode;
use testkit::scenarios::queue::{self, Blocked, FOLLOW, GROW, RECEIVE_REST, SEND_SMALL, Unblock};
use testkit::scenarios::service;
use testkit::scenarios::topic::{Publish, Receive, Send, Sleep, Wake};
use testkit::scenarios::waitset::{self, Way};

use super::SweepArgs;

pub(crate) fn run(args: &SweepArgs) -> ExitCode {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/outlive/src");
    let names = names_in_sources(&sources).expect("the sources of the core");
    let install = outlive::crash::set_hook;
    let mut suite = args.suite();
    for how in [Send::Inline, Send::Loan] {
        suite.crash_points(&Publish(how), install);
        suite.crash_points(&Receive(how), install);
    }
    for form in Merged::ALL {
        suite.crash_points(&form, install);
    }
    suite.crash_points(&Mode::Volatile, install);
    suite.crash_points(&Mode::Reliable, install);
    suite.crash_points(&Sleep, install);
    suite.crash_points(&Wake, install);
    for way in Way::ALL {
        suite.crash_points(&waitset::Wait(way), install);
        suite.crash_points(&waitset::Wake(way), install);
    }
    for step in Step::ALL {
        suite.crash_points(&step, install);
    }
    for op in Op::HOT.into_iter().chain(Op::LONG) {
        suite.crash_points(&op, install);
    }
    suite.crash_points(&SEND_SMALL, install);
    suite.crash_points(&GROW, install);
    suite.crash_points(&FOLLOW, install);
    suite.crash_points(&RECEIVE_REST, install);
    suite.crash_points(&queue::Wake, install);
    suite.crash_points(&Unblock, install);
    suite.crash_points(&Blocked, install);
    for step in queue::Step::ALL {
        suite.crash_points(&step, install);
    }
    for step in service::Step::ALL {
        suite.crash_points(&step, install);
    }
    let met: BTreeSet<String> =
        suite.reports().iter().flat_map(|r| r.crash_points.clone()).collect();
    let missed: Vec<_> = names.difference(&met).collect();
    println!("crash points: {} of {} met", names.len() - missed.len(), names.len());
    let code = suite.finish();
    if missed.is_empty() {
        return code;
    }
    println!("never met: {missed:?}");
    ExitCode::FAILURE
}
