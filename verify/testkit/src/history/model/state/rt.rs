//! Ends of real-time channels.

use crate::history::step::Handle;

/// Its number, and its depth: 0 where only the newest value is kept.
pub(crate) type Channel = (u64, bool);

#[derive(Clone, Debug)]
pub(crate) struct End {
    pub(crate) channel: Channel,
    pub(crate) depth: u64,
    pub(crate) writer: bool,
    pub(crate) connected: bool,
    /// What it works with, if it ever did.
    pub(crate) peer: Option<Handle>,
    /// What it names for sure.
    pub(crate) names: Option<Handle>,
    /// Values of a writer; how many of them readers have popped.
    pub(crate) sent: u64,
    pub(crate) popped: u64,
    /// Another of its process waited: it may have done its part of connecting meanwhile.
    pub(crate) helped: bool,
    /// What connecting may have given it while it waits, and beside whom, though nobody has heard
    /// of that yet.
    pub(crate) met: Vec<(&'static str, Handle)>,
    /// The newest that a reader has returned.
    pub(crate) seen: Option<(Handle, u64)>,
}
