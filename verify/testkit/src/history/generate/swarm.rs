//! What a history leaves out, and what it does often.
//!
//! A defect shows when a few rare things meet on one object. Where every history does a little of
//! everything they seldom meet. So each is about few kinds of objects, leaves some things out at
//! random and does others often; over many histories each pair of things gets both (Groce et al.,
//! "Swarm testing", ISSTA 2012).

use crate::history::step::Verb;
use crate::rng::Rng;

/// What may be left out or done often, and the kind of objects it is about, if it is about one.
/// What makes good again is not among them, nor what makes objects.
const OPTIONAL: &[(Verb, Option<u64>)] = &[
    (Verb::Thread, None),
    (Verb::End, None),
    (Verb::Crash, None),
    (Verb::Kill, None),
    (Verb::Stop, None),
    (Verb::Exit, None),
    (Verb::Quit, None),
    (Verb::Drop, None),
    (Verb::Leak, None),
    (Verb::Unwind, None),
    (Verb::Clean, None),
    (Verb::Audit, None),
    (Verb::Watch, None),
    (Verb::Await, None),
    (Verb::Wait, None),
    (Verb::Fork, None),
    (Verb::Limit, None),
    (Verb::Fill, None),
    (Verb::Priority, None),
    (Verb::Crowd, None),
    (Verb::Publish, Some(0)),
    (Verb::PublishBatch, Some(0)),
    (Verb::Insist, Some(0)),
    (Verb::Loan, Some(0)),
    (Verb::Receive, Some(0)),
    (Verb::ReceiveBatch, Some(0)),
    (Verb::Take, Some(0)),
    (Verb::Send, Some(1)),
    (Verb::SendBatch, Some(1)),
    (Verb::Get, Some(1)),
    (Verb::GetBatch, Some(1)),
    (Verb::Hold, Some(1)),
    (Verb::HoldSlice, Some(1)),
    (Verb::Lock, Some(2)),
    (Verb::Read, Some(2)),
    (Verb::Write, Some(2)),
    (Verb::RemoveLock, Some(2)),
    (Verb::Sleep, Some(2)),
    (Verb::Notify, Some(2)),
    (Verb::Call, Some(3)),
    (Verb::ReplyFor, Some(3)),
    (Verb::Cancel, Some(3)),
    (Verb::Part, Some(3)),
    (Verb::Refuse, Some(3)),
    (Verb::Reconnect, Some(4)),
    (Verb::Push, Some(4)),
    (Verb::Pop, Some(4)),
    (Verb::Acquire, Some(5)),
    (Verb::Insert, Some(6)),
    (Verb::Remove, Some(6)),
    (Verb::StopTimer, Some(7)),
    (Verb::Raise, Some(7)),
    (Verb::Clear, Some(7)),
    (Verb::Place, Some(8)),
    (Verb::RemoveSegment, Some(8)),
];

/// Not often: what ends those who would do the rest, what takes seconds, and what only looks.
const SELDOM: [Verb; 7] =
    [Verb::Kill, Verb::Stop, Verb::Exit, Verb::Quit, Verb::Crowd, Verb::Clean, Verb::Audit];

/// Kinds below that, topics to services, have most of the code; bold histories have them oftener.
const MOST: u64 = 4;

/// What one history leaves out and does often.
#[derive(Clone, Debug, Default)]
pub(super) struct Taste {
    without: Vec<Verb>,
    often: Vec<Verb>,
}

impl Taste {
    /// Of a history about objects of these kinds, which become fewer. A third of all have none.
    pub(super) fn new(rng: &mut Rng, kinds: &mut Vec<u64>, bold: bool) -> Self {
        if rng.one_in(3) {
            return Self::default();
        }
        while kinds.len() > 2 || kinds.len() > 1 && rng.one_in(2) {
            let at = rng.below(kinds.len() as u64) as usize;
            if !bold || kinds[at] >= MOST || rng.one_in(2) {
                kinds.swap_remove(at);
            }
        }
        let about = |is: &dyn Fn(Option<u64>) -> bool| -> Vec<Verb> {
            OPTIONAL.iter().filter(|(_, kind)| is(*kind)).map(|(verb, _)| *verb).collect()
        };
        let lives = about(&|kind| kind.is_none());
        let deeds = about(&|kind| kind.is_some_and(|kind| kinds.contains(&kind)));
        let mut often = Vec::new();
        // What happens to members meets what they do.
        for (of, most) in [(&lives, 2), (&deeds, 3)] {
            let of: Vec<Verb> = of.iter().copied().filter(|it| !SELDOM.contains(it)).collect();
            often.extend((0..rng.below(most + 1)).map(|_| of[rng.below(of.len() as u64) as usize]));
        }
        let of_four = rng.below(3);
        let all = lives.into_iter().chain(deeds);
        let without = all.filter(|_| rng.below(4) < of_four).collect();
        Self { without, often }
    }

    pub(super) fn likes(&self, verb: Verb) -> bool {
        self.often.contains(&verb)
    }

    /// One of what is done often, or anything.
    pub(super) fn wish(&self, rng: &mut Rng) -> Option<Verb> {
        let which = rng.below(2 * self.often.len() as u64);
        self.often.get(which as usize).copied()
    }

    /// Whether a step of that verb suits the history.
    pub(super) fn suits(&self, verb: Verb) -> bool {
        !self.without.contains(&verb) || self.likes(verb)
    }
}
