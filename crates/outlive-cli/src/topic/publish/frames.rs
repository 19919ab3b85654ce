//! `outlive topic pub --from-stdin`: frames from standard input, read straight into shared memory.

use outlive::{Deadline, Publisher};

use super::args::PubArgs;
use super::pace::{Pace, back_pressure, wait_for_subscribers};
use crate::exit::{Code, Outcome, note};
use crate::input::{Filled, Input};
use crate::options::{DomainOptions, sleep_until};
use crate::os;
use crate::output::{bytes, count};

pub(super) fn run(args: &PubArgs, options: &DomainOptions) -> Outcome {
    os::catch_stop_signals()?;
    let node = options.node("topic-pub")?;
    let mut topic = node
        .topic::<[u8]>(&args.name)?
        .memory_bytes_max(args.memory_bytes)
        .reliable_timeout(args.reliable_timeout);
    if let Some(depth) = args.depth {
        topic = topic.depth(depth);
    }
    let publisher = topic.publisher()?;
    wait_for_subscribers(|| publisher.subscribers(), args)?;
    let ended = feed(&publisher, args);
    let (messages, size) = (publisher.published(), args.frame_bytes.unwrap_or(0));
    let waited = back_pressure(publisher.waited());
    note(format_args!("published {} of {}{waited}", count(messages, "message"), bytes(size)));
    let code = ended?;
    sleep_until(Deadline::after(args.linger));
    Ok(code)
}

/// Publishes frame after frame until input, count or patience of the user ends.
fn feed(publisher: &Publisher<[u8]>, args: &PubArgs) -> Outcome {
    let mut input = Input::standard()?;
    let mut pace = args.rate.map(Pace::new);
    let frame_bytes = args.frame_bytes.unwrap_or(0) as usize;
    while args.count.is_none_or(|count| publisher.published() < count) {
        let mut loan = publisher.loan_slice(frame_bytes)?;
        let filled = input.fill(&mut loan)?;
        if filled == Filled::Stopped || filled == Filled::End(0) {
            break;
        }
        if let Some(pace) = &mut pace {
            pace.wait();
        }
        match filled {
            Filled::End(n) if args.allow_partial => publisher.publish(&loan[..n])?,
            Filled::End(n) => {
                note(format_args!(
                    "standard input ended after {n} of {frame_bytes} bytes of message {}; \
                     --allow-partial publishes it as it is",
                    publisher.published()
                ));
                return Ok(Code::Partial);
            }
            _ => loan.publish()?,
        };
    }
    Ok(Code::Done)
}
