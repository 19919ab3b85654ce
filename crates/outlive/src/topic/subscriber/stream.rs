//! A subscriber as `futures::Stream`, on whatever executor there is.
//!
//! # Theory of operation
//! The subscriber has a descriptor that is readable when there is something to look at
//! ([`Subscriber::fd`]). The executor waits for descriptors anyway, so it wakes the task; this
//! crate spins no thread and knows no executor. What it needs of one is [`Readable`].
//!
//! Poll: receive; nothing there: ask whether the descriptor is readable. If it is, look once more,
//! else the executor now knows the task's waker. No wake is lost: receiving makes the descriptor
//! quiet first and looks afterwards, so what comes later makes it readable again.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::Subscriber;
use super::reader::Event;
use super::sample::Sample;
use crate::types::payload::Payload;
use crate::{Error, ErrorKind, Result};

/// Looks in one poll, before others get their turn.
const LOOKS: usize = 4;

/// An executor's way to wait for a descriptor; closures with this signature implement it.
///
/// Example: [`Subscriber::stream`].
pub trait Readable {
    /// Ready when the descriptor may be readable since the last call that said so; else `cx` is
    /// woken once it is.
    ///
    /// # Errors
    /// What the executor says; the stream hands it on as `Io`.
    ///
    /// Example: [`Subscriber::stream`].
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

impl<F: FnMut(&mut Context<'_>) -> Poll<io::Result<()>>> Readable for F {
    fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self(cx)
    }
}

/// A subscriber whose messages can be awaited; made by [`Subscriber::stream`].
///
/// As a `futures::Stream` it yields the messages and never ends: new publishers may come. Dropping
/// one of its futures loses nothing. The task is woken as [`Subscriber::fd`] describes: at once by
/// a message or a death, and every 100 ms to look again.
///
/// Example: [`Subscriber::stream`].
#[derive(Debug)]
#[must_use = "a stream does nothing unless it is polled"]
pub struct Messages<T: Payload + ?Sized, R> {
    subscriber: Subscriber<T>,
    readable: R,
}

/// A message or an event.
///
/// Example: [`Messages::next_news`].
#[derive(Debug)]
pub enum News<T: Payload + ?Sized> {
    /// A message came.
    Message(Sample<T>),
    /// A publisher joined, left, died or is corrupt. Its messages came before this.
    Event(Event),
}

impl<T: Payload + ?Sized> Subscriber<T> {
    /// Makes a `futures::Stream` of the messages.
    ///
    /// `register` gets a descriptor and returns the executor's way to wait for it.
    ///
    /// # Errors
    /// As [`Subscriber::fd`]; `Io` when `register` fails.
    ///
    /// # Examples
    /// With tokio, on any runtime with I/O enabled:
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// use std::task::{Context, Poll, ready};
    /// use tokio::io::{Interest, unix::AsyncFd};
    ///
    /// # let mut runtime = tokio::runtime::Builder::new_current_thread();
    /// # runtime.enable_io().build().unwrap().block_on(async {
    /// let mut poses = node.topic::<f64>("/pose")?.subscriber()?.stream(|fd| {
    ///     // SAFETY: an OwnedFd is open, and the same, until it is dropped.
    ///     let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    ///     Ok(move |cx: &mut Context<'_>| {
    ///         ready!(fd.poll_read_ready(cx))?.clear_ready();
    ///         Poll::Ready(Ok(()))
    ///     })
    /// })?;
    ///
    /// let publisher = node.topic::<f64>("/pose")?.publisher()?;
    /// publisher.publish(&1.5)?;
    /// let pose = poses.next_message().await?;
    /// assert_eq!(*pose, 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// # })?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    /// (Before tokio 1.54: `AsyncFd::with_interest`, which is safe to call.)
    ///
    /// With async-io, of smol, the closure is shorter:
    /// `|fd| { let fd = Async::new(fd)?; Ok(move |cx: &mut Context<'_>| fd.poll_readable(cx)) }`.
    pub fn stream<R: Readable>(
        mut self,
        register: impl FnOnce(OwnedFd) -> io::Result<R>,
    ) -> Result<Messages<T, R>> {
        let registered = self.fd()?.try_clone_to_owned().and_then(register);
        let readable = registered.map_err(|e| failed(&self, "registering the descriptor of", e))?;
        Ok(Messages { subscriber: self, readable })
    }
}

#[cold]
fn failed<T: Payload + ?Sized>(subscriber: &Subscriber<T>, what: &str, e: io::Error) -> Error {
    let remedy = "ask the executor: it needs I/O enabled, and a descriptor to spare";
    Error::new(ErrorKind::Io, what, subscriber.topic(), remedy).with_source(e)
}

impl<T: Payload + ?Sized, R> Messages<T, R> {
    /// The subscriber, for calls that do not wait.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use std::task::{Context, Poll, ready};
    /// # use tokio::io::{Interest, unix::AsyncFd};
    /// # let mut runtime = tokio::runtime::Builder::new_current_thread();
    /// # runtime.enable_all().build().unwrap().block_on(async {
    /// # let publisher = node.topic::<f64>("/pose")?.publisher()?;
    /// # let mut poses = node.topic::<f64>("/pose")?.subscriber()?.stream(|fd| {
    /// #     let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    /// #     Ok(move |cx: &mut Context<'_>| {
    /// #         ready!(fd.poll_read_ready(cx))?.clear_ready();
    /// #         Poll::Ready(Ok(()))
    /// #     })
    /// # })?;
    /// publisher.publish(&1.5)?;
    /// assert_eq!(*poses.next_message().await?, 1.5);
    /// assert_eq!(poses.subscriber().lost(), 0);
    /// # Ok::<(), outlive::Error>(())
    /// # })?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn subscriber(&self) -> &Subscriber<T> {
        &self.subscriber
    }

    /// The subscriber, to receive without waiting or to ask for events.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use std::task::{Context, Poll, ready};
    /// # use tokio::io::{Interest, unix::AsyncFd};
    /// # let mut runtime = tokio::runtime::Builder::new_current_thread();
    /// # runtime.enable_all().build().unwrap().block_on(async {
    /// # let publisher = node.topic::<f64>("/pose")?.publisher()?;
    /// # let mut poses = node.topic::<f64>("/pose")?.subscriber()?.stream(|fd| {
    /// #     let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    /// #     Ok(move |cx: &mut Context<'_>| {
    /// #         ready!(fd.poll_read_ready(cx))?.clear_ready();
    /// #         Poll::Ready(Ok(()))
    /// #     })
    /// # })?;
    /// publisher.publish(&1.5)?;
    /// publisher.publish(&2.5)?;
    /// let newest = poses.subscriber_mut().latest()?; // does not wait
    /// assert_eq!(*newest.expect("sent just now"), 2.5);
    /// # Ok::<(), outlive::Error>(())
    /// # })?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn subscriber_mut(&mut self) -> &mut Subscriber<T> {
        &mut self.subscriber
    }

    /// The subscriber alone; the executor's part is dropped.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use std::task::{Context, Poll, ready};
    /// # use tokio::io::{Interest, unix::AsyncFd};
    /// # let mut runtime = tokio::runtime::Builder::new_current_thread();
    /// # runtime.enable_all().build().unwrap().block_on(async {
    /// # let publisher = node.topic::<f64>("/pose")?.publisher()?;
    /// # let mut poses = node.topic::<f64>("/pose")?.subscriber()?.stream(|fd| {
    /// #     let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    /// #     Ok(move |cx: &mut Context<'_>| {
    /// #         ready!(fd.poll_read_ready(cx))?.clear_ready();
    /// #         Poll::Ready(Ok(()))
    /// #     })
    /// # })?;
    /// publisher.publish(&1.5)?;
    /// let mut subscriber = poses.into_subscriber(); // for a thread that waits by itself
    /// assert_eq!(*subscriber.receive()?.expect("not lost"), 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// # })?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn into_subscriber(self) -> Subscriber<T> {
        self.subscriber
    }
}

impl<T: Payload + ?Sized, R: Readable> Messages<T, R> {
    /// The next message. Dropping the future before it is ready loses nothing.
    ///
    /// # Errors
    /// As [`Subscriber::receive`]; `Io` from the executor.
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use std::task::{Context, Poll, ready};
    /// # use tokio::io::{Interest, unix::AsyncFd};
    /// # let mut runtime = tokio::runtime::Builder::new_current_thread();
    /// # runtime.enable_all().build().unwrap().block_on(async {
    /// # let publisher = node.topic::<f64>("/pose")?.publisher()?;
    /// # let mut poses = node.topic::<f64>("/pose")?.subscriber()?.stream(|fd| {
    /// #     let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    /// #     Ok(move |cx: &mut Context<'_>| {
    /// #         ready!(fd.poll_read_ready(cx))?.clear_ready();
    /// #         Poll::Ready(Ok(()))
    /// #     })
    /// # })?;
    /// use std::time::Duration;
    ///
    /// let nothing = tokio::time::timeout(Duration::from_millis(1), poses.next_message()).await;
    /// assert!(nothing.is_err(), "the time ran out");
    /// publisher.publish(&1.5)?;
    /// assert_eq!(*poses.next_message().await?, 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// # })?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub async fn next_message(&mut self) -> Result<Sample<T>> {
        poll_fn(|cx| self.poll_message(cx)).await
    }

    /// The next message or event, whichever comes first; messages of the dead before their death.
    ///
    /// # Errors
    /// As [`Messages::next_message`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use std::task::{Context, Poll, ready};
    /// # use tokio::io::{Interest, unix::AsyncFd};
    /// # let mut runtime = tokio::runtime::Builder::new_current_thread();
    /// # runtime.enable_all().build().unwrap().block_on(async {
    /// # let publisher = node.topic::<f64>("/pose")?.publisher()?;
    /// # let mut poses = node.topic::<f64>("/pose")?.subscriber()?.stream(|fd| {
    /// #     let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    /// #     Ok(move |cx: &mut Context<'_>| {
    /// #         ready!(fd.poll_read_ready(cx))?.clear_ready();
    /// #         Poll::Ready(Ok(()))
    /// #     })
    /// # })?;
    /// use outlive::topic::{Event, News};
    ///
    /// publisher.publish(&1.5)?;
    /// drop(publisher); // leaves; of one that was killed comes `PublisherDied`
    /// let mut seen = 0.0;
    /// loop {
    ///     match poses.next_news().await? {
    ///         News::Message(pose) => seen = *pose,
    ///         News::Event(Event::PublisherLeft(_)) => break,
    ///         News::Event(other) => println!("{other:?}"),
    ///     }
    /// }
    /// assert_eq!(seen, 1.5); // its messages come first
    /// # Ok::<(), outlive::Error>(())
    /// # })?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub async fn next_news(&mut self) -> Result<News<T>> {
        poll_fn(|cx| self.poll_news(cx)).await
    }

    /// As [`Messages::next_message`], for futures written by hand.
    ///
    /// # Errors
    /// As [`Messages::next_message`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use std::task::{Context, Poll, ready};
    /// # use tokio::io::{Interest, unix::AsyncFd};
    /// # let mut runtime = tokio::runtime::Builder::new_current_thread();
    /// # runtime.enable_all().build().unwrap().block_on(async {
    /// # let publisher = node.topic::<f64>("/pose")?.publisher()?;
    /// # let mut poses = node.topic::<f64>("/pose")?.subscriber()?.stream(|fd| {
    /// #     let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    /// #     Ok(move |cx: &mut Context<'_>| {
    /// #         ready!(fd.poll_read_ready(cx))?.clear_ready();
    /// #         Poll::Ready(Ok(()))
    /// #     })
    /// # })?;
    /// std::future::poll_fn(|cx| {
    ///     assert!(poses.poll_message(cx).is_pending()); // nothing yet
    ///     Poll::Ready(())
    /// })
    /// .await;
    /// publisher.publish(&1.5)?;
    /// let pose = std::future::poll_fn(|cx| poses.poll_message(cx)).await?;
    /// assert_eq!(*pose, 1.5);
    /// # Ok::<(), outlive::Error>(())
    /// # })?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Sample<T>>> {
        self.poll(cx, Subscriber::receive)
    }

    /// As [`Messages::next_news`], for futures written by hand.
    ///
    /// # Errors
    /// As [`Messages::next_message`].
    ///
    /// # Examples
    /// ```
    /// # let dir = outlive::doc_dir();
    /// # let node = outlive::Node::builder().root(dir.path()).open()?;
    /// # use std::task::{Context, Poll, ready};
    /// # use tokio::io::{Interest, unix::AsyncFd};
    /// # let mut runtime = tokio::runtime::Builder::new_current_thread();
    /// # runtime.enable_all().build().unwrap().block_on(async {
    /// # let publisher = node.topic::<f64>("/pose")?.publisher()?;
    /// # let mut poses = node.topic::<f64>("/pose")?.subscriber()?.stream(|fd| {
    /// #     let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
    /// #     Ok(move |cx: &mut Context<'_>| {
    /// #         ready!(fd.poll_read_ready(cx))?.clear_ready();
    /// #         Poll::Ready(Ok(()))
    /// #     })
    /// # })?;
    /// use outlive::topic::{Event, News};
    ///
    /// let news = std::future::poll_fn(|cx| poses.poll_news(cx)).await?;
    /// assert!(matches!(news, News::Event(Event::PublisherJoined(id)) if id == publisher.id()));
    /// # Ok::<(), outlive::Error>(())
    /// # })?;
    /// # Ok::<(), outlive::Error>(())
    /// ```
    pub fn poll_news(&mut self, cx: &mut Context<'_>) -> Poll<Result<News<T>>> {
        self.poll(cx, |subscriber| {
            let message = subscriber.receive()?.map(News::Message);
            Ok(message.or_else(|| subscriber.next_event().map(News::Event)))
        })
    }

    fn poll<N>(
        &mut self,
        cx: &mut Context<'_>,
        take: impl Fn(&mut Subscriber<T>) -> Result<Option<N>>,
    ) -> Poll<Result<N>> {
        for _ in 0..LOOKS {
            if let Some(taken) = take(&mut self.subscriber).transpose() {
                return Poll::Ready(taken);
            }
            match self.readable.poll_readable(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(e)) => {
                    return Poll::Ready(Err(failed(&self.subscriber, "waiting for", e)));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<T: Payload + ?Sized, R: Readable + Unpin> Stream for Messages<T, R> {
    type Item = Result<Sample<T>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_message(cx).map(Some)
    }
}
