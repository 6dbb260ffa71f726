//! Long alltoalls: every member reads the blocks for it straight from the memory of their senders, by kernel copies. That
//! copies each byte once instead of twice, and a member waits for the others twice instead of once for every few cells.

use crate::buffers::{Buffers, Waiting};
use crate::error::SharedError;
use crate::moves::Parts;
use crate::operation::{copy, Operation, Post};
use ntbring_memory::{ForeignBytes, ForeignRoom, OutWindow};

/// Least number of bytes of a block that is read, if members share cores, and if each has one: for shorter ones the system
/// call takes longer than a second copy, while other members copy at the same time.
const READ_MIN: usize = 32 << 10;
const READ_MIN_ALONE: usize = 512 << 10;

/// Size of a word, bytes.
const WORD: usize = 8;

/// A block for this member in the memory of another.
pub(crate) struct Block {
    pub member: usize,
    pub address: u64,
}

/// The description of a poster's blocks: the number of bytes that it sends to others, then for each reader the address
/// and the size of the block for it.
pub(crate) struct Words {
    pub all_sent: u64,
    pub address: u64,
    pub size: u64,
}

impl Words {
    /// Returns the size of a description among `n` members, bytes.
    pub fn bytes(n: usize) -> usize {
        WORD + (n - 1) * 2 * WORD
    }

    /// Returns the number of bytes that a member sends to others.
    pub fn all_sent(me: usize, n: usize, sends: &Parts) -> u64 {
        (0..n).filter(|&reader| reader != me).map(|reader| sends.of(reader).1 as u64).sum()
    }

    /// Writes the description of this member's blocks.
    pub fn write(mine: &OutWindow, to: usize, me: usize, input: ForeignBytes, sends: &Parts, n: usize) {
        mine.write_bytes(to, &Self::all_sent(me, n, sends).to_ne_bytes());
        for i in 0..n - 1 {
            let (offset, size) = sends.of((me + 1 + i) % n);
            let address = input.part(offset, size).address() as u64;
            let at = to + WORD + i * 2 * WORD;
            mine.write_bytes(at, &address.to_ne_bytes());
            mine.write_bytes(at + WORD, &(size as u64).to_ne_bytes());
        }
    }

    /// Reads the description of the block for the reader at `place`.
    pub fn read(operation: &Operation, post: Post, place: usize) -> Words {
        let at = WORD + place * 2 * WORD;
        let [all_sent, address, size] = [0, at, at + WORD].map(|from| word(operation, post, from));
        Words { all_sent, address, size }
    }
}

impl Buffers {
    /// True if blocks of this size are read from the memory of their senders. The same at all members.
    pub(crate) fn reads(&self, block: usize) -> bool {
        self.kernel_copies.is_some() && block >= if self.yields { READ_MIN } else { READ_MIN_ALONE }
    }

    /// The same for blocks of different sizes, all of which together have this number of bytes.
    pub(crate) fn reads_rest(&self, all_sent: u64) -> bool {
        self.reads((all_sent / (self.members() * (self.members() - 1)) as u64) as usize)
    }

    /// Exchanges blocks of `size` bytes as [`Buffers::alltoall`] does. Returns false at all members if one of them could
    /// not read the memory of another; then nothing is known about the outputs.
    pub(crate) fn alltoall_by_reading(
        &mut self,
        size: usize,
        input: ForeignBytes,
        output: ForeignRoom,
        waiting: &mut dyn Waiting,
    ) -> Result<bool, SharedError> {
        let (me, total) = (self.me, size as u64);
        let mut operation = Operation::begin(self, waiting);
        operation.post_word(0, input.address() as u64, total)?;
        // While the others post.
        copy(input.part(me * size, size), output.part(me * size, size));
        let mut blocks = Vec::new();
        for member in operation.buffers.others() {
            let address = operation.expect_word(member, 0, total)? + (me * size) as u64;
            blocks.push(Block { member, address });
        }
        operation.read_rest(&blocks, |member| (0, output.part(member * size, size)), total)
    }

    /// Reads memory of another member. Returns false if the kernel refuses that.
    fn read(&self, member: usize, address: u64, to: ForeignRoom) -> bool {
        let kernel_copy = self.kernel_copies.as_ref().and_then(|all| all.get(member).copied().flatten());
        kernel_copy.is_some_and(|kernel_copy| kernel_copy.read(address, to).is_ok())
    }
}

impl Operation<'_> {
    /// Reads blocks of other members after their first posts, from the byte on and into the room that `rest` returns for
    /// each member, and waits until all members have read theirs. Returns false at all members if one could not.
    pub fn read_rest<'r>(
        &mut self,
        blocks: &[Block],
        rest: impl Fn(usize) -> (usize, ForeignRoom<'r>),
        total: u64,
    ) -> Result<bool, SharedError> {
        let mut all_read = true;
        for &Block { member, address } in blocks {
            let (from, room) = rest(member);
            all_read &= room.is_empty() || self.buffers.read(member, address + from as u64, room);
        }
        // A member may change its input when all others have read it.
        self.post_word(1, all_read.into(), total)?;
        for member in self.buffers.others() {
            all_read &= self.expect_word(member, 1, total)? == 1;
        }
        Ok(all_read)
    }

    fn post_word(&mut self, position: u64, word: u64, total: u64) -> Result<(), SharedError> {
        self.post(position, WORD, total, |mine, to| mine.write_bytes(to, &word.to_ne_bytes()))
    }

    fn expect_word(&mut self, member: usize, position: u64, total: u64) -> Result<u64, SharedError> {
        let post = self.expect(member, position, WORD, total)?;
        Ok(word(self, post, 0))
    }
}

/// Returns a word of a post.
fn word(operation: &Operation, post: Post, from: usize) -> u64 {
    let mut word = [0; WORD];
    // SAFETY: `word` is writable, and not used during the copy.
    operation.copy(post, from, unsafe { ForeignRoom::new(word.as_mut_ptr(), WORD) });
    u64::from_ne_bytes(word)
}
