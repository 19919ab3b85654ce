//! What a sweep kills and how it judges the survivors.

use super::{Gate, Point};
use std::path::Path;

/// A name for what the survivors saw, such as "before", "after" or "owner died"; tallied.
pub type Outcome = &'static str;

/// How a sweep treats a scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Keep peer, world and directory over all points instead of starting anew for each.
    ///
    /// Quicker, and shows what piles up; `survivor` must leave the world ready for the next victim.
    pub keep_world: bool,
    /// Call `while_stopped` at each point, while the victim is stopped amid its operation.
    pub act_while_stopped: bool,
    /// Let the victim finish its operation after `while_stopped`, then kill it: every interleaving
    /// of one peer action with the operation.
    pub finish_op: bool,
}

/// An operation to be killed everywhere.
///
/// Three processes take part. The *driver* traces and stays single-threaded. The *peer* is forked
/// first; it makes the world, lives through the kill and judges. The *victim* is forked from the
/// driver, so it has nothing of the world but the directory. A watchdog turns a hang of either into
/// a failure.
pub trait Scenario {
    /// What the peer holds across the kill: nodes, subscribers, threads.
    type World;

    /// A short name, unique in its suite.
    fn name(&self) -> String;

    /// How to treat it.
    fn style(&self) -> Style {
        Style::default()
    }

    /// Outcomes that a full sweep must have seen; without them it would prove little.
    fn must_see(&self) -> &[Outcome] {
        &[]
    }

    /// Most instructions that the operation may take, for those whose speed is a promise. Counted
    /// in the sweep's own build.
    fn instructions_max(&self) -> u64 {
        u64::MAX
    }

    /// Peer: prepares the directory and everything that lives through the kill.
    ///
    /// # Errors
    /// Any text; it becomes a failure.
    fn setup(&self, dir: &Path) -> Result<Self::World, String>;

    /// Peer: the victim has prepared and stands at the gate.
    ///
    /// # Errors
    /// Any text; it becomes a failure.
    fn at_gate(&self, dir: &Path, world: &mut Self::World) -> Result<(), String> {
        let _ = (dir, world);
        Ok(())
    }

    /// Victim: prepares, does the operation once as warm-up, then `gate.enter()`, the operation,
    /// `gate.leave()`.
    ///
    /// # Errors
    /// Any text; it becomes a failure.
    fn victim(&self, dir: &Path, gate: &Gate) -> Result<(), String>;

    /// Peer: acts while the victim is stopped (see [`Style::act_while_stopped`]), so it must not
    /// wait for it.
    ///
    /// # Errors
    /// Any text; it becomes a failure.
    fn while_stopped(&self, dir: &Path, world: &mut Self::World, at: &Point) -> Result<(), String> {
        let _ = (dir, world, at);
        Ok(())
    }

    /// Peer: the victim is dead and reaped. Do the peers progress, is the audit clean, does a
    /// restarted process work?
    ///
    /// # Errors
    /// What is wrong.
    fn survivor(
        &self,
        dir: &Path,
        world: &mut Self::World,
        killed_at: &Point,
    ) -> Result<Outcome, String>;

    /// Peer: ends the world; by default drops it. The directory is emptied afterwards.
    ///
    /// # Errors
    /// What is wrong, such as files left over.
    fn teardown(&self, dir: &Path, world: Self::World) -> Result<(), String> {
        let _ = dir;
        drop(world);
        Ok(())
    }
}
