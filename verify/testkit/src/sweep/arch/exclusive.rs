//! Loops of load-exclusive and store-exclusive, the atomic accesses of aarch64 before LSE.

/// Where a sequence of load-exclusive and store-exclusive that begins at `address` can end.
///
/// A stop between the two clears the monitor, so the store fails and the loop begins anew, for
/// ever. Nobody else can see where in such a sequence a thread was killed: only its last
/// instruction changes memory.
pub(crate) fn ends(address: u64, code: impl Fn(u64) -> u64) -> Option<Vec<u64>> {
    const LONGEST: u64 = 16;
    if !is_exclusive(code(address) as u32, true) {
        return None;
    }
    let mut ends = Vec::new();
    for at in (1..LONGEST).map(|n| address + 4 * n) {
        let instruction = code(at) as u32;
        if is_exclusive(instruction, false) {
            let last = at + 4;
            ends.retain(|&end| !(address..last).contains(&end));
            ends.push(last);
            ends.dedup();
            return Some(ends);
        }
        match branch(instruction, at) {
            Branch::None => {}
            Branch::May(to) => ends.push(to),
            // Not a sequence as compilers make them.
            Branch::Always => return None,
        }
    }
    None
}

/// LDXR, LDAXR, LDXP, LDAXP, or STXR and its like, of any width.
fn is_exclusive(instruction: u32, load: bool) -> bool {
    let is_one = instruction & 0x3fa0_0000 == 0x0800_0000;
    let is_pair = instruction & 0xbfa0_0000 == 0x8820_0000;
    (is_one || is_pair) && (instruction >> 22 & 1 == 1) == load
}

#[derive(Debug, PartialEq, Eq)]
enum Branch {
    None,
    /// Here or at this address it goes on.
    May(u64),
    Always,
}

fn branch(instruction: u32, at: u64) -> Branch {
    // A signed offset of `bits` bits, `from` bit `low` on, in words.
    let offset = |low: u32, bits: u32| {
        let raw = i64::from(instruction >> low) << (64 - bits) >> (64 - bits);
        at.wrapping_add_signed(4 * raw)
    };
    if instruction & 0xff00_0010 == 0x5400_0000 || instruction & 0x7e00_0000 == 0x3400_0000 {
        Branch::May(offset(5, 19)) // b.cond, cbz, cbnz
    } else if instruction & 0x7e00_0000 == 0x3600_0000 {
        Branch::May(offset(5, 14)) // tbz, tbnz
    } else if instruction & 0x7c00_0000 == 0x1400_0000 || instruction & 0xfe00_0000 == 0xd600_0000 {
        Branch::Always // b, bl, br, blr, ret
    } else {
        Branch::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends_of(code: &[u32]) -> Option<Vec<u64>> {
        ends(0x1000, |at| {
            code.get(((at - 0x1000) / 4) as usize).copied().unwrap_or(0xd503_201f).into()
        })
    }

    #[test]
    fn a_compare_and_swap_ends_behind_its_store_or_where_it_gives_up() {
        // __aarch64_cas8_acq: ldaxr x0,[x2]; cmp x0,x16; b.ne +12; stxr w17,x1,[x2]; cbnz w17,-16
        let cas = [0xc85f_fc40, 0xeb10_001f, 0x5400_0061, 0xc811_7c41, 0x35ff_ff91];
        assert_eq!(ends_of(&cas), Some(vec![0x1014, 0x1010]));
    }

    #[test]
    fn a_loop_without_another_way_out_ends_behind_its_store() {
        // ldaxr w8,[x0]; add w9,w8,#1; stlxr w10,w9,[x0]
        assert_eq!(ends_of(&[0x885f_fc08, 0x1100_0509, 0x880a_fc09]), Some(vec![0x100c]));
        // Pairs and bytes: ldxp x2,x3,[x0]; stxp w4,x2,x3,[x0]; ldxrb w1,[x0]; stxrb w2,w1,[x0]
        assert_eq!(ends_of(&[0xc87f_0c02, 0xc824_0c02]), Some(vec![0x1008]));
        assert_eq!(ends_of(&[0x085f_7c01, 0x0802_7c01]), Some(vec![0x1008]));
    }

    #[test]
    fn what_is_no_sequence_is_stepped() {
        // ldr, ldar, an atomic instruction, a store-exclusive, a load without a store
        for first in [0xf940_0000, 0xc8df_fc00, 0xf8e1_0000, 0xc8a0_7c41, 0xc811_7c41, 0xc85f_fc40]
        {
            assert_eq!(ends_of(&[first]), None, "{first:#x}");
        }
    }
}
