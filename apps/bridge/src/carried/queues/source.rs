//! Where producers are: the bridge is the consumer, for one elsewhere. It sends one message after
//! the other.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use outlive::queue;
use outlive::{Consumer, Received};
use zenoh::Wait;
use zenoh::qos::Priority;
use zenoh::query::ConsolidationMode;
use zenoh::sample::Locality;

use super::counters_of;
use crate::link::notes::{ANSWER_MAX, ask};
use crate::link::place::{Head, Lane, REFUSED, ROOM, TAKEN};
use crate::link::wire::QueueNote;
use crate::report::Failed;
use crate::report::stats::Counted;
use crate::shared::Shared;
use crate::work::{Job, QUIET, Rests, Stop, Turn, Worker};

/// How soon a stop is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// For an answer, at least.
const ANSWER_MIN: Duration = Duration::from_secs(2);
/// Where the file `id` of a domain has its random identity (docs/internals/SHM_LAYOUT.md).
const IDENTITY_AT: u64 = 64;
/// Before a message is tried again: from, to.
const PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// Stands here for a consumer elsewhere. At its end it leaves the queue; what is unread stays.
pub(crate) fn start(shared: &Arc<Shared>, bridge: &str, name: &str) -> Worker {
    let by = shared.clone();
    let (bridge, name) = (bridge.to_owned(), name.to_owned());
    let what = format!("queue {name} of {bridge} is not stood for");
    let workers = shared.workers.clone();
    let begin = move |stop: &Stop| source(&by, &bridge, &name, stop);
    Worker::start(&shared.workers, "source", what, begin).hearing(move |_| workers.look())
}

fn source(
    shared: &Arc<Shared>,
    bridge: &str,
    name: &str,
    stop: &Stop,
) -> Result<Option<Box<dyn Job>>, Failed> {
    let note = ask(&shared.link, bridge, "note/queue", name, stop)?;
    let Some(note) = note else { return Ok(None) };
    let note: QueueNote = serde_json::from_str(&note)?;
    let queue = shared.node.queue::<[u8]>(name)?.of_type(&note.of.payload_type()?);
    let from = if note.stamped { queue.stamped() } else { queue }.consumer()?;
    let key = shared.link.keys.of(bridge, "send", name);
    let counted = shared.stats.of(true, &counters_of(name));
    let (shared, domain) = (shared.clone(), identity(shared.domain.dir())?);
    let to = Far { shared, key, domain, wait: ANSWER_MIN };
    Ok(Some(Box::new(Source { to, name: name.to_owned(), from, counted })))
}

/// A queue on its way out.
struct Source {
    to: Far,
    name: String,
    from: Consumer<[u8]>,
    counted: Counted,
}

/// Where it goes.
struct Far {
    shared: Arc<Shared>,
    key: String,
    /// This one's.
    domain: [u8; 16],
    /// How long an answer is waited for: a few times as long as the last one took.
    wait: Duration,
}

impl Job for Source {
    fn run(&mut self, stop: &Stop) -> Result<Turn, Failed> {
        let Self { to, name, from, counted } = self;
        let mut busy = Instant::now();
        while stop.goes_on() {
            while from.next_event().is_some() {}
            let message = match from.receive_timeout(LOOK_EVERY) {
                Ok(Some(message)) => message,
                Ok(None) if busy.elapsed() > QUIET => return Ok(Turn::Quiet),
                Ok(None) => continue,
                // Nothing is there of those who can be read.
                Err(e) if to.shared.is_short(&counters_of(name), &e) => {
                    thread::sleep(LOOK_EVERY);
                    continue;
                }
                Err(e) => return Err(e.into()),
            };
            let Some(answer) = to.send(&message, stop) else {
                // Not taken: the next consumer receives it.
                message.nack();
                break;
            };
            let bytes = message.len() as u64;
            counted.with(|c| match answer {
                TAKEN => {
                    c.sent += 1;
                    c.bytes += bytes;
                }
                _ => c.bad += 1,
            });
            busy = Instant::now();
        }
        Ok(Turn::Ended)
    }

    fn rests(&mut self) -> Rests<'_> {
        Rests::ForLocal(&mut self.from)
    }

    /// Producers that came or went are no reason; a message behind them is the next.
    fn wakes(&mut self) -> bool {
        std::iter::from_fn(|| self.from.next_event()).count() == 0
    }
}

impl Far {
    /// Sends a message until it is taken or refused, for good; none if it is to end before.
    fn send(&mut self, message: &Received<'_, [u8]>, stop: &Stop) -> Option<u8> {
        let queue::ProducerId { node, port } = message.producer();
        let lane = Lane { domain: self.domain, node: node.get(), port };
        let whole = Head { lane, place: message.place(), asks: None };
        let asks = Head { asks: Some(message.len() as u64), ..whole };
        let mut pause = PAUSE.0;
        let mut has_room = true;
        loop {
            let answer = match has_room {
                true => self.put(message, whole, stop),
                // A message of a megabyte is not sent for nothing again and again.
                false => self.put(&[], asks, stop),
            };
            match answer {
                Some(answer @ (TAKEN | REFUSED)) => return Some(answer),
                Some(ROOM) => {
                    has_room = true;
                    continue;
                }
                // It may have been taken, or not have come: the other side says which.
                _ => has_room = false,
            }
            if !stop.goes_on() {
                return None;
            }
            thread::sleep(pause);
            pause = PAUSE.1.min(2 * pause);
        }
    }

    /// None when it is to be tried again.
    fn put(&mut self, message: &[u8], head: Head, stop: &Stop) -> Option<u8> {
        let begun = Instant::now();
        let get = self.shared.link.session.get(&self.key).payload(message);
        // A question goes before what fills the link.
        let get = match head.asks {
            Some(_) => get.priority(Priority::InteractiveHigh),
            None => get,
        };
        let replies = get
            .attachment(head.to_bytes())
            .timeout(self.wait)
            .consolidation(ConsolidationMode::None)
            .allowed_destination(Locality::Remote)
            .wait()
            .ok()?;
        // Who is to end waits a little for an answer that may be on its way.
        while !stop.is_asked() || begun.elapsed() < ANSWER_MIN {
            match replies.recv_timeout(LOOK_EVERY) {
                Ok(None) => {}
                Ok(Some(reply)) => {
                    if let Ok(sample) = reply.result() {
                        self.wait = wait_after(Some(begun.elapsed()), self.wait);
                        return sample.payload().to_bytes().first().copied();
                    }
                }
                Err(_) => break,
            }
        }
        if begun.elapsed() >= self.wait {
            self.wait = wait_after(None, self.wait);
        }
        None
    }
}

/// How long the next answer is waited for after one that took so long, or none within `wait`.
fn wait_after(took: Option<Duration>, wait: Duration) -> Duration {
    took.map_or(2 * wait, |took| 4 * took).clamp(ANSWER_MIN, ANSWER_MAX)
}

/// What no other domain has, nor this one once it was removed and made again; so that a bridge
/// that follows a killed one goes on where that was. Times and inodes do not do: a RAM disk of
/// older kernels knows no time of birth, and each node that joins changes the others.
fn identity(domain: &Path) -> io::Result<[u8; 16]> {
    let mut identity = [0; 16];
    File::open(domain.join("id"))?.read_exact_at(&mut identity, IDENTITY_AT)?;
    Ok(identity)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::DirBuilderExt;

    use super::*;

    #[test]
    fn a_domain_keeps_its_identity_whoever_joins_and_shares_it_with_no_other() {
        let root = format!("/dev/shm/outlive-test-olb-id-{}-0", std::process::id());
        let root = Path::new(&root);
        std::fs::DirBuilder::new().mode(0o700).create(root).expect("a folder");
        let join = |domain: &str| outlive::Node::builder().root(root).domain(domain).open();
        let of = |domain: &str| identity(&root.join(domain)).expect("a domain");
        let node = join("one").expect("a node");
        let one = of("one");
        for _ in 0..3 {
            let _later = join("one").expect("a node");
            // The first lock of a thread is counted there, too.
            let lock = || node.mutex::<u64>("/lock").map(|lock| lock.try_lock().is_ok());
            assert!(std::thread::scope(|s| s.spawn(lock).join().expect("sound")).expect("a lock"));
            assert_eq!(of("one"), one);
        }
        let _other = join("two").expect("a node");
        assert!(of("two") != one && one != [0; 16]);
        drop(node);
        outlive::Domain::of(&outlive::Node::builder().root(root).domain("one"))
            .and_then(|domain| domain.clean())
            .expect("nobody is there");
        let _again = join("one").expect("a node");
        assert_ne!(of("one"), one, "removed and made again");
        std::fs::remove_dir_all(root).expect("our own");
    }

    #[test]
    fn who_is_slow_to_answer_is_waited_for_longer() {
        let s = Duration::from_secs;
        let waits = Vec::from_iter(std::iter::successors(Some(ANSWER_MIN), |wait| {
            (*wait < ANSWER_MAX).then(|| wait_after(None, *wait))
        }));
        assert_eq!(waits, [2, 4, 8, 16, 30].map(s));
        assert_eq!(wait_after(Some(s(3)), s(4)), s(12));
        assert_eq!(wait_after(Some(Duration::ZERO), s(30)), ANSWER_MIN);
    }
}
