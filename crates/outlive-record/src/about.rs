//! What our recorder says about a file, in its first records.

/// Metadata records of ours.
pub(crate) const ABOUT: &str = "outlive";
pub(crate) const LOSSES: &str = "outlive.losses";
/// In the first of them: what to add to the publishers' own time stamps for the time since the
/// epoch, ns, as it was when the file began.
pub(crate) const EPOCH: &str = "monotonic_to_epoch_ns";
/// There too: what all files of a split recording have in common, and no others.
pub(crate) const ROW: &str = "row";
/// There too: which run under its name it is, counted from 1. The time of day may be set back
/// between two runs.
pub(crate) const RUN: &str = "run";
/// There too: the number of the row's first file.
pub(crate) const FIRST: &str = "first";
/// How the library of a file ends that was recovered. Some name the row of what they were made of.
pub(crate) const RECOVERS: &str = " recover";
