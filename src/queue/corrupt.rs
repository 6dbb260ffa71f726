//! Damage and violations of the protocol that a receiver finds.

/// Protocol violation found in data that a peer wrote into a lane or a board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Corrupt {
    /// The word is neither a tag nor zero.
    #[error("line {line} holds {word:#018x}, which is not a tag")]
    NoTag {
        /// Line at which the word was read.
        line: usize,
        /// The word that was read.
        word: u64,
    },
    /// The sequence number of the tag belongs neither to this lap nor to the previous one.
    #[error("line {line} has sequence number {found}, {expected} was expected")]
    Sequence {
        /// Line at which the tag was read.
        line: usize,
        /// Sequence number that the consumer expects.
        expected: u16,
        /// Sequence number in the tag.
        found: u16,
    },
    /// The entry is too long, or reaches beyond the end of the lane.
    #[error("the entry at line {line} claims {len} bytes, at most {max} are possible there")]
    Length {
        /// Line at which the entry begins.
        line: usize,
        /// Length in bytes that the tag claims.
        len: usize,
        /// Largest length in bytes that is possible at this line.
        max: usize,
    },
    /// The entry was lost or damaged on the link.
    #[error("the entry at line {line} {damage}: the link has lost or changed it")]
    Damaged {
        /// Line at which the entry begins.
        line: usize,
        /// Kind of damage.
        damage: Damage,
    },
    /// The tag of a board's slot is valid neither for this round nor for the time before it.
    #[error("slot {place} of an allgather mailbox holds {word:#018x} in round {turn}")]
    Place {
        /// Index of the slot.
        place: usize,
        /// The word that was read.
        word: u64,
        /// Number of the round.
        turn: u32,
    },
}

/// Kind of damage to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// The entry is not there, though the producer has announced it.
    Missing = 1,
    /// The checksum is wrong.
    Checksum = 2,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Damage::Missing => "was announced, but is not there",
            Damage::Checksum => "has a wrong checksum",
        })
    }
}
