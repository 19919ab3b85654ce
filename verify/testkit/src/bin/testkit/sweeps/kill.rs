//! Kills nodes and topics at every instruction of their hot paths, and at every system call and
//! change of shared bytes of the long ones.

use std::process::ExitCode;

use testkit::scenarios::join::Step;
use testkit::scenarios::merged::Merged;
use testkit::scenarios::modes::Mode;
use testkit::scenarios::realtime;
use testkit::scenarios::topic::{Publish, Receive, Send, Sleep, Wake};
use testkit::scenarios::value;
use testkit::scenarios::waitset::{self, Way};

use super::SweepArgs;

pub(crate) fn run(args: &SweepArgs) -> ExitCode {
    let mut suite = args.suite();
    for how in [Send::Inline, Send::Loan] {
        suite.every_instruction(&Publish(how));
        suite.every_instruction(&Receive(how));
    }
    for step in value::Step::ALL {
        suite.every_instruction(&step);
    }
    for form in Merged::ALL {
        suite.every_instruction(&form);
    }
    suite.every_instruction(&Wake);
    suite.every_instruction(&Mode::Volatile);
    suite.long_path(&Mode::Reliable);
    suite.asleep(&Mode::Patient);
    suite.long_path(&Sleep);
    suite.asleep(&Sleep);
    for way in Way::ALL {
        suite.long_path(&waitset::Wake(way));
        suite.long_path(&waitset::Wait(way));
        suite.asleep(&waitset::Wait(way));
    }
    for step in Step::ALL {
        suite.long_path(&step);
    }
    for step in realtime::Step::ALL {
        suite.long_path(&step);
    }
    suite.finish()
}
