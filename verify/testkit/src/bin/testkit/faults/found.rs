//! The faults that were found by reading, beside all proofs, put back; and what catches each now.

use super::check::Check::{History, Kit, Unit};
use super::check::{Fault, fault};

/// By name.
pub(crate) const FAULTS: &[Fault] = &[
    fault(
        "admit.dead_stop_all",
        "a dead subscriber that cannot be mapped keeps a publisher from sending",
        &[Unit(
            "topic::tests::failures::unopened::\
             a_dead_reliable_subscriber_that_cannot_be_mapped_stops_no_publisher",
        )],
    ),
    fault(
        "admit.denied_is_gone",
        "a subscriber whose node file may not be read counts as gone",
        &[Unit(
            "topic::tests::failures::unopened::\
             a_subscriber_that_may_not_be_read_is_opened_later_and_stops_nobody",
        )],
    ),
    fault(
        "admit.denied_stops_all",
        "a subscriber whose node file may not be read keeps a publisher from sending",
        &[Unit(
            "topic::tests::failures::unopened::\
             a_subscriber_that_may_not_be_read_is_opened_later_and_stops_nobody",
        )],
    ),
    fault(
        "attach.needs_unlink",
        "a queue is not consumed beside an old segment that cannot be removed",
        &[Unit(
            "queue::tests::growth::\
             a_successor_reads_on_beside_an_old_segment_that_cannot_be_removed",
        )],
    ),
    fault(
        "batch.passes_over",
        "a batch leaves out who has something else than a plain copy next",
        &[Unit(
            "topic::tests::messages::batches::\
             a_message_that_is_no_copy_is_not_passed_over_for_those_that_are",
        )],
    ),
    fault(
        "batch.skips_unasked",
        "a batch that is full passes over the one that is next",
        &[Unit("topic::tests::messages::batches::small_batches_are_of_every_publisher_in_turn")],
    ),
    fault(
        "batch.uses_up_passed",
        "rings of the dead that cannot be mapped hide the living from batches",
        &[Unit(
            "topic::tests::messages::batches::\
             what_the_dead_left_unmapped_does_not_hide_the_living_from_batches",
        )],
    ),
    fault(
        "call.unopened_is_forgotten",
        "a publisher calls no subscriber that it cannot open",
        &[Unit(
            "topic::tests::failures::unopened::\
             who_waits_for_a_descriptor_is_called_by_a_publisher_that_cannot_map_it",
        )],
    ),
    fault(
        "chase.ahead_of_volatile",
        "beside withdrawn messages a subscriber goes on ahead of the newest",
        &[Unit(
            "topic::tests::failures::unopened::\
             who_may_not_be_read_misses_what_was_withdrawn_and_nothing_that_comes",
        )],
    ),
    fault(
        "drain.repeats_errors",
        "an iterator over what is there gives one error for ever",
        &[Unit("topic::tests::messages::modes::a_drain_ends_at_an_error_and_the_next_one_goes_on")],
    ),
    fault(
        "fd.no_edge_after_error",
        "an edge-triggered waiter that gets an error waits for ever",
        &[
            Unit(
                "topic::tests::failures::refused::\
                 who_waits_for_edges_of_a_descriptor_gets_one_after_an_error",
            ),
            Unit(
                "queue::tests::failures::refused::\
                 who_waits_for_edges_of_a_consumer_gets_one_after_an_error",
            ),
        ],
    ),
    fault(
        "follow.unlink_forgotten",
        "a segment that cannot be removed now stays",
        &[Unit(
            "queue::tests::growth::a_segment_that_cannot_be_removed_now_is_no_error_and_goes_later",
        )],
    ),
    fault(
        "known.keeps_trouble",
        "a lack is reported after what was missing has been found",
        &[History("a-lack-that-is-over-is-not-told")],
    ),
    fault(
        "known.tries_amid_lack",
        "a ring that may not be read is tried without a pause amid a lack",
        &[Unit(
            "topic::subscriber::reader::known::tests::amid_a_lack_nothing_is_tried_before_its_time",
        )],
    ),
    fault(
        "lane.drained_unasked",
        "a producer that needs a whole lane sleeps on when it is empty",
        &[Unit("queue::producer::lane::tests::a_drained_lane_is_looked_at_by_who_needs_all_of_it")],
    ),
    fault(
        "lane.last_unasked",
        "an empty segment behind one that is being read keeps its producer awake",
        &[Unit(
            "queue::producer::lane::tests::\
             an_empty_segment_is_nothing_to_do_while_the_one_before_it_is_read",
        )],
    ),
    fault(
        "lane.padding_counts",
        "a lane of which nothing but padding is unread counts as full",
        &[
            Unit("queue::producer::lane::tests::an_idle_lane_goes_on_behind_its_padding"),
            Unit(
                "queue::tests::growth::\
                 a_message_of_a_good_part_of_the_bound_is_taken_each_time_by_an_idle_lane",
            ),
            Unit(
                "service::tests::failures::\
                 large_requests_and_answers_are_taken_each_time_by_idle_ends",
            ),
        ],
    ),
    fault(
        "latest.look_first",
        "the newest message is hidden by a look that fails",
        &[Unit(
            "topic::tests::failures::refused::a_newcomer_that_cannot_be_looked_at_hides_no_message",
        )],
    ),
    fault(
        "leave.anothers_files",
        "a node that leaves removes the files of another one of its number",
        &[Unit(
            "node::tests::\
             who_leaves_a_domain_made_anew_removes_nothing_of_the_node_that_has_its_number",
        )],
    ),
    fault(
        "leave.joiner_uncalled",
        "a publisher that leaves wakes nobody that joined since it last sent",
        &[Unit("wait::tests::a_publisher_that_never_sent_anything_calls_as_it_leaves")],
    ),
    fault(
        "loan.joiner_unseen",
        "a volatile publisher without a chunk does not look who joined",
        &[Unit(
            "topic::tests::failures::unopened::\
             a_volatile_publisher_of_one_chunk_goes_on_after_each_who_joins_or_leaves",
        )],
    ),
    fault(
        "lock.heir.unjudged_awaited",
        "an heir that cannot be judged is waited for",
        &[Unit("lock::tests::waiting::an_heir_that_cannot_be_judged_is_passed_over")],
    ),
    fault(
        "lock.try.by_token_alone",
        "trying to take a lock never checks its holder's file lock",
        &[Unit(
            "lock::tests::waiting::\
             who_only_tries_inherits_from_a_holder_that_went_without_a_mark",
        )],
    ),
    fault(
        "look.lack_keeps_awake",
        "a subscriber without a descriptor for a new publisher cannot sleep",
        &[Unit(
            "topic::tests::failures::refused::\
             who_cannot_open_a_newcomer_for_lack_of_descriptors_waits_for_the_others",
        )],
    ),
    fault(
        "order.held_back_is_asked",
        "a consumer that holds a message back checks its producer, and spins if that is dead",
        &[Unit(
            "queue::tests::members::leave::\
             nobody_spins_until_what_a_dead_producer_sent_has_its_turn",
        )],
    ),
    fault(
        "pipeline.inline_looks_busy",
        "a stage on a shared thread seems to hand on while it waits for its release",
        &[Unit("rt::tests::a_stage_on_a_shared_thread_waits_for_the_one_before_it")],
    ),
    fault(
        "pipeline.others_run_on",
        "a stage that cannot be started leaves those before it running",
        &[Unit("rt::tests::a_stage_whose_thread_cannot_be_made_stops_those_before_it")],
    ),
    fault(
        "place.reused_at_once",
        "the place of a thread that has just ended is another's at once",
        &[Unit("node::threads::tokens::tests::the_place_of_a_thread_that_has_just_ended_waits")],
    ),
    fault(
        "poll.refused_at_once",
        "descriptors that the kernel does not take together are not looked at",
        &[Unit(
            "os::sleep::poll::tests::\
             more_descriptors_than_the_limit_allows_are_looked_at_one_by_one",
        )],
    ),
    fault(
        "queue.joins_unlisted",
        "a node whose file was removed joins queues, where others take it for dead",
        &[Unit(
            "queue::tests::failures::refused::\
             a_node_that_is_not_listed_any_more_joins_no_queue_and_is_told_at_once",
        )],
    ),
    fault(
        "reclaim.failed_is_over",
        "a request made during a look that fails is not served",
        &[Unit("domain::bell::tests::who_asked_during_a_look_that_failed_is_served_by_another")],
    ),
    fault(
        "reclaim.unmapped_lives",
        "a dead publisher whose ring cannot be mapped is named as one that lives",
        &[Unit(
            "topic::tests::failures::unopened::\
             who_cannot_map_the_ring_of_one_that_is_dead_does_not_say_that_it_lives",
        )],
    ),
    fault(
        "reliable.joiner_unseen",
        "a subscriber that joins while another is waited for is overwritten",
        &[Unit("topic::tests::members::join::who_joins_while_another_is_waited_for_loses_nothing")],
    ),
    fault(
        "retry.by_messages_alone",
        "a publisher that can send nothing never tries again to open its subscriber",
        &[Unit(
            "topic::tests::failures::unopened::\
             a_volatile_publisher_out_of_chunks_tries_again_to_open_its_subscriber",
        )],
    ),
    fault(
        "retry.doubled_by_looks",
        "counting the subscribers delays the next try to open one",
        &[Unit("topic::tests::failures::unopened::who_asks_how_many_there_are_puts_no_try_off")],
    ),
    fault(
        "room.for_late_joiners",
        "on a full disk old messages for late joiners keep new ones from being sent",
        &[Kit("full_disk", "a_publisher_that_restarts_on_a_disk_for_one_ring_goes_on")],
    ),
    fault(
        "run.may_shrink",
        "a run that says less than was received is believed",
        &[Unit("queue::lane::record::tests::a_header_that_says_less_than_was_received_is_corrupt")],
    ),
    fault(
        "rwlock.claim.needs_verdict",
        "a reader gives up at an idle line whose thread it cannot judge",
        &[Unit("lock::tests::waiting::a_reader_that_cannot_judge_an_idle_line_takes_another")],
    ),
    fault(
        "semaphore.needs_verdict",
        "a holder that cannot be judged hides the permit of a dead one",
        &[Unit(
            "lock::semaphore::permits::tests::a_holder_that_cannot_be_judged_hides_no_dead_one",
        )],
    ),
    fault(
        "served.unseen_is_gone",
        "a consumer or server that cannot be looked at counts as gone",
        &[
            Unit(
                "queue::tests::failures::refused::\
                 a_consumer_that_cannot_be_looked_at_counts_as_there",
            ),
            Unit("service::tests::put_off::a_server_that_cannot_be_looked_at_counts_as_there"),
        ],
    ),
    fault(
        "server.denied_is_gone",
        "a server passes over requests of a client whose replies it may not open",
        &[Unit(
            "service::tests::put_off::\
             a_client_whose_replies_may_not_be_opened_for_a_while_is_answered_later",
        )],
    ),
    fault(
        "server.gone_kept",
        "a server that always has a next request keeps all clients that are gone",
        &[Unit(
            "service::tests::failures::\
             a_server_that_always_has_a_request_forgets_clients_that_are_gone",
        )],
    ),
    fault(
        "server.put_off_forgotten",
        "a server that sleeps does not come back to what it put off",
        &[Unit(
            "service::tests::put_off::\
             a_server_in_a_wait_set_comes_back_to_the_requests_that_it_put_off",
        )],
    ),
    fault(
        "service.backlog_unasked",
        "a request that was taken in early is served though nobody waits for it",
        &[Unit("service::tests::what_was_taken_in_early_is_passed_over_once_nobody_waits_for_it")],
    ),
    fault(
        "service.called_once",
        "a server that could not call its clients does not try again",
        &[Unit(
            "service::tests::descriptor::\
             a_server_that_could_not_call_its_clients_calls_them_when_it_next_looks",
        )],
    ),
    fault(
        "sleep.looks_often",
        "who waits long without futex_waitv looks as often as at first",
        &[Unit("wait::tests::a_long_wait_without_waitv_for_a_lock_or_for_room_is_not_a_poll")],
    ),
    fault(
        "sources.first_of_living",
        "beside what the dead left unmapped it is always the first living publisher's turn",
        &[Unit(
            "topic::tests::failures::refused::\
             all_that_live_have_their_turn_beside_what_the_dead_left_unmapped",
        )],
    ),
    fault(
        "sources.given_up_untold",
        "a publisher waits for a subscriber that gave it up",
        &[Unit("topic::tests::failures::refused::who_gave_its_publisher_up_is_not_waited_for")],
    ),
    fault(
        "sources.past_hides_living",
        "a dead publisher's ring that cannot be mapped hides the living",
        &[Unit(
            "topic::tests::failures::refused::what_the_dead_left_unmapped_does_not_hide_the_living",
        )],
    ),
    fault(
        "stage.successor_unwoken",
        "a stage wakes no successor whose board it has not opened",
        &[Unit("rt::tests::a_successor_whose_board_cannot_be_opened_is_woken")],
    ),
    fault(
        "stage.waits_for_the_gone",
        "a stage without a deadline waits for ever for one that is gone",
        &[Unit("rt::tests::pair::a_stage_without_a_deadline_goes_on_when_the_one_before_is_gone")],
    ),
    fault(
        "stop.repeat_kills",
        "one request that is sent as two signals kills who is about to leave",
        &[Unit("os::process::stop::tests::a_request_that_is_sent_as_two_signals_is_one")],
    ),
    fault(
        "take_over.unseen_lives",
        "a consumer that cannot be looked at counts as alive to who would follow it",
        &[Unit(
            "queue::tests::failures::refused::\
             who_cannot_look_at_the_consumer_that_is_there_is_told_what_it_lacks",
        )],
    ),
    fault(
        "wait_set.bell_or_nothing",
        "a wait for which no doorbell can be made fails",
        &[Unit("wait::tests::a_wait_whose_doorbell_cannot_be_made_looks_every_so_often")],
    ),
    fault(
        "wait_set.bridge_closed",
        "a set whose descriptor somebody closed is ready for ever",
        &[Unit("wait::tests::a_set_whose_descriptor_was_closed_does_not_spin")],
    ),
    fault(
        "wait_set.first_hides_others",
        "a find by the first member keeps the others from checking who is alive",
        &[Unit("wait::tests::what_the_first_member_finds_keeps_no_other_from_asking")],
    ),
    fault(
        "wait_set.looks_always",
        "a wait for a period of a control loop reads directories",
        &[Unit("wait::tests::short_waits_read_no_directory")],
    ),
    fault(
        "wait_set.parents_bridge",
        "a forked child takes calls from its parent's wait set",
        &[Unit("wait::tests::a_forked_child_that_waits_takes_no_call_of_its_parent")],
    ),
    fault(
        "wake.unopened_is_forgotten",
        "a publisher wakes no subscriber that it cannot open",
        &[History("woken-by-whom-it-cannot-open")],
    ),
    fault(
        "withdraw.newest_only",
        "a volatile publisher never takes back the chunk of a message that was read late",
        &[Unit(
            "topic::tests::failures::unopened::\
             the_chunk_of_a_message_that_was_read_late_is_taken_back_as_well",
        )],
    ),
];
