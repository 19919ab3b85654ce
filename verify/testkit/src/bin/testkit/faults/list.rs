//! The faults of the library, and what catches each. Those that only the models can show are not
//! here: see `table::models`.

use super::check::Check::{self, History, Kit, Sweep, Unit, Value};
use super::check::{Fault, fault};

const GARBAGE_IN_A_CHUNK: Check =
    Kit("bad_input", "garbage_in_the_entry_of_a_chunk_harms_its_publisher_alone");
const OTHERS: Check =
    Kit("scarcity_members", "a_client_that_cannot_be_served_now_keeps_none_from_the_others");
const BLIND: Check = Kit("scarcity_members", "a_member_that_cannot_open_a_lane_takes_nothing_away");
const CLOSED: Check =
    Unit("node::tests::a_member_lives_on_when_its_program_closes_all_descriptors");
const HELD: Check =
    Unit("topic::tests::a_held_sample_never_changes_and_the_limit_is_told_to_its_holder_only");

/// By name.
pub(crate) const FAULTS: &[Fault] = &[
    fault(
        "admit.failed_is_gone",
        "a subscriber that cannot be opened right now counts as gone",
        &[Kit(
            "scarcity_members",
            "a_subscriber_that_cannot_be_opened_is_waited_for_or_tried_again",
        )],
    ),
    fault(
        "attach.full_unchecked",
        "a full table of publishers takes one more",
        &[Unit(
            "topic::tests::messages::modes::\
             more_publishers_than_places_are_told_and_the_others_read",
        )],
    ),
    fault(
        "attach.no_more_places",
        "a subscriber has places for 96 publishers only",
        &[
            Unit(
                "topic::tests::members::age::\
                 a_log_of_hundreds_of_publishers_is_read_and_waited_for",
            ),
            History("many-publishers-are-all-read"),
        ],
    ),
    fault(
        "attach.one_fails_all",
        "a lane that cannot be opened now keeps the others unread",
        &[OTHERS],
    ),
    fault(
        "attach.refused_is_corrupt",
        "a ring that could not be opened once is not read any more",
        &[Unit(
            "topic::tests::failures::refused::a_ring_that_is_refused_for_a_while_is_read_later",
        )],
    ),
    fault(
        "batch.last_comes_again",
        "the last message of a batch from a queue comes again",
        &[History("batches-go-on-with-the-next-consumer")],
    ),
    fault(
        "bell.not_rung",
        "joining or leaving a topic or queue does not ring the bell",
        &[
            Unit(
                "topic::tests::messages::modes::\
                 a_reliable_subscriber_that_never_looked_still_counts",
            ),
            History("reliable-that-came-later"),
        ],
    ),
    fault(
        "body.value_unchecked",
        "a value that the type does not have reaches a server or client",
        &[Value("a_service_refuses_the_request_and_a_client_the_reply")],
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
        "waiters on a descriptor or a doorbell are not woken",
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
        &[
            Unit("queue::tests::there_is_one_consumer_at_a_time_and_the_next_one_goes_on"),
            History("one-consumer"),
        ],
    ),
    fault(
        "crowd.grown_uncounted",
        "lanes that grew do not count where a producer joins",
        &[Unit("queue::tests::members::crowd::a_producer_that_nobody_would_read_is_refused")],
    ),
    fault(
        "crowd.of_the_gone",
        "lanes of the gone fill a queue that nobody reads",
        &[Unit(
            "service::tests::failures::short_lived_clients_fill_no_service_that_does_not_receive",
        )],
    ),
    fault(
        "death.by_pid",
        "the process id says who lives",
        &[
            Unit(
                "topic::tests::messages::modes::\
                 a_node_dropped_by_another_thread_is_known_dead_at_once",
            ),
            History("node-left-in-a-living-process"),
        ],
    ),
    fault(
        "death.by_word_alone",
        "the token's word alone confirms a death",
        &[Unit("node::tests::a_word_that_says_dead_is_a_hint_and_no_proof")],
    ),
    fault(
        "depart.unread_is_gone",
        "a subscriber whose port cannot be read counts as departed",
        &[Unit(
            "topic::tests::failures::refused::\
             a_chunk_is_not_written_while_its_holder_cannot_be_asked",
        )],
    ),
    fault(
        "descriptor.of_a_stranger",
        "a descriptor that was closed is used, whatever has its number",
        &[Unit("os::fs::kept::tests::a_number_that_is_another_files_is_left_alone")],
    ),
    fault(
        "domain.group_taken",
        "a domain that exists goes over to the group that a newcomer names",
        &[Unit("node::tests::a_private_domain_is_not_opened_to_a_group")],
    ),
    fault(
        "events.only_new",
        "an end that an earlier call noticed ends no wait",
        &[
            Unit("topic::tests::members::leave::an_end_that_nobody_has_looked_at_ends_a_wait_once"),
            Unit("queue::tests::acknowledge::an_end_that_nobody_has_looked_at_ends_a_wait_once"),
            History("event-noticed-before-the-wait"),
        ],
    ),
    fault(
        "faults.not_killed",
        "a fatal fault writes a core although it was to kill at once",
        &[Unit("os::process::faults::tests::a_fault_kills_at_once_and_writes_no_core")],
    ),
    fault(
        "file.any_kind",
        "a FIFO or directory in place of a file is opened",
        &[Unit("os::fs::file::tests::only_regular_files_of_ours_are_believed")],
    ),
    fault(
        "file.length_unchecked",
        "a short file is mapped",
        &[Unit("os::fs::file::tests::only_regular_files_of_ours_are_believed")],
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
            Unit("os::fs::file::tests::only_regular_files_of_ours_are_believed"),
            Kit("bad_input", "something_else_in_place_of_meta_stops_newcomers_alone"),
        ],
    ),
    fault(
        "file.over_the_limit",
        "a file beyond RLIMIT_FSIZE is asked for, which raises SIGXFSZ",
        &[Unit(
            "os::fs::file::tests::\
             a_file_larger_than_the_limit_of_the_process_is_no_space_and_no_signal",
        )],
    ),
    fault(
        "file.unreserved",
        "a file is made without reserving its bytes",
        &[Unit("os::fs::file::tests::growing_reserves_and_never_shortens")],
    ),
    fault(
        "follow.no_unlink",
        "a segment that was read to its end stays",
        &[
            Unit(
                "queue::tests::growth::\
                 a_lane_grows_to_its_bound_then_would_block_and_shrinks_again",
            ),
            Sweep("follow"),
        ],
    ),
    fault(
        "fork.child_is_parent",
        "a forked child takes itself for its parent",
        &[
            Unit("os::process::fork::tests::a_child_is_another_generation"),
            Kit("fork", "inherited_handles_refuse_harm_nothing_and_keep_nobody_alive"),
            History("forked-child-harms-nothing"),
        ],
    ),
    fault(
        "fork.child_unmaps",
        "a forked child that drops a subscriber unmaps what its samples lie in",
        &[
            Unit("topic::tests::members::leave::a_forked_child_still_reads_an_inherited_sample"),
            History("forked-child-harms-nothing"),
        ],
    ),
    fault(
        "glance.cut_unseen",
        "a look at an idle subscriber misses that its publisher's ring was cut",
        &[Unit(
            "topic::subscriber::reader::glance::tests::\
             a_ring_that_is_cut_while_nothing_was_sent_is_noticed",
        )],
    ),
    fault(
        "hazard.count_unchecked",
        "the number of a peer's hazards is believed",
        &[Kit("bad_input", "garbage_in_a_port_harms_its_node_alone")],
    ),
    fault(
        "holder.takes_signals",
        "a signal handler may run in the thread that holds the token",
        &[Unit(
            "os::death::holder::tests::\
             a_holder_is_small_named_and_runs_nobodys_signal_handler",
        )],
    ),
    fault(
        "holder.unlisted",
        "the token is not in its holder's list",
        &[Unit(
            "os::death::holder::tests::\
             a_token_dies_with_its_process_even_if_its_memory_is_reaped_first",
        )],
    ),
    fault(
        "history.of_each_ring",
        "history counts each publisher's messages for itself",
        &[
            Unit(
                "topic::tests::members::age::the_dead_are_read_in_order_and_history_is_the_topics",
            ),
            History("history-is-of-the-topic"),
        ],
    ),
    fault(
        "inline.length_unchecked",
        "a message's length is believed beyond its entry",
        &[Kit("bad_input", "garbage_in_entries_harms_its_publisher_alone")],
    ),
    fault(
        "join.dead_keep_type",
        "a topic keeps its type when all its members are dead",
        &[
            Unit(
                "topic::tests::members::age::a_type_of_the_dead_gives_way_and_the_living_are_named",
            ),
            History("type-of-the-dead-gives-way"),
        ],
    ),
    fault(
        "join.failed_cleans",
        "a member that cannot join a topic removes the messages of the dead",
        &[History("failed-join-deletes-nothing")],
    ),
    fault(
        "join.remade",
        "what all members of a queue share is made again beside them",
        &[Unit("queue::tests::what_all_members_share_is_not_made_anew_beside_them")],
    ),
    fault(
        "join_now.waits",
        "a server waits for a stopped cleaner at one client",
        &[Unit("service::tests::failures::a_stopped_cleaner_at_one_client_holds_up_no_other")],
    ),
    fault(
        "judge.not_found_is_dead",
        "a node that is not found is dead, even if its domain is not found either",
        &[Unit("lock::tests::elsewhere::who_finds_nobody_at_the_path_of_the_domain_takes_nothing")],
    ),
    fault(
        "living.unseen_lives",
        "a member that cannot be mapped is named as one that lives and keeps the type",
        &[Unit(
            "topic::tests::failures::unopened::\
             who_cannot_look_at_the_members_of_another_type_does_not_say_that_they_live",
        )],
    ),
    fault("lock.dead_is_alive", "a dead holder of a lock counts as alive", &[Sweep("mutex")]),
    fault(
        "lane.shrinks_at_once",
        "a lane that grew for a burst gives that up in the next round",
        &[Unit("queue::tests::growth::a_stream_in_bursts_makes_no_segments_in_each_of_them")],
    ),
    fault(
        "later.keeps_trouble",
        "a lack is reported to a consumer that has found all that was missing",
        &[Kit("scarcity_members", "a_lack_that_is_over_is_not_told_to_a_consumer")],
    ),
    fault(
        "lifeline.by_hint",
        "a lifeline trips on the word alone",
        &[Unit("rt::tests::a_lifeline_does_not_trip_on_a_word_that_says_dead")],
    ),
    fault("lock.by_descriptor_alone", "a lock that says alive goes with its descriptor", &[CLOSED]),
    fault("lock.parents_thread", "a forked child has its parent's locks", &[CLOSED]),
    fault(
        "look.rung_meanwhile",
        "a look at the directory settles also what rang after the look at the publishers",
        &[Unit(
            "topic::tests::members::leave::\
             a_leave_that_a_look_at_the_directory_has_passed_over_is_told",
        )],
    ),
    fault(
        "lost_lane.left_is_death",
        "a producer that left, and whose lane others removed, counts as dead",
        &[Unit(
            "queue::tests::members::crowd::lanes_that_went_while_nobody_looked_end_with_an_event",
        )],
    ),
    fault(
        "node.no_unlink",
        "a node that leaves forgets its file",
        &[Kit("node", "parts_dropped_in_any_order_leave_nothing")],
    ),
    fault(
        "own.leaves_unheard",
        "a node that leaves wakes no thread of its own process",
        &[Kit("node", "a_node_dropped_by_another_thread_than_its_opener_has_left")],
    ),
    fault(
        "own.token_like_others",
        "a thread sleeps on a token of its own process, and takes a wake to the grave",
        &[Kit("node", "threads_of_a_process_that_is_killed_take_no_wake_along")],
    ),
    fault(
        "per_process.inherited",
        "a forked child takes its parent's tables for its own",
        &[Unit(
            "os::process::fork::per_process::tests::\
             a_child_that_was_forked_inside_a_lock_has_a_table_of_its_own",
        )],
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
            Unit(
                "topic::ring::entries::tests::\
                 a_message_is_empty_then_busy_then_ready_then_overrun",
            ),
            Sweep("publish"),
        ],
    ),
    fault(
        "publish.no_wake",
        "a publisher wakes no sleeper",
        &[
            Unit("topic::tests::a_sleeping_subscriber_wakes_for_a_message_with_and_without_waitv"),
            History("sleeper-wakes"),
        ],
    ),
    fault(
        "queue.change_untold",
        "who comes to a queue or leaves it does not touch the directory of all queues",
        &[Unit(
            "queue::tests::members::leave::\
             who_comes_or_leaves_shows_in_the_directory_of_all_queues",
        )],
    ),
    fault(
        "queue.deserted_by_hint",
        "a request or an answer is given up on a word that says dead",
        &[Unit("service::tests::failures::a_server_whose_word_alone_says_dead_fails_no_request")],
    ),
    fault(
        "queue.first_of_any_size",
        "a lane begins smaller than any that a consumer reads",
        &[Unit("queue::tests::growth::a_first_segment_of_next_to_nothing_is_a_page")],
    ),
    fault(
        "queue.nobodys_type",
        "a queue keeps the type of one that died before it had joined",
        &[Unit("queue::tests::members::leave::who_died_before_it_joined_leaves_no_type")],
    ),
    fault(
        "receive.chases_oldest",
        "a receive goes after the oldest message however often it is overwritten",
        &[Unit("topic::tests::messages::chase::a_receive_gives_up_after_a_few_overruns")],
    ),
    fault(
        "receive.starves",
        "a message that cannot be mapped hides those behind it",
        &[Kit("scarcity_members", "a_message_that_cannot_be_mapped_does_not_hide_the_next")],
    ),
    fault(
        "receive.panic_acknowledges",
        "a panic acknowledges the message in hand",
        &[
            Unit("queue::tests::acknowledge::a_panic_is_no_acknowledgement_of_what_it_had_in_hand"),
            History("panic-with-a-message-in-hand"),
        ],
    ),
    fault(
        "receive.taken_early",
        "a message counts as received before it was read",
        &[
            Unit("queue::tests::there_is_one_consumer_at_a_time_and_the_next_one_goes_on"),
            History("message-in-hand-of-the-dead"),
        ],
    ),
    fault(
        "receive.value_unchecked",
        "a value that the type does not have is received from a queue",
        &[Value("a_queue_skips_the_value_alone_and_in_the_middle_of_a_batch")],
    ),
    fault(
        "reclaim.data_stays",
        "data segments of the dead are not unlinked",
        &[Unit("topic::tests::messages::modes::an_unread_ring_of_a_dead_publisher_stays")],
    ),
    fault(
        "reclaim.node_is_age",
        "the node's number says which ring is the oldest",
        &[
            Unit("topic::tests::members::age::of_more_dead_rings_than_are_kept_the_oldest_goes"),
            History("age-is-not-the-nodes"),
        ],
    ),
    fault(
        "reclaim.not_asked",
        "a member that leaves during a cleanup does not ask for another look",
        &[Unit("topic::tests::members::leave::members_that_leave_together_leave_nothing")],
    ),
    fault(
        "reclaim.of_the_living",
        "cleaning up does not ask who is alive",
        &[HELD, History("living-keep-their-files")],
    ),
    fault(
        "reclaim.read_ring",
        "a ring that is still read goes when younger ones are many",
        &[Unit(
            "topic::tests::members::age::rings_that_a_subscriber_still_reads_stay_however_many",
        )],
    ),
    fault(
        "reclaim.unasked_has_read",
        "a subscriber that cannot be asked has read every ring",
        &[Unit("topic::tests::failures::refused::a_ring_stays_while_its_reader_cannot_be_asked")],
    ),
    fault(
        "reclaim.unknown_is_busy",
        "a consumer that cannot be looked up is waited for, as one that just begins",
        &[History("no-wait-for-a-consumer-that-cannot-be-mapped")],
    ),
    fault(
        "reclaim.unknown_is_drained",
        "a lane that cannot be looked into counts as drained",
        &[BLIND],
    ),
    fault(
        "reclaim.unknown_is_over",
        "a lane that cannot be looked into counts as closed",
        &[BLIND],
    ),
    fault(
        "reclaim.unread_ring",
        "a dead publisher's ring goes before it was read",
        &[
            Unit("topic::tests::messages::modes::an_unread_ring_of_a_dead_publisher_stays"),
            History("unread-ring-of-the-dead"),
        ],
    ),
    fault(
        "reclaim.unseen_is_shallow",
        "a ring that cannot be looked at counts as none when depths are compared",
        &[Unit(
            "topic::tests::failures::refused::rings_stay_while_the_depth_of_another_is_not_known",
        )],
    ),
    fault(
        "record.length_unchecked",
        "a record's length is believed beyond its ring",
        &[Unit("queue::lane::record::tests::headers_that_no_producer_stores_are_corrupt")],
    ),
    fault(
        "reliable.dead_refuse",
        "a dead reliable subscriber refuses messages of who does not wait",
        &[
            Unit(
                "topic::tests::messages::modes::\
                 a_dead_reliable_subscriber_refuses_no_message_of_who_does_not_wait",
            ),
            History("dead-reliable-reader-refuses"),
        ],
    ),
    fault(
        "reliable.dropped_counts",
        "a dropped reliable subscriber is waited for while a sample is held",
        &[
            Unit("topic::tests::members::leave::a_dropped_reliable_subscriber_is_not_waited_for"),
            History("dropped-reliable-reader-is-not-waited-for"),
        ],
    ),
    fault(
        "reliable.not_waited",
        "a publisher does not wait for a reliable subscriber",
        &[
            Unit(
                "topic::tests::messages::modes::\
                 a_reliable_subscriber_loses_nothing_however_slow_it_is",
            ),
            Sweep("reliable"),
            History("reliable-is-waited-for"),
        ],
    ),
    fault(
        "room.believes_the_word",
        "a full lane's consumer lives as long as its word says so",
        &[Unit(
            "queue::tests::failures::refused::\
             a_consumer_whose_death_was_not_marked_is_found_dead_by_calls_that_wait",
        )],
    ),
    fault(
        "sample.record_taken",
        "a message is received into the memory of one that is still held",
        &[Unit(
            "topic::tests::\
small_samples_are_held_in_any_number_and_each_stays_what_it_was",
        )],
    ),
    fault(
        "sample.records_freed",
        "the memory of small samples is freed with their subscriber",
        &[Unit(
            "topic::tests::\
small_samples_are_held_in_any_number_and_each_stays_what_it_was",
        )],
    ),
    fault(
        "sample.value_unchecked",
        "a value that the type does not have is received on a topic",
        &[Value("every_call_of_a_subscriber_refuses_the_value_and_receives_the_next")],
    ),
    fault(
        "scan.no_hazards",
        "a chunk is used again without a look at the hazards",
        &[HELD, Kit("node", "a_stopped_process_is_alive_and_loses_only_what_the_ring_overwrote")],
    ),
    fault(
        "scan.unread_holds_none",
        "a subscriber whose port cannot be read holds no chunk",
        &[Unit(
            "topic::tests::failures::refused::\
             a_chunk_is_not_written_while_its_holder_cannot_be_asked",
        )],
    ),
    fault(
        "segment.header_unchecked",
        "the sizes in a data segment's header are believed",
        &[Kit("bad_input", "garbage_in_a_data_header_harms_its_publisher_alone")],
    ),
    fault("send.commit_first", "a record is committed before its payload", &[Sweep("send")]),
    fault(
        "send.no_wake",
        "a producer wakes no sleeper",
        &[Unit("queue::tests::each_turn_of_two_that_wait_for_each_other_ends_by_a_wake")],
    ),
    fault(
        "send.unserved",
        "a producer does not look whether anybody consumes",
        &[
            Unit("queue::tests::without_a_live_consumer_a_send_says_owner_died_and_sends_nothing"),
            History("nobody-consumes"),
        ],
    ),
    fault(
        "server.one_fails_all",
        "a client that cannot be answered now keeps the others waiting",
        &[OTHERS],
    ),
    fault(
        "service.any_term",
        "requests to a dead server are answered by the next",
        &[
            Unit("service::tests::failures::a_head_says_who_is_asked"),
            History("request-of-an-earlier-server"),
        ],
    ),
    fault(
        "service.death_untold",
        "a client is not told that its server died",
        &[
            Unit("service::tests::the_end_of_a_server_ends_every_wait_after_what_it_had_answered"),
            Sweep("serve"),
            History("server-death-is-told"),
        ],
    ),
    fault(
        "service.backlog_in_child",
        "a forked child gets what its parent's server or client took in",
        &[
            Kit("fork_queues", "a_child_gets_nothing_that_its_parents_service_took_in"),
            History("backlog-is-the-parents"),
        ],
    ),
    fault(
        "service.clients_uncalled",
        "a server that comes or leaves calls no client that waits for a descriptor",
        &[Unit(
            "service::tests::descriptor::\
             a_server_that_comes_or_leaves_makes_the_descriptors_of_all_clients_readable",
        )],
    ),
    fault(
        "sigbus.not_renewed",
        "a handler of others that comes later turns the guard off",
        &[Unit(
            "os::fs::sigbus::tests::\
             a_handler_that_comes_later_comes_second_once_a_file_is_mapped_and_does_not_go_round",
        )],
    ),
    fault(
        "sigbus.unguarded",
        "a page that vanished is not replaced",
        &[Unit("os::fs::sigbus::tests::a_truncated_file_reads_as_zeros_and_is_poisoned")],
    ),
    fault(
        "slot.old_bytes",
        "a loan to be filled holds the bytes of an earlier message",
        &[Value("what_is_lent_to_be_filled_holds_a_value_also_where_bytes_were_before")],
    ),
    fault(
        "socket.full_is_the_peers",
        "a full send buffer counts as a receiver that was called",
        &[Unit(
            "os::sleep::socket::tests::\
             what_stopped_receivers_have_not_read_keeps_no_call_from_another",
        )],
    ),
    fault(
        "sources.unsorted",
        "the rings of the dead are read in any order",
        &[
            Unit(
                "topic::tests::members::age::the_dead_are_read_in_order_and_history_is_the_topics",
            ),
            History("the-dead-in-order"),
        ],
    ),
    fault(
        "stop.no_wake",
        "a process that is asked to end is not woken",
        &[Unit("wait::tests::being_asked_to_end_wakes_every_kind_of_wait")],
    ),
    fault(
        "subscriber.no_unlink",
        "a subscriber that leaves forgets its file",
        &[Unit("topic::tests::the_last_member_takes_the_topic_with_it_and_clean_leaves_nothing")],
    ),
    fault(
        "subscribers.unopened_counts",
        "a subscriber that is still being opened counts as one that receives all",
        &[Unit(
            "topic::tests::messages::modes::\
             a_subscriber_counts_from_when_it_misses_nothing_any_more",
        )],
    ),
    fault(
        "sweep.same_turn",
        "an open beside many nodes looks at the same files as the one before",
        &[Unit(
            "node::tests::an_open_beside_many_looks_at_some_files_and_the_next_ones_at_the_rest",
        )],
    ),
    fault(
        "token.not_passed",
        "a thread woken by a token's change tells no other",
        &[
            Unit("wait::tests::whoever_is_woken_by_a_token_wakes_the_other_sleepers"),
            History("all-sleepers-are-told"),
        ],
    ),
    fault(
        "wait_set.names_one",
        "a wait set names one of its members that are ready",
        &[History("wait-set-names-all-that-is-ready")],
    ),
    fault(
        "waitset.any_doorbell",
        "a wait set's doorbell has a number that no flag has room for",
        &[Unit("wait::tests::the_set_beyond_what_a_flag_has_room_for_hears_its_own_doorbell")],
    ),
    fault(
        "withdraw.on_hint",
        "a volatile publisher takes the word for the proof of a subscriber's death",
        &[Unit(
            "topic::tests::messages::modes::\
             a_volatile_publisher_withdraws_nothing_that_a_living_subscriber_has_not_read",
        )],
    ),
    fault(
        "wiped.kept",
        "a forked child has its parent's words of a queue",
        &[
            Unit(
                "os::process::fork::wiped::tests::\
                 a_forked_child_finds_zero_and_its_parent_what_it_stored",
            ),
            Kit("fork_queues", "a_child_neither_sends_nor_receives_and_its_parent_goes_on"),
            History("forked-child-harms-nothing"),
        ],
    ),
    fault(
        "withdraw.looks_busy",
        "a withdrawn message looks like one that is being written",
        &[
            Unit("topic::tests::members::age::a_volatile_publisher_that_dies_idle_was_not_writing"),
            History("volatile-that-died-idle"),
        ],
    ),
    fault(
        "withdraw.unopened_has_read",
        "a volatile publisher takes a subscriber that it could not open for one that has read all",
        &[History("volatile-waits-for-whom-it-cannot-open")],
    ),
];
