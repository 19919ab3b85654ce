//! Kills queues at every instruction of their hot paths, and queues and services at every system
//! call and change of shared bytes of the long ones.

use std::process::ExitCode;

use testkit::scenarios::queue::{
    Blocked, FOLLOW, GROW, RECEIVE_BATCH, RECEIVE_LARGE, RECEIVE_REST, RECEIVE_RUN, SEND_BATCH,
    SEND_FIRST, SEND_IN_PLACE, SEND_LARGE, SEND_SMALL, Sleep, Step, Unblock, Wake,
};
use testkit::scenarios::service;

use super::SweepArgs;

pub(crate) fn run(args: &SweepArgs) -> ExitCode {
    let mut suite = args.suite();
    suite.every_instruction(&SEND_SMALL);
    suite.every_instruction(&SEND_FIRST);
    suite.every_instruction(&SEND_LARGE);
    suite.every_instruction(&SEND_IN_PLACE);
    suite.every_instruction(&SEND_BATCH);
    suite.every_instruction(&RECEIVE_RUN);
    suite.every_instruction(&RECEIVE_BATCH);
    suite.every_instruction(&RECEIVE_LARGE);
    suite.every_instruction(&Wake);
    suite.long_path(&GROW);
    suite.long_path(&FOLLOW);
    suite.long_path(&RECEIVE_REST);
    suite.long_path(&Unblock);
    suite.long_path(&Sleep);
    suite.asleep(&Sleep);
    suite.long_path(&Blocked);
    suite.asleep(&Blocked);
    for step in Step::ALL {
        suite.long_path(&step);
    }
    for step in service::Step::ALL {
        suite.long_path(&step);
    }
    suite.finish()
}
