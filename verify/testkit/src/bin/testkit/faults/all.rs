//! All faults that are planted.

use super::check::Fault;
use super::{found, list, lives, locks, real_time};

/// Those of each list.
pub(super) fn all() -> impl Iterator<Item = &'static Fault> {
    let lists = [list::FAULTS, locks::FAULTS, lives::FAULTS, real_time::FAULTS, found::FAULTS];
    lists.into_iter().flatten()
}
