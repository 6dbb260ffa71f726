//! Wire format of requests and replies. A packet is a route of 8 bytes (the relay's, see `ntbring-ring`) and:
//!
//! ```text
//! request  id 4, action, op, kind, 0 | segment 8 | offset 8 | length 8 | operands
//! reply    id 4, status, 0, 0, 0     | detail 8                        | previous contents
//! ```

use super::operate::{Kind, Op};

/// Entry kind of a request, without the route bit.
pub const REQUEST: u8 = 9;
/// Entry kind of a reply, without the route bit.
pub const REPLY: u8 = 10;

/// Maximum number of unanswered requests from one rank to another: enough for small puts to fill the time of a round
/// trip over several hosts.
pub const OPEN_MAX: usize = 64;

/// Maximum number of requests, of the largest size, whose replies carry bytes and may be open from one rank to another.
pub const GETS_MAX: usize = 8;

/// Largest operand of a compare-and-swap, bytes.
pub const SWAP_MAX: u64 = 16;

/// Granularity of an operation's chunks, bytes: chunk sizes are multiples of it, so no number of a predefined type is
/// split.
pub const GRAIN: usize = 96;

/// Operation of a request. The values are those of `NTBRING_REMOTE_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Writes the operands.
    Put,
    /// Returns the contents.
    Get,
    /// Accumulates the operands.
    Accumulate(Op, Kind),
    /// Accumulates the operands and returns the previous contents. There are no operands if the op is `Keep`.
    Fetch(Op, Kind),
    /// Compare-and-swap: writes the second half of the operands if the contents equal the first half. Returns the
    /// previous contents.
    Swap,
    /// Acquires the window's lock, exclusively if true, else shared. The reply is sent once it is acquired.
    Acquire(bool),
    /// Releases the window's lock, which is held exclusively if true, else shared.
    Release(bool),
    /// As `Fetch`, but on one integer of 4 or 8 bytes, by an atomic instruction of the processor, without the segment's
    /// lock, in order with puts.
    Atomic(Op, Kind),
    /// As `Swap`, but on one integer of 4 or 8 bytes, like `Atomic`.
    AtomicSwap,
}

impl Action {
    /// Decodes an action from its three numbers; None if there is no such action.
    pub fn parse(action: u8, op: u8, kind: u8) -> Option<Action> {
        let numbers = || {
            let (op, kind) = (Op::parse(op)?, Kind::parse(kind)?);
            op.takes(kind).then_some((op, kind))
        };
        Some(match action {
            0 => Action::Put,
            1 => Action::Get,
            2 => numbers().map(|(op, kind)| Action::Accumulate(op, kind))?,
            3 => numbers().map(|(op, kind)| Action::Fetch(op, kind))?,
            4 => Action::Swap,
            5 if op <= 1 => Action::Acquire(op == 1),
            6 if op <= 1 => Action::Release(op == 1),
            7 => {
                numbers().filter(|&(op, kind)| has_instruction(op, kind)).map(|(op, kind)| Action::Atomic(op, kind))?
            }
            8 => Action::AtomicSwap,
            _ => return None,
        })
    }

    fn numbers(self) -> [u8; 3] {
        match self {
            Action::Put => [0, 0, 0],
            Action::Get => [1, 0, 0],
            Action::Accumulate(op, kind) => [2, op as u8, kind as u8],
            Action::Fetch(op, kind) => [3, op as u8, kind as u8],
            Action::Swap => [4, 0, 0],
            Action::Acquire(alone) => [5, alone.into(), 0],
            Action::Release(alone) => [6, alone.into(), 0],
            Action::Atomic(op, kind) => [7, op as u8, kind as u8],
            Action::AtomicSwap => [8, 0, 0],
        }
    }

    /// Returns the number of operand bytes of an action on `len` bytes of the segment.
    pub fn operands(self, len: u64) -> u64 {
        match self {
            Action::Put | Action::Accumulate(..) => len,
            Action::Fetch(op, _) | Action::Atomic(op, _) if op != Op::Keep => len,
            Action::Swap | Action::AtomicSwap => 2 * len,
            _ => 0,
        }
    }

    /// Returns the number of bytes that the reply to an action on `len` bytes carries.
    pub fn result(self, len: u64) -> u64 {
        match self {
            Action::Get | Action::Fetch(..) | Action::Swap | Action::Atomic(..) | Action::AtomicSwap => len,
            _ => 0,
        }
    }

    /// Returns true if the action is one of those that the segment's lock makes atomic with respect to each other.
    pub fn is_atomic(self) -> bool {
        matches!(self, Action::Accumulate(..) | Action::Fetch(..) | Action::Swap)
    }

    /// Returns true if the action is possible on `len` bytes.
    pub fn fits(self, len: u64) -> bool {
        match self {
            Action::Put | Action::Get => true,
            Action::Accumulate(_, kind) | Action::Fetch(_, kind) => len.is_multiple_of(kind.size() as u64),
            Action::Swap => len <= SWAP_MAX,
            Action::Atomic(_, kind) => len == kind.size() as u64,
            Action::AtomicSwap => matches!(len, 4 | 8),
            Action::Acquire(_) | Action::Release(_) => len == 0,
        }
    }
}

/// Returns true if processors have an atomic instruction for the operation, or one of which it can be made.
fn has_instruction(op: Op, kind: Kind) -> bool {
    matches!(kind, Kind::I32 | Kind::U32 | Kind::I64 | Kind::U64)
        && matches!(op, Op::Sum | Op::BitAnd | Op::BitOr | Op::BitXor | Op::Replace | Op::Keep)
}

/// Head of a request, without its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Number that the sender has given the request.
    pub id: u32,
    /// The operation.
    pub action: Action,
    /// Token of the segment.
    pub segment: u64,
    /// Offset in the segment, bytes.
    pub offset: u64,
    /// Number of bytes that the operation concerns.
    pub len: u64,
}

impl Request {
    /// Size of the encoded head, bytes.
    pub const LEN: usize = 32;

    /// Encodes the head.
    pub fn bytes(&self) -> [u8; Request::LEN] {
        let [action, op, kind] = self.action.numbers();
        let first = u64::from(self.id) | u64::from_le_bytes([0, 0, 0, 0, action, op, kind, 0]);
        let mut bytes = [0; Request::LEN];
        for (to, word) in bytes.chunks_exact_mut(8).zip([first, self.segment, self.offset, self.len]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Decodes the head of a request that has `operands` bytes of operands. Returns the request's id as the error if
    /// the head is invalid.
    pub fn parse(bytes: &[u8; Request::LEN], operands: usize) -> Result<Request, u32> {
        let word = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("8 bytes"));
        let [.., action, op, kind, rest] = word(0).to_le_bytes();
        let id = word(0) as u32;
        let request = match Action::parse(action, op, kind) {
            Some(action) if rest == 0 => Request { id, action, segment: word(1), offset: word(2), len: word(3) },
            _ => return Err(id),
        };
        // Limited to the size of a packet, so that nothing below overflows.
        let fits = request.len <= u64::from(u32::MAX)
            && request.action.fits(request.len)
            && request.action.operands(request.len) == operands as u64;
        fits.then_some(request).ok_or(id)
    }
}

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The operation is done.
    Done,
    /// There is no such segment on the host.
    Unknown,
    /// The segment does not have all of these bytes.
    Outside,
    /// There is no such operation.
    Impossible,
    /// The rank with this number has died while it held the segment's lock.
    Orphaned(u32),
}

/// Head of a reply, without its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The number of the request.
    pub id: u32,
    /// Result of the request.
    pub status: Status,
}

impl Reply {
    /// Size of the encoded head, bytes.
    pub const LEN: usize = 16;

    /// Encodes the head.
    pub fn bytes(&self) -> [u8; Reply::LEN] {
        let (status, detail) = match self.status {
            Status::Done => (0, 0),
            Status::Unknown => (1, 0),
            Status::Outside => (2, 0),
            Status::Impossible => (3, 0),
            Status::Orphaned(rank) => (4, rank),
        };
        let words = [u64::from(self.id) | status << 32, u64::from(detail)];
        words.map(u64::to_le_bytes).concat().try_into().expect("two words")
    }

    /// Decodes the head of a reply; None if it is invalid.
    pub fn parse(bytes: &[u8; Reply::LEN]) -> Option<Reply> {
        let word = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("8 bytes"));
        let status = match (word(0) >> 32, word(1)) {
            (0, 0) => Status::Done,
            (1, 0) => Status::Unknown,
            (2, 0) => Status::Outside,
            (3, 0) => Status::Impossible,
            (4, rank) => Status::Orphaned(u32::try_from(rank).ok()?),
            _ => return None,
        };
        Some(Reply { id: word(0) as u32, status })
    }
}

#[cfg(test)]
mod tests;
