//! Connection messages: messages between two processes that have no communicator in common yet.
//!
//! A process that connects sends a request (`Request`), under a tag that the other process has published, and waits
//! for the reply (`Reply`). A process that accepts takes the oldest request under that tag, from any peer, and replies
//! to it. Both use the same two calls, so the meaning of a call follows from the earlier calls of its thread.

use crate::error::EndpointError;
use crate::wire::{DpmId, DpmKind, Packet};
use ntbring_ring::PeerLoss;
use std::collections::VecDeque;
use std::thread::{current, ThreadId};

/// Maximum number of bytes of a connection message.
pub const DPM_MAX: usize = 512;

/// Maximum number of requests that are kept until this process accepts.
const REQUESTS_MAX: usize = 4096;

/// A connection message that has arrived.
struct DpmMessage {
    peer: u32,
    what: DpmId,
    bytes: Vec<u8>,
}

/// A request that this process has sent, or has taken and must reply to.
struct Open {
    thread: ThreadId,
    peer: u32,
    what: DpmId,
}

/// Connection messages that have arrived and were not taken, and replies that this process owes.
#[derive(Default)]
pub struct DpmMessages {
    requests: VecDeque<DpmMessage>,
    replies: Vec<DpmMessage>,
    sent: Vec<Open>,
    owed: Vec<Open>,
    /// Number of requests sent so far.
    count: u32,
}

/// Removes the first entry of this thread for which `wanted` holds.
fn take(list: &mut Vec<Open>, wanted: impl Fn(&Open) -> bool) -> Option<Open> {
    let me = current().id();
    let i = list.iter().position(|o| o.thread == me && wanted(o))?;
    Some(list.remove(i))
}

impl DpmMessages {
    /// Drops the connection messages of a peer and the replies owed to it. Requests sent to it stay open, for the
    /// callers that wait.
    pub fn lose(&mut self, peer: u32) {
        self.requests.retain(|request| request.peer != peer);
        self.replies.retain(|reply| reply.peer != peer);
        self.owed.retain(|owed| owed.peer != peer);
    }

    /// Returns true if a caller waits for a reply of this peer.
    pub fn has_asked(&self, peer: u32) -> bool {
        self.sent.iter().any(|request| request.peer == peer)
    }

    /// Returns a line on each connection message that waits.
    pub fn describe(&self) -> Vec<String> {
        let line = |o: &Open, what| format!("{what} peer {} under tag {}", o.peer, o.what.tag);
        let sent = self.sent.iter().map(|o| line(o, "no reply yet of"));
        let owed = self.owed.iter().map(|o| line(o, "no reply yet to"));
        let requests =
            self.requests.iter().map(|r| format!("peer {} requests a connection under tag {}", r.peer, r.what.tag));
        sent.chain(owed).chain(requests).collect()
    }
    /// Returns the packet of a connection message of `len` bytes: the reply to a peer if this thread has taken its
    /// request under that tag, and a request otherwise.
    pub fn dpm_send(&mut self, peer: u32, tag: u32, len: usize) -> Result<Packet, EndpointError> {
        if len > DPM_MAX {
            return Err(EndpointError::Argument(format!("a connection message of {len} bytes")));
        }
        let (kind, what) = match take(&mut self.owed, |o| (o.peer, o.what.tag) == (peer, tag)) {
            Some(owed) => (DpmKind::Reply, owed.what),
            None => {
                self.count = self.count.wrapping_add(1);
                let what = DpmId { tag, number: self.count };
                self.sent.push(Open { thread: current().id(), peer, what });
                (DpmKind::Request, what)
            }
        };
        Ok(Packet::Dpm { what, kind, payload: len })
    }

    /// Returns the reply if this thread has sent a request under that tag, and otherwise the oldest request of a peer
    /// that is not gone; None if there is none yet. Fails if the peer to which the request was sent is lost.
    pub fn next(
        &mut self,
        tag: u32,
        is_gone: impl Fn(u32) -> bool,
        loss_of: impl Fn(u32) -> Option<PeerLoss>,
    ) -> Result<Option<Vec<u8>>, EndpointError> {
        let me = current().id();
        if let Some(&Open { peer, what, .. }) = self.sent.iter().find(|o| o.thread == me && o.what.tag == tag) {
            return self.reply(peer, what, loss_of(peer));
        }
        while let Some(i) = self.requests.iter().position(|r| r.what.tag == tag) {
            let Some(DpmMessage { peer, what, bytes }) = self.requests.remove(i) else { break };
            if is_gone(peer) {
                continue;
            }
            // Requests that this thread has taken before without a reply never get one.
            while take(&mut self.owed, |o| o.what.tag == tag).is_some() {}
            self.owed.push(Open { thread: me, peer, what });
            return Ok(Some(bytes));
        }
        Ok(None)
    }

    fn reply(&mut self, peer: u32, what: DpmId, loss: Option<PeerLoss>) -> Result<Option<Vec<u8>>, EndpointError> {
        let found = self.replies.iter().position(|r| (r.peer, r.what) == (peer, what));
        if found.is_some() || loss.is_some() {
            take(&mut self.sent, |o| (o.peer, o.what) == (peer, what));
        }
        match (found, loss) {
            (Some(i), _) => Ok(Some(self.replies.swap_remove(i).bytes)),
            (None, Some(loss)) => Err(loss.into()),
            (None, None) => Ok(None),
        }
    }

    /// Withdraws one request of this thread under that tag. Returns its peer and the packet by which the peer learns
    /// that it must not accept the request any more; None if there is no such request.
    pub fn withdraw(&mut self, tag: u32) -> Option<(u32, Packet)> {
        let Open { peer, what, .. } = take(&mut self.sent, |o| o.what.tag == tag)?;
        self.replies.retain(|r| (r.peer, r.what) != (peer, what));
        Some((peer, Packet::Dpm { what, kind: DpmKind::Withdrawal, payload: 0 }))
    }

    /// Handles a connection message of `len` bytes, which `read` copies. Peers outside the job may send any connection
    /// message, so an invalid one is dropped.
    pub fn has_arrived(&mut self, peer: u32, (what, kind): (DpmId, DpmKind), len: usize, read: impl FnOnce(&mut [u8])) {
        if len > DPM_MAX {
            return log::warn!("peer {peer} has sent a connection message that is too long: {len} bytes");
        }
        let mut bytes = vec![0; len];
        read(&mut bytes);
        let message = DpmMessage { peer, what, bytes };
        match kind {
            DpmKind::Request if self.requests.len() < REQUESTS_MAX => self.requests.push_back(message),
            DpmKind::Request => log::warn!("a connection request of peer {peer} was dropped: too many are open"),
            // A reply to a request that was withdrawn is dropped.
            DpmKind::Reply if self.sent.iter().any(|o| (o.peer, o.what) == (peer, what)) => {
                if self.replies.iter().all(|reply| (reply.peer, reply.what) != (peer, what)) {
                    self.replies.push(message);
                }
            }
            DpmKind::Reply => log::debug!("peer {peer} replies too late under tag {}", what.tag),
            DpmKind::Withdrawal => self.requests.retain(|r| (r.peer, r.what) != (peer, what)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAG: u32 = 5;

    /// Passes a connection message on from peer `from` to another process.
    fn pass(packet: Packet, bytes: &[u8], from: u32, to: &mut DpmMessages) {
        let Packet::Dpm { what, kind, payload } = packet else { panic!("not a connection message") };
        to.has_arrived(from, (what, kind), payload, |room| room.copy_from_slice(bytes));
    }

    fn next(dpm_messages: &mut DpmMessages) -> Result<Option<Vec<u8>>, EndpointError> {
        dpm_messages.next(TAG, |_| false, |_| None)
    }

    #[test]
    fn a_request_is_taken_by_one_process_and_its_reply_by_the_other() {
        let (mut asks, mut accepts) = (DpmMessages::default(), DpmMessages::default());
        assert_eq!(next(&mut accepts).unwrap(), None);
        // Peer 8 of the connecting process is peer 3 of the accepting one.
        pass(asks.dpm_send(8, TAG, 5).unwrap(), b"hello", 3, &mut accepts);
        assert!(asks.has_asked(8) && next(&mut asks).unwrap().is_none());
        assert_eq!(next(&mut accepts).unwrap().unwrap(), b"hello");
        assert_eq!(next(&mut accepts).unwrap(), None);
        pass(accepts.dpm_send(3, TAG, 3).unwrap(), b"yes", 8, &mut asks);
        assert_eq!(next(&mut asks).unwrap().unwrap(), b"yes");
        assert!(!asks.has_asked(8) && asks.describe().is_empty() && accepts.describe().is_empty());
        assert!(asks.dpm_send(8, TAG, DPM_MAX + 1).is_err());
    }

    #[test]
    fn a_request_that_is_withdrawn_is_not_taken_and_its_reply_is_dropped() {
        let (mut asks, mut accepts) = (DpmMessages::default(), DpmMessages::default());
        for taken in [false, true] {
            pass(asks.dpm_send(8, TAG, 0).unwrap(), b"", 3, &mut accepts);
            assert!(!taken || next(&mut accepts).unwrap().is_some());
            let (peer, withdrawal) = asks.withdraw(TAG).unwrap();
            assert_eq!((peer, asks.withdraw(TAG).is_none()), (8, true));
            pass(withdrawal, b"", 3, &mut accepts);
            assert_eq!(next(&mut accepts).unwrap(), None);
        }
        // The second request was taken before it was withdrawn.
        pass(accepts.dpm_send(3, TAG, 3).unwrap(), b"yes", 8, &mut asks);
        assert!(asks.replies.is_empty());
    }

    #[test]
    fn a_caller_that_waits_for_a_lost_peer_gets_an_error() {
        let (mut asks, mut accepts) = (DpmMessages::default(), DpmMessages::default());
        let request = asks.dpm_send(8, TAG, 0).unwrap();
        asks.lose(8);
        // The request stays open for the caller that waits, and fails once.
        assert!(asks.has_asked(8));
        let loss = PeerLoss::ExternalPeerDied { peer: 8, pid: 1 };
        assert!(asks.next(TAG, |_| false, |_| Some(loss)).is_err());
        assert_eq!(asks.next(TAG, |_| false, |_| Some(loss)).unwrap(), None);
        // A request of a peer that is gone is not taken.
        pass(request, b"", 3, &mut accepts);
        assert_eq!(accepts.next(TAG, |peer| peer == 3, |_| None).unwrap(), None);
        pass(request, b"", 3, &mut accepts);
        accepts.lose(3);
        assert_eq!(next(&mut accepts).unwrap(), None);
    }
}
