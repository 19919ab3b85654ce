//! Queues beside the bare ring of the same run, beside what the kernel offers, and beside rings
//! that leave out one thing that makes a ring fast.
//!
//! | file | what |
//! |---|---|
//! | `ours` | outlive's queue: streams, waking, growing |
//! | `rings` | bare rings: the batch limit, and the ablations |
//! | `kernel` | pipe, Unix SEQPACKET, POSIX message queue |
//! | `checked` | the queue with another liveness check in each send |
//! | `sizes` | of batches, lanes and rings |

mod checked;
mod kernel;
mod ours;
mod rings;
mod sizes;

use measure::cores::Cores;
use measure::stats::{Target, interleave};
use outlive::Result;

use super::report::{Row, Unit};
use super::{BenchArgs, RING_SLOTS, raw};
use kernel::Way;
use rings::Without;
use sizes::{BATCH, LARGE_LANE_BYTES, SLOTS};

const RATE: Unit = Unit::PerSecond;

/// All rows, and what is to be known beside them.
pub(super) fn rows(cores: Cores, args: &BenchArgs) -> Result<(Vec<Row>, Vec<String>)> {
    let mut rows = streams(cores, args)?;
    rows.extend(liveness(cores, args)?);
    rows.extend(wakes(cores, args)?);
    rows.extend(growth(cores, args)?);
    rows.extend(ablations(cores, args)?);
    rows.extend(checked::rows(cores, args.rounds().min(8), args.samples * 200)?);
    let notes = vec![
        "Streams: one consumer on one core, producers on the other; each message is read and \
         summed, and the sum compared. Several producers share a core."
            .to_owned(),
        "A lane of 4 MiB has left the sender's cache before it comes round again; each line of a \
         small one must be taken back from the consumer's."
            .to_owned(),
        "'one check more': the same send with another has_consumer() before it; the product has no \
         way to leave the check out."
            .to_owned(),
        "Checks in send: the consumer is watched by that way in addition to outlive's own check."
            .to_owned(),
    ];
    Ok((rows, notes))
}

/// Throughput: alone and in batches, by one and by several producers.
fn streams(cores: Cores, args: &BenchArgs) -> Result<Vec<Row>> {
    let (rounds, count) = (args.rounds(), args.samples * 300);
    let mut rows = Vec::new();
    let ring = || raw::ring::<1>(cores, SLOTS, count);
    let wide = || raw::ring::<8>(cores, RING_SLOTS, count / 2);
    let batches = || rings::batches::<1>(cores, SLOTS as u64, 8 * count);
    let wide_batches = || rings::batches::<8>(cores, RING_SLOTS as u64, count);
    for (producers, plural) in [(1, ""), (2, "s"), (4, "s")] {
        let name = |what: &str| format!("queue {what}, {producers} producer{plural}");
        let one = producers == 1;
        let at_least = |ratio| if one { Target::AtLeast(ratio) } else { Target::None };
        let c = interleave(rounds, ring, || ours::alone::<1>(cores, producers, count))?;
        rows.push(Row::compared(&name("8 B"), RATE, "raw ring, 8 B", &c, at_least(0.4)));
        let c = interleave(rounds, wide, || ours::alone::<8>(cores, producers, count / 2))?;
        rows.push(Row::compared(&name("64 B"), RATE, "raw ring, 64 B", &c, Target::None));
        if one {
            rows.extend(large_lanes(cores, rounds, count)?);
        }
        let c = interleave(rounds, batches, || ours::batches::<1>(cores, producers, 8 * count))?;
        let limit = "raw ring, 64 x 8 B";
        rows.push(Row::compared(&name("64 x 8 B"), RATE, limit, &c, at_least(0.5)));
        let c = interleave(rounds, wide_batches, || ours::batches::<8>(cores, producers, count))?;
        let limit = "raw ring, 64 x 64 B";
        rows.push(Row::compared(&name("64 x 64 B"), RATE, limit, &c, Target::None));
    }
    for way in Way::ALL {
        let few = count / 30;
        let c = interleave(rounds, ring, || kernel::stream::<1>(cores, way, 1, few))?;
        let name = way.name();
        rows.push(Row::compared(&format!("{name} 8 B"), RATE, "raw ring, 8 B", &c, Target::None));
        let c = interleave(rounds, wide, || kernel::stream::<8>(cores, way, 1, few))?;
        let limit = "raw ring, 64 B";
        rows.push(Row::compared(&format!("{name} 64 B"), RATE, limit, &c, Target::None));
        let c = interleave(rounds, batches, || kernel::stream::<1>(cores, way, BATCH, 8 * few))?;
        let limit = "raw ring, 64 x 8 B";
        rows.push(Row::compared(&format!("{name} 64 x 8 B"), RATE, limit, &c, Target::None));
    }
    Ok(rows)
}

/// One producer with a lane that outgrows the cores' caches.
fn large_lanes(cores: Cores, rounds: usize, count: u64) -> Result<[Row; 2]> {
    let limit = || raw::ring::<1>(cores, SLOTS, count);
    let ours = || ours::alone_in::<1>(cores, LARGE_LANE_BYTES, 1, count);
    let small = interleave(rounds, limit, ours)?;
    let limit = || raw::ring::<8>(cores, RING_SLOTS, count / 2);
    let ours = || ours::alone_in::<8>(cores, LARGE_LANE_BYTES, 1, count / 2);
    let wide = interleave(rounds, limit, ours)?;
    let row = |name, limit, c| Row::compared(name, RATE, limit, c, Target::None);
    Ok([
        row("queue 8 B, lane of 4 MiB", "raw ring, 8 B", &small),
        row("queue 64 B, lane of 4 MiB", "raw ring, 64 B", &wide),
    ])
}

/// What a look at the consumer's life costs in a send.
fn liveness(cores: Cores, args: &BenchArgs) -> Result<[Row; 1]> {
    let count = args.samples * 300;
    let plain = || ours::send_cost(cores, count, |_| true);
    let more = || ours::send_cost(cores, count, |producer| producer.has_consumer());
    let c = interleave(args.rounds(), plain, more)?;
    Ok([Row::added("queue 8 B, one check more", "queue 8 B", &c, 1.0)])
}

fn wakes(cores: Cores, args: &BenchArgs) -> Result<[Row; 3]> {
    let count = args.samples.min(2000);
    let c = interleave(args.rounds(), || raw::wake(cores, count), || ours::wake(cores, count))?;
    let one_way =
        Row::compared("queue, waking", Unit::Ns, "raw futex wake", &c, Target::AtMost(1.1));
    let awake = ours::send_cost(cores, args.samples * 100, |_| true)?;
    let asleep = ours::send_to_a_sleeper(cores, count)?;
    Ok([
        one_way,
        Row::measured("send, consumer awake", Unit::Ns, &awake),
        Row::measured("send, consumer asleep", Unit::Ns, &asleep),
    ])
}

/// From 16 KiB to 64 MiB while nobody receives, beside a lane that begins with 64 MiB.
fn growth(cores: Cores, args: &BenchArgs) -> Result<Vec<Row>> {
    let rounds = args.rounds().min(10);
    let c = interleave(
        rounds,
        || ours::fill(cores, 64 << 20).map(|f| f.rate),
        || ours::fill(cores, 16 << 10).map(|f| f.rate),
    )?;
    let name = "fill 64 MiB, growing from 16 KiB";
    let rate = Row::compared(name, RATE, "a lane of 64 MiB", &c, Target::None);
    let sends = ours::fill(cores, 16 << 10)?.sends;
    Ok(vec![rate, Row::measured("  a send while it grows", Unit::Ns, &sends)])
}

/// What each item of the checklist for rings is worth.
fn ablations(cores: Cores, args: &BenchArgs) -> Result<Vec<Row>> {
    let count = args.samples * 200;
    let mut rows = Vec::new();
    for without in Without::ALL {
        let c = interleave(
            args.rounds(),
            || rings::indexed(cores, Without::Nothing, count),
            || rings::indexed(cores, without, count),
        )?;
        rows.push(Row::compared(without.name(), RATE, "ring with both indices", &c, Target::None));
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Short runs of everything; each compares its own sums.
    #[test]
    fn every_queue_and_ring_can_be_measured() -> Result<()> {
        let Ok(cores) = Cores::first_two() else {
            return Ok(());
        };
        let mut all = vec![
            ours::alone::<1>(cores, 1, 2000)?,
            ours::alone::<8>(cores, 4, 500)?,
            ours::alone_in::<1>(cores, LARGE_LANE_BYTES, 1, 2000)?,
            ours::batches::<1>(cores, 2, 6400)?,
            ours::wake(cores, 20)?,
            ours::send_cost(cores, 5000, |p| p.has_consumer())?,
            ours::send_to_a_sleeper(cores, 5)?,
            rings::batches::<1>(cores, 1 << 10, 6400)?,
        ];
        for without in Without::ALL {
            all.push(rings::indexed(cores, without, 20_000)?);
        }
        assert_eq!(checked::rows(cores, 1, 2000)?.len(), 15);
        for way in Way::ALL {
            all.push(kernel::stream::<1>(cores, way, 1, 500)?);
            all.push(kernel::stream::<8>(cores, way, 4, 400)?);
        }
        assert!(all.iter().all(|samples| samples.median() > 0.0));
        Ok(())
    }
}
