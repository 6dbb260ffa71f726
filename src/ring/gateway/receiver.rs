//! Receiving end of a tunnel: puts packets in order, and entries together from their parts. Without I/O.

use super::packet::{Content, Fragment, Packet};
use super::sender::{size, WINDOW};
use crate::external_peer::Ending;
use std::collections::VecDeque;

/// Receiving end of a tunnel.
pub(super) struct Receiver {
    /// Packets that were received, but are not placed yet, in order.
    waiting: VecDeque<Content>,
    /// Bytes in `waiting`.
    bytes: usize,
    /// Number of packets received.
    received: u64,
    /// The parts of the entry that is being put together.
    entry: Vec<u8>,
    /// Largest number of bytes of an entry.
    entry_max: usize,
    /// Set if the sender has to get a confirmation.
    owes: bool,
}

/// Result of [`Receiver::place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Placed {
    /// Everything that could be placed is placed.
    Open,
    /// The sending process is gone, and all that it sent is placed.
    Ended(Ending),
    /// A packet is invalid.
    Invalid(&'static str),
}

impl Receiver {
    /// Returns a receiver that has received the packet which opens the tunnel. Entries have up to `entry_max` bytes.
    pub fn new(entry_max: usize) -> Receiver {
        Receiver { waiting: VecDeque::new(), bytes: 0, received: 1, entry: Vec::new(), entry_max, owes: true }
    }

    /// Handles a packet: a repeated one is confirmed again, and one that is early is dropped, as is one for which there
    /// is no memory, since the sender has to respect the window.
    pub fn accept(&mut self, number: u64, content: Content) {
        self.owes = true;
        if number == self.received && self.bytes < 2 * (WINDOW + self.entry_max) {
            self.bytes += size(&content);
            self.waiting.push_back(content);
            self.received += 1;
        }
    }

    /// Lets the next confirmation be sent although there is no news.
    pub fn probe(&mut self) {
        self.owes = true;
    }

    /// Puts entries into the receiver's lane by `put(kind, meta, bytes)`, which returns false if there is no room.
    pub fn place(&mut self, mut put: impl FnMut(u8, u16, &[u8]) -> bool) -> Placed {
        while let Some(content) = self.waiting.front() {
            match content {
                Content::Open { .. } => return Placed::Invalid("a tunnel was opened twice"),
                Content::Close(_) if !self.entry.is_empty() => return Placed::Invalid("an entry is incomplete"),
                Content::Close(ending) => {
                    let ending = *ending;
                    self.owes = true;
                    self.waiting.clear();
                    return Placed::Ended(ending);
                }
                Content::Data(Fragment { kind, meta, total, at, bytes }) => {
                    let (at, end, total) = (*at as usize, *at as usize + bytes.len(), *total as usize);
                    if at != self.entry.len() || end > total || total > self.entry_max || end == at && total > 0 {
                        return Placed::Invalid("a part of an entry does not follow the previous one");
                    }
                    let done = match (at, end == total) {
                        (0, true) => put(*kind, *meta, bytes),
                        (_, last) => {
                            self.entry.extend_from_slice(bytes);
                            !last || put(*kind, *meta, &self.entry)
                        }
                    };
                    if !done {
                        self.entry.truncate(at);
                        return Placed::Open;
                    }
                    if end == total {
                        self.entry.clear();
                    }
                }
            }
            self.bytes -= self.waiting.pop_front().as_ref().map_or(0, size);
            self.owes = true;
        }
        Placed::Open
    }

    /// Returns the number of packets that wait for room.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the confirmation that the sender has to get, if there is one.
    pub fn confirmation(&mut self) -> Option<Packet> {
        let waiting = self.waiting.len() as u32;
        std::mem::take(&mut self.owes).then_some(Packet::Confirm { received: self.received, waiting })
    }
}

#[cfg(test)]
mod tests;
