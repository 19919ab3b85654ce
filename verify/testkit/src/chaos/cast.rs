//! Who takes part.

use outlive::Result;

use super::anchor;
use super::awaited::await_messages;
use super::locks::{LOCKERS_MAX, use_locks};
use super::others::{clean, come_and_go, wait_for_many};
use super::part::Part;
use super::queues::{self, FIXED, ORDERED, Way};
use super::realtime::{read_newest, write_newest};
use super::services;
use super::topics::{self, INLINE, Inline, LOANED, Loaned, Mode, SLICES};

/// What a member does in each of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Anchor,
    PublishesInline,
    PublishesLoaned,
    PublishesGrowing,
    PublishesAnyLength,
    ReadsInline(Mode),
    ReadsLoaned(Mode),
    ReadsSlices(Mode),
    WaitsForMany,
    Awaits,
    WritesNewest,
    ReadsNewest,
    SendsFixed(Way),
    SendsOrdered(Way),
    SendsVaried,
    ConsumesFixed,
    ConsumesOrdered,
    ConsumesVaried,
    Serves,
    Asks { resume: bool },
    UsesLocks(usize),
    ComesAndGoes,
    Cleans,
}

use Role::*;

/// The anchor first.
pub(super) const CAST: &[Role] = &[
    Anchor,
    PublishesInline,
    PublishesInline,
    PublishesLoaned,
    PublishesLoaned,
    PublishesGrowing,
    PublishesAnyLength,
    ReadsInline(Mode::BestEffort),
    ReadsInline(Mode::InOrder),
    ReadsLoaned(Mode::BestEffort),
    ReadsLoaned(Mode::Reliable),
    ReadsSlices(Mode::Reliable),
    ReadsSlices(Mode::Latest),
    WaitsForMany,
    Awaits,
    WritesNewest,
    ReadsNewest,
    SendsFixed(Way::One),
    SendsFixed(Way::Batch),
    SendsFixed(Way::Reserve),
    ConsumesFixed,
    SendsOrdered(Way::One),
    SendsOrdered(Way::Reserve),
    ConsumesOrdered,
    SendsVaried,
    SendsVaried,
    ConsumesVaried,
    Serves,
    Asks { resume: false },
    Asks { resume: false },
    Asks { resume: true },
    UsesLocks(0),
    UsesLocks(1),
    UsesLocks(2),
    UsesLocks(3),
    ComesAndGoes,
    ComesAndGoes,
    Cleans,
];

const _: () = assert!(CAST.len() <= super::board::SLOTS_MAX && LOCKERS_MAX >= 4);

/// What the ledger of a role holds: see `board::Life`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ledger {
    /// Tried, sent, got: all that was sent must have come.
    Stream,
    /// As it; but not all requests are answered.
    Requests,
    Locker(usize),
    None,
}

impl Role {
    pub(super) fn live(self, part: &mut Part) -> Result<()> {
        match self {
            Anchor => anchor::hold(part),
            PublishesInline => topics::publish_inline(part),
            PublishesLoaned => topics::publish_loaned(part),
            PublishesGrowing => topics::publish_growing(part),
            PublishesAnyLength => topics::publish_any_length(part),
            ReadsInline(mode) => topics::subscribe::<Inline>(part, INLINE, mode),
            ReadsLoaned(mode) => topics::subscribe::<Loaned>(part, LOANED, mode),
            ReadsSlices(mode) => topics::subscribe::<[u64]>(part, SLICES, mode),
            WaitsForMany => wait_for_many(part),
            Awaits => await_messages(part),
            WritesNewest => write_newest(part),
            ReadsNewest => read_newest(part),
            SendsFixed(way) => queues::send_fixed(part, FIXED, way),
            SendsOrdered(way) => queues::send_fixed(part, ORDERED, way),
            SendsVaried => queues::send_varied(part),
            ConsumesFixed => queues::consume_fixed(part, FIXED),
            ConsumesOrdered => queues::consume_fixed(part, ORDERED),
            ConsumesVaried => queues::consume_varied(part),
            Serves => services::serve(part),
            Asks { resume } => services::ask(part, resume),
            UsesLocks(me) => use_locks(part, me),
            ComesAndGoes => come_and_go(part),
            Cleans => clean(part),
        }
    }

    /// Whether it goes on until there is nothing left to receive.
    pub(super) fn receives(self) -> bool {
        matches!(
            self,
            ReadsInline(_)
                | ReadsLoaned(_)
                | ReadsSlices(_)
                | WaitsForMany
                | Awaits
                | ReadsNewest
                | ConsumesFixed
                | ConsumesOrdered
                | ConsumesVaried
                | Serves
        )
    }

    pub(super) fn ledger(self) -> Ledger {
        match self {
            PublishesInline | PublishesLoaned | PublishesGrowing | PublishesAnyLength
            | SendsFixed(_) | SendsOrdered(_) | SendsVaried => Ledger::Stream,
            Asks { .. } => Ledger::Requests,
            UsesLocks(me) => Ledger::Locker(me),
            _ => Ledger::None,
        }
    }
}
