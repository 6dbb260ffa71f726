//! Operations on window memory that a host serves for ranks which cannot reach it: whoever forwards
//! there carries them out, so the rank whose memory it is may compute.
//!
//! | file | holds |
//! |---|---|
//! | `operate` | what an accumulate does to numbers |
//! | `registry` | how the ranks of a host tell its forwarder of their segments |
//! | `server` | carrying out requests, and answering them |
//!
//! A request is a packet to the forwarder of the host of the rank it names, a reply one to the rank
//! that asked:
//!
//! ```text
//! request  route 8 | id 4, action, op, kind, 0 | segment 8 | offset 8 | length 8 | operands
//! reply    route 8 | id 4, status, 0, 0, 0     | detail 8                        | what was there before
//! ```

pub mod operate;
pub mod registry;
pub mod server;

use operate::{Kind, Op};

/// The kind of a request's entry, without its route bit.
pub const REQUEST: u8 = 9;
/// The kind of a reply's entry, without its route bit.
pub const REPLY: u8 = 10;

/// Requests that a rank may have open to another before it has to wait for a reply.
pub const OPEN_MAX: usize = 8;

/// The largest number that is compared and swapped, bytes.
pub const SWAP_MAX: u64 = 16;

/// Of what number the sizes of an operation's pieces are a multiple: no number of a predefined type is cut.
pub const GRAIN: usize = 96;

/// What is to be done. The values are those of `NTBRING_REMOTE_*`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The operands are written.
    Put,
    /// What is there is sent back.
    Get,
    /// The operands are accumulated.
    Accumulate(Op, Kind),
    /// The same, and what was there before is sent back. There are no operands if the op is `Keep`.
    Fetch(Op, Kind),
    /// The first half of the operands is replaced by the second; what was there before is sent back.
    Swap,
    /// The window is locked, alone or not. The reply is sent once it is.
    Hold(bool),
    /// It is unlocked.
    LetGo(bool),
}

impl Action {
    /// From its three numbers.
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
            5 if op <= 1 => Action::Hold(op == 1),
            6 if op <= 1 => Action::LetGo(op == 1),
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
            Action::Hold(alone) => [5, alone.into(), 0],
            Action::LetGo(alone) => [6, alone.into(), 0],
        }
    }

    /// Bytes of operands, if it is about `len` bytes of the segment.
    pub fn operands(self, len: u64) -> u64 {
        match self {
            Action::Put | Action::Accumulate(..) => len,
            Action::Fetch(op, _) if op != Op::Keep => len,
            Action::Swap => 2 * len,
            _ => 0,
        }
    }

    /// Bytes that are sent back.
    pub fn result(self, len: u64) -> u64 {
        match self {
            Action::Get | Action::Fetch(..) | Action::Swap => len,
            _ => 0,
        }
    }

    /// Whether it is one of those that are atomic with each other.
    pub fn is_atomic(self) -> bool {
        matches!(self, Action::Accumulate(..) | Action::Fetch(..) | Action::Swap)
    }

    /// Whether it can be about `len` bytes at all.
    pub fn fits(self, len: u64) -> bool {
        match self {
            Action::Put | Action::Get => true,
            Action::Accumulate(_, kind) | Action::Fetch(_, kind) => len % kind.size() as u64 == 0,
            Action::Swap => len <= SWAP_MAX,
            Action::Hold(_) | Action::LetGo(_) => len == 0,
        }
    }
}

/// The head of a request, without its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The sender's number for it.
    pub id: u32,
    /// What is to be done.
    pub action: Action,
    /// To which segment.
    pub segment: u64,
    /// Where in it.
    pub offset: u64,
    /// To how many bytes.
    pub len: u64,
}

impl Request {
    /// Bytes of the head.
    pub const LEN: usize = 32;

    /// As bytes.
    pub fn bytes(&self) -> [u8; Request::LEN] {
        let [action, op, kind] = self.action.numbers();
        let first = u64::from(self.id) | u64::from_le_bytes([0, 0, 0, 0, action, op, kind, 0]);
        let mut bytes = [0; Request::LEN];
        for (to, word) in bytes.chunks_exact_mut(8).zip([first, self.segment, self.offset, self.len]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The head of a request that has so many bytes of operands, and its number if it is wrong.
    pub fn parse(bytes: &[u8; Request::LEN], operands: usize) -> Result<Request, u32> {
        let word = |i: usize| u64::from_le_bytes(bytes[8 * i..8 * i + 8].try_into().expect("8 bytes"));
        let [.., action, op, kind, rest] = word(0).to_le_bytes();
        let id = word(0) as u32;
        let request = match Action::parse(action, op, kind) {
            Some(action) if rest == 0 => Request { id, action, segment: word(1), offset: word(2), len: word(3) },
            _ => return Err(id),
        };
        // No longer than what a packet can hold, so nothing below overflows.
        let fits = request.len <= u64::from(u32::MAX)
            && request.action.fits(request.len)
            && request.action.operands(request.len) == operands as u64;
        fits.then_some(request).ok_or(id)
    }
}

/// How a request has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is done.
    Done,
    /// There is no such segment on the host.
    Unknown,
    /// The segment does not have all of these bytes.
    Outside,
    /// There is no such operation.
    Impossible,
    /// This rank has died while it had the segment's lock.
    Orphaned(u32),
}

/// The head of a reply, without its route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The number of the request.
    pub id: u32,
    /// What became of it.
    pub status: Status,
}

impl Reply {
    /// Bytes of the head.
    pub const LEN: usize = 16;

    /// As bytes.
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

    /// From bytes; None if it is none.
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
