//! Subscribers as streams: on tokio, and under an executor of forty lines that shows what is asked
//! of one.

use std::future::{Future, poll_fn};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker, ready};
use std::time::Duration;

use futures_core::Stream;
use outlive::topic::{Event, Messages, News, Readable};
use outlive::{ErrorKind, Message, Node, Subscriber};
use testkit::actor::{listen, say};
use testkit::{Actor, TempDomain, Watchdog, role};
use tokio::io::{Interest, unix::AsyncFd};

fn watchdog(test: &str) -> Watchdog {
    Watchdog::start(test, Duration::from_secs(60))
}

fn node(dir: &Path) -> Node {
    Node::builder().root(dir.join("root")).name("test").open().unwrap()
}

fn on_tokio<T>(body: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_io().enable_time().build().unwrap().block_on(body)
}

fn stream<T: Message>(subscriber: Subscriber<T>) -> Messages<T, impl Readable + Unpin> {
    let register = |fd: OwnedFd| {
        // SAFETY: an OwnedFd is open, and the same, until it is dropped.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        Ok(move |cx: &mut Context<'_>| {
            ready!(fd.poll_read_ready(cx))?.clear_ready();
            Poll::Ready(Ok(()))
        })
    };
    subscriber.stream(register).unwrap()
}

#[test]
fn every_message_wakes_the_task_and_none_is_lost() {
    let _watchdog = watchdog("stream");
    let dir = TempDomain::new("stream").unwrap();
    let node = node(dir.path());
    let topic = || node.topic::<u64>("/n").unwrap().depth(4);
    let subscriber = topic().reliable(true).subscriber().unwrap();
    let publisher = topic().reliable_timeout(Duration::from_secs(60)).publisher().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for i in 0..500 {
                publisher.publish(&i).unwrap();
                if i % 50 == 0 {
                    // So that the task sleeps now and then.
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
        });
        on_tokio(async {
            let mut messages = pin!(stream(subscriber));
            for i in 0..500 {
                let next = poll_fn(|cx| messages.as_mut().poll_next(cx)).await;
                let sample = next.expect("it never ends").unwrap();
                assert_eq!((*sample, sample.lost_before()), (i, 0));
            }
        });
    });
}

/// Publishes what it is told to, and is killed.
fn sender(dir: &Path) {
    let node = node(dir);
    let publisher = node.topic::<u64>("/n").unwrap().publisher().unwrap();
    say("there");
    while let Some(line) = listen() {
        publisher.publish(&line.parse().unwrap()).unwrap();
        say("sent");
    }
}

#[test]
fn a_death_is_news_after_the_messages_of_the_dead() {
    if let Some(role) = role() {
        return sender(Path::new(&role.args[0]));
    }
    let _watchdog = watchdog("news");
    let dir = TempDomain::new("stream-news").unwrap();
    let node = node(dir.path());
    let subscriber = node.topic::<u64>("/n").unwrap().subscriber().unwrap();
    let test = "a_death_is_news_after_the_messages_of_the_dead";
    let mut sender = Actor::start(test, "sender", &[dir.path().to_str().unwrap()]);
    sender.expect("there");
    on_tokio(async {
        let mut messages = stream(subscriber);
        let joined = messages.next_news().await.unwrap();
        assert!(matches!(joined, News::Event(Event::PublisherJoined(_))), "{joined:?}");
        for value in [5, 6] {
            sender.tell(&value.to_string());
            sender.expect("sent");
        }
        sender.kill();
        for value in [5, 6] {
            match messages.next_news().await.unwrap() {
                News::Message(sample) => assert_eq!(*sample, value),
                News::Event(event) => panic!("{event:?} before message {value}"),
            }
        }
        let died = messages.next_news().await.unwrap();
        assert!(matches!(died, News::Event(Event::PublisherDied { .. })), "{died:?}");
    });
}

#[test]
fn a_wait_that_is_dropped_loses_nothing_and_a_full_reader_is_told() {
    let _watchdog = watchdog("dropped");
    let dir = TempDomain::new("stream-drop").unwrap();
    let node = node(dir.path());
    let subscriber = node.topic::<[u64; 600]>("/n").unwrap().borrows(1).subscriber().unwrap();
    let publisher = node.topic::<[u64; 600]>("/n").unwrap().publisher().unwrap();
    on_tokio(async {
        let mut messages = stream(subscriber);
        for i in 0..3 {
            let wait = tokio::time::timeout(Duration::from_millis(5), messages.next_message());
            assert!(wait.await.is_err(), "there is nothing");
            publisher.publish(&[i; 600]).unwrap();
            assert_eq!(messages.next_message().await.unwrap()[0], i);
        }
        publisher.publish(&[3; 600]).unwrap();
        publisher.publish(&[4; 600]).unwrap();
        let held = messages.next_message().await.unwrap();
        let error = messages.next_message().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooManyBorrows, "{error}");
        drop(held);
        assert_eq!(messages.next_message().await.unwrap()[0], 4);
        assert_eq!(messages.subscriber().lost(), 0);
    });
}

/// An executor of one task: `poll` on the one descriptor that it knows.
struct Small {
    fd: OwnedFd,
    polls: u64,
}

#[derive(Default)]
struct Wakes(AtomicU64);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Small {
    /// Runs the future to its end; sleeps in the kernel whenever it is pending.
    fn run<T>(&mut self, mut future: Pin<&mut impl Future<Output = T>>) -> T {
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        loop {
            self.polls += 1;
            if let Poll::Ready(done) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                return done;
            }
            if wakes.0.swap(0, Relaxed) == 0 {
                let fd = self.fd.as_raw_fd();
                let mut wait = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
                // SAFETY: one entry, writable.
                assert!(unsafe { libc::poll(&mut wait, 1, -1) } == 1);
            }
        }
    }
}

#[test]
fn any_executor_will_do_that_can_wait_for_a_descriptor_and_a_pending_task_is_left_alone() {
    let _watchdog = watchdog("small");
    let dir = TempDomain::new("stream-small").unwrap();
    let node = node(dir.path());
    let subscriber = node.topic::<u64>("/n").unwrap().subscriber().unwrap();
    let publisher = node.topic::<u64>("/n").unwrap().publisher().unwrap();
    let mut fd = None;
    let register = |given: OwnedFd| {
        fd = Some(given);
        // Readable once for each poll of the task.
        let mut asked = false;
        Ok(move |_: &mut Context<'_>| {
            asked = !asked;
            if asked { Poll::Ready(Ok(())) } else { Poll::Pending }
        })
    };
    let mut messages = subscriber.stream(register).unwrap();
    let mut small = Small { fd: fd.unwrap(), polls: 0 };
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for i in 0..5 {
                std::thread::sleep(Duration::from_millis(20));
                publisher.publish(&i).unwrap();
            }
        });
        for i in 0..5 {
            let sample = small.run(pin!(messages.next_message())).unwrap();
            assert_eq!(*sample, i);
        }
    });
    // A task that spins is polled millions of times.
    assert!(small.polls < 1000, "{} polls for 5 messages", small.polls);
}

#[test]
fn streams_go_where_tasks_go() {
    fn is_send<T: Send + Unpin>(_: &T) {}
    let dir = TempDomain::new("stream-send").unwrap();
    let node = node(dir.path());
    let subscriber = node.topic::<u64>("/n").unwrap().subscriber().unwrap();
    on_tokio(async { is_send(&stream(subscriber)) });
}
