//! One client: what waits to be sent to it, and the thread that sends.
//!
//! Nobody waits for a client. What it has not read yet waits here, a queue for each of its
//! subscriptions; when one is full its oldest messages go, and are counted. So a client behind a
//! slow link sees the newest of every topic, not what was new a minute ago.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::ops::Bound;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::wire;

/// Most that waits in one queue; one message of any size always may.
const QUEUE_BYTES: usize = 4 << 20;
const QUEUE_MESSAGES: usize = 256;
/// Most that waits of everything else; a client that reads none of it is hung up on.
const CONTROL_BYTES: usize = 64 << 20;
/// Most subscriptions.
const SUBSCRIPTIONS_MAX: usize = 4096;

/// A client, known to the thread that reads from it, the one that writes, and the hub.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) peer: SocketAddr,
    /// To hang up; `None` in tests.
    socket: Option<Arc<TcpStream>>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Whole frames.
    control: VecDeque<Vec<u8>>,
    control_bytes: usize,
    /// By the client's number of the subscription.
    queues: BTreeMap<u32, Queue>,
    /// Whose message was sent last.
    turn: u32,
    end: End,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum End {
    #[default]
    No,
    /// What waits of control is still sent.
    Asked,
    /// Nothing is sent any more.
    Done,
}

#[derive(Debug)]
struct Queue {
    channel: u32,
    messages: VecDeque<Message>,
    bytes: usize,
    dropped: u64,
    /// Of those, what the client was told of.
    told: u64,
}

/// A payload, shared by all clients.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) time_ns: u64,
    pub(crate) data: Arc<Vec<u8>>,
}

/// What became of messages for one client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) dropped: u64,
}

enum Next {
    Control(Vec<u8>),
    Message(u32, Message),
}

impl Client {
    pub(crate) fn new(id: u64, peer: SocketAddr, socket: Option<Arc<TcpStream>>) -> Arc<Self> {
        let (state, changed) = (Mutex::default(), Condvar::new());
        Arc::new(Self { id, peer, socket, state, changed })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has whole frames sent before any message.
    pub(crate) fn control(&self, frames: Vec<u8>) {
        let mut state = self.state();
        if state.end == End::Done {
            return;
        }
        state.control_bytes += frames.len();
        state.control.push_back(frames);
        if state.control_bytes > CONTROL_BYTES {
            self.hang_up(&mut state);
        }
        self.changed.notify_all();
    }

    /// False if the number is taken or there are very many.
    pub(crate) fn subscribe(&self, subscription: u32, channel: u32) -> bool {
        let mut state = self.state();
        let full = state.queues.len() >= SUBSCRIPTIONS_MAX;
        if full || state.queues.contains_key(&subscription) {
            return false;
        }
        let (messages, bytes) = (VecDeque::new(), 0);
        let queue = Queue { channel, messages, bytes, dropped: 0, told: 0 };
        state.queues.insert(subscription, queue);
        true
    }

    /// False if there was none of that number.
    pub(crate) fn unsubscribe(&self, subscription: u32) -> bool {
        self.state().queues.remove(&subscription).is_some()
    }

    /// The channel goes, and what waits of it.
    pub(crate) fn forget(&self, channel: u32) {
        self.state().queues.retain(|_, queue| queue.channel != channel);
    }

    pub(crate) fn has(&self, channel: u32) -> bool {
        self.state().queues.values().any(|queue| queue.channel == channel)
    }

    /// Has a message sent to the subscriptions of `channel`. Never waits.
    pub(crate) fn message(&self, channel: u32, message: &Message) {
        let mut state = self.state();
        let State { queues, counts, end, .. } = &mut *state;
        if *end != End::No {
            return;
        }
        for queue in queues.values_mut().filter(|queue| queue.channel == channel) {
            counts.dropped += queue.push(message.clone());
        }
        self.changed.notify_all();
    }

    pub(crate) fn counts(&self) -> Counts {
        self.state().counts
    }

    /// Channels of which messages were dropped since the last call, and how many so far.
    pub(crate) fn news_of_losses(&self) -> Vec<(u32, u64)> {
        let mut state = self.state();
        let new = state.queues.values_mut().filter(|queue| queue.dropped > queue.told);
        let told = |queue: &mut Queue| {
            queue.told = queue.dropped;
            (queue.channel, queue.dropped)
        };
        new.map(told).collect()
    }

    /// Nothing new is sent; the thread that writes ends.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        if state.end == End::No {
            state.end = End::Asked;
        }
        self.changed.notify_all();
    }

    /// Waits until nothing is sent any more, at most so long.
    pub(crate) fn await_end(&self, until: Instant) {
        let mut state = self.state();
        while state.end != End::Done {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Nothing is sent any more, not even what waits for it to read.
    pub(crate) fn cut_off(&self) {
        self.hang_up(&mut self.state());
        self.changed.notify_all();
    }

    /// Sends until the end; what a thread is for.
    pub(crate) fn write(&self, mut to: &TcpStream) {
        while let Some(next) = self.next() {
            let written = match &next {
                Next::Control(frames) => to.write_all(frames),
                Next::Message(subscription, message) => {
                    let data = &message.data;
                    let head = wire::message_head(*subscription, message.time_ns, data.len());
                    write_both(to, &head, data)
                }
            };
            if written.is_err() {
                break;
            }
            let mut state = self.state();
            if let Next::Message(_, message) = next {
                state.counts.sent += 1;
                state.counts.sent_bytes += message.data.len() as u64;
            }
        }
        self.cut_off();
    }

    /// Both threads notice it.
    fn hang_up(&self, state: &mut State) {
        state.end = End::Done;
        (state.control, state.control_bytes) = (VecDeque::new(), 0);
        if let Some(socket) = &self.socket {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Waits for what is to be sent next; `None` at the end.
    fn next(&self) -> Option<Next> {
        let mut state = self.state();
        loop {
            if state.end == End::Done {
                return None;
            }
            if let Some(frames) = state.control.pop_front() {
                state.control_bytes -= frames.len();
                return Some(Next::Control(frames));
            }
            if state.end == End::Asked {
                return None;
            }
            if let Some((subscription, message)) = state.take_message() {
                return Some(Next::Message(subscription, message));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    /// One of each queue in turn, so that pictures do not starve what is small.
    fn take_message(&mut self) -> Option<(u32, Message)> {
        let after = (Bound::Excluded(self.turn), Bound::Unbounded);
        let waits = |(subscription, queue): (&u32, &Queue)| {
            (!queue.messages.is_empty()).then_some(*subscription)
        };
        let next = self.queues.range(after).find_map(waits);
        let next = next.or_else(|| self.queues.iter().find_map(waits))?;
        self.turn = next;
        let message = self.queues.get_mut(&next)?.pop()?;
        Some((next, message))
    }
}

impl Queue {
    /// How many had to go.
    fn push(&mut self, message: Message) -> u64 {
        let mut gone = 0;
        let bytes = message.data.len();
        let full = |queue: &Self| {
            queue.messages.len() >= QUEUE_MESSAGES || queue.bytes + bytes > QUEUE_BYTES
        };
        while full(self) && self.pop().is_some() {
            gone += 1;
        }
        self.bytes += bytes;
        self.messages.push_back(message);
        self.dropped += gone;
        gone
    }

    fn pop(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.data.len();
        Some(message)
    }
}

/// Both in one call of the system where it takes them, without a copy.
fn write_both(mut to: &TcpStream, head: &[u8], data: &[u8]) -> io::Result<()> {
    let mut parts = &mut [IoSlice::new(head), IoSlice::new(data)][..];
    while !parts.is_empty() {
        match to.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut parts, n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
        // Empty ones at the end would look like a socket that takes nothing.
        if parts.iter().all(|part| part.is_empty()) {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client() -> Arc<Client> {
        Client::new(1, SocketAddr::from(([127, 0, 0, 1], 1)), None)
    }

    fn message(n: u64, bytes: usize) -> Message {
        Message { time_ns: n, data: Arc::new(vec![0; bytes]) }
    }

    fn waiting(client: &Client) -> Vec<(u32, u64)> {
        let mut state = client.state();
        std::iter::from_fn(|| state.take_message()).map(|(s, m)| (s, m.time_ns)).collect()
    }

    #[test]
    fn the_newest_stay_of_large_messages_and_many_of_small_ones() {
        let client = client();
        assert!(client.subscribe(5, 1) && client.subscribe(6, 2) && !client.subscribe(6, 1));
        for n in 0..10 {
            client.message(1, &message(n, QUEUE_BYTES));
            client.message(2, &message(n, 8));
        }
        client.message(3, &message(0, 8));
        assert_eq!(client.counts().dropped, 9);
        assert_eq!(client.news_of_losses(), [(1, 9)]);
        assert_eq!(client.news_of_losses(), []);
        let all = waiting(&client);
        assert_eq!(all[..3], [(5, 9), (6, 0), (6, 1)]);
        assert_eq!(all.len(), 11);
        client.message(1, &message(0, 2 * QUEUE_BYTES));
        client.message(1, &message(1, 2 * QUEUE_BYTES));
        assert_eq!(waiting(&client), [(5, 1)]);
        (0..QUEUE_MESSAGES as u64 + 7).for_each(|n| client.message(2, &message(n, 0)));
        assert_eq!(waiting(&client)[0], (6, 7));
        assert_eq!(client.counts().dropped, 9 + 1 + 7);
    }

    #[test]
    fn subscriptions_have_their_turns_and_go_with_their_channel() {
        let client = client();
        assert!((1..=3).all(|s| client.subscribe(s, 10 * s)));
        for n in 0..2 {
            (1..=3).for_each(|s| client.message(10 * s, &message(n, 1)));
        }
        client.forget(20);
        assert!(client.has(10) && !client.has(20));
        assert_eq!(waiting(&client), [(1, 0), (3, 0), (1, 1), (3, 1)]);
        assert!(client.unsubscribe(1) && !client.unsubscribe(1) && !client.unsubscribe(2));
    }

    #[test]
    fn control_is_sent_to_the_end_but_not_without_end() {
        let client = client();
        client.control(vec![1]);
        client.end();
        assert!(matches!(client.next(), Some(Next::Control(frames)) if frames == [1]));
        assert!(client.next().is_none());
        let deaf = Client::new(2, client.peer, None);
        (0..5).for_each(|_| deaf.control(vec![0; CONTROL_BYTES / 4]));
        assert!(deaf.next().is_none());
    }
}
