//! What packets of some kinds are about.

/// How far a block of a small collective has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The group that shares.
    pub group: u32,
    /// Which of its sharings this is.
    pub turn: u32,
    /// Hosts from where it was given, at least one.
    pub hops: u8,
    /// Whether it goes right.
    pub rightward: bool,
    /// Whether its member has none to give, since it has failed.
    pub failed: bool,
}

impl Pass {
    /// Bytes before a block.
    pub const LEN: usize = 8;

    /// The tag's `meta`.
    pub fn meta(&self) -> u16 {
        u16::from(self.hops) | u16::from(self.rightward) << 8 | u16::from(self.failed) << 9
    }

    /// What comes before a block.
    pub fn bytes(&self) -> [u8; Self::LEN] {
        (u64::from(self.group) | u64::from(self.turn) << 32).to_le_bytes()
    }

    /// The inverse; None if nothing of this kind has such a `meta`.
    pub fn parse(meta: u16, bytes: [u8; Self::LEN]) -> Option<Pass> {
        let word = u64::from_le_bytes(bytes);
        let (rightward, failed) = (meta >> 8 & 1 == 1, meta >> 9 & 1 == 1);
        let pass = Pass { group: word as u32, turn: (word >> 32) as u32, hops: meta as u8, rightward, failed };
        (meta >> 10 == 0).then_some(pass)
    }
}

/// A payload that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The sender's number for it.
    pub id: u32,
    /// Where it lies in the sender's memory; 0 if it does not lie there in one piece.
    pub address: u64,
    /// Bytes, at least one.
    pub total: u64,
}

/// What a receiver asks of the sender of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// To send the first `len` bytes in pieces; more if it cannot end there.
    Stream {
        /// How many, at least one.
        len: u64,
    },
    /// To copy `len` bytes from `from` on to `address` in the receiver's memory.
    Push {
        /// Where they go, not 0.
        address: u64,
        /// Where they begin in the payload.
        from: u64,
        /// How many, at least one.
        len: u64,
    },
}
