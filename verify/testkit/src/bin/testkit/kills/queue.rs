//! Queues under kills, with real processes at full speed.
//!
//! 1. The consumer is killed and replaced 1,000 times under load from 3 producers: every message
//!    is received once, at most the one in hand twice; producers are told of each gap; memory
//!    returns to its floor.
//! 2. A producer is killed 1,000 times between commit and wake: the consumer, which would sleep
//!    for an hour, wakes and has the message.
//!
//! Quick: 60 and 100. `QUEUE_SEED` replays the instants of the kills.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use outlive::queue;
use outlive::{Domain, ErrorKind, Node, NodeBuilder, internals, now_ns};
use testkit::crash::{Aim, aim, hook};
use testkit::process::{Child, shared_zeroes, sleeps, wait_until};
use testkit::{Rng, TempDomain, fork_child, seed_from_env};
use zerocopy::FromZeros;

use crate::args::Quick;

const PRODUCERS: usize = 3;
const QUEUE: &str = "/load";
const BOUND_BYTES: u64 = 1 << 20;
/// What a lane is allowed to keep once its consumer keeps up: it shrinks to 4 times its start.
const FLOOR_BYTES: u64 = PRODUCERS as u64 * (4 * (16 << 10) + 4096);
const LIMIT: Duration = Duration::from_secs(60);

/// What the processes tell each other; anonymous shared memory.
#[derive(FromZeros)]
#[repr(C)]
struct Board {
    /// 0: go on; 1: send slowly; 2: producers end; 3: the consumer ends when nothing is left.
    phase: AtomicU64,
    /// Last number each producer sent for certain, and how often it was told of a dead consumer.
    sent: [AtomicU64; PRODUCERS],
    told: [AtomicU64; PRODUCERS],
    /// Last number of each producer that a consumer had in hand.
    in_hand: [AtomicU64; PRODUCERS],
    /// Messages that came twice; that were lost or out of order.
    twice: AtomicU64,
    wrong: AtomicU64,
    received: AtomicU64,
    /// Consumers that have begun.
    begun: AtomicU64,
    /// Second part: deaths that the consumer saw, and when it saw the last; lanes it attached.
    deaths: AtomicU64,
    when: AtomicU64,
    joined: AtomicU64,
    go: AtomicU64,
}

fn settings(root: &Path, name: &str) -> NodeBuilder {
    Node::builder().root(root).name(name)
}

/// A message: producer and number. Large enough that lanes grow in the gaps.
type Load = [u64; 4];

/// Sends numbers from 1 on until told to end.
fn produce(root: &Path, board: &Board, me: usize) -> outlive::Result<()> {
    let node = settings(root, "producer").open()?;
    let mut producer = node.queue::<Load>(QUEUE)?.bound_bytes(BOUND_BYTES).producer()?;
    let mut n = 1;
    while board.phase.load(Acquire) < 2 {
        if board.phase.load(Relaxed) == 1 && n % 64 == 0 {
            // A consumer without a processor for a few times this long still keeps up.
            std::thread::sleep(Duration::from_millis(1));
        }
        match producer.send_timeout(&[me as u64, n, n, n], Duration::from_millis(50)) {
            Ok(()) => {
                board.sent[me].store(n, Release);
                n += 1;
            }
            Err(e) if e.kind() == ErrorKind::OwnerDied => {
                board.told[me].fetch_add(1, Relaxed);
                producer.wait_for_consumer(Duration::from_millis(50))?;
            }
            Err(e) if e.kind() == ErrorKind::Timeout => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Receives until nothing is left after the producers' end.
fn consume(root: &Path, board: &Board) -> outlive::Result<()> {
    let node = settings(root, "consumer").open()?;
    let mut consumer = node.queue::<Load>(QUEUE)?.consumer()?;
    board.begun.fetch_add(1, Release);
    let mut first = [true; PRODUCERS];
    loop {
        let Some(message) = consumer.receive_timeout(Duration::from_millis(200))? else {
            while consumer.next_event().is_some() {}
            if board.phase.load(Acquire) == 3 && consumer.receive()?.is_none() {
                return Ok(());
            }
            continue;
        };
        let [k, n, a, b] = *message;
        let in_hand = &board.in_hand[k as usize];
        let last = in_hand.load(Relaxed);
        let again = std::mem::take(&mut first[k as usize]) && n == last;
        if a != n || b != n || !(n == last + 1 || again) {
            board.wrong.fetch_add(1, Relaxed);
        }
        board.twice.fetch_add(u64::from(again), Relaxed);
        in_hand.store(n, Release);
        drop(message);
        board.received.fetch_add(1, Relaxed);
    }
}

fn bytes_below(dir: &Path) -> u64 {
    let files = testkit::temp::listing(dir);
    files.iter().filter_map(|f| dir.join(f).metadata().ok()).map(|m| m.len()).sum()
}

fn start(what: &str, body: impl FnOnce() -> outlive::Result<()>) -> Child {
    fork_child(|| match body() {
        Ok(()) => 0,
        Err(e) => {
            eprintln!("{e}");
            1
        }
    })
    .unwrap_or_else(|e| panic!("no {what}: {e}"))
}

/// The consumer is killed and replaced.
fn replace(kills: u64, rng: &mut Rng) -> Result<String, String> {
    let temp = TempDomain::new("queue-load").map_err(|e| e.to_string())?;
    let (root, board) = (temp.path().join("root"), shared_zeroes::<Board>());
    let mut producers: Vec<Child> =
        (0..PRODUCERS).map(|me| start("producer", || produce(&root, board, me))).collect();
    let mut consumer = start("consumer", || consume(&root, board));
    for n in 1..=kills {
        if !wait_until(LIMIT, || board.begun.load(Acquire) == n) {
            return Err(format!("consumer {n} does not begin"));
        }
        let before = board.received.load(Relaxed);
        std::thread::sleep(Duration::from_micros(rng.below(3000)));
        // Now and then wait for it to have received something, else all die in their start.
        if n % 2 == 0 && !wait_until(LIMIT, || board.received.load(Relaxed) > before + 100) {
            return Err(format!("consumer {n} receives nothing"));
        }
        consumer.kill();
        consumer = start("consumer", || consume(&root, board));
    }
    board.phase.store(1, Release);
    let lanes = root.join("default/queues");
    if !wait_until(LIMIT, || bytes_below(&lanes) <= FLOOR_BYTES + (64 << 10)) {
        return Err(format!("{} bytes are in use at the end", bytes_below(&lanes)));
    }
    board.phase.store(2, Release);
    if !producers.iter_mut().all(|p| p.wait().success()) {
        return Err("a producer failed".into());
    }
    board.phase.store(3, Release);
    if !consumer.wait().success() {
        return Err("the last consumer failed".into());
    }
    let words = |w: &[AtomicU64]| w.iter().map(|w| w.load(Acquire)).collect::<Vec<_>>();
    let (sent, got, told) = (words(&board.sent), words(&board.in_hand), words(&board.told));
    if sent != got || board.wrong.load(Relaxed) > 0 {
        let wrong = board.wrong.load(Relaxed);
        return Err(format!("sent {sent:?}, received {got:?}, {wrong} lost or out of order"));
    }
    if told.contains(&0) {
        return Err(format!("producers were told of a dead consumer {told:?} times"));
    }
    nothing_left(&root)?;
    let twice = board.twice.load(Relaxed);
    if twice > kills * PRODUCERS as u64 {
        return Err(format!("{twice} messages came twice in {kills} kills"));
    }
    Ok(format!(
        "{kills} consumers killed and replaced: {} messages, each once, {twice} in hand twice; \
         producers told of a gap {} times",
        sent.iter().sum::<u64>(),
        told.iter().sum::<u64>()
    ))
}

/// With everybody gone, the audit is clean and `clean` leaves nothing.
fn nothing_left(root: &Path) -> Result<(), String> {
    let domain = Domain::of(&settings(root, "clean")).map_err(|e| e.to_string())?;
    let audit = domain.audit().map_err(|e| e.to_string())?;
    if !audit.faults.is_empty() {
        return Err(audit.faults.join("; "));
    }
    domain.clean().map_err(|e| e.to_string())?;
    let left = testkit::temp::listing(root);
    if left.is_empty() { Ok(()) } else { Err(format!("left after clean: {left:?}")) }
}

/// Sleeps, counts messages and deaths.
fn sleeper(root: &Path, board: &Board) -> outlive::Result<()> {
    let node = settings(root, "sleeper").open()?;
    let mut consumer = node.queue::<u64>(QUEUE)?.consumer()?;
    board.begun.fetch_add(1, Release);
    loop {
        while let Some(event) = consumer.next_event() {
            match event {
                queue::Event::ProducerJoined(_) => drop(board.joined.fetch_add(1, Release)),
                queue::Event::ProducerDied(_) => {
                    board.when.store(now_ns(), Relaxed);
                    board.deaths.fetch_add(1, Release);
                }
                _ => {}
            }
        }
        if consumer.receive_timeout(Duration::from_secs(3600))?.is_some() {
            board.received.fetch_add(1, Release);
        }
    }
}

/// Joins, waits for the word, sends and dies between commit and wake.
fn victim(root: &Path, board: &Board, round: u64) -> outlive::Result<()> {
    let node = settings(root, "victim").open()?;
    let mut producer = node.queue::<u64>(QUEUE)?.producer()?;
    producer.wait_for_consumer(LIMIT)?;
    while board.go.load(Acquire) != round {
        std::thread::sleep(Duration::from_micros(50));
    }
    aim(Aim::At("queue.send.before_wake".into(), 1));
    outlive::crash::set_hook(hook);
    board.sent[0].store(now_ns(), Relaxed);
    producer.send(&round)
}

/// Producers die between commit and wake.
fn wake(kills: u64, waitv: bool) -> Result<String, String> {
    let temp = TempDomain::new("queue-wake").map_err(|e| e.to_string())?;
    let (root, board) = (temp.path().join("root"), shared_zeroes::<Board>());
    let mut consumer = start("consumer", || {
        internals::set_waitv(waitv);
        internals::set_slice_ns_max(3_600_000_000_000);
        sleeper(&root, board)
    });
    if !wait_until(LIMIT, || board.begun.load(Acquire) == 1) {
        return Err("the consumer does not begin".into());
    }
    let mut took = Vec::new();
    for n in 1..=kills {
        let mut victim = start("victim", || victim(&root, board, n));
        if !wait_until(LIMIT, || board.joined.load(Acquire) == n) {
            return Err(format!("round {n}: the consumer did not find the producer"));
        }
        if !wait_until(LIMIT, || sleeps(consumer.pid())) {
            return Err(format!("round {n}: the consumer does not sleep"));
        }
        // Past the short first sleep.
        std::thread::sleep(Duration::from_micros(300));
        board.go.store(n, Release);
        if victim.wait().success() {
            return Err(format!("round {n}: not killed between commit and wake"));
        }
        if !wait_until(LIMIT, || board.deaths.load(Acquire) == n) {
            return Err(format!("round {n}: the consumer sleeps on"));
        }
        if board.received.load(Acquire) != n {
            return Err(format!("round {n}: a committed message did not come"));
        }
        took.push(board.when.load(Relaxed).saturating_sub(board.sent[0].load(Relaxed)));
    }
    consumer.kill();
    took.sort_unstable();
    let at = |q: f64| took[((took.len() - 1) as f64 * q) as usize] as f64 / 1e6;
    Ok(format!(
        "{kills} producers killed between commit and wake: the consumer knew after p50 {:.2} ms, \
         p99 {:.2} ms, max {:.2} ms",
        at(0.5),
        at(0.99),
        at(1.0)
    ))
}

pub(crate) fn run(args: Quick) -> ExitCode {
    let (replaced, woken) = if args.quick { (60, 100) } else { (1000, 1000) };
    let mut rng = Rng::new(seed_from_env("QUEUE_SEED"));
    let mut code = ExitCode::SUCCESS;
    for (name, done) in [
        ("replace", replace(replaced, &mut rng)),
        ("wake", wake(woken, true)),
        ("wake without futex_waitv", wake(woken / 5, false)),
    ] {
        match done {
            Ok(text) => println!("queue kills: {name}: {text}"),
            Err(what) => {
                println!("queue kills: {name}: FAILED: {what}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
