//! What receives messages of a fixed size, and what of them is in hand.

use outlive::{Consumer, Received, Subscriber};

use super::lasting::Lasting;
use crate::history::step::FIXED_WORDS;

pub(crate) type Small = [u64; FIXED_WORDS[0] as usize];
pub(crate) type Large = [u64; FIXED_WORDS[1] as usize];

/// One that receives.
pub(crate) enum Values {
    SmallSubscriber(Subscriber<Small>),
    LargeSubscriber(Subscriber<Large>),
    /// Not a box: a slice in hand borrows from what it points to.
    SmallConsumer(Lasting<Consumer<Small>>),
    LargeConsumer(Lasting<Consumer<Large>>),
}

/// Messages in hand, kept for their drop.
pub(crate) enum Slice {
    Small { _it: Received<'static, [Small]> },
    Large { _it: Received<'static, [Large]> },
}
