//! The frames of the demo: every word says which frame of which camera it belongs to.

/// 1920 x 1080 pixels of 3 bytes, as words.
pub(super) const WORDS: usize = 1920 * 1080 * 3 / 8;
/// Size of a frame, bytes.
pub(super) const BYTES: u64 = WORDS as u64 * 8;
/// Frames per second.
pub(super) const HZ: u64 = 30;

/// One image.
pub(super) type Frame = [u64; WORDS];

fn first_word(camera: u64, seq: u64) -> u64 {
    camera.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seq << 20
}

/// Fills the words of `part`, which begins at word `from` of frame `seq` of `camera`.
pub(super) fn fill(part: &mut [u64], from: usize, camera: u64, seq: u64) {
    let first = first_word(camera, seq) + from as u64;
    for (i, word) in part.iter_mut().enumerate() {
        *word = first.wrapping_add(i as u64);
    }
}

/// Whether every word belongs to frame `seq` of `camera`.
pub(super) fn is_whole(frame: &[u64], camera: u64, seq: u64) -> bool {
    let first = first_word(camera, seq);
    // No early end: without a branch the compiler checks several words at once.
    let differences = frame
        .iter()
        .enumerate()
        .fold(0, |seen, (i, word)| seen | (word ^ first.wrapping_add(i as u64)));
    differences == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_foreign_word_makes_a_frame_torn() {
        let mut frame = vec![0; 1000];
        let (top, bottom) = frame.split_at_mut(300);
        fill(top, 0, 3, 77);
        fill(bottom, 300, 3, 77);
        assert!(is_whole(&frame, 3, 77));
        assert!(!is_whole(&frame, 3, 78) && !is_whole(&frame, 4, 77));
        frame[999] += 1;
        assert!(!is_whole(&frame, 3, 77));
    }

    #[test]
    fn frames_of_one_run_have_no_word_in_common_at_the_same_place() {
        let firsts: std::collections::HashSet<u64> =
            (1..50).flat_map(|c| (0..1000).map(move |s| first_word(c, s))).collect();
        assert_eq!(firsts.len(), 49 * 1000);
    }
}
