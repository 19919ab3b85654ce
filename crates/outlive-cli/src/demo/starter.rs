//! The start-up that is to be killed half-way: a node, a subscriber, a publisher.

use std::time::Duration;

use super::frame::Frame;
use super::protocol::{Order, Report};
use super::role::{OrderListener, RoleArgs, TOPIC, ready, report};
use crate::exit::{Code, Outcome};
use crate::options::DomainOptions;

pub(super) fn run(args: &RoleArgs, options: &DomainOptions) -> Outcome {
    report(&Report::Starting { at_ns: outlive::now_ns() })?;
    let node = options.node(&args.name)?;
    let subscriber = node.topic::<Frame>(TOPIC)?.subscriber()?;
    let publisher = node.topic::<u64>("/status")?.publisher()?;
    publisher.publish(&1)?;
    ready(&node)?;
    let orders = OrderListener::listen(&node);
    while orders.next_within(Duration::from_secs(1)) != Some(Order::Quit) {}
    drop((subscriber, publisher));
    orders.close();
    Ok(Code::Done)
}
