//! Wait sets, as a member uses them.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use outlive::{Descriptor, Interrupt, WaitSet, Waitable};

use super::fails::Fails;
use super::shared::Shared;
use super::things::Thing;
use super::things::batches::Values;
use crate::history::reply::Reply;
use crate::history::step::Step;

/// A thread's set, and a descriptor on which nothing ever comes.
#[derive(Default)]
pub(super) struct Own {
    set: WaitSet,
    silent: Option<(UnixStream, UnixStream)>,
}

fn waitable(thing: &mut Thing) -> &mut dyn Waitable {
    match thing {
        Thing::Subscriber(it) => &mut **it,
        Thing::Consumer(it) => it.get(),
        Thing::Values(it) => match &mut **it {
            Values::SmallSubscriber(it) => it,
            Values::LargeSubscriber(it) => it,
            Values::SmallConsumer(it) => it.get(),
            Values::LargeConsumer(it) => it.get(),
        },
        Thing::Client(it) => &mut **it,
        Thing::Server(it) => &mut **it,
        Thing::Watch(it) => it,
        Thing::Timer(it) => it,
        _ => panic!("nobody waits for that in a set"),
    }
}

fn interrupt(thing: &Thing) -> Option<Arc<Interrupt>> {
    match thing {
        Thing::Interrupt(it) => Some(it.clone()),
        _ => None,
    }
}

/// Waits for up to three things; the handles of what is ready.
pub(super) fn wait(
    own: &mut Own,
    shared: &Shared,
    step: &Step,
    reply: &mut Reply,
) -> Result<(), Fails> {
    if step.arg("fd") == 1 && own.silent.is_none() {
        own.silent = Some(UnixStream::pair()?);
    }
    let handles = step.waited_for();
    let mut things: Vec<Thing> =
        handles.iter().map(|handle| shared.borrow(step.thread, *handle)).collect();
    let interrupts: Vec<_> = things.iter().map(interrupt).collect();
    let mut interrupts: Vec<_> = interrupts.iter().map(Option::as_deref).collect();
    let mut silent = own.silent.as_ref().filter(|_| step.arg("fd") == 1);
    let mut silent = silent.take().map(|(end, _)| Descriptor::readable(end));
    let both = things.iter_mut().zip(&mut interrupts);
    let mut members: Vec<&mut dyn Waitable> = both
        .map(|(thing, interrupt)| match interrupt {
            Some(it) => it as &mut dyn Waitable,
            None => waitable(thing),
        })
        .collect();
    members.extend(silent.iter_mut().map(|it| it as &mut dyn Waitable));
    let ready = own.set.wait(&mut members, Duration::from_millis(step.arg("ms")));
    // The descriptor is nobody's handle.
    let handle = |index: usize| handles.get(index).copied().unwrap_or_default();
    let ready = ready.map(|ready| ready.map(handle).collect());
    drop(members);
    for (handle, thing) in handles.iter().zip(things) {
        shared.give_back(*handle, thing);
    }
    reply.data = ready?;
    Ok(())
}
