//! Wait sets, as a member uses them.

use std::os::unix::net::UnixStream;
use std::time::Duration;

use outlive::{Descriptor, WaitSet, Waitable};

use super::batches::Values;
use super::{Fails, Shared, Thing};
use crate::history::reply::Reply;
use crate::history::step::{Handle, Step};

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
            Values::SmallConsumer(it) => it,
            Values::LargeConsumer(it) => it,
        },
        Thing::Client(it) => &mut **it,
        Thing::Server(it) => &mut **it,
        Thing::Watch(it) => it,
        _ => panic!("nobody waits for that in a set"),
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
    let handles = ["on", "and", "or"].map(|name| step.arg(name));
    let handles: Vec<Handle> = handles.into_iter().filter(|handle| *handle > 0).collect();
    let mut things: Vec<Thing> = handles.iter().map(|handle| shared.take(*handle)).collect();
    let mut silent = own.silent.as_ref().filter(|_| step.arg("fd") == 1);
    let mut silent = silent.take().map(|(end, _)| Descriptor::readable(end));
    let mut members: Vec<&mut dyn Waitable> = things.iter_mut().map(waitable).collect();
    members.extend(silent.iter_mut().map(|it| it as &mut dyn Waitable));
    let ready = own.set.wait(&mut members, Duration::from_millis(step.arg("ms")));
    // The descriptor is nobody's handle.
    let handle = |index: usize| handles.get(index).copied().unwrap_or_default();
    let ready = ready.map(|ready| ready.map(handle).collect());
    drop(members);
    for (handle, thing) in handles.iter().zip(things) {
        shared.put(*handle, thing);
    }
    reply.data = ready?;
    Ok(())
}
