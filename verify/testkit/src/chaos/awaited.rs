//! A subscriber that is awaited, on an executor of a few lines.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use outlive::{Result, Sample};

use super::board::{Call, RECEIVERS_END};
use super::part::Part;
use super::topics::{LOANED, Loaned, Streams, heed, topic};

/// The executor asks again after so long, ms.
const WAIT_MS: u64 = 100;

pub(super) fn await_messages(part: &mut Part) -> Result<()> {
    let node = part.node("awaits")?;
    let subscriber = part.join(|| topic::<Loaned>(&node, LOANED)?.subscriber())?;
    let mut raw = -1;
    let mut messages = part.join(|| {
        subscriber.stream(|fd: OwnedFd| {
            raw = fd.as_raw_fd();
            Ok(move |_: &mut Context<'_>| match is_readable(fd.as_fd().as_raw_fd(), 0) {
                Ok(false) => Poll::Pending,
                Ok(true) => Poll::Ready(Ok(())),
                Err(e) => Poll::Ready(Err(e)),
            })
        })
    })?;
    let mut streams = Streams::new(false, false);
    while part.board.phase() < RECEIVERS_END && !part.has_enough(20_000) {
        let began = part.clear_ns();
        let got: Option<Sample<Loaned>> = part.call(Call::Receive, WAIT_MS, || {
            let end = Instant::now() + Duration::from_millis(WAIT_MS);
            let mut cx = Context::from_waker(Waker::noop());
            loop {
                // The descriptor wakes; there is one task, so nobody needs to be told which.
                if let Poll::Ready(got) = messages.poll_message(&mut cx) {
                    return got.map(Some);
                }
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(None);
                }
                // A failure shows at the next poll of the stream.
                let _ = is_readable(raw, left.as_millis() as i32 + 1);
            }
        })?;
        heed(part, messages.subscriber_mut());
        if let Some(sample) = got
            && let Some(head) = streams.take(part, &sample, LOANED)
        {
            part.woken(began, head.stamp, "stream");
        }
    }
    part.leave(messages);
    part.leave(node);
    Ok(())
}

/// Whether the descriptor becomes readable within `ms`.
fn is_readable(fd: RawFd, ms: i32) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd of this frame.
    match unsafe { libc::poll(&mut poll, 1, ms) } {
        -1 if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted => {
            Err(io::Error::last_os_error())
        }
        ready => Ok(ready > 0),
    }
}
