//! What those that wait have been told, or have said.

/// What one that sleeps has been told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nothing.
    No,
    /// It, or another one that slept; it finds out when it looks.
    Perhaps,
    /// It must wake.
    Surely,
}

/// What a wait set said that nobody has looked at since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Named {
    /// A call on it returns something.
    Ready,
    /// As before, but a message was taken or something lacked since: it may have been that.
    Unsure,
}
