//! Semaphores, as a member uses them.

use std::sync::Arc;
use std::time::Duration;

use outlive::lock::RobustSemaphore;

use super::fails::Fails;
use super::shared::Shared;
use super::things::Thing;
use super::things::semaphores::Held;
use crate::history::reply::Reply;
use crate::history::step::Step;

pub(super) fn open(shared: &Shared, step: &Step) -> Result<Thing, Fails> {
    let node = shared.node(step.arg("node"));
    let name = format!("/h/semaphore{}", step.arg("semaphore"));
    let semaphore = node.semaphore(&name, step.arg("permits") as usize)?;
    Ok(Thing::Semaphore(Arc::new(semaphore)))
}

/// Takes a permit: its number, and how many are free then.
pub(super) fn acquire(shared: &Shared, step: &Step, reply: &mut Reply) -> Result<Held, Fails> {
    let on = step.arg("on");
    // Others use it meanwhile.
    let semaphore = match shared.things.lock().unwrap().get(&on) {
        Some(Thing::Semaphore(semaphore)) => semaphore.clone(),
        _ => panic!("handle {on} is not a semaphore"),
    };
    // SAFETY: kept beside the permit, and dropped after it.
    let it: &'static RobustSemaphore = unsafe { &*Arc::as_ptr(&semaphore) };
    let wait = Some(Duration::from_millis(step.arg("ms"))).filter(|wait| !wait.is_zero());
    let got = wait.map_or_else(|| it.try_acquire(), |wait| it.acquire_timeout(wait));
    let permit = got.map_err(outlive::Error::from)?;
    reply.value = u64::from(permit.owner_died());
    reply.data = vec![permit.index() as u64, it.available() as u64];
    Ok(Held(permit, semaphore))
}

/// How one that was inherited by a forked child answers.
pub(super) fn refuses(semaphore: &RobustSemaphore) -> String {
    let said = semaphore.try_acquire().map(drop).map_err(|e| e.kind());
    said.map_or_else(|kind| format!("{kind:?}"), |()| "ok".into())
}
