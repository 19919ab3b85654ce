//! Those who must survive the scribbler.

use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::{Duration, Instant};

use outlive::{
    Client, Consumer, Node, NodeBuilder, Producer, Publisher, Sample, Server, Subscriber,
};

use super::board::{Board, MEMBERS, Member};

pub(super) const TOPIC: &str = "/wild";
pub(super) const CALM: &str = "/calm";
pub(super) const QUEUE: &str = "wild";
/// One of small messages, which share a header.
pub(super) const RUNS: &str = "wild-runs";
pub(super) const SERVICE: &str = "wild";
/// The queue and the service at whose other end the scribbler is.
pub(super) const TRAP: &str = "trap";

/// The longest that any operation here may wait, by its own deadline.
const SHORT: Duration = Duration::from_millis(20);
/// Beyond its deadline an operation may last this long: 1 s, and what a busy machine adds.
const HANG: Duration = Duration::from_millis(3000);
/// Joining says `Timeout` after 10 s where somebody is stopped amid a join.
const HANG_JOINING: Duration = Duration::from_secs(14);

type Body = fn(&Path, &'static Board, &'static Member) -> i32;

/// By name.
pub(super) const ALL: [(&str, Body); MEMBERS] = [
    ("talker", |dir, board, me| again(board, me, |me| talk(dir, board, me))),
    ("listener", |dir, board, me| again(board, me, |me| listen(dir, board, me))),
    ("locker", |dir, board, me| again(board, me, |me| lock(dir, board, me))),
    ("calm publisher", |dir, board, me| once(calm_publisher(dir, board, me))),
    ("calm subscriber", |dir, board, me| once(calm_subscriber(dir, board, me))),
];

pub(super) fn settings(dir: &Path, name: &str) -> NodeBuilder {
    Node::builder().root(dir.join("root")).name(name)
}

/// A part that is begun anew whenever something it needs is spoilt for good.
fn again(board: &Board, me: &Member, part: impl Fn(&Member) -> outlive::Result<()>) -> i32 {
    while !board.ends() {
        let start = Instant::now();
        if part(me).is_err() {
            me.errors.fetch_add(1, Relaxed);
            std::thread::sleep(Duration::from_millis(2));
        }
        // Its own operations are timed one by one; this is for joining.
        let ended = board.ends() || start.elapsed() < HANG_JOINING + Duration::from_secs(2);
        me.slow.fetch_add(u64::from(!ended), Relaxed);
        me.ready.store(1, Release);
    }
    0
}

/// A part that nothing may disturb.
fn once(ended: outlive::Result<()>) -> i32 {
    match ended {
        Ok(()) => 0,
        Err(e) => {
            eprintln!("the calm: {e}");
            1
        }
    }
}

/// Times an operation, and notes its error; what it yields else.
fn timed<T>(me: &Member, operation: impl FnOnce() -> outlive::Result<T>) -> Option<T> {
    let start = Instant::now();
    let done = operation();
    if start.elapsed() > HANG {
        me.slow.fetch_add(1, Relaxed);
    }
    me.done.fetch_add(1, Relaxed);
    me.errors.fetch_add(u64::from(done.is_err()), Relaxed);
    done.ok()
}

/// Numbered words that vouch for themselves.
fn message(n: u64, len: usize) -> Vec<u64> {
    let mut words = vec![n.wrapping_mul(0x9e37_79b9_7f4a_7c15); len.max(2)];
    words[0] = n;
    let sum = words.iter().fold(0u64, |sum, word| sum.rotate_left(5) ^ word);
    words.push(sum);
    words
}

/// The number of a whole message.
fn check(words: &[u64]) -> Option<u64> {
    let (sum, rest) = words.split_last()?;
    let is = rest.iter().fold(0u64, |sum, word| sum.rotate_left(5) ^ word);
    (is == *sum && rest.len() >= 2).then(|| rest[0])
}

fn length(n: u64) -> usize {
    [3, 10, 200, 700][n as usize % 4]
}

fn talk(dir: &Path, board: &Board, me: &Member) -> outlive::Result<()> {
    let node = settings(dir, "talker").open()?;
    let topic = node.topic::<[u64]>(TOPIC)?.depth(8).reliable_timeout(SHORT);
    let publisher: Publisher<[u64]> = topic.memory_bytes_max(4 << 20).publisher()?;
    let mut producer: Producer<[u64]> = node.queue(QUEUE)?.bound_bytes(1 << 20).producer()?;
    let mut runs: Producer<u64> = node.queue(RUNS)?.producer()?;
    let mut client: Client<u64, u64> = node.service(SERVICE)?.client()?;
    // Whose messages can be vouched for.
    board.talker[0].store(publisher.id().node.get(), Relaxed);
    board.talker[1].store(publisher.id().port, Relaxed);
    me.ready.store(1, Release);
    let mut failures = 0;
    for n in 0.. {
        if board.ends() {
            break;
        }
        let words = message(n, length(n));
        let published = timed(me, || publisher.publish(&words));
        let sent = timed(me, || producer.send_timeout(&words, SHORT));
        timed(me, || runs.send_timeout(&n, SHORT));
        if n % 8 == 0 {
            timed(me, || client.call_timeout(&n, SHORT));
        }
        let failed = published.is_none() && sent.is_none();
        failures = if failed { failures + 1 } else { 0 };
        if failures > 20 {
            break;
        }
    }
    Ok(())
}

fn listen(dir: &Path, board: &Board, me: &Member) -> outlive::Result<()> {
    let node = settings(dir, "listener").open()?;
    let topic = || node.topic::<[u64]>(TOPIC);
    let mut subscriber: Subscriber<[u64]> = topic()?.depth(8).borrows(8).subscriber()?;
    let mut copier: Subscriber<[u64]> = topic()?.depth(8).reliable(true).subscriber()?;
    let mut consumer: Consumer<[u64]> = node.queue(QUEUE)?.consumer()?;
    let mut runs: Consumer<u64> = node.queue(RUNS)?.consumer()?;
    // So that it also has to know when there is nothing to do.
    runs.fd()?;
    let mut server: Server<u64, u64> = node.service(SERVICE)?.server()?;
    me.ready.store(1, Release);
    let mut held: Option<Sample<[u64]>> = None;
    let mut copy = Vec::new();
    let mut last = (0, 0);
    for n in 0u64.. {
        if board.ends() {
            break;
        }
        if let Some(Some(sample)) = timed(me, || subscriber.receive_timeout(SHORT)) {
            let talker = board.talker[0].load(Relaxed) == sample.publisher().node.get()
                && board.talker[1].load(Relaxed) == sample.publisher().port;
            let number = check(&sample);
            if talker && board.intact.load(Relaxed) == 1 {
                let id = sample.publisher().node.get();
                let fresh = last.0 != id || number.is_some_and(|n| n > last.1);
                me.wrong.fetch_add(u64::from(number.is_none() || !fresh), Relaxed);
                last = (id, number.unwrap_or(0));
            }
            me.received.fetch_add(1, Relaxed);
            held = Some(sample);
        }
        if n % 3 == 0 {
            held = None;
        }
        timed(me, || copier.copy_bytes(&mut copy));
        if let Some(Some(received)) = timed(me, || consumer.receive_timeout(SHORT / 4)) {
            std::hint::black_box(check(&received));
            me.received.fetch_add(1, Relaxed);
        }
        for _ in 0..64 {
            match timed(me, || runs.receive()) {
                Some(Some(received)) => drop(std::hint::black_box(received)),
                _ => break,
            }
        }
        if let Some(Some(request)) = timed(me, || server.receive()) {
            let answer = *request;
            timed(me, || server.respond(request, &answer));
        }
        while subscriber.next_event().is_some() || consumer.next_event().is_some() {}
        while runs.next_event().is_some() {}
    }
    drop(held);
    Ok(())
}

fn lock(dir: &Path, board: &Board, me: &Member) -> outlive::Result<()> {
    let node = settings(dir, "locker").open()?;
    let mutex = node.mutex::<u64>("wild-mutex")?;
    let rwlock = node.rwlock::<u64>("wild-rwlock")?;
    let semaphore = node.semaphore("wild-permits", 3)?;
    let set = node.lockless_set("wild-set", 100)?;
    me.ready.store(1, Release);
    let mut producer: Option<Producer<[u64]>> = None;
    let mut client: Option<Client<u64, u64>> = None;
    for n in 0..2000u64 {
        if board.ends() {
            break;
        }
        timed(me, || {
            mutex.lock_timeout(SHORT).map(|mut value| *value = value.wrapping_add(1)).or(Ok(()))
        });
        timed(me, || rwlock.read_timeout(SHORT).map(|value| *value).or(Ok(0)));
        timed(me, || {
            rwlock.write_timeout(SHORT).map(|mut value| *value = value.wrapping_add(1)).or(Ok(()))
        });
        timed(me, || semaphore.acquire_timeout(SHORT).map(drop).or(Ok(())));
        timed(me, || set.insert(n % 100 + 1));
        set.contains(n % 100 + 1);
        // The other end is the scribbler's.
        match &mut producer {
            Some(producer) => drop(timed(me, || producer.send_timeout(&message(n, 9), SHORT))),
            None => producer = node.queue(TRAP)?.bound_bytes(1 << 18).producer().ok(),
        }
        match &mut client {
            Some(client) => drop(timed(me, || client.call_timeout(&n, SHORT))),
            None => client = node.service(TRAP)?.client().ok(),
        }
    }
    Ok(())
}

fn calm_publisher(dir: &Path, board: &Board, me: &Member) -> outlive::Result<()> {
    let node = settings(dir, "calm").open()?;
    board.calm_nodes[0].store(node.id().get(), Relaxed);
    let topic = node.topic::<[u64]>(CALM)?.depth(64);
    let publisher = topic.reliable_timeout(Duration::from_secs(30)).publisher()?;
    me.ready.store(1, Release);
    let other = &board.members[MEMBERS - 1].ready;
    while other.load(std::sync::atomic::Ordering::Acquire) == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut n = 0;
    while !board.ends() {
        timed(me, || publisher.publish(&message(n, length(n))));
        n += 1;
        std::thread::sleep(Duration::from_micros(200));
    }
    me.wrong.fetch_add(me.errors.load(Relaxed), Relaxed);
    board.calm_sent.store(n + 1, Release);
    Ok(())
}

fn calm_subscriber(dir: &Path, board: &Board, me: &Member) -> outlive::Result<()> {
    let node = settings(dir, "calm").open()?;
    board.calm_nodes[1].store(node.id().get(), Relaxed);
    let mut subscriber = node.topic::<[u64]>(CALM)?.depth(64).reliable(true).subscriber()?;
    me.ready.store(1, Release);
    let mut next = 0;
    loop {
        // One more than the number of messages, once that is known.
        let sent = board.calm_sent.load(std::sync::atomic::Ordering::Acquire);
        match timed(me, || subscriber.receive_timeout(SHORT)) {
            Some(Some(sample)) => {
                me.wrong.fetch_add(u64::from(check(&sample) != Some(next)), Relaxed);
                next += 1;
                me.received.fetch_add(1, Relaxed);
            }
            _ if sent != 0 && next + 1 >= sent => break,
            Some(None) if sent != 0 => {
                me.wrong.fetch_add(1, Relaxed);
                break;
            }
            _ => {}
        }
    }
    me.wrong.fetch_add(subscriber.lost() + me.errors.load(Relaxed), Relaxed);
    Ok(())
}
