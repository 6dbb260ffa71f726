//! Collectives that move bytes: barrier, broadcast, allgather, alltoall.

use crate::addresses::Blocks;
use crate::blocks::{are_small, Found, Members};
use crate::buffers::{Buffers, Waiting};
use crate::error::SharedError;
use crate::layout::LINE;
use crate::operation::{copy, Operation};
use ntbring_memory::{ForeignBytes, ForeignRoom};
use smallvec::SmallVec;

/// Least number of bytes of a post, if a block is divided so that members copy at the same time.
const PIECE_MIN: usize = 8 << 10;
/// Number of pieces into which a block is divided at least.
const PIECES: usize = 4;
/// Size that a collective has whose members' blocks differ.
const DIFFERS: u64 = u64::MAX;

/// The blocks of a buffer, one for each member.
#[derive(Clone, Copy, Debug)]
pub enum Parts<'a> {
    /// Blocks of this number of bytes, one behind the other.
    Equal(usize),
    /// Offset and size of each block, bytes.
    Each(&'a [(usize, usize)]),
}

impl Parts<'_> {
    /// Returns offset and size of a member's block.
    pub fn of(&self, member: usize) -> (usize, usize) {
        match self {
            Parts::Equal(size) => (member * size, *size),
            Parts::Each(parts) => parts[member],
        }
    }

    fn largest(&self) -> usize {
        match self {
            Parts::Equal(size) => *size,
            Parts::Each(parts) => parts.iter().map(|part| part.1).max().unwrap_or(0),
        }
    }
}

impl Buffers {
    /// Returns the number of bytes of a block that are posted at a time.
    pub(crate) fn piece(&self, block: usize) -> usize {
        block.div_ceil(PIECES).next_multiple_of(LINE).max(PIECE_MIN).min(self.grain)
    }

    /// Returns the place of a reader among the other members, as one of them sees it.
    pub(crate) fn place(&self, poster: usize, reader: usize) -> usize {
        let n = self.members();
        (reader + n - poster - 1) % n
    }

    /// Waits until all members have begun the barrier.
    pub fn barrier(&mut self, waiting: &mut dyn Waiting) -> Result<(), SharedError> {
        let mut operation = Operation::begin(self, 0, waiting);
        operation.post(0, 0, 0, |_, _| ())?;
        for member in operation.buffers.others() {
            operation.expect(member, 0, 0, 0)?;
        }
        Ok(())
    }

    /// Copies the contents of the root's `data` to that of all members.
    pub fn broadcast(&mut self, root: usize, data: ForeignRoom, waiting: &mut dyn Waiting) -> Result<(), SharedError> {
        let (len, piece) = (data.len(), self.piece(data.len()));
        let mut operation = Operation::begin_of_some(self, piece.min(len), waiting);
        let is_root = operation.buffers.me == root;
        for position in 0..len.div_ceil(piece).max(1) {
            let at = position * piece;
            let part = data.part(at, piece.min(len - at));
            let position = position as u64;
            if is_root {
                // SAFETY: a room of the application is readable, too.
                let bytes = unsafe { ForeignBytes::new(part.address(), part.len()) };
                operation.post(position, part.len(), len as u64, |mine, to| mine.write(to, bytes))?;
            } else {
                let post = operation.expect(root, position, part.len(), len as u64)?;
                operation.copy(post, 0, part);
                operation.read_before(position + 1);
            }
        }
        Ok(())
    }

    /// Gathers the blocks of all members in each member's `output`, where they lie as `parts` says. `input` may be this
    /// member's own block there.
    pub fn allgather(
        &mut self,
        input: ForeignBytes,
        parts: Parts,
        output: ForeignRoom,
        waiting: &mut dyn Waiting,
    ) -> Result<(), SharedError> {
        let (largest, me, piece) = (parts.largest(), self.me, self.grain);
        let (own, way) = (parts.of(me), self.way(Blocks::ForAll, input, input.len(), largest));
        let mut operation = Operation::begin(self, piece.min(largest.max(input.len())), waiting);
        let mut fetched = Members::default();
        for position in 0..largest.max(input.len()).div_ceil(piece).max(1) {
            let at = position * piece;
            let has = |size: usize| at < size || at == 0;
            if way.by_address && at == 0 {
                operation.post_words(way, input.len() as u64, [input.address() as u64])?;
                if input.len() == own.1 {
                    copy(input, output.part(own.0, own.1));
                }
            } else if !way.by_address && has(input.len()) {
                let bytes = input.part(at, piece.min(input.len() - at));
                let total = input.len() as u64;
                operation
                    .post_with(way.flags, position as u64, bytes.len(), total, |mine, to| mine.write(to, bytes))?;
                // While the others post.
                if input.len() == own.1 {
                    copy(bytes, output.part(own.0 + at, bytes.len()));
                }
            }
            for member in operation.buffers.others() {
                let (offset, size) = parts.of(member);
                if has(size) && !fetched.contains(member) {
                    let part = output.part(offset + at, piece.min(size - at));
                    match operation.expect_blocks(member, position as u64, part.len(), 1, size as u64)? {
                        Found::Bytes(post) => operation.copy(post, 0, part),
                        Found::Small(_) => return Err(SharedError::OtherSize { member }),
                        Found::Addresses(post) => {
                            let address = operation.word(post, 0);
                            operation.fetch(post, address, output.part(offset, size))?;
                            fetched.insert(member);
                        }
                    }
                }
            }
            operation.read_before(position as u64 + 1);
        }
        let moved = (0..operation.buffers.members()).map(|member| parts.of(member).1).sum::<usize>();
        operation.end_of_blocks(way, input.len() + moved)?;
        match input.len() == own.1 {
            true => Ok(()),
            false => Err(SharedError::OtherSize { member: me }),
        }
    }

    /// Sends block j of `input`, where blocks lie as `sends` says, to member j, and stores the block that member i sends
    /// as block i in `output`.
    pub fn alltoall(
        &mut self,
        (input, sends): (ForeignBytes, Parts),
        (output, receives): (ForeignRoom, Parts),
        waiting: &mut dyn Waiting,
    ) -> Result<(), SharedError> {
        let (n, me) = (self.members(), self.me);
        // If sizes differ, the first post begins with those of its blocks, one word for each reader.
        // A post by address has the address of all blocks, or address and size of each.
        let (sizes, words, total) = match sends {
            Parts::Equal(size) => (0, 1, size as u64),
            Parts::Each(_) => (((n - 1) * 8).next_multiple_of(LINE), 2 * (n - 1), DIFFERS),
        };
        let most = ((self.grain - sizes.min(self.grain / 2)) / (n - 1)) & !7;
        let stride = |at: usize| match sends {
            Parts::Equal(size) => most.min(size - at),
            Parts::Each(_) => most,
        };
        let others = |parts: &Parts| (0..n).filter(|&i| i != me).map(|i| parts.of(i).1).max().unwrap_or(0);
        let (posted, read) = (others(&sends), others(&receives));
        let is_small = matches!(sends, Parts::Each(_)) && are_small(n, self.others().map(|reader| sends.of(reader).1));
        let mut way = self.way(Blocks::ForEach, input, posted, posted.max(read));
        way.by_address &= !is_small;
        let mut operation = Operation::begin(self, sizes + (n - 1) * stride(0), waiting);
        let ((own_from, own), (own_to, own_size)) = (sends.of(me), receives.of(me));
        let mut fetched = Members::default();
        for position in 0..posted.max(read).max(own).div_ceil(most).max(1) {
            let at = position * most;
            let head = if position == 0 { sizes } else { 0 };
            let piece = |(offset, size): (usize, usize)| (offset + at.min(size), most.min(size.saturating_sub(at)));
            let (place, all) = (|reader| (reader + n - me - 1) % n, operation.buffers.others());
            if is_small {
                let block = |reader| {
                    let (from, size) = sends.of(reader);
                    input.part(from, size)
                };
                if at == 0 {
                    operation.post_small(way, total, all.map(block))?;
                }
            } else if way.by_address && at == 0 {
                let words = match sends {
                    Parts::Equal(_) => SmallVec::from_slice(&[input.address() as u64]),
                    Parts::Each(_) => all
                        .flat_map(|reader| {
                            let (from, size) = sends.of(reader);
                            [input.part(from, size).address() as u64, size as u64]
                        })
                        .collect::<SmallVec<[u64; 16]>>(),
                };
                operation.post_words(way, total, words)?;
            } else if !way.by_address && (at < posted || at == 0) {
                let len = head + (n - 1) * stride(at);
                operation.post_with(way.flags, position as u64, len, total, |mine, to| {
                    for reader in all {
                        let (from, len) = piece(sends.of(reader));
                        if head > 0 {
                            let size = (sends.of(reader).1 as u64).to_ne_bytes();
                            mine.write(to + place(reader) * 8, (&size[..]).into());
                        }
                        mine.write(to + head + place(reader) * stride(at), input.part(from, len));
                    }
                })?;
            }
            // While the others post.
            if own == own_size && at < own {
                let len = most.min(own - at);
                copy(input.part(own_from + at, len), output.part(own_to + at, len));
            }
            for member in operation.buffers.others() {
                let (to, size) = receives.of(member);
                if at >= size && at > 0 || fetched.contains(member) {
                    continue;
                }
                let place = operation.buffers.place(member, me);
                let post = match operation.expect_blocks(
                    member,
                    position as u64,
                    head + (n - 1) * stride(at),
                    words,
                    total,
                )? {
                    Found::Bytes(post) => post,
                    Found::Small(post) => {
                        if !operation.take_small(post, place, output.part(to, size)) {
                            return Err(SharedError::OtherSize { member });
                        }
                        fetched.insert(member);
                        continue;
                    }
                    Found::Addresses(post) => {
                        let (address, sent) = match sends {
                            Parts::Equal(size) => (operation.word(post, 0) + (me * size) as u64, size as u64),
                            Parts::Each(_) => (operation.word(post, 2 * place), operation.word(post, 2 * place + 1)),
                        };
                        if sent != size as u64 {
                            return Err(SharedError::OtherSize { member });
                        }
                        operation.fetch(post, address, output.part(to, size))?;
                        fetched.insert(member);
                        continue;
                    }
                };
                if head > 0 && operation.word(post, place) != size as u64 {
                    return Err(SharedError::OtherSize { member });
                }
                let (to, len) = piece((to, size));
                operation.copy(post, head + place * stride(at), output.part(to, len));
            }
            operation.read_before(position as u64 + 1);
        }
        operation.end_of_blocks(way, (0..n).map(|member| sends.of(member).1 + receives.of(member).1).sum())?;
        match own == own_size {
            true => Ok(()),
            false => Err(SharedError::OtherSize { member: me }),
        }
    }
}
