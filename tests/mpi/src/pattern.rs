//! Payloads in which every byte depends on sender, receiver, tag, message size and offset.

/// The increment of the sequence: odd, so that no two words of a message have the same input.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn seed(src: i32, dst: i32, tag: i32, size: usize) -> u64 {
    let ends = mix((src as u32 as u64) << 32 | dst as u32 as u64);
    mix(ends ^ mix((tag as u32 as u64).wrapping_mul(STEP)) ^ (size as u64).wrapping_mul(0xd6e8_feb8_6659_fd93))
}

/// Returns the words of a message, in order.
fn words(src: i32, dst: i32, tag: i32, size: usize) -> impl Iterator<Item = u64> {
    let mut state = seed(src, dst, tag, size);
    std::iter::repeat_with(move || {
        state = state.wrapping_add(STEP);
        let x = state ^ (state >> 32);
        x.wrapping_mul(0xd6e8_feb8_6659_fd93)
    })
}

/// Writes the payload of message (`src`, `dst`, `tag`) of `buf`'s length into `buf`.
pub fn fill(buf: &mut [u8], src: i32, dst: i32, tag: i32) {
    let source = words(src, dst, tag, buf.len());
    for (chunk, word) in buf.chunks_mut(8).zip(source) {
        let bytes = word.to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

/// Returns a new payload of `size` bytes.
pub fn filled(src: i32, dst: i32, tag: i32, size: usize) -> Vec<u8> {
    let mut buf = vec![0; size];
    fill(&mut buf, src, dst, tag);
    buf
}

/// Describes the first error in a received payload; None if it is what [`fill`] writes.
pub fn mismatch(buf: &[u8], src: i32, dst: i32, tag: i32) -> Option<String> {
    let good = |(chunk, word): (&[u8], u64)| chunk == &word.to_le_bytes()[..chunk.len()];
    if buf.chunks(8).zip(words(src, dst, tag, buf.len())).all(good) {
        return None;
    }
    let expected = filled(src, dst, tag, buf.len());
    let wrong = buf.iter().zip(&expected).filter(|(a, b)| a != b).count();
    let first = buf.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or(0);
    Some(format!(
        "payload {src} -> {dst} tag {tag} of {} bytes: {wrong} wrong, the first at {first} ({:#04x}, not {:#04x})",
        buf.len(),
        buf[first],
        expected[first]
    ))
}

/// Panics, which ends the job, if `buf` is not the payload that [`fill`] writes.
#[track_caller]
pub fn verify(buf: &[u8], src: i32, dst: i32, tag: i32) {
    if let Some(what) = mismatch(buf, src, dst, tag) {
        panic!("{what}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_noticed() {
        for size in [1, 7, 8, 9, 4096] {
            let good = filled(3, 5, 9, size);
            assert_eq!(mismatch(&good, 3, 5, 9), None);
            for place in [0, size / 2, size - 1] {
                let mut bad = good.clone();
                bad[place] ^= 1;
                assert!(mismatch(&bad, 3, 5, 9).is_some_and(|what| what.contains(&format!("1 wrong, the first at {place} "))));
            }
        }
        let good = filled(3, 5, 9, 64);
        assert!([(5, 3, 9), (3, 5, 8), (4, 5, 9)].into_iter().all(|(src, dst, tag)| mismatch(&good, src, dst, tag).is_some()));
        // Neither a message of another size nor a part from another offset is accepted.
        assert!(mismatch(&filled(3, 5, 9, 128)[..64], 3, 5, 9).is_some());
        let mut moved = good.clone();
        moved.rotate_left(8);
        assert!(mismatch(&moved, 3, 5, 9).is_some());
    }
}
