//! The real-time core: the newest value between two processes, and a lifeline on its writer.

use std::time::Duration;

use outlive::rt::{Board, Cause, LatestReader, LatestWriter, Lifeline, Lost, SafeState, Step};
use outlive::{ErrorKind, Node, NodeId, Result};

use super::board::{Call, Fault, RECEIVERS_END};
use super::message::Head;
use super::part::Part;

const NAME: &str = "/chaos/newest";
/// A message of eight words, then the writer's node.
type Newest = [u64; 9];
/// How long each end waits for the other.
const CONNECT_MS: u64 = 100;
/// Looks for the proof of a death, one each millisecond.
const PROOF_LOOKS: u32 = 20_000;

/// Replaces the newest value until its reader is gone. A life has one end: that an end is dropped
/// by a node that stays is not told.
pub(super) fn write_newest(part: &mut Part) -> Result<()> {
    let node = part.node("newest")?;
    let wait = Duration::from_millis(CONNECT_MS);
    let connect = || LatestWriter::<Newest>::open(&node, NAME)?.connect(wait);
    if let Some(mut writer) = there(part.call(Call::Join, CONNECT_MS, connect))? {
        let mut value: Newest = [0; 9];
        value[8] = node.id().get();
        for n in 0.. {
            if !part.runs() || !writer.seems_alive() || part.has_enough(20_000) {
                break;
            }
            part.fill(&mut value[..8], n);
            if part.call(Call::Publish, 0, || writer.write(&value)).is_err() {
                break;
            }
            part.pause_us(1000);
        }
        part.leave(writer);
    }
    part.leave(node);
    Ok(())
}

/// Reads the newest value until its writer is gone, which trips a lifeline.
pub(super) fn read_newest(part: &mut Part) -> Result<()> {
    let node = part.node("newest")?;
    let wait = Duration::from_millis(CONNECT_MS);
    let connect = || LatestReader::<Newest>::open(&node, NAME)?.connect(wait);
    if let Some(mut reader) = there(part.call(Call::Join, CONNECT_MS, connect))? {
        follow(part, &node, &mut reader)?;
        part.leave(reader);
    }
    part.leave(node);
    Ok(())
}

/// A peer that did not come, or went as it came, comes another time; so does one whose place
/// another still has.
fn there<End>(connected: Result<End>) -> Result<Option<End>> {
    use ErrorKind::{AlreadyExists, NotFound, Timeout};
    match connected {
        Err(e) if matches!(e.kind(), Timeout | NotFound | AlreadyExists) => Ok(None),
        other => other.map(Some),
    }
}

fn follow(part: &mut Part, node: &Node, reader: &mut LatestReader<Newest>) -> Result<()> {
    let mut lifeline = Lifeline::new(Board::heap());
    let mut last: Option<Head> = None;
    while part.board.phase() < RECEIVERS_END && !part.has_enough(20_000) {
        let alive = reader.seems_alive();
        // An end that left is not alive: seen below, or in the next turn.
        if let Ok(Some(newest)) = part.call(Call::Receive, 0, || reader.read()) {
            let Some(head) = part.check(&newest.value[..8], NAME) else { continue };
            if last.is_none() {
                let id = NodeId::from_raw(newest.value[8]);
                let Some(watch) = there(node.watch(id))? else { return Ok(()) };
                lifeline.node("writer", watch);
                lifeline.arm(0);
            }
            let older = last.is_some_and(|last| head.seq < last.seq);
            if older || newest.seq != head.seq + 1 {
                let seq = newest.seq;
                part.fault(Fault::Torn, 1, format!("{NAME}: {head:?} as {seq} after {last:?}"));
            }
            last = Some(head);
        }
        if last.is_some() {
            lifeline.step(part.clear_ns(), 0, &mut Nothing);
        }
        if !alive {
            // One that was dropped leaves its last value; its node may stay a little.
            let left = (0..2).any(|_| reader.read() == Err(Lost::Left));
            if last.is_some() && !left {
                dies(part, &mut lifeline);
            }
            return Ok(());
        }
        part.pause_us(1000);
    }
    Ok(())
}

/// That its writer looked dead was a hint; its lifeline trips on the proof, which comes.
fn dies(part: &mut Part, lifeline: &mut Lifeline) {
    let mut looks = 0;
    while lifeline.step(part.clear_ns(), 0, &mut Nothing) == Step::Run && looks < PROOF_LOOKS {
        looks += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    match lifeline.latch().map(|latch| latch.cause) {
        Some(Cause::Died) => {}
        None => part.fault(Fault::Other, 1, format!("{NAME}: no lifeline tripped at a death")),
        cause => part.fault(Fault::Other, 1, format!("{NAME}: tripped on {cause:?}")),
    }
}

/// No machine to be made safe.
struct Nothing;

impl SafeState for Nothing {
    fn hold(&mut self) {}
    fn quick_stop(&mut self) {}
    fn brake(&mut self) {}
}
