//! The faults of locks and of what is protected by them, and what catches each.

use super::check::Check::{self, History, Sweep, Unit};
use super::check::{Fault, fault};

const GIVEN_UP: Check =
    Unit("lock::tests::a_taker_that_dies_leaves_it_to_the_next_and_one_that_gives_up_ends_it");

/// By name.
pub(crate) const FAULTS: &[Fault] = &[
    fault("condvar.no_wake", "who notifies wakes nobody", &[History("all-who-sleep-are-notified")]),
    fault(
        "condvar.wakes_one",
        "who notifies all wakes one",
        &[History("all-who-sleep-are-notified")],
    ),
    fault(
        "lock.death_untold",
        "the thread that inherits a lock does not learn of the death",
        &[
            Unit("lock::tests::a_thread_that_ends_inside_hands_its_data_over"),
            History("owner-death-is-told"),
        ],
    ),
    fault(
        "lock.disorder_as_good",
        "data let go in disorder counts as good",
        &[Unit("lock::tests::what_is_let_go_in_disorder_is_told_to_the_next_until_one_repairs_it")],
    ),
    fault(
        "lock.heir.never_passed",
        "an heir that never comes is waited for",
        &[Unit("lock::tests::waiting::an_heir_that_does_not_come_is_passed_over")],
    ),
    fault(
        "lock.leak_inherited",
        "the data of a leaked guard is given to the next taker",
        &[
            Unit(
                "lock::tests::leaks::\
                 what_a_leaked_guard_protects_is_nobodys_until_its_process_is_gone",
            ),
            History("leaked-guard-is-not-inherited"),
        ],
    ),
    fault(
        "lock.leak_told_at_exit",
        "a process that exits with a lock counts as one that leaked it",
        &[
            // The history finds it in two of three runs: the exit must be slower than a wake.
            Unit(
                "lock::tests::leaks::\
                 who_waits_inherits_a_leaked_guard_when_its_process_ends_soon",
            ),
        ],
    ),
    fault("lock.no_wake", "releasing a lock wakes nobody", &[]),
    fault(
        "lock.repair_unasked",
        "a lock given up unrepaired goes on as if it were",
        &[GIVEN_UP, History("given-up-is-unrecoverable")],
    ),
    fault(
        "lock.sleep.awake",
        "a waiter for a lock does not sleep",
        &[Unit("lock::tests::waiting::a_waiter_that_stood_back_sleeps"), History("waiter-sleeps")],
    ),
    fault(
        "lock.two_nodes",
        "a thread does not know itself by another node",
        &[
            Unit("lock::tests::leaks::the_same_thread_by_another_node_is_a_deadlock"),
            History("one-thread-two-nodes"),
            History("permits-of-one-thread-by-two-nodes"),
        ],
    ),
    fault(
        "lock.watch.kept",
        "one that slept for a held lock and gives up wakes nobody to watch the holder",
        &[Unit("lock::tests::waiting::one_that_gives_up_leaves_its_watch_to_the_next")],
    ),
    fault(
        "lock.watch.passed_often",
        "one that gives up wakes a sleeper, though no wake has reached it",
        &[Unit("lock::tests::waiting::who_often_waits_for_a_short_time_keeps_no_other_awake")],
    ),
    fault(
        "rwlock.no_drain",
        "a writer does not look for readers",
        &[
            Unit("lock::tests::readers_read_together_and_a_writer_alone"),
            History("writer-waits-for-readers"),
        ],
    ),
    fault(
        "segment.overlap",
        "objects of a segment may overlap",
        &[
            Unit("lock::tests::leaks::objects_of_a_segment_do_not_overlap"),
            History("segment-outlives-its-maker"),
        ],
    ),
    fault(
        "semaphore.death_untold",
        "who takes a dead holder's permit is not told",
        &[History("permits-come-back")],
    ),
    fault(
        "semaphore.no_bell",
        "who gives a permit back wakes nobody",
        &[History("permits-come-back")],
    ),
    fault(
        "semaphore.permit_lost",
        "a dead holder's permit does not come back",
        &[Sweep("permit"), History("permits-come-back")],
    ),
    fault(
        "set.full_unchecked",
        "a full set takes one more",
        &[
            Unit("lock::tests::a_set_holds_what_fits_and_says_when_it_is_full"),
            History("set-keeps-what-the-dead-inserted"),
        ],
    ),
];
