//! One EtherCAT frame with one LRW datagram, as it is on the wire (ETG.1000.4, IEC 61158-4-12).
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 14 | Ethernet: destination (broadcast), source, EtherType 0x88A4 |
//! | 14 | 2 | EtherCAT: length of the datagrams (11 bits), type 1 (bits 12 to 15) |
//! | 16 | 10 | datagram: command 12 (LRW), index, logical address, length, interrupt |
//! | 26 | 96 | process image: 6 x 8 bytes of outputs, 6 x 8 bytes of inputs |
//! | 122 | 2 | working counter: each drive that read and wrote adds 3 |
//!
//! Numbers are little-endian, but for the EtherType. Outputs of a drive: control word (0x6040),
//! target position (0x607A), mode (0x6060), a byte of padding. Inputs: status word (0x6041), actual
//! position (0x6064), mode shown (0x6061), padding.

/// Drives on the bus.
pub const DRIVES: usize = 6;
const IMAGE_BYTES: usize = DRIVES * 16;
const ETHERNET: usize = 14;
const DATAGRAM: usize = ETHERNET + 2;
const IMAGE: usize = DATAGRAM + 10;
const COUNTER: usize = IMAGE + IMAGE_BYTES;
/// Bytes of the frame, without the checksum that hardware adds; above Ethernet's least, 60.
pub const FRAME_BYTES: usize = COUNTER + 2;

const ETHER_TYPE: [u8; 2] = [0x88, 0xa4];
const LRW: u8 = 12;
const LOGICAL_ADDRESS: u32 = 0x0001_0000;
/// Locally administered, as a network card of its own would not be.
const SOURCE: [u8; 6] = [0x02, 0, 0, 0, 0, 1];
/// What the working counter says when every drive has read and written (LRW: 1 + 2 each).
pub const COUNTER_EXPECTED: u16 = 3 * DRIVES as u16;

/// Positions travel in steps of a 20-bit encoder: 2^20 to a turn. This example's own choice.
pub const COUNTS_PER_TURN: f64 = (1 << 20) as f64;

/// Angle to counts, rounded; out of the range of `i32` only for angles no joint has.
pub fn to_counts(angle: f64) -> i32 {
    (angle / std::f64::consts::TAU * COUNTS_PER_TURN).round() as i32
}

/// Counts to angle, rad.
pub fn to_angle(counts: i32) -> f64 {
    f64::from(counts) / COUNTS_PER_TURN * std::f64::consts::TAU
}

/// What a drive is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// Control word.
    pub control: u16,
    /// Target, counts.
    pub target: i32,
    /// Mode of operation.
    pub mode: i8,
}

/// What a drive says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// Status word.
    pub status: u16,
    /// Position, counts.
    pub position: i32,
    /// Mode of operation.
    pub mode: i8,
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFrame {
    /// Not Ethernet of type 0x88A4, or not EtherCAT of type 1.
    NotEtherCat,
    /// Not the one LRW datagram of this bus.
    NotOurs,
}

/// Writes a frame with the drives' outputs; inputs and working counter are 0, for the drives.
pub fn write(frame: &mut [u8; FRAME_BYTES], index: u8, outputs: &[Output; DRIVES]) {
    *frame = [0; FRAME_BYTES];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&SOURCE);
    frame[12..14].copy_from_slice(&ETHER_TYPE);
    let datagrams = (10 + IMAGE_BYTES + 2) as u16;
    frame[ETHERNET..DATAGRAM].copy_from_slice(&(datagrams | 1 << 12).to_le_bytes());
    frame[DATAGRAM] = LRW;
    frame[DATAGRAM + 1] = index;
    frame[DATAGRAM + 2..DATAGRAM + 6].copy_from_slice(&LOGICAL_ADDRESS.to_le_bytes());
    frame[DATAGRAM + 6..DATAGRAM + 8].copy_from_slice(&(IMAGE_BYTES as u16).to_le_bytes());
    for (drive, output) in outputs.iter().enumerate() {
        let at = IMAGE + drive * 8;
        frame[at..at + 2].copy_from_slice(&output.control.to_le_bytes());
        frame[at + 2..at + 6].copy_from_slice(&output.target.to_le_bytes());
        frame[at + 6] = output.mode as u8;
    }
}

/// Checks that a frame is one of this bus.
///
/// # Errors
/// What is wrong with it.
pub fn check(frame: &[u8; FRAME_BYTES]) -> Result<(), BadFrame> {
    let word = |at: usize| u16::from_le_bytes([frame[at], frame[at + 1]]);
    if frame[12..14] != ETHER_TYPE || word(ETHERNET) >> 12 != 1 {
        return Err(BadFrame::NotEtherCat);
    }
    let length = usize::from(word(ETHERNET) & 0x7ff);
    let ours = length == 10 + IMAGE_BYTES + 2
        && frame[DATAGRAM] == LRW
        && frame[DATAGRAM + 2..DATAGRAM + 6] == LOGICAL_ADDRESS.to_le_bytes()
        && usize::from(word(DATAGRAM + 6) & 0x7ff) == IMAGE_BYTES;
    if ours { Ok(()) } else { Err(BadFrame::NotOurs) }
}

/// As a drive does when the frame passes: reads its output, writes its input, adds to the counter.
pub fn exchange(frame: &mut [u8; FRAME_BYTES], drive: usize, input: &Input) -> Output {
    let at = IMAGE + drive * 8;
    let output = Output {
        control: u16::from_le_bytes([frame[at], frame[at + 1]]),
        target: i32::from_le_bytes([frame[at + 2], frame[at + 3], frame[at + 4], frame[at + 5]]),
        mode: frame[at + 6] as i8,
    };
    let at = at + DRIVES * 8;
    frame[at..at + 2].copy_from_slice(&input.status.to_le_bytes());
    frame[at + 2..at + 6].copy_from_slice(&input.position.to_le_bytes());
    frame[at + 6] = input.mode as u8;
    let counter = counter(frame).wrapping_add(3);
    frame[COUNTER..].copy_from_slice(&counter.to_le_bytes());
    output
}

/// The working counter.
pub fn counter(frame: &[u8; FRAME_BYTES]) -> u16 {
    u16::from_le_bytes([frame[COUNTER], frame[COUNTER + 1]])
}

/// The index of the datagram: tells answers apart.
pub fn index(frame: &[u8; FRAME_BYTES]) -> u8 {
    frame[DATAGRAM + 1]
}

/// What the drives said in a frame that has come back.
pub fn inputs(frame: &[u8; FRAME_BYTES]) -> [Input; DRIVES] {
    std::array::from_fn(|drive| {
        let at = IMAGE + DRIVES * 8 + drive * 8;
        Input {
            status: u16::from_le_bytes([frame[at], frame[at + 1]]),
            position: i32::from_le_bytes([
                frame[at + 2],
                frame[at + 3],
                frame[at + 4],
                frame[at + 5],
            ]),
            mode: frame[at + 6] as i8,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frame_is_laid_out_as_on_the_wire() {
        let outputs = std::array::from_fn(|i| Output {
            control: 0x0f,
            target: -(i as i32) * 1000,
            mode: crate::cia402::CSP,
        });
        let mut frame = [0; FRAME_BYTES];
        write(&mut frame, 9, &outputs);
        assert_eq!(frame.len(), 124);
        assert_eq!(frame[12..14], [0x88, 0xa4]);
        assert_eq!(frame[14..16], [108, 0x10]); // 108 bytes of datagrams, type 1
        assert_eq!(frame[16..18], [12, 9]);
        assert_eq!(frame[22..24], [96, 0]);
        assert_eq!(frame[26..34], [0x0f, 0, 0, 0, 0, 0, 8, 0]);
        assert_eq!(frame[34..42], [0x0f, 0, 0x18, 0xfc, 0xff, 0xff, 8, 0]);
        assert_eq!(check(&frame), Ok(()));

        for (drive, want) in outputs.iter().enumerate() {
            let input = Input { status: 0x27, position: drive as i32 - 3, mode: 8 };
            assert_eq!(exchange(&mut frame, drive, &input), *want);
        }
        assert_eq!((counter(&frame), index(&frame)), (COUNTER_EXPECTED, 9));
        assert_eq!(inputs(&frame)[5], Input { status: 0x27, position: 2, mode: 8 });
    }

    #[test]
    fn frames_of_others_are_refused() {
        let mut frame = [0; FRAME_BYTES];
        write(&mut frame, 0, &[Output::default(); DRIVES]);
        for (at, bad) in [(12, BadFrame::NotEtherCat), (15, BadFrame::NotEtherCat)] {
            let mut other = frame;
            other[at] ^= 0xff;
            assert_eq!(check(&other), Err(bad));
        }
        for at in [14, 16, 18, 22] {
            let mut other = frame;
            other[at] ^= 1;
            assert_eq!(check(&other), Err(BadFrame::NotOurs));
        }
    }

    #[test]
    fn angles_survive_the_encoder() {
        for angle in [-6.2, -1.0, 0.0, 1e-5, 3.0] {
            assert!((to_angle(to_counts(angle)) - angle).abs() < 3.1e-6);
        }
    }
}
