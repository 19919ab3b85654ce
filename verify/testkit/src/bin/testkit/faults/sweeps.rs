//! The sweeps that may catch a fault: each one scenario of the kill sweep, thinned out.

use testkit::scenarios::join::Step as Join;
use testkit::scenarios::locks::Op;
use testkit::scenarios::modes::Mode;
use testkit::scenarios::queue::{
    self, FOLLOW, RECEIVE_LARGE, RECEIVE_RUN, SEND_LARGE, Step as Queue, Unblock,
};
use testkit::scenarios::service::Step as Service;
use testkit::scenarios::topic::{Publish, Receive, Send, Wake};
use testkit::sweep::{Suite, SweepOptions};

type Sweep = (&'static str, fn(&mut Suite) -> bool);

/// By name.
const SWEEPS: &[Sweep] = &[
    ("publish", |s| s.every_instruction(&Publish(Send::Inline)).is_some()),
    ("publish-loan", |s| s.every_instruction(&Publish(Send::Loan)).is_some()),
    ("receive-loan", |s| s.every_instruction(&Receive(Send::Loan)).is_some()),
    ("wake", |s| s.every_instruction(&Wake).is_some()),
    ("reliable", |s| s.long_path(&Mode::Reliable).is_some()),
    ("register", |s| s.long_path(&Join::Register).is_some()),
    ("leave", |s| s.long_path(&Join::Leave).is_some()),
    ("first-register", |s| s.long_path(&Join::FirstRegister).is_some()),
    ("create-topic", |s| s.long_path(&Join::CreateTopic).is_some()),
    ("join-publisher", |s| s.long_path(&Join::JoinPublisher).is_some()),
    ("join-subscriber", |s| s.long_path(&Join::JoinSubscriber).is_some()),
    ("close-publisher", |s| s.long_path(&Join::ClosePublisher).is_some()),
    ("clean", |s| s.long_path(&Join::Clean).is_some()),
    ("send", |s| s.every_instruction(&SEND_LARGE).is_some()),
    ("receive", |s| s.every_instruction(&RECEIVE_LARGE).is_some()),
    ("receive-run", |s| s.every_instruction(&RECEIVE_RUN).is_some()),
    ("queue-wake", |s| s.every_instruction(&queue::Wake).is_some()),
    ("unblock", |s| s.long_path(&Unblock).is_some()),
    ("follow", |s| s.long_path(&FOLLOW).is_some()),
    ("queue-take-over", |s| s.long_path(&Queue::TakeOver).is_some()),
    ("queue-close-consumer", |s| s.long_path(&Queue::CloseConsumer).is_some()),
    ("mutex", |s| s.every_instruction(&Op::Mutex).is_some()),
    ("unlock-wanted", |s| s.every_instruction(&Op::UnlockWanted).is_some()),
    ("take-over", |s| s.every_instruction(&Op::TakeOver).is_some()),
    ("give-up", |s| s.every_instruction(&Op::GiveUp).is_some()),
    ("read", |s| s.every_instruction(&Op::Read).is_some()),
    ("write", |s| s.every_instruction(&Op::Write).is_some()),
    ("permit", |s| s.every_instruction(&Op::PermitOver).is_some()),
    ("ask", |s| s.long_path(&Service::Ask).is_some()),
    ("serve", |s| s.long_path(&Service::Serve).is_some()),
    ("send-again", |s| s.long_path(&Service::SendAgain).is_some()),
];

/// Points of each scenario: enough to meet a fault, few enough to be quick.
const POINTS: u64 = 40;
/// Seconds without an answer that count as a hang.
const HANG_S: u32 = 4;

/// The names of all sweeps.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    SWEEPS.iter().map(|(name, _)| *name)
}

/// Runs one; false when a survivor was harmed.
///
/// `rounds`: how many thinned-out selections of its points, each another one, until one fails. A
/// planted fault may show at few points: which of them the first selection meets is chance.
pub(crate) fn passes(name: &str, rounds: u64) -> bool {
    let Some((_, run)) = SWEEPS.iter().find(|(known, _)| *known == name) else {
        println!("there is no sweep {name}");
        return false;
    };
    (0..rounds).all(|round| {
        let options = SweepOptions {
            points_max: Some(POINTS),
            offset: Some(round),
            hang_s: HANG_S,
            failures_max: 1,
            jobs: 1,
            ..SweepOptions::from_env()
        };
        let mut suite = Suite::new(options);
        let ran = run(&mut suite);
        ran && suite.finish() == std::process::ExitCode::SUCCESS
    })
}
