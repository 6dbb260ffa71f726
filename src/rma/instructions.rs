//! Atomic operations on single integers by instructions of the processor, as all processes of the host perform them.

use super::operate::Op;
use ntbring_memory::Region;
use std::sync::atomic::Ordering::SeqCst;

/// Applies an operation to one word and returns its previous contents.
macro_rules! apply {
    ($t:ty, $word:expr, $op:expr, $operand:expr) => {{
        let (word, operand) = ($word, $operand);
        match $op {
            Op::Sum => word.fetch_add(operand, SeqCst),
            Op::BitAnd => word.fetch_and(operand, SeqCst),
            Op::BitOr => word.fetch_or(operand, SeqCst),
            Op::BitXor => word.fetch_xor(operand, SeqCst),
            Op::Replace => word.swap(operand, SeqCst),
            _ => word.load(SeqCst),
        }
    }};
}

/// Applies an operation to the integer of 4 or 8 bytes at `offset`, a multiple of its size, with the operand in the
/// first bytes of `operand`. Returns the previous contents in as many bytes of a word.
pub fn operate(bytes: &Region, offset: usize, len: usize, op: Op, operand: &[u8]) -> [u8; 8] {
    match len {
        4 => widen(apply!(u32, bytes.register(offset), op, number32(operand))),
        _ => apply!(u64, bytes.word(offset), op, number64(operand)).to_ne_bytes(),
    }
}

/// Compare-and-swap: writes the second half of `operands` to the integer of 4 or 8 bytes at `offset`, a multiple of its
/// size, if it equals the first half. Returns the previous contents in as many bytes of a word.
pub fn swap(bytes: &Region, offset: usize, len: usize, operands: &[u8]) -> [u8; 8] {
    let (compare, new) = operands.split_at(operands.len() / 2);
    match len {
        4 => {
            let word = bytes.register(offset);
            widen(word.compare_exchange(number32(compare), number32(new), SeqCst, SeqCst).unwrap_or_else(|now| now))
        }
        _ => {
            let word = bytes.word(offset);
            let result = word.compare_exchange(number64(compare), number64(new), SeqCst, SeqCst);
            result.unwrap_or_else(|now| now).to_ne_bytes()
        }
    }
}

fn widen(number: u32) -> [u8; 8] {
    let mut wide = [0; 8];
    wide[..4].copy_from_slice(&number.to_ne_bytes());
    wide
}

fn number32(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

fn number64(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operate::{accumulate, Kind};

    #[test]
    fn every_instruction_does_what_the_arithmetic_does() {
        for (len, kind) in [(4, Kind::U32), (8, Kind::U64)] {
            for op in [Op::Sum, Op::BitAnd, Op::BitOr, Op::BitXor, Op::Replace, Op::Keep] {
                let region = Region::anonymous(32);
                let (before, operand) =
                    (0xfedc_ba98_7654_3210_u64.to_ne_bytes(), 0x1234_5678_9abc_def0_u64.to_ne_bytes());
                ntbring_memory::OutWindow::new(region.clone()).write_bytes(16, &before[..len]);
                let mut after = before;
                accumulate(op, kind, &mut after[..len], &operand[..len]);
                assert_eq!(operate(&region, 16, len, op, &operand[..len])[..len], before[..len], "{op:?}");
                let mut now = [0; 8];
                ntbring_memory::InWindow::new(region.clone()).read(16, &mut now[..len]);
                assert_eq!(now[..len], after[..len], "{op:?}");
                let wrong = [&before[..len], &operand[..len]].concat();
                if before[..len] != after[..len] {
                    assert_eq!(swap(&region, 16, len, &wrong)[..len], after[..len], "not equal, so not swapped");
                }
                let right = [&after[..len], &operand[..len]].concat();
                assert_eq!(swap(&region, 16, len, &right)[..len], after[..len]);
                assert_eq!(operate(&region, 16, len, Op::Keep, &[])[..len], operand[..len]);
                assert_eq!(region.word(24).load(SeqCst), 0, "no other byte is touched");
            }
        }
    }
}
