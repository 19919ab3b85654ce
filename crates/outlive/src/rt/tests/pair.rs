//! Ends of channels that are replaced while the other end lives on.

use std::time::Duration;

use super::{node, together};
use crate::ErrorKind;
use crate::node::Node;
use crate::os::fixture::{TempDir, fork_child, until};
use crate::os::time::clock;
use crate::rt::*;

const SOON: Duration = Duration::from_secs(20);
const BRIEF: Duration = Duration::from_millis(5);
const WORDS: usize = 64;

type Wide = [u64; WORDS];

/// The value's number; panics when it is of several values.
fn whole(value: Wide) -> u64 {
    assert!(value.iter().all(|word| *word == value[0]), "torn: {value:?}");
    value[0]
}

fn pair(writers: &Node, readers: &Node) -> (LatestWriter<Wide>, LatestReader<Wide>) {
    let writing = LatestWriter::open(writers, "x").unwrap();
    let reading = LatestReader::open(readers, "x").unwrap();
    together(|| writing.connect(SOON).unwrap(), || reading.connect(SOON).unwrap())
}

fn ring(writers: &Node, readers: &Node, depth: usize) -> (SpscWriter<u64>, SpscReader<u64>) {
    let writing = SpscWriter::open(writers, "x", depth).unwrap();
    let reading = SpscReader::open(readers, "x", depth).unwrap();
    together(|| writing.connect(SOON).unwrap(), || reading.connect(SOON).unwrap())
}

/// 84 torn of 408,000 before ends were paired, after the first replacement.
#[test]
fn nothing_torn_is_read_however_often_either_end_is_replaced() {
    const ROUNDS: u64 = 40;
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let (mut writer, mut reader) = pair(&a, &b);
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let writes = scope.spawn(|| {
            let (mut n, mut replaced) = (0, 0);
            while !stop.is_stopped() {
                n += 1;
                match writer.write(&[n; WORDS]) {
                    Ok(()) => {}
                    Err(_) if n % 3 > 0 => _ = writer.reconnect(BRIEF),
                    // It is replaced too, while the reader is.
                    Err(_) => {
                        drop(writer);
                        let next = loop {
                            let opening = LatestWriter::open(&a, "x").unwrap();
                            match opening.connect(BRIEF) {
                                Err(_) if !stop.is_stopped() => {}
                                next => break next,
                            }
                        };
                        let Ok(next) = next else { return replaced };
                        writer = next;
                        replaced += 1;
                    }
                }
            }
            replaced
        });
        let _ends = StopAtEnd(&stop);
        for round in 0..ROUNDS {
            let (mut tries, mut seen) = (0, false);
            // As long as it takes the writer to notice, on a busy machine.
            while tries < 3000 || !seen {
                tries += 1;
                assert!(!writes.is_finished(), "the writer has failed");
                match reader.read() {
                    Ok(Some(value)) => {
                        whole(value.value);
                        seen = true;
                    }
                    Ok(None) if tries > 3000 => std::thread::yield_now(),
                    Ok(None) => {}
                    Err(_) => _ = reader.reconnect(BRIEF),
                }
            }
            drop(reader);
            // Of the same node, or of another.
            let of = if round % 2 == 0 { b.clone() } else { node(&dir, "c") };
            reader = LatestReader::open(&of, "x").unwrap().connect(SOON).unwrap();
        }
        drop(reader);
        stop.stop();
        writes.join().unwrap();
    });
}

struct StopAtEnd<'a>(&'a Stop);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Somebody removed its node's file, so that it is taken for dead while it lives.
fn taken_for_dead(dir: &TempDir, node: &Node) {
    let file = dir.path().join("default/nodes").join(node.id().to_string());
    std::fs::remove_file(file).unwrap();
}

#[test]
fn an_old_reader_that_was_replaced_is_told_and_reads_nothing() {
    let dir = TempDir::new("rt");
    let (a, old, new) = (node(&dir, "a"), node(&dir, "old"), node(&dir, "new"));
    let (mut writer, mut reader) = pair(&a, &old);
    writer.write(&[1; WORDS]).unwrap();
    assert_eq!(whole(reader.read().unwrap().unwrap().value), 1);
    taken_for_dead(&dir, &old);
    let next = LatestReader::<Wide>::open(&new, "x").unwrap();
    let (_, mut next) =
        together(|| writer.reconnect(SOON).unwrap(), || next.connect(SOON).unwrap());
    assert_eq!(reader.read(), Err(Lost::Unpaired));
    writer.write(&[2; WORDS]).unwrap();
    assert_eq!(reader.read(), Err(Lost::Unpaired));
    assert_eq!(whole(next.read().unwrap().unwrap().value), 2);

    // And an old writer: nobody gets what it writes, so it is told.
    taken_for_dead(&dir, &a);
    let b = node(&dir, "b");
    let opening = LatestWriter::<Wide>::open(&b, "x").unwrap();
    let (mut second, _) = together(|| opening.connect(SOON).unwrap(), || next.reconnect(SOON));
    assert_eq!(writer.write(&[3; WORDS]), Err(Lost::Unpaired));
    second.write(&[4; WORDS]).unwrap();
    assert_eq!(whole(next.read().unwrap().unwrap().value), 4);
}

#[test]
fn a_second_living_end_is_refused_until_the_first_is_dropped() {
    let dir = TempDir::new("rt");
    let (a, b, c) = (node(&dir, "a"), node(&dir, "b"), node(&dir, "c"));
    let (mut writer, reader) = pair(&a, &b);
    let refused = LatestReader::<Wide>::open(&c, "x").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    assert!(refused.to_string().contains(&format!("node {}", b.id())), "{refused}");
    let refused = LatestWriter::<Wide>::open(&c, "x").unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    let board = Board::create(&a, "y").unwrap();
    assert_eq!(Board::create(&b, "y").unwrap_err().kind(), ErrorKind::AlreadyExists);
    drop(board);
    Board::create(&b, "y").unwrap();

    drop(reader);
    assert_eq!(writer.write(&[1; WORDS]), Err(Lost::Left));
    assert!(!writer.seems_alive());
    drop(LatestReader::<Wide>::open(&c, "x").unwrap());
}

#[test]
fn an_end_is_connected_only_when_the_other_one_is_too() {
    let dir = TempDir::new("rt");
    let (a, b, c) = (node(&dir, "a"), node(&dir, "b"), node(&dir, "c"));
    // A reader that still has the old writer does not know of the new one.
    let (writer, mut reader) = pair(&a, &b);
    drop(writer);
    let next = LatestWriter::<Wide>::open(&c, "x").unwrap();
    let alone = next.connect(BRIEF).unwrap_err();
    assert_eq!(alone.kind(), ErrorKind::Timeout);
    assert!(alone.to_string().contains("has not connected"), "{alone}");
    assert_eq!(reader.reconnect(BRIEF).unwrap_err().kind(), ErrorKind::Timeout, "it gave up");
    drop(reader);

    // Nor does a writer that still has the old reader.
    let (mut writer, reader) = pair(&a, &b);
    drop(reader);
    let next = LatestReader::<Wide>::open(&c, "x").unwrap();
    assert_eq!(next.connect(BRIEF).unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(writer.write(&[1; WORDS]), Err(Lost::Left));

    // An offer that is accepted later counts from then on.
    let next = LatestReader::<Wide>::open(&c, "x").unwrap();
    match writer.reconnect(BRIEF) {
        Err(e) => assert_eq!(e.kind(), ErrorKind::Timeout),
        // Another test's `connect` of this process has done what ours can do, too.
        Ok(()) => writer.write(&[1; WORDS]).unwrap(),
    }
    let mut next = next.connect(SOON).unwrap();
    writer.write(&[2; WORDS]).unwrap();
    assert_eq!(whole(next.read().unwrap().unwrap().value), 2);
    writer.reconnect(Duration::ZERO).unwrap();
    next.reconnect(Duration::ZERO).unwrap();
}

/// 64 pushes were accepted that nobody got, before ends were paired.
#[test]
fn every_accepted_push_arrives_once_however_often_the_reader_is_replaced() {
    const READERS: u64 = 30;
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let (mut writer, mut reader) = ring(&a, &b, 8);
    let stop = Stop::new();
    let (sent, got) = std::thread::scope(|scope| {
        let pushes = scope.spawn(|| {
            let mut n = 0;
            while !stop.is_stopped() {
                match writer.push(&n) {
                    Ok(()) => n += 1,
                    Err(NotPushed::Full) => std::thread::yield_now(),
                    Err(NotPushed::Lost(_)) => _ = writer.reconnect(BRIEF),
                }
            }
            n
        });
        let ends = StopAtEnd(&stop);
        let mut got = 0;
        for _ in 0..READERS {
            let enough = got + 20;
            while got < enough {
                if let Some(next) = reader.pop().unwrap() {
                    assert_eq!(next.value, got);
                    got += 1;
                }
            }
            drop(reader);
            reader = SpscReader::open(&b, "x", 8).unwrap().connect(SOON).unwrap();
        }
        drop(ends);
        let sent = pushes.join().unwrap();
        while let Ok(Some(next)) = reader.pop() {
            assert_eq!(next.value, got);
            got += 1;
        }
        (sent, got)
    });
    assert_eq!(sent, got);
    assert!(got > READERS);
}

#[test]
fn what_an_old_writer_pushed_is_popped_before_its_successors() {
    let dir = TempDir::new("rt");
    let (a, b, c) = (node(&dir, "a"), node(&dir, "b"), node(&dir, "c"));
    let (mut writer, mut reader) = ring(&a, &b, 4);
    (0..3).for_each(|n| writer.push(&n).unwrap());
    drop((writer, a));
    let opening = SpscWriter::<u64>::open(&c, "x", 4).unwrap();
    let (writer, _) = together(
        || opening.connect(SOON).unwrap(),
        || {
            // Until the writer has offered, nobody is there.
            let refused = loop {
                match reader.reconnect(BRIEF) {
                    Err(e) if e.kind() == ErrorKind::Timeout => {}
                    other => break other.unwrap_err(),
                }
            };
            assert_eq!(refused.kind(), ErrorKind::WouldBlock);
            for n in 0..3 {
                assert_eq!(reader.pop().unwrap().unwrap().value, n);
            }
            assert_eq!(reader.pop(), Err(Lost::Left));
            reader.reconnect(SOON).unwrap();
        },
    );
    let mut writer = writer;
    assert_eq!(reader.pop(), Ok(None));
    writer.push(&7).unwrap();
    assert_eq!(reader.pop().unwrap().unwrap().value, 7);
}

#[test]
fn an_end_on_the_heap_is_told_that_the_other_one_was_dropped() {
    let (mut writer, reader) = latest::<u64>();
    drop(reader);
    assert_eq!(writer.write(&1), Err(Lost::Left));
    assert_eq!(writer.reconnect(BRIEF).unwrap_err().kind(), ErrorKind::NotFound);
    let (mut writer, mut reader) = latest::<u64>();
    writer.write(&1).unwrap();
    drop(writer);
    assert_eq!(reader.read().unwrap().map(|last| last.value), Some(1), "the last one is read");
    assert_eq!(reader.read(), Err(Lost::Left));
    let (mut writer, mut reader) = spsc::<u64>(2);
    writer.push(&1).unwrap();
    drop(writer);
    assert_eq!(reader.pop().unwrap().map(|last| last.value), Some(1));
    assert_eq!(reader.pop(), Err(Lost::Left));
    let (mut writer, reader) = spsc::<u64>(2);
    drop(reader);
    assert_eq!(writer.push(&1), Err(NotPushed::Lost(Lost::Left)));
}

#[test]
fn a_stage_goes_on_with_the_one_that_came_in_its_neighbours_place() {
    let dir = TempDir::new("rt");
    let schedule = Schedule::every(Duration::from_millis(2)).unwrap();
    let stages = ["plan", "drive"];
    let (stop, planned) = (Stop::new(), Stop::new());
    let play = |at: usize, stop: &Stop, stage: &mut dyn Stage| {
        let node = node(&dir, stages[at]);
        let member = Member::open(&node, "arm", &stages, at, schedule).unwrap();
        member.connect(SOON).unwrap().run(&StageOptions::default(), stage, stop);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut ready = 0;
            let mut drive = |c: &Cycle| {
                ready += u64::from(c.input == Input::Ready);
                match ready {
                    5 => planned.stop(),
                    10.. => stop.stop(),
                    _ => {}
                }
                Outcome::HandOn
            };
            play(1, &stop, &mut drive);
        });
        // One planner after the other.
        play(0, &planned, &mut pass_on);
        play(0, &stop, &mut pass_on);
    });
}

/// Its wait for the one that was gone had no end, so that it never looked for another.
#[test]
fn a_stage_without_a_deadline_goes_on_when_the_one_before_is_gone() {
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let schedule = Schedule::every(Duration::from_millis(100)).unwrap().deadline(Duration::MAX);
    let schedule = schedule.starting_at(clock::now_ns() + 500_000_000);
    let old = Board::create(&a, "arm/plan").unwrap();
    let joining = Member::open(&b, "arm", &["plan", "drive"], 1, schedule).unwrap();
    let mut drive = joining.connect(SOON).unwrap();
    stages::signal::tell(old.done(), 1, None);
    drop(old);
    let runner = std::thread::spawn(move || {
        let mut new = None;
        let mut stage = |c: &Cycle| match (c.number, c.input) {
            (0, input) => {
                assert_eq!(input, Input::Ready, "handed on before it left");
                Outcome::HandOn
            }
            (_, Input::Late) => {
                assert!(clock::now_ns() > c.release_ns, "ahead of its release");
                let new = new.get_or_insert_with(|| Board::create(&a, "arm/plan").unwrap());
                stages::signal::tell(new.done(), u64::MAX, None);
                Outcome::HandOn
            }
            _ => Outcome::Stop,
        };
        drive.run(&StageOptions::default(), &mut stage, &Stop::new())
    });
    until(|| runner.is_finished());
    runner.join().unwrap();
}

/// It waited for the next writer, or went on with it, and nobody got what this one had pushed.
#[test]
fn what_was_pushed_before_the_reader_connected_is_popped_when_its_writer_has_left() {
    for successor in [false, true] {
        let dir = TempDir::new("rt");
        let (a, b, c) = (node(&dir, "a"), node(&dir, "b"), node(&dir, "c"));
        let reading = SpscReader::<u64>::open(&b, "x", 4).unwrap();
        let writing = SpscWriter::<u64>::open(&a, "x", 4).unwrap();
        // While it waits it accepts for the reader, which is of this process too.
        let mut writer = writing.connect(SOON).unwrap();
        (0..3).for_each(|n| writer.push(&n).unwrap());
        drop((writer, a));
        let next = successor.then(|| SpscWriter::<u64>::open(&c, "x", 4).unwrap());
        let waits = next.map(|next| std::thread::spawn(move || next.connect(SOON)));
        if successor {
            std::thread::sleep(BRIEF);
        }
        let mut reader = reading.connect(BRIEF).unwrap();
        (0..3).for_each(|n| assert_eq!(reader.pop().unwrap().unwrap().value, n));
        assert_eq!(reader.pop(), Err(Lost::Left));
        let Some(next) = waits else { continue };
        reader.reconnect(SOON).unwrap();
        let mut next = next.join().unwrap().unwrap();
        next.push(&7).unwrap();
        assert_eq!(reader.pop().unwrap().unwrap().value, 7);
    }
}

/// Nothing is lost with it.
#[test]
fn a_reader_that_did_not_connect_goes_on_with_the_writer_after_one_that_pushed_nothing() {
    let dir = TempDir::new("rt");
    let (a, b, c) = (node(&dir, "a"), node(&dir, "b"), node(&dir, "c"));
    let reading = SpscReader::<u64>::open(&b, "x", 4).unwrap();
    let writing = SpscWriter::<u64>::open(&a, "x", 4).unwrap();
    drop((writing.connect(SOON).unwrap(), a));
    let reading = reading.connect(BRIEF);
    assert_eq!(reading.unwrap_err().kind(), ErrorKind::Timeout);
    let (mut writer, mut reader) = ring(&c, &b, 4);
    writer.push(&7).unwrap();
    assert_eq!(reader.pop().unwrap().unwrap().value, 7);
}

#[test]
fn a_lifeline_is_reset_once_the_dead_one_has_a_successor() {
    let dir = TempDir::new("rt");
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let mut lifeline = Lifeline::new(Board::heap()).hold_cycles(0).stop_cycles(1);
    let board = Board::create(&a, "arm/plan").unwrap();
    lifeline.moves("plan", BoardView::open(&b, "arm/plan", SOON).unwrap(), 1000);
    lifeline.arm(0);
    board.moved(1000);
    assert_eq!(lifeline.look(1000), None);
    drop(board);
    assert_eq!(lifeline.look(1000), Some((Cause::Died, 0)), "dropped, in a node that lives");
    lifeline.trip(Cause::Died, 0, 1000, 1);
    let board = Board::create(&a, "arm/plan").unwrap();
    board.moved(2000);
    lifeline.replace("plan", BoardView::open(&b, "arm/plan", SOON).unwrap()).unwrap();
    assert_eq!(lifeline.look(2000), None);
    let other = lifeline.replace("other", Board::heap().view()).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::NotFound);
}

/// A child wrote into its parent's slots, and what its reader had not popped was taken for popped.
#[test]
fn a_forked_child_touches_nothing_of_its_parents_ends() {
    let (dir, other) = (TempDir::new("rt"), TempDir::new("rt"));
    let (a, b) = (node(&dir, "a"), node(&dir, "b"));
    let (mut writer, mut reader) = pair(&a, &b);
    let (mut pusher, mut popper) = ring(&node(&other, "a"), &node(&other, "b"), 2);
    let board = Board::create(&a, "x").unwrap();
    let (mut heap, _reads) = latest::<Wide>();
    writer.write(&[1; WORDS]).unwrap();
    [7, 8].iter().for_each(|n| pusher.push(n).unwrap());
    let child = fork_child(|| {
        board.moved(9);
        let refused = [
            writer.write(&[2; WORDS]) == Err(Lost::Forked),
            reader.read() == Err(Lost::Forked),
            pusher.push(&9) == Err(NotPushed::Lost(Lost::Forked)),
            popper.pop() == Err(Lost::Forked),
            is_forked(writer.reconnect(BRIEF)) && is_forked(reader.reconnect(BRIEF)),
            is_forked(pusher.reconnect(BRIEF)) && is_forked(popper.reconnect(BRIEF)),
            // Its memory is the child's own.
            heap.write(&[3; WORDS]).is_ok(),
        ];
        refused.iter().position(|refused| !refused).map_or(0, |at| 1 + at as i32)
    });
    assert_eq!(child.wait(), 0);
    assert_eq!(board.view().moved_ns(), 0);
    assert_eq!(reader.read().unwrap().map(|v| whole(v.value)), Some(1));
    assert!(matches!(pusher.push(&9), Err(NotPushed::Full)), "nothing was popped");
    assert_eq!([0; 2].map(|_| popper.pop().unwrap().unwrap().value), [7, 8]);
}

fn is_forked(outcome: crate::Result<()>) -> bool {
    outcome.is_err_and(|e| e.kind() == ErrorKind::ForkedChild)
}
