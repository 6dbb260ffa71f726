//! The tag: the word that makes an entry valid.

/// Largest entry length in bytes that a tag can carry.
pub const LEN_MAX: usize = (1 << 23) - 1;
/// Largest value of a tag's `meta`.
pub const META_MAX: u16 = (1 << 15) - 1;

const VALID: u64 = 1 << 63;
/// A bit that is always zero.
const RESERVED: u64 = 1 << 47;

/// The fields of a tag. Layout of the word: bits 0-15 sequence number, 16-23 kind, 24-46 length of the entry in
/// bytes, 47 always zero, 48-62 meta, 63 always set, so that no tag is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Number of the entry in its lane, from 0, modulo 2^16.
    pub sequence: u16,
    /// Kind of the entry. The queue itself interprets only `PAD`.
    pub kind: u8,
    /// Number of bytes that follow, at most [`LEN_MAX`].
    pub len: u32,
    /// Additional value for the layers above, at most [`META_MAX`].
    pub meta: u16,
}

impl Tag {
    /// Encodes the tag as a word.
    #[inline]
    pub fn word(self) -> u64 {
        debug_assert!(self.len as usize <= LEN_MAX && self.meta <= META_MAX);
        VALID
            | u64::from(self.sequence)
            | u64::from(self.kind) << 16
            | u64::from(self.len) << 24
            | u64::from(self.meta) << 48
    }

    /// Returns true if `word` is a tag with this sequence number.
    #[inline]
    pub fn carries(word: u64, sequence: u16) -> bool {
        word & (VALID | 0xffff) == VALID | u64::from(sequence)
    }

    /// Decodes `word` if it is a tag of this kind; otherwise returns None.
    #[inline(always)]
    pub fn plain(word: u64, kind: u8) -> Option<Tag> {
        Tag::parse(word).filter(|_| word & (RESERVED | 0xff << 16) == u64::from(kind) << 16)
    }

    /// Decodes `word`; returns None if it is not a tag.
    #[inline]
    pub fn parse(word: u64) -> Option<Tag> {
        (word & VALID != 0).then_some(Tag {
            sequence: word as u16,
            kind: (word >> 16) as u8,
            len: (word >> 24) as u32 & LEN_MAX as u32,
            meta: (word >> 48) as u16 & META_MAX,
        })
    }
}
