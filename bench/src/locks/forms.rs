//! The two ways in, as types: what is measured is compiled for each.

use outlive_baselines::Use;

/// Which way in.
pub(super) trait Form: Copy {
    /// Nobody else is inside.
    const ALONE: bool;
    fn turn(self, lock: &impl Use, inside: impl FnOnce());
}

/// As the only one.
#[derive(Clone, Copy)]
pub(super) struct Alone;

/// Beside other readers, where the lock has that form.
#[derive(Clone, Copy)]
pub(super) struct Shared;

impl Form for Alone {
    const ALONE: bool = true;

    #[inline(always)]
    fn turn(self, lock: &impl Use, inside: impl FnOnce()) {
        lock.alone(|_| inside());
    }
}

impl Form for Shared {
    const ALONE: bool = false;

    #[inline(always)]
    fn turn(self, lock: &impl Use, inside: impl FnOnce()) {
        lock.shared(|_| inside());
    }
}
