//! Which process this is.

pub(crate) use outlive::internals::fork_generation;
use outlive::topic::segments;

/// This process's generation, which is never 0; from now on a forked child has another one, also
/// where its process id is its parent's, in a PID namespace of its own.
pub(crate) fn this_process() -> u32 {
    // The first look makes forks count.
    let _ = segments::segment_at(0);
    fork_generation()
}
