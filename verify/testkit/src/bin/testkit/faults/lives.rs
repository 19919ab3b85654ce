//! Faults of what a program keeps beside its ends: timers, interrupts, messages in hand, segments;
//! and those that people found who knew the documents only.

use super::check::Check::{History, Unit, Value};
use super::check::{Fault, fault};

/// By name.
pub(crate) const FAULTS: &[Fault] = &[
    fault(
        "audit.looks_once",
        "an audit takes a member that leaves for damage",
        &[Unit("admin::tests::what_comes_and_goes_is_no_fault")],
    ),
    fault(
        "batch.ends_without_memory",
        "a batch from a queue that there is no memory for ends the program",
        &[Unit(
            "queue::tests::failures::refused::\
             a_batch_that_there_is_no_memory_for_stays_in_the_queue",
        )],
    ),
    fault(
        "event.fd_unsignalled",
        "raising an interrupt wakes nobody who waits on descriptors",
        &[History("interrupt-ends-all-waits")],
    ),
    fault(
        "event.wakes_one",
        "raising an interrupt wakes one of those who wait",
        &[History("interrupt-ends-all-waits")],
    ),
    fault(
        "grow.into_anothers",
        "one whose domain was made again grows by a file of its namesake there",
        &[Unit(
            "node::tests::\
             a_topic_of_a_removed_domain_neither_reads_nor_grows_into_that_of_the_next",
        )],
    ),
    fault(
        "judge.namesake",
        "a thread is judged by its namesake in a domain that was made again",
        &[Unit(
            "node::tests::\
             a_lock_of_a_removed_domain_is_not_freed_by_a_namesake_of_its_holder",
        )],
    ),
    fault(
        "lane.late_before_fresh",
        "a send with a deadline is late where one that does not wait succeeds",
        &[Unit(
            "queue::tests::growth::\
             a_send_that_waits_in_vain_gets_what_one_that_does_not_wait_gets",
        )],
    ),
    fault(
        "lane.namesake",
        "a lane of a domain that was made again is read and removed for one of ours",
        &[Unit(
            "node::tests::\
             a_queue_of_a_removed_domain_neither_reads_nor_removes_that_of_the_next",
        )],
    ),
    fault(
        "lock.link_first",
        "a lock without a descriptor to keep is there for others",
        &[
            Unit(
                "lock::tests::few_descriptors::\
                 an_object_that_lacks_a_descriptor_leaves_no_file_behind",
            ),
            History("no-descriptor-leaves-no-lock"),
        ],
    ),
    fault(
        "peer.namesake",
        "a node is watched by its namesake in a domain that was made again",
        &[Unit(
            "node::tests::\
             a_lock_of_a_removed_domain_is_not_freed_by_a_namesake_of_its_holder",
        )],
    ),
    fault(
        "segment.look_first",
        "data of an object in a segment are taken for a lock of another domain",
        &[
            Unit("lock::tests::leaks::objects_of_a_segment_do_not_overlap"),
            History("segment-outlives-its-maker"),
        ],
    ),
    fault(
        "segment.opener_fills",
        "who opens a segment that is there stores its first value",
        &[History("segment-outlives-its-maker")],
    ),
    fault(
        "segment.namesake",
        "a message is read from a namesake in a domain that was made again",
        &[Unit(
            "node::tests::\
             a_topic_of_a_removed_domain_neither_reads_nor_grows_into_that_of_the_next",
        )],
    ),
    fault(
        "server.refusal_waits",
        "a refused request stays unanswered until the server is called again",
        &[Value("a_service_refuses_the_request_and_a_client_the_reply")],
    ),
    fault(
        "slice.acks_one",
        "dropping a slice of messages acknowledges one of them",
        &[History("slices-are-in-hand-as-one")],
    ),
    fault(
        "timer.not_awaited",
        "a wait set sleeps on when a timer is due",
        &[History("timers-keep-their-grid")],
    ),
    fault(
        "timer.off_grid",
        "a late look at a timer counts once and moves its grid",
        &[
            Unit(
                "wait::member::timer::tests::a_late_look_counts_the_periods_and_keeps_to_the_grid",
            ),
            History("timers-keep-their-grid"),
        ],
    ),
    fault(
        "turn.skips_moved_up",
        "a consumer passes over the lane that moves up to the place of one that ended",
        &[
            Unit(
                "queue::tests::members::leave::\
                 producers_that_died_hide_no_message_of_the_next_and_no_death",
            ),
            History("dead-producers-in-a-row"),
        ],
    ),
];
