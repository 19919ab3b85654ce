//! RAM disks that are too small, or full in mid-run: `NoSpace` says so, nothing that was sent is
//! lost, nobody gets a SIGBUS, and on it goes once there is room.
//!
//! Each test runs itself again in a mount namespace of its own, on a tmpfs of the size it wants.
//! Where the kernel does not allow that, it says so and is content.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use outlive::{Domain, ErrorKind, Node, NodeBuilder, Publisher, Sample, Subscriber};
use testkit::spawn::{spawn_program, spawn_test};
use testkit::{Rng, TempDomain, Watchdog, role};

/// A frame of a camera: full HD, three bytes per pixel.
const FRAME_BYTES: usize = 1920 * 1080 * 3;
const MOUNT: &str = "mount -t tmpfs -o size=$0 none \"$1\" && shift && exec \"$@\"";

/// Runs `body` with the path of a new tmpfs of `size`, as mount takes it.
fn on_a_disk_of(size: &str, test: &str, body: impl FnOnce(&Path)) {
    if let Some(role) = role() {
        let _watchdog = Watchdog::start(test, Duration::from_secs(100));
        body(Path::new(&role.args[0]));
        println!("was on the disk");
        return;
    }
    let dir = TempDomain::new("disk").unwrap();
    let path = dir.path().to_str().unwrap();
    let may = Command::new("unshare").args(["-rm", "sh", "-c", MOUNT, size, path, "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        println!("full disk: skipped, no tmpfs can be mounted in a namespace here");
        return;
    }
    let this = spawn_test(test, "on the disk", &[path]);
    let mut command = spawn_program("unshare");
    command.args(["-rm", "sh", "-c", MOUNT, size, path]);
    command.arg(this.get_program()).args(this.get_args());
    command.envs(this.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let ran = command.output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout) + String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success() && told.contains("was on the disk"), "{}: {told}", ran.status);
}

/// Makes the disk larger.
fn enlarge(disk: &Path, size: &str) {
    let mut mount = Command::new("mount");
    mount.arg("-o").arg(format!("remount,size={size}")).arg(disk);
    assert!(mount.status().unwrap().success());
}

/// A file that takes all the room there is; removed on drop.
struct Filler(PathBuf);

impl Filler {
    fn fill(disk: &Path) -> Self {
        let path = disk.join("filler");
        let mut file = File::create(&path).unwrap();
        for block in [1 << 20, 4096] {
            let zeroes = vec![0; block];
            while file.write_all(&zeroes).is_ok() {}
        }
        Self(path)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// On a full disk `step` is `NoSpace`, with a remedy; with room it works.
fn needs_room<T>(disk: &Path, what: &str, mut step: impl FnMut() -> outlive::Result<T>) -> T {
    let full = Filler::fill(disk);
    match step() {
        Ok(_) => panic!("{what} took no room"),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::NoSpace, "{what}: {e}");
            assert!(e.to_string().contains("free space"), "{what}: {e}");
        }
    }
    drop(full);
    step().unwrap_or_else(|e| panic!("{what}, with room: {e}"))
}

fn settings(disk: &Path, name: &str) -> NodeBuilder {
    Node::builder().root(disk.join("root")).name(name)
}

fn node(disk: &Path) -> Node {
    settings(disk, "test").open().unwrap()
}

/// The audit finds no fault, and `clean` needs no room to remove everything.
fn cleans_up_when_full(disk: &Path) {
    let full = Filler::fill(disk);
    let domain = Domain::of(&settings(disk, "clean")).unwrap();
    assert_eq!(domain.audit().unwrap().faults, Vec::<String>::new());
    domain.clean().unwrap();
    drop(full);
    assert_eq!(testkit::temp::listing(disk), Vec::<String>::new());
}

fn frame(n: u64, bytes: usize) -> Vec<u8> {
    let mut frame = vec![0; bytes];
    Rng::new(n).fill(&mut frame[..bytes.min(64)]);
    frame[bytes - 1] = n as u8;
    frame
}

/// Publishes message `n`; false when there is no room for it.
fn sent(publisher: &Publisher<[u8]>, n: u64, bytes: usize) -> bool {
    match publisher.publish(&frame(n, bytes)) {
        Ok(seq) => assert_eq!(seq, n),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::NoSpace, "{e}");
            return false;
        }
    }
    true
}

fn received(subscriber: &mut Subscriber<[u8]>, n: u64, bytes: usize) -> Sample<[u8]> {
    let sample = subscriber.receive().unwrap().expect("it was sent");
    assert_eq!((sample.seq(), sample.lost_before()), (n, 0));
    assert!(*sample == *frame(n, bytes), "message {n} is another");
    sample
}

#[test]
fn on_a_full_disk_every_step_says_no_space_and_with_room_it_works() {
    let test = "on_a_full_disk_every_step_says_no_space_and_with_room_it_works";
    on_a_disk_of("1m", test, |disk| {
        let node = needs_room(disk, "a node", || settings(disk, "test").open());
        let topic = || outlive::Result::Ok(node.topic::<[u8]>("/t")?.depth(4));
        let publisher = needs_room(disk, "a publisher", || topic()?.publisher());
        let mut subscriber = needs_room(disk, "a subscriber", || topic()?.subscriber());
        let mut loans = vec![needs_room(disk, "the first loan", || publisher.loan_slice(8000))];
        let full = Filler::fill(disk);
        while let Ok(loan) = publisher.loan_slice(8000) {
            loans.push(loan);
        }
        drop(full);
        assert!(loans.len() > 1, "a segment has more than one chunk");
        loans.push(needs_room(disk, "growth", || publisher.loan_slice(8000)));
        loans.push(needs_room(disk, "growth for larger ones", || publisher.loan_slice(90_000)));
        for (n, mut loan) in (0..).zip(loans) {
            let bytes = loan.len();
            loan.copy_from_slice(&frame(n, bytes));
            loan.publish().unwrap();
            drop(received(&mut subscriber, n, bytes));
        }
        let queue = || outlive::Result::Ok(node.queue::<[u8]>("/q")?.first_bytes(1 << 12));
        let mut consumer = needs_room(disk, "a consumer", || queue()?.consumer());
        let mut producer = needs_room(disk, "a producer", || queue()?.producer());
        let full = Filler::fill(disk);
        // A lane that is full may become empty: that is worth waiting for, where a message fits.
        let mut queued = 0;
        let error = loop {
            match producer.try_send(&frame(queued, 500)) {
                Ok(()) => queued += 1,
                Err(e) => break e,
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
        drop(full);
        needs_room(disk, "a longer lane", || Ok(producer.try_send(&frame(queued, 9000))?));
        for n in 0..=queued {
            let bytes = if n < queued { 500 } else { 9000 };
            assert!(*consumer.receive().unwrap().expect("it was queued") == *frame(n, bytes));
        }
        let mutex = needs_room(disk, "a mutex", || node.mutex_with::<u64>("/m", &5));
        assert_eq!(*mutex.lock().unwrap(), 5);
        drop((mutex, consumer, producer, subscriber, publisher));
        drop(node);
        cleans_up_when_full(disk);
    });
}

#[test]
fn a_topic_that_fills_a_disk_of_1_mb_loses_nothing_and_goes_on() {
    let test = "a_topic_that_fills_a_disk_of_1_mb_loses_nothing_and_goes_on";
    on_a_disk_of("1m", test, |disk| {
        const BYTES: usize = 20_000;
        let node = node(disk);
        let topic = || node.topic::<[u8]>("/t").unwrap().depth(4);
        let publisher = topic().publisher().unwrap();
        let mut subscriber = topic().borrows(64).reliable(true).subscriber().unwrap();
        let (mut held, mut n) = (Vec::new(), 0);
        let mut hold_all = |held: &mut Vec<_>, subscriber: &mut _| {
            while held.len() < 63 && sent(&publisher, n, BYTES) {
                held.push(received(subscriber, n, BYTES));
                n += 1;
            }
        };
        hold_all(&mut held, &mut subscriber);
        assert!((4..60).contains(&held.len()), "{} samples fill the disk", held.len());
        // What is let go of is enough to go on, on a full disk.
        for _ in 0..3 {
            let before = held.len();
            held.drain(..2);
            hold_all(&mut held, &mut subscriber);
            assert_eq!(held.len(), before);
        }
        let before = held.len();
        enlarge(disk, "4m");
        hold_all(&mut held, &mut subscriber);
        assert!(held.len() == 63 && before < 60, "a larger disk holds more");
        for sample in &held {
            assert!(**sample == *frame(sample.seq(), BYTES), "what is held stays as it was");
        }
        assert_eq!(subscriber.lost(), 0);
        drop((held, subscriber, publisher, node));
        cleans_up_when_full(disk);
    });
}

/// Beside its predecessor's ring, kept for those that join late, there was room for half of its
/// own: it could never send so many messages that the old one went.
#[test]
fn a_publisher_that_restarts_on_a_disk_for_one_ring_goes_on() {
    let test = "a_publisher_that_restarts_on_a_disk_for_one_ring_goes_on";
    on_a_disk_of("4m", test, |disk| {
        const BYTES: usize = 300_000;
        let (node, other) = (node(disk), node(disk));
        let topic = |node: &Node| node.topic::<[u8]>("/t").unwrap().depth(8);
        let mut subscriber = topic(&other).subscriber().unwrap();
        for _ in 0..3 {
            let publisher = topic(&node).publisher().unwrap();
            for n in 0..20 {
                assert!(sent(&publisher, n, BYTES), "message {n} of a publisher that came back");
                drop(received(&mut subscriber, n, BYTES));
            }
            drop(publisher);
            assert!(subscriber.receive().unwrap().is_none(), "it notices that one left");
        }
        // What a live subscriber has yet to read stays, and there is no room.
        let publisher = topic(&node).publisher().unwrap();
        let unread = (0..8).take_while(|n| sent(&publisher, *n, BYTES)).count() as u64;
        drop(publisher);
        let publisher = topic(&node).publisher().unwrap();
        let beside = (0..8).take_while(|n| sent(&publisher, *n, BYTES)).count() as u64;
        assert!(unread == 8 && beside < 8, "{unread} and {beside}");
        for n in (0..unread).chain(0..beside) {
            drop(received(&mut subscriber, n, BYTES));
        }
        drop((subscriber, publisher, node, other));
        cleans_up_when_full(disk);
    });
}

#[test]
fn frames_on_a_disk_of_64_mb_stop_at_its_end_and_go_on_when_it_grows() {
    let test = "frames_on_a_disk_of_64_mb_stop_at_its_end_and_go_on_when_it_grows";
    on_a_disk_of("64m", test, |disk| {
        let node = node(disk);
        // Nine chunks fit, and they are enough for a ring of 8.
        let topic = |name| node.topic::<[u8]>(name).unwrap();
        let fits = topic("/fits").depth(8).publisher().unwrap();
        let mut reader = topic("/fits").subscriber().unwrap();
        for n in 0..24 {
            assert!(sent(&fits, n, FRAME_BYTES));
            drop(received(&mut reader, n, FRAME_BYTES));
        }
        drop((fits, reader));
        // A ring of 16 needs seventeen.
        let publisher = topic("/deep").depth(16).publisher().unwrap();
        let mut reader = topic("/deep").reliable(true).subscriber().unwrap();
        let mut n = 0;
        while sent(&publisher, n, FRAME_BYTES) {
            drop(received(&mut reader, n, FRAME_BYTES));
            n += 1;
        }
        assert!((8..16).contains(&n), "{n} frames fill the disk");
        assert!(!sent(&publisher, n, FRAME_BYTES), "and it stays full");
        enlarge(disk, "256m");
        for n in n..40 {
            assert!(sent(&publisher, n, FRAME_BYTES));
            drop(received(&mut reader, n, FRAME_BYTES));
        }
        drop((reader, publisher, node));
        cleans_up_when_full(disk);
    });
}

#[test]
fn a_disk_that_is_filled_again_and_again_in_mid_run_loses_nothing() {
    let test = "a_disk_that_is_filled_again_and_again_in_mid_run_loses_nothing";
    on_a_disk_of("16m", test, |disk| {
        let stop = AtomicBool::new(false);
        let (messages, refused) = std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Relaxed) {
                    let full = Filler::fill(disk);
                    std::thread::sleep(Duration::from_millis(2));
                    drop(full);
                    std::thread::sleep(Duration::from_millis(1));
                }
            });
            let ran = run_while_it_is_filled(disk);
            stop.store(true, Relaxed);
            ran
        });
        println!("{messages} messages arrived, {refused} times there was no room");
        cleans_up_when_full(disk);
    });
}

/// Topics that come, grow and go, until there was no room often enough.
fn run_while_it_is_filled(disk: &Path) -> (u64, u64) {
    let (mut messages, mut refused) = (0, 0);
    let mut rng = Rng::new(11);
    while refused < 200 || messages < 2000 {
        let node = until_there_is_room(&mut refused, || settings(disk, "test").open());
        let topic = || outlive::Result::Ok(node.topic::<[u8]>("/t")?.depth(4));
        let publisher = until_there_is_room(&mut refused, || topic()?.publisher());
        let mut subscriber =
            until_there_is_room(&mut refused, || topic()?.reliable(true).borrows(8).subscriber());
        let mut held = Vec::new();
        for n in 0..100 {
            // Growing, so that old chunks do not fit.
            let bytes = 1 + rng.below(1 + n * 2000) as usize;
            while !sent(&publisher, n, bytes) {
                refused += 1;
                std::thread::yield_now();
            }
            held.push((received(&mut subscriber, n, bytes), bytes));
            if held.len() == 8 || rng.one_in(2) {
                let (sample, bytes) = held.swap_remove(rng.below(held.len() as u64) as usize);
                assert!(*sample == *frame(sample.seq(), bytes));
            }
            messages += 1;
        }
        assert_eq!(subscriber.lost(), 0);
    }
    (messages, refused)
}

fn until_there_is_room<T>(refused: &mut u64, mut step: impl FnMut() -> outlive::Result<T>) -> T {
    loop {
        match step() {
            Ok(made) => return made,
            Err(e) => assert_eq!(e.kind(), ErrorKind::NoSpace, "{e}"),
        }
        *refused += 1;
        std::thread::yield_now();
    }
}
