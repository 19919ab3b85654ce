//! The faults of the library, and what catches each. Those that only the models can show are not
//! here: see `table::models`.

use crate::check::Check::{self, Kit, Sweep, Unit};

/// A place where the library misbehaves on purpose.
#[derive(Debug)]
pub(crate) struct Fault {
    /// As in the sources: `fault("name")`.
    pub(crate) name: &'static str,
    /// In a few words.
    pub(crate) what: &'static str,
    /// By whom, besides a model that plants it too.
    pub(crate) caught_by: &'static [Check],
}

const fn fault(name: &'static str, what: &'static str, caught_by: &'static [Check]) -> Fault {
    Fault { name, what, caught_by }
}

const GIVEN_UP: Check =
    Unit("lock::tests::a_taker_that_dies_leaves_it_to_the_next_and_one_that_gives_up_ends_it");
const GARBAGE_IN_A_CHUNK: Check =
    Kit("bad_input", "garbage_in_the_entry_of_a_chunk_harms_its_publisher_alone");
const HELD: Check =
    Unit("topic::tests::a_held_sample_never_changes_and_the_limit_is_told_to_its_holder_only");

/// By name.
pub(crate) const FAULTS: &[Fault] = &[
    fault(
        "attach.full_unchecked",
        "a full table of publishers takes one more",
        &[Unit("topic::modes_tests::more_publishers_than_places_are_told_and_the_others_read")],
    ),
    fault(
        "bell.not_rung",
        "who joins or leaves a topic does not say so",
        &[Unit("topic::modes_tests::a_reliable_subscriber_that_never_looked_still_counts")],
    ),
    fault(
        "borrow.full_unchecked",
        "a borrow beyond the limit takes a hazard that is in use",
        &[HELD],
    ),
    fault(
        "borrow.no_second_look",
        "a borrow does not look whether its message was overwritten",
        &[],
    ),
    fault(
        "call.missing",
        "who waits for a descriptor or on a doorbell is not called",
        &[Unit("wait::tests::a_writer_calls_once_however_often_it_writes")],
    ),
    fault("chunk.index_unchecked", "a chunk's number is believed", &[GARBAGE_IN_A_CHUNK]),
    fault(
        "chunk.length_unchecked",
        "a message's length is believed beyond its chunk",
        &[GARBAGE_IN_A_CHUNK],
    ),
    fault(
        "consumer.lock_unasked",
        "a consumer does not take the lock of its queue",
        &[Unit("queue::tests::there_is_one_consumer_at_a_time_and_the_next_one_goes_on")],
    ),
    fault(
        "death.by_pid",
        "the process id says who lives",
        &[Unit("topic::modes_tests::a_node_dropped_by_another_thread_is_known_dead_at_once")],
    ),
    fault(
        "death.by_word_alone",
        "the token's word alone confirms a death",
        &[Sweep("hand-off"), Kit("node", "a_node_outlives_the_thread_that_opened_it")],
    ),
    fault(
        "file.any_kind",
        "a FIFO or directory in place of a file is opened",
        &[Unit("os::file::tests::only_regular_files_of_ours_are_believed")],
    ),
    fault(
        "file.length_unchecked",
        "a short file is mapped",
        &[Unit("os::file::tests::only_regular_files_of_ours_are_believed")],
    ),
    fault(
        "file.linked_first",
        "a file appears before it is complete",
        &[Sweep("first-register"), Sweep("create-topic")],
    ),
    fault(
        "file.open_to_all",
        "a file that everybody may write is believed",
        &[
            Unit("os::file::tests::only_regular_files_of_ours_are_believed"),
            Kit("bad_input", "something_else_in_place_of_meta_stops_newcomers_alone"),
        ],
    ),
    fault(
        "file.unreserved",
        "a file is made without reserving its bytes",
        &[Unit("os::file::tests::growing_reserves_and_never_shortens")],
    ),
    fault(
        "follow.no_unlink",
        "a segment that was read to its end stays",
        &[
            Unit("queue::tests::a_lane_grows_to_its_bound_then_would_block_and_shrinks_again"),
            Sweep("follow"),
        ],
    ),
    fault(
        "fork.child_is_parent",
        "a forked child takes itself for its parent",
        &[
            Unit("os::fork::tests::a_child_is_another_generation"),
            Kit("fork", "inherited_handles_refuse_harm_nothing_and_keep_nobody_alive"),
        ],
    ),
    fault(
        "hazard.count_unchecked",
        "the number of a peer's hazards is believed",
        &[Kit("bad_input", "garbage_in_a_port_harms_its_node_alone")],
    ),
    fault(
        "inline.length_unchecked",
        "a message's length is believed beyond its entry",
        &[Kit("bad_input", "garbage_in_entries_harms_its_publisher_alone")],
    ),
    fault("lock.dead_is_alive", "a dead holder of a lock counts as alive", &[Sweep("mutex")]),
    fault(
        "lock.death_untold",
        "who takes a lock over is not told of the death",
        &[Unit("lock::tests::a_thread_that_ends_inside_hands_its_data_over")],
    ),
    fault("lock.no_wake", "who lets a lock go wakes nobody", &[]),
    fault("lock.repair_unasked", "a lock given up unrepaired goes on as if it were", &[GIVEN_UP]),
    fault(
        "node.no_unlink",
        "a node that leaves forgets its file",
        &[Kit("node", "parts_dropped_in_any_order_leave_nothing")],
    ),
    fault(
        "position.take_over.no_progress",
        "a new consumer skips the repair of the progress",
        &[Sweep("receive-run")],
    ),
    fault("publish.commit_first", "a message is committed before its payload", &[Sweep("publish")]),
    fault(
        "publish.no_begin",
        "an entry is overwritten without being marked",
        &[
            Unit("topic::ring::tests::a_message_is_empty_then_busy_then_ready_then_overrun"),
            Sweep("publish"),
        ],
    ),
    fault(
        "publish.no_wake",
        "a publisher wakes no sleeper",
        &[Unit("topic::tests::a_sleeping_subscriber_wakes_for_a_message_with_and_without_waitv")],
    ),
    fault(
        "receive.taken_early",
        "a message counts as received before it was read",
        &[Unit("queue::tests::there_is_one_consumer_at_a_time_and_the_next_one_goes_on")],
    ),
    fault(
        "reclaim.data_stays",
        "data segments of the dead are not unlinked",
        &[Unit("topic::modes_tests::an_unread_ring_of_a_dead_publisher_stays")],
    ),
    fault("reclaim.of_the_living", "whoever tidies up does not ask who lives", &[HELD]),
    fault(
        "reclaim.unread_ring",
        "a dead publisher's ring goes before it was read",
        &[Unit("topic::modes_tests::an_unread_ring_of_a_dead_publisher_stays")],
    ),
    fault(
        "record.length_unchecked",
        "a record's length is believed beyond its ring",
        &[Unit("queue::lane::tests::headers_that_no_producer_stores_are_corrupt")],
    ),
    fault(
        "reliable.not_waited",
        "a publisher does not wait for a reliable subscriber",
        &[
            Unit("topic::modes_tests::a_reliable_subscriber_loses_nothing_however_slow_it_is"),
            Sweep("reliable"),
        ],
    ),
    fault(
        "rwlock.no_drain",
        "a writer does not look for readers",
        &[Unit("lock::tests::readers_read_together_and_a_writer_alone")],
    ),
    fault(
        "scan.no_hazards",
        "a chunk is used again without a look at the hazards",
        &[HELD, Kit("node", "a_stopped_process_is_alive_and_loses_only_what_the_ring_overwrote")],
    ),
    fault(
        "segment.header_unchecked",
        "the sizes in a data segment's header are believed",
        &[Kit("bad_input", "garbage_in_a_data_header_harms_its_publisher_alone")],
    ),
    fault("semaphore.permit_lost", "a dead holder's permit does not come back", &[Sweep("permit")]),
    fault("send.commit_first", "a record is committed before its payload", &[Sweep("send")]),
    fault(
        "send.no_wake",
        "a producer wakes no sleeper",
        &[Unit("queue::tests::each_turn_of_two_that_wait_for_each_other_ends_by_a_wake")],
    ),
    fault(
        "send.unserved",
        "a producer does not look whether anybody consumes",
        &[Unit("queue::tests::without_a_live_consumer_a_send_says_owner_died_and_sends_nothing")],
    ),
    fault(
        "service.any_term",
        "requests to a dead server are answered by the next",
        &[Unit("service::tests::failures::a_head_says_who_is_asked")],
    ),
    fault(
        "service.death_untold",
        "a client is not told that its server died",
        &[
            Unit("service::tests::the_end_of_a_server_ends_every_wait_after_what_it_had_answered"),
            Sweep("serve"),
        ],
    ),
    fault(
        "set.full_unchecked",
        "a full set takes one more",
        &[Unit("lock::tests::a_set_holds_what_fits_and_says_when_it_is_full")],
    ),
    fault(
        "sigbus.unguarded",
        "a page that vanished is not replaced",
        &[Unit("os::sigbus::tests::a_truncated_file_reads_as_zeros_and_is_poisoned")],
    ),
    fault(
        "subscriber.no_unlink",
        "a subscriber that leaves forgets its file",
        &[Unit("topic::tests::the_last_member_takes_the_topic_with_it_and_clean_leaves_nothing")],
    ),
    fault(
        "token.not_adopted",
        "a token whose thread ended is nobody's",
        &[Kit("node", "a_node_outlives_the_thread_that_opened_it")],
    ),
    fault(
        "wiped.kept",
        "a forked child has its parent's words of a queue",
        &[
            Unit("os::wiped::tests::a_forked_child_finds_zero_and_its_parent_what_it_stored"),
            Kit("fork_queues", "a_child_neither_sends_nor_receives_and_its_parent_goes_on"),
        ],
    ),
];
