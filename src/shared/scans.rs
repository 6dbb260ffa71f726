//! Scans: every member combines its elements with those of all members before it.

use crate::arithmetic::Reduction;
use crate::buffers::{Buffers, Waiting};
use crate::error::SharedError;
use crate::operation::{copy, Operation, Post};
use crate::reductions::WHOLE_MAX;
use ntbring_memory::{ForeignBytes, ForeignRoom};
use smallvec::SmallVec;

/// Least number of bytes that pass from member to member at a time.
const PIECE_MIN: usize = 4 << 10;

impl Buffers {
    /// Stores the combination of the vectors of members 0 to this one in `output`; without this one's if it is not
    /// `inclusive`, and then member 0's output stays as it is. `input` may be the output.
    ///
    /// Of a long vector a piece passes from member to member, so all of them combine at the same time.
    pub fn scan(
        &mut self,
        inclusive: bool,
        input: ForeignBytes,
        output: ForeignRoom,
        reduction: &mut Reduction,
        waiting: &mut dyn Waiting,
    ) -> Result<(), SharedError> {
        match input.len() <= WHOLE_MAX.min(self.layout.cell()) {
            true => self.scan_whole(inclusive, input, output, reduction, waiting),
            false => self.scan_pieces(inclusive, input, output, reduction, waiting),
        }
    }

    /// Each member combines the vectors of all before it, so that members which share cores may run in any order.
    fn scan_whole(
        &mut self,
        inclusive: bool,
        input: ForeignBytes,
        output: ForeignRoom,
        reduction: &mut Reduction,
        waiting: &mut dyn Waiting,
    ) -> Result<(), SharedError> {
        let (len, me, last) = (input.len(), self.me, self.me + 1 == self.members());
        let mut operation = Operation::begin_of_some(self, len, waiting);
        if !last {
            operation.post(0, len, len as u64, |mine, to| mine.write(to, input))?;
        }
        let mut before = SmallVec::<[Post; 8]>::new();
        for member in 0..me {
            before.push(operation.expect(member, 0, len, len as u64)?);
        }
        // The sum grows towards member 0, so this member's own elements are read before they are overwritten.
        let mut sum = match (inclusive, before.pop()) {
            (true, own) => {
                before.extend(own);
                input
            }
            // SAFETY: inside the member's buffer (checked), which the operation keeps mapped.
            (false, Some(post)) => unsafe { ForeignBytes::new(operation.bytes(post, 0, len), len) },
            (false, None) => return Ok(()),
        };
        if before.is_empty() {
            copy(sum, output);
        }
        for &post in before.iter().rev() {
            let elements = len / reduction.element;
            // SAFETY: all have `len` bytes: the post (checked), and the buffers of the application.
            unsafe { reduction.combine(output.address(), operation.bytes(post, 0, len), sum.address(), elements) };
            // SAFETY: a room of the application is readable, too.
            sum = unsafe { ForeignBytes::new(output.address(), len) };
        }
        Ok(())
    }

    /// Each member combines its vector with the sum that the one before it posts.
    fn scan_pieces(
        &mut self,
        inclusive: bool,
        input: ForeignBytes,
        output: ForeignRoom,
        reduction: &mut Reduction,
        waiting: &mut dyn Waiting,
    ) -> Result<(), SharedError> {
        let (element, total, len) = (reduction.element, input.len() as u64, input.len());
        let piece = ((self.grain / self.members()).max(PIECE_MIN).min(self.grain) / element).max(1) * element;
        let (me, last) = (self.me, self.me + 1 == self.members());
        let mut operation = Operation::begin_of_some(self, piece.min(len), waiting);
        let mut sums = vec![0u8; piece.min(len)];
        for position in 0..len.div_ceil(piece) {
            let at = position * piece;
            let (from, to) = (input.part(at, piece.min(len - at)), output.part(at, piece.min(len - at)));
            let before = match me {
                0 => None,
                _ => Some(operation.expect(me - 1, position as u64, from.len(), total)?),
            };
            let prefix = match (before, inclusive) {
                (None, _) => from.address(),
                (Some(post), _) => {
                    let before = operation.bytes(post, 0, from.len());
                    let sum = if inclusive { to.address() } else { sums.as_mut_ptr() };
                    // SAFETY: all have `from.len()` bytes: the post (checked), the buffers of the application, and
                    // `sums`.
                    unsafe { reduction.combine(sum, before, from.address(), from.len() / element) };
                    sum.cast_const()
                }
            };
            if !last {
                // SAFETY: as above.
                let prefix = unsafe { ForeignBytes::new(prefix, from.len()) };
                operation.post(position as u64, from.len(), total, |mine, at| mine.write(at, prefix))?;
            }
            match before {
                Some(post) if !inclusive => operation.copy(post, 0, to),
                None if inclusive && from.address() != to.address().cast_const() => {
                    copy(from, to);
                }
                _ => {}
            }
            operation.read_before(position as u64 + 1);
        }
        Ok(())
    }
}
