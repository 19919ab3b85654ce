//! A real video goes through a topic at its own rate, while other subscribers are killed and
//! started again all the time. What comes out is what went in: for one that was there from the
//! start and for one that comes after the last frame, out of a ring that holds the whole clip; and
//! for a reliable one that is stopped now and then, out of a ring of four.
//!
//! `scripts/real-data` gets clip and ffmpeg; without them there is nothing to do.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use common::*;

/// A frame of the clip: 1280x720, yuv420p.
const FRAME_BYTES: usize = 1280 * 720 * 3 / 2;
/// Deeper than the clip is long.
const DEPTH: usize = 256;

/// The decoder, writing frames; `None` without clip or ffmpeg.
fn decoder() -> Option<Child> {
    let given = |name| std::env::var_os(name).map(PathBuf::from);
    let (Some(clip), Some(ffmpeg)) = (given("OUTLIVE_CLIP"), given("OUTLIVE_FFMPEG")) else {
        println!("real data: skipped, run scripts/real-data to get the clip");
        return None;
    };
    let mut decoder = Command::new(ffmpeg);
    decoder.args(["-loglevel", "error", "-nostdin", "-i"]).arg(clip);
    decoder.args(["-f", "rawvideo", "-pix_fmt", "yuv420p", "-"]).stdout(Stdio::piped());
    Some(decoder.spawn().unwrap())
}

fn publisher(home: &Home, depth: usize) -> Child {
    home.outlive("topic pub /clip --from-stdin --rate 30 --wait-for-subscribers 1 --linger inf")
        .args(["--frame-bytes", &FRAME_BYTES.to_string(), "--depth", &depth.to_string()])
        .args(["--reliable-timeout", "100"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_video_arrives_byte_by_byte_while_other_subscribers_are_killed() {
    let Some(mut decoder) = decoder() else { return };
    let home = Home::with_room_for("real-data", 600 << 20);
    let first = home.start("topic echo /clip --raw --until-left --timeout 100", b"");
    let mut publisher = publisher(&home, DEPTH);
    let (stop, killed) = (AtomicBool::new(false), AtomicU32::new(0));
    let (sent, got_first, got_late) = std::thread::scope(|scope| {
        let first = scope.spawn(|| digest(first));
        home.await_subscriber();
        let (home, stop, killed) = (&home, &stop, &killed);
        for read in [true, true, false] {
            scope.spawn(move || kill_again_and_again(home, "--history 50", read, stop, killed));
        }
        let (input, frames) = (publisher.stdin.take().unwrap(), decoder.stdout.take().unwrap());
        let sent = scope.spawn(|| tee(frames, input));
        said(publisher.stderr.take().unwrap(), "published");
        stop.store(true, Relaxed);
        let late = home.start("topic echo /clip --raw --history 256 --until-left", b"");
        let late = scope.spawn(|| digest(late));
        home.await_subscribers(2);
        // SAFETY: the child is not reaped, so its id is its own.
        unsafe { libc::kill(publisher.id() as i32, libc::SIGINT) };
        (sent.join().unwrap(), first.join().unwrap(), late.join().unwrap())
    });
    assert!(decoder.wait().unwrap().success() && publisher.wait().unwrap().success());
    let frames = sent.bytes / FRAME_BYTES;
    assert!(frames > 100 && frames <= DEPTH && sent.bytes % FRAME_BYTES == 0, "{frames} frames");
    assert_eq!(got_first, sent, "there from the start");
    assert_eq!(got_late, sent, "came after the last frame");
    home.run("clean").expect(DONE);
    assert_eq!(home.listing(), [] as [&str; 0]);
    println!(
        "\nreal data: {frames} frames of video, {} MB, twice through a topic with the same \
         SHA-256; {} other subscribers killed meanwhile",
        sent.bytes / 1_000_000,
        killed.into_inner()
    );
}

#[test]
fn a_reliable_subscriber_gets_every_frame_through_a_ring_of_four() {
    let Some(mut decoder) = decoder() else { return };
    let home = Home::with_room_for("real-data-reliable", 100 << 20);
    let mut reader =
        home.start("topic echo /clip --raw --reliable --until-left --timeout 100", b"");
    let output = reader.take_output();
    let mut publisher = publisher(&home, 4);
    let (stop, killed) = (AtomicBool::new(false), AtomicU32::new(0));
    let (sent, got, told) = std::thread::scope(|scope| {
        let got = scope.spawn(|| tee(output, std::io::sink()));
        home.await_subscriber();
        let (home, stop, killed) = (&home, &stop, &killed);
        // Those that stand with a frame in hand, and are waited for until they die.
        for (args, read) in [("--reliable", true), ("--reliable", false), ("--history 4", true)] {
            scope.spawn(move || kill_again_and_again(home, args, read, stop, killed));
        }
        let (input, frames) = (publisher.stdin.take().unwrap(), decoder.stdout.take().unwrap());
        let sent = scope.spawn(|| tee(frames, input));
        let told = publisher.stderr.take().unwrap();
        let told = scope.spawn(|| said(told, "published"));
        while !told.is_finished() {
            std::thread::sleep(Duration::from_millis(400));
            reader.stop();
            // Nine frames at 30 Hz.
            std::thread::sleep(Duration::from_millis(300));
            reader.signal(libc::SIGCONT);
        }
        stop.store(true, Relaxed);
        // SAFETY: the child is not reaped, so its id is its own.
        unsafe { libc::kill(publisher.id() as i32, libc::SIGINT) };
        (sent.join().unwrap(), got.join().unwrap(), told.join().unwrap())
    });
    reader.end().expect(DONE);
    assert!(decoder.wait().unwrap().success() && publisher.wait().unwrap().success());
    let frames = sent.bytes / FRAME_BYTES;
    assert!(frames > 100 && sent.bytes % FRAME_BYTES == 0, "{frames} frames");
    assert_eq!(got, sent);
    let waited = told.split_once("; ").expect("it had to wait").1;
    home.run("clean").expect(DONE);
    assert_eq!(home.listing(), [] as [&str; 0]);
    println!(
        "\nreal data: {frames} frames through a ring of 4 with the same SHA-256; {waited}; \
         {} other subscribers killed meanwhile",
        killed.into_inner()
    );
}

/// What came through a pipe.
#[derive(Debug, PartialEq)]
struct Stream {
    bytes: usize,
    sha256: String,
}

/// Reads to the end, handing everything on to `to`.
fn tee(mut from: impl Read, mut to: impl Write) -> Stream {
    let mut sum = Command::new("sha256sum")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sha256sum, of coreutils");
    let mut summing = sum.stdin.take().unwrap();
    let mut block = vec![0; 1 << 20];
    let mut bytes = 0;
    loop {
        let n = from.read(&mut block).unwrap();
        if n == 0 {
            break;
        }
        bytes += n;
        to.write_all(&block[..n]).unwrap();
        summing.write_all(&block[..n]).unwrap();
    }
    drop((to, summing));
    let sha256 = String::from_utf8(sum.wait_with_output().unwrap().stdout).unwrap();
    Stream { bytes, sha256 }
}

/// All that an echo prints; it must end well and without loss.
fn digest(mut echo: Running) -> Stream {
    let stream = tee(echo.take_output(), std::io::sink());
    echo.end().expect(DONE);
    stream
}

/// Waits until a line with `word` comes.
fn said(from: ChildStderr, word: &str) -> String {
    let lines = BufReader::new(from).lines().map(|line| line.unwrap());
    lines.into_iter().find(|line| line.contains(word)).expect("it ended and never said it")
}

/// Starts an echo and kills it, over and over. With `read` it takes what it can get, else it soon
/// stands with a frame in hand: nobody reads what it writes.
fn kill_again_and_again(
    home: &Home,
    args: &str,
    read: bool,
    stop: &AtomicBool,
    killed: &AtomicU32,
) {
    let mut rng = testkit::Rng::new(u64::from(read));
    while !stop.load(Relaxed) {
        let output = if read { Stdio::null() } else { Stdio::piped() };
        let mut echo: Child = home
            .outlive("topic echo /clip --raw")
            .args(args.split_whitespace())
            .stdout(output)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(10 + rng.below(150)));
        assert!(echo.try_wait().unwrap().is_none(), "it goes on until killed");
        echo.kill().unwrap();
        echo.wait().unwrap();
        killed.fetch_add(1, Relaxed);
    }
}
