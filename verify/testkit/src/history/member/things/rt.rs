//! Ends of real-time channels.

use outlive::rt::{LatestReader, LatestWriter, Opening, SpscReader, SpscWriter};

/// What travels: who wrote it, which one it is, and both again.
pub(crate) type Value = [u64; 64];

/// An end of a channel, connected or not yet.
pub(crate) enum End {
    NewWriter(Opening<LatestWriter<Value>>),
    NewReader(Opening<LatestReader<Value>>),
    NewPusher(Opening<SpscWriter<Value>>),
    NewPopper(Opening<SpscReader<Value>>),
    Writer(LatestWriter<Value>),
    Reader(LatestReader<Value>),
    Pusher(SpscWriter<Value>),
    Popper(SpscReader<Value>),
}
