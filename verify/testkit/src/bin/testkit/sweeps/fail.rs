//! Lets every system call of every scene fail in every way Linux knows, once and from then on.

use std::process::ExitCode;

use testkit::scenarios::join::Step;
use testkit::scenarios::life::Life;
use testkit::scenarios::modes::Mode;
use testkit::scenarios::topic::{Receive, Send, Sleep};
use testkit::scenarios::waitset::{self, Way};
use testkit::scenarios::{locks, queue, realtime, service};

use super::SweepArgs;

pub(crate) fn run(args: &SweepArgs) -> ExitCode {
    let mut suite = args.suite();
    for step in Step::ALL {
        suite.failing_calls(&step);
    }
    for life in Life::ALL {
        suite.failing_calls(&life);
    }
    for step in queue::Step::ALL {
        suite.failing_calls(&step);
    }
    suite.failing_calls(&queue::FOLLOW);
    suite.failing_calls(&queue::Sleep);
    for step in service::Step::ALL {
        suite.failing_calls(&step);
    }
    for step in realtime::Step::ALL {
        suite.failing_calls(&step);
    }
    suite.failing_calls(&Receive(Send::Loan));
    suite.failing_calls(&Mode::Reliable);
    suite.failing_calls(&Sleep);
    for way in Way::ALL {
        suite.failing_calls(&waitset::Wait(way));
    }
    for op in locks::Op::LONG {
        suite.failing_calls(&op);
    }
    suite.finish_failing()
}
