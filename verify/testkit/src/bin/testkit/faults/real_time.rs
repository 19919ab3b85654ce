//! The faults of the real-time core and of locks that hand priorities on, and what catches each.

use super::check::Check::{History, Kit, Unit};
use super::check::{Fault, fault};

/// By name.
pub(crate) const FAULTS: &[Fault] = &[
    fault(
        "pi.any_object",
        "a lock with priority inheritance is let go by an object that did not take it",
        &[Unit("lock::tests::pi::a_pi_mutex_is_let_go_by_the_object_that_took_it")],
    ),
    fault(
        "pi.death_untold",
        "the thread that inherits a PiMutex does not learn of the death",
        &[
            Unit("lock::tests::pi::a_pi_mutex_passes_on_what_a_dead_thread_held"),
            History("priority-inheriting-lock-of-the-dead"),
        ],
    ),
    fault(
        "pi.never_buried",
        "a thread that does not exist holds a lock with priority inheritance for ever",
        &[Unit("lock::tests::pi::a_pi_mutex_whose_holder_went_without_a_mark_is_inherited")],
    ),
    fault(
        "pi.leak_inherited",
        "a leaked guard's lock with priority inheritance is inherited",
        &[
            Unit(
                "lock::tests::leaks::\
                 a_leaked_guard_of_a_pi_mutex_is_inherited_after_its_process_only",
            ),
            History("priority-inheriting-lock-of-the-dead"),
        ],
    ),
    fault(
        "pi.leak_told_at_exit",
        "a process that exits with a priority-inheriting lock counts as one that leaked it",
        &[Unit(
            "lock::tests::leaks::\
             who_waits_inherits_a_leaked_pi_guard_when_its_process_ends_soon",
        )],
    ),
    fault(
        "rt_file.second_end",
        "a second reader or writer of a channel is let in",
        &[
            Unit("rt::tests::pair::a_second_living_end_is_refused_until_the_first_is_dropped"),
            History("one-end-of-a-role"),
        ],
    ),
    fault(
        "rt_file.unseen_is_dying",
        "an end whose node cannot be looked at counts as one that ends",
        &[
            Kit(
                "scarcity_members",
                "a_member_that_cannot_be_looked_at_is_not_taken_for_one_that_ends",
            ),
            History("unseen-end-is-told-at-once"),
        ],
    ),
    fault(
        "rt_pair.accepts_again",
        "a reader that was connected for its process forgets its writer",
        &[Unit(
            "rt::tests::pair::\
             what_was_pushed_before_the_reader_connected_is_popped_when_its_writer_has_left",
        )],
    ),
    fault(
        "rt_pair.accepts_anybody",
        "a reader connects to a writer that has another",
        &[
            Unit("rt::tests::pair::an_end_is_connected_only_when_the_other_one_is_too"),
            History("reader-takes-who-named-it"),
        ],
    ),
    fault(
        "rt_pair.drops_the_rest",
        "a reader goes on before the old writer's values were popped",
        &[
            Unit("rt::tests::pair::what_an_old_writer_pushed_is_popped_before_its_successors"),
            History("rest-of-an-old-writer-comes-first"),
        ],
    ),
    fault(
        "rt_pair.leaves_untold",
        "an end of a channel is dropped without a word",
        &[
            Unit("rt::tests::pair::an_end_on_the_heap_is_told_that_the_other_one_was_dropped"),
            History("reader-that-left-is-told"),
        ],
    ),
    fault(
        "rt_pair.offer_is_enough",
        "a writer is connected before its reader is",
        &[
            Unit("rt::tests::pair::an_end_is_connected_only_when_the_other_one_is_too"),
            History("reader-that-left-is-told"),
        ],
    ),
    fault(
        "rt_pair.starts_anew",
        "a ring's new reader begins behind what was accepted",
        &[
            Unit(
                "rt::tests::pair::\
                 every_accepted_push_arrives_once_however_often_the_reader_is_replaced",
            ),
            History("ring-goes-on-where-the-reader-ended"),
        ],
    ),
    fault(
        "rt_pair.unchecked",
        "an end does not look whether the other one works with it",
        &[
            Unit("rt::tests::pair::an_old_reader_that_was_replaced_is_told_and_reads_nothing"),
            History("reader-that-left-is-told"),
        ],
    ),
    fault(
        "rt_tag.name_only",
        "a real-time channel takes another order of fields for the same type",
        &[Unit("rt::tests::the_same_type_elsewhere_is_taken_and_another_order_of_fields_is_not")],
    ),
];
