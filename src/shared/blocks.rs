//! The posts of collectives in which members exchange blocks: bytes, addresses, or small blocks of different sizes.

use crate::addresses::{Blocks, Way, BY_ADDRESS, MEMBERS_MAX, SMALL_BLOCKS};
use crate::buffers::Buffers;
use crate::error::SharedError;
use crate::layout::INLINE;
use crate::operation::{Operation, Post};
use ntbring_memory::{ForeignBytes, ForeignRoom};
use std::io;
use std::sync::atomic::{fence, Ordering};

/// Bytes that the kernel copies at a time: in between, other work goes on.
const PIECE: usize = 1 << 20;

/// A set of members.
#[derive(Clone, Copy, Default)]
pub(crate) struct Members(u64);

impl Members {
    /// Only the first [`MEMBERS_MAX`] are told apart: larger groups post bytes.
    pub fn insert(&mut self, member: usize) {
        self.0 |= 1 << member;
    }

    pub fn contains(self, member: usize) -> bool {
        member < MEMBERS_MAX && self.0 & 1 << member != 0
    }
}

/// A post of blocks.
pub(crate) enum Found {
    /// A piece of each.
    Bytes(Post),
    /// Their addresses in the memory of the member, or the first of them.
    Addresses(Post),
    /// All of them ([`Operation::post_small`]).
    Small(Post),
}

/// Returns true if blocks that are not equal fit a small cell ([`Operation::post_small`]), given their sizes.
pub(crate) fn are_small(members: usize, sizes: impl Iterator<Item = usize>) -> bool {
    let mut left = (members <= MEMBERS_MAX).then_some(INLINE);
    sizes.for_each(|size| left = left.and_then(|left| left.checked_sub(size)?.checked_sub(1)));
    left.is_some()
}

impl Buffers {
    /// Returns how this member posts blocks of at most `posted` bytes, which are all in `input`, in a collective in which it
    /// posts or receives blocks of at most `largest` bytes.
    pub(crate) fn way(&mut self, blocks: Blocks, input: ForeignBytes, posted: usize, largest: usize) -> Way {
        let member = (self.me, self.yields);
        let addresses = self.addresses.as_mut();
        addresses.map_or(Way::default(), |addresses| addresses.way(member, blocks, input, (posted, largest)))
    }
}

impl Operation<'_> {
    /// Posts addresses, and what else readers need.
    pub fn post_words(
        &mut self,
        way: Way,
        total: u64,
        words: impl IntoIterator<Item = u64, IntoIter: ExactSizeIterator>,
    ) -> Result<(), SharedError> {
        let words = words.into_iter();
        self.lends = true;
        self.post_with(way.flags | BY_ADDRESS, 0, 8 * words.len(), total, |mine, to| {
            words.enumerate().for_each(|(i, word)| mine.write_bytes(to + 8 * i, &word.to_ne_bytes()));
        })
    }

    /// Posts blocks that [`are_small`], in the order of their readers: their sizes, a byte each, and then the blocks. A
    /// reader finds them in one cache line.
    pub fn post_small<'b>(
        &mut self,
        way: Way,
        total: u64,
        blocks: impl Iterator<Item = ForeignBytes<'b>> + Clone,
    ) -> Result<(), SharedError> {
        let (mut sizes, mut readers, mut len) = ([0; INLINE], 0, 0);
        for block in blocks.clone() {
            sizes[readers] = block.len() as u8;
            readers += 1;
            len += 1 + block.len();
        }
        self.post_with(way.flags | SMALL_BLOCKS, 0, len, total, |mine, to| {
            mine.write_bytes(to, &sizes[..readers]);
            let mut at = to + readers;
            for block in blocks {
                mine.write(at, block);
                at += block.len();
            }
        })
    }

    /// Waits for a member's post of blocks of a collective of size `total`. It must have `len` bytes, or `words` words
    /// with addresses, or small blocks.
    pub fn expect_blocks(
        &mut self,
        member: usize,
        position: u64,
        len: usize,
        words: usize,
        total: u64,
    ) -> Result<Found, SharedError> {
        let (post, flags) = self.expect_any(member, position, len, total)?;
        if let Some(addresses) = &mut self.buffers.addresses {
            addresses.learn(member, flags);
        }
        match flags & (BY_ADDRESS | SMALL_BLOCKS) {
            0 => Ok(Found::Bytes(post)),
            BY_ADDRESS if post.len() == 8 * words => Ok(Found::Addresses(post)),
            SMALL_BLOCKS if post.len() <= INLINE => Ok(Found::Small(post)),
            _ => Err(SharedError::OtherSize { member }),
        }
    }

    /// Fills `to` from an address in a post.
    pub fn fetch(&mut self, post: Post, address: u64, to: ForeignRoom) -> Result<(), SharedError> {
        let (member, mut at) = (post.member(), 0);
        while at < to.len() {
            if at > 0 {
                self.relay();
            }
            let part = to.part(at, PIECE.min(to.len() - at));
            let addresses = self.buffers.addresses.as_ref();
            let copied = addresses
                .ok_or(io::ErrorKind::Unsupported.into())
                .and_then(|addresses| addresses.fetch(member, address.wrapping_add(at as u64), part));
            // A member that has failed does not keep its bytes for those that still read them.
            fence(Ordering::Acquire);
            self.is_here(member)?;
            if let Err(error) = copied {
                log::debug!("the kernel does not copy from member {member}: {error}");
                let has_died = error.raw_os_error() == Some(nix::libc::ESRCH);
                return Err(if has_died { self.failed(member) } else { SharedError::Unreadable { member } });
            }
            at += part.len();
        }
        Ok(())
    }

    /// Copies the block of the reader at `place` from a post of small blocks. Returns false if it does not fill `to`.
    pub fn take_small(&self, post: Post, place: usize, to: ForeignRoom) -> bool {
        let (readers, mut sizes) = (self.buffers.members() - 1, [0u8; INLINE]);
        if readers > post.len() {
            return false;
        }
        // SAFETY: `sizes` is writable, and not used during the copy.
        self.copy(post, 0, unsafe { ForeignRoom::new(sizes.as_mut_ptr(), readers) });
        let from = readers + sizes[..place].iter().map(|&size| usize::from(size)).sum::<usize>();
        let fits = usize::from(sizes[place]) == to.len() && from + to.len() <= post.len();
        if fits {
            self.copy(post, from, to);
        }
        fits
    }

    /// Waits until nobody needs this member's blocks any more. `bytes`: of all blocks that it has sent and received.
    pub fn end_of_blocks(&mut self, way: Way, bytes: usize) -> Result<(), SharedError> {
        if way.by_address {
            self.until_all_have_read(1)?;
            self.lends = false;
        }
        if let Some(addresses) = &mut self.buffers.addresses {
            addresses.measure(way, bytes);
        }
        Ok(())
    }
}
