//! Copies by the processor, each beside `memcpy` of the same round: which is worth its code?
//!
//! `hot`: the same two buffers again and again. `cold`: buffers that were last touched many
//! megabytes ago, as a ring's chunks are; the copy is then read by the same thread, as by a
//! subscriber on this core. Figures are medians over rounds of `memcpy` / copier: above 1 it wins.

use std::hint::black_box;
use std::num::NonZero;
use std::time::Instant;

use outlive_gpu::copier::{Copier, Job, NonTemporal, Place, Plain, RepMovsb, Threads};
use outlive_gpu::{Result, Stream};

const ROUNDS: usize = 15;
/// Far more than any cache.
const ARENA: usize = 256 << 20;
const SIZES: [usize; 9] =
    [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 1 << 20, 10 << 20, 64 << 20];

struct Arena {
    from: Vec<u8>,
    to: Vec<u8>,
    at: usize,
}

impl Arena {
    /// ns for one copy of `bytes`, mean over as many as take a while.
    fn time(&mut self, copier: &dyn Copier, bytes: usize, cold: bool, read: bool) -> Result<f64> {
        let count = ((8 << 20) / bytes).clamp(2, 20_000);
        let start = Instant::now();
        for _ in 0..count {
            if cold {
                self.at += bytes.next_multiple_of(4096);
                if self.at + bytes > ARENA {
                    self.at = 0;
                }
            } else {
                self.at = 0;
            }
            let to = Place::host(self.to[self.at..].as_mut_ptr());
            let from = Place::host(self.from[self.at..].as_ptr().cast_mut());
            // SAFETY: both ranges lie in the arena; host copies are done when `start` returns.
            unsafe { copier.start(&Job::flat(to, from, bytes), Stream::DEFAULT) }?;
            if read {
                let sum = self.to[self.at..self.at + bytes].iter().step_by(64);
                black_box(sum.fold(0u8, |a, b| a.wrapping_add(*b)));
            }
        }
        Ok(start.elapsed().as_nanos() as f64 / count as f64)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let two = Threads { count: NonZero::<usize>::MIN.saturating_add(1) };
    let copiers: [&dyn Copier; 3] = [&RepMovsb, &NonTemporal, &two];
    let mut arena = Arena { from: vec![1; ARENA], to: vec![2; ARENA], at: 0 };
    println!(
        "{:>9} {:22} {:>12} {:>10} {:>13} {:>9}",
        "bytes", "", "memcpy ns", "rep movsb", "non-temporal", "2 threads"
    );
    for bytes in SIZES {
        for (name, cold, read) in
            [("hot", false, false), ("cold", true, false), ("cold, then read", true, true)]
        {
            let mut plain = Vec::new();
            let mut ratios = [const { Vec::new() }; 3];
            for _ in 0..ROUNDS {
                for (copier, ratios) in copiers.iter().zip(&mut ratios) {
                    let before = arena.time(&Plain, bytes, cold, read)?;
                    let ours = arena.time(*copier, bytes, cold, read)?;
                    let after = arena.time(&Plain, bytes, cold, read)?;
                    ratios.push((before + after) / 2.0 / ours);
                    plain.push(before);
                }
            }
            let [movsb, stream, threads] = ratios.map(median);
            let plain = median(plain);
            println!(
                "{bytes:>9} {name:22} {plain:>12.0} {movsb:>10.2} {stream:>13.2} {threads:>9.2}"
            );
        }
    }
    Ok(())
}
