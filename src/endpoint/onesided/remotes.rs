//! One-sided operations on segments of ranks that are not directly mappable: requests to their hosts, and the
//! replies.
//!
//! An operation that is larger than a packet is split into requests. At most [`OPEN_MAX`] requests may be outstanding
//! to one rank; the rest waits here, in the order of the calls, and is sent as replies arrive.

use crate::error::EndpointError;
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_rma::{Action, Reply, Request, Status, GETS_MAX, GRAIN, OPEN_MAX};
use slab::Slab;
use std::collections::VecDeque;

/// A one-sided operation on a segment that is not mapped here.
#[derive(Clone, Copy)]
pub struct Operation {
    /// The rank that owns the segment.
    pub dest: u32,
    /// The action.
    pub action: Action,
    /// The token of the segment.
    pub segment: u64,
    /// Offset in bytes in the segment.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// Operands, as many bytes as the action takes. They must stay valid until the event.
    pub operands: ForeignBytes<'static>,
    /// Destination of the result, as many bytes as the action returns.
    pub result: Option<ForeignRoom<'static>>,
    /// The cookie of the [`crate::Event::Remote`].
    pub cookie: usize,
    /// True if a [`crate::Event::Sent`] with the cookie is to report that the operands are not used any more, if they
    /// are in use when [`crate::Endpoint::begin`] returns.
    pub reports_sent: bool,
}

impl Operation {
    /// Returns an error if the buffers do not fit the action, or if the operation is not `served` at its rank.
    pub(crate) fn check(&self, served: bool) -> Result<(), EndpointError> {
        let expected = (self.action.operands(self.len), self.action.result(self.len));
        let given = (self.operands.len() as u64, self.result.map_or(0, |r| r.len() as u64));
        if !served || expected != given || !self.action.fits(self.len) {
            let text = format!("{:?} of {} bytes at rank {} is not served", self.action, self.len, self.dest);
            return Err(EndpointError::Argument(text));
        }
        Ok(())
    }
}

/// An operation that is not complete.
struct Open {
    what: Operation,
    /// Bytes that have been requested.
    sent: u64,
    /// True once all bytes have been requested.
    all: bool,
    /// Number of outstanding requests.
    open: usize,
}

/// A request that is not answered.
struct Fragment {
    operation: usize,
    from: u64,
    len: u64,
}

/// The operations on segments of one rank.
#[derive(Default)]
struct Queue {
    /// Operations of which a part is still to be requested.
    waiting: VecDeque<usize>,
    /// Number of outstanding requests.
    open: usize,
    /// Number of bytes that their replies carry.
    results: u64,
    listed: bool,
}

impl Queue {
    /// True if a further request may be sent, as far as the limits are concerned.
    fn has_credit(&self, piece: u64) -> bool {
        self.open < OPEN_MAX && self.results < GETS_MAX as u64 * piece
    }
}

/// The reply to a request, as far as the operation is concerned.
#[derive(Debug)]
pub struct Reported {
    /// Destination of the reply's payload.
    pub room: Option<ForeignRoom<'static>>,
    /// The error of the operation, if it has failed.
    pub result: Result<(), EndpointError>,
    /// The cookie of the operation if this was its last reply. Also after a failure: the caller is given the error
    /// first, and then the event.
    pub ended: Option<usize>,
}

/// All operations on segments of other hosts.
pub struct Remotes {
    /// One queue for each rank.
    queues: Vec<Queue>,
    /// Ranks to which a further request may be sent.
    work: VecDeque<u32>,
    operations: Slab<Open>,
    pieces: Slab<Fragment>,
    /// Maximum number of bytes of a request.
    piece: u64,
    /// Numbers of operations that report it and whose operands are not used any more.
    sent: Vec<usize>,
    /// Number of operations begun.
    pub begun: u64,
}

impl Remotes {
    /// Creates the state of a rank in a job of `ranks`; requests have at most about `chunk` bytes.
    pub fn new(ranks: usize, chunk: usize) -> Remotes {
        Remotes {
            queues: (0..ranks).map(|_| Queue::default()).collect(),
            work: VecDeque::new(),
            operations: Slab::new(),
            pieces: Slab::new(),
            piece: (chunk / GRAIN * GRAIN).max(GRAIN) as u64,
            sent: Vec::new(),
            begun: 0,
        }
    }

    #[inline]
    pub fn has_work(&self) -> bool {
        !self.work.is_empty()
    }

    /// True if no operation is outstanding.
    pub fn is_settled(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns a line on the outstanding operations, for the diagnosis of a hang.
    pub fn describe(&self) -> String {
        let of = |(_, o): (usize, &Open)| {
            let Operation { dest, action, len, .. } = o.what;
            format!("{action:?} at rank {dest} ({} of {len} bytes requested, {} replies missing)", o.sent, o.open)
        };
        format!("operations on window memory: [{}]", self.operations.iter().map(of).collect::<Vec<_>>().join(", "))
    }

    /// Drops the operations on segments of a rank.
    pub fn lose(&mut self, rank: u32) {
        let Remotes { queues, operations, pieces, .. } = self;
        queues[rank as usize].waiting.clear();
        pieces.retain(|_, piece| operations[piece.operation].what.dest != rank);
        operations.retain(|_, operation| operation.what.dest != rank);
    }

    fn list(&mut self, dest: u32) {
        let piece = self.piece;
        let queue = &mut self.queues[dest as usize];
        if !queue.listed && !queue.waiting.is_empty() && queue.has_credit(piece) {
            queue.listed = true;
            self.work.push_back(dest);
        }
    }
    /// Begins an operation and returns its number. Its requests are sent by [`Remotes::send_some`].
    pub fn begin(&mut self, what: Operation) -> usize {
        let number = self.operations.insert(Open { what, sent: 0, all: false, open: 0 });
        self.queues[what.dest as usize].waiting.push_back(number);
        self.list(what.dest);
        number
    }

    /// True if an operation that was just begun does not use its operands any more. It does not report that then.
    pub fn has_sent(&mut self, number: usize) -> bool {
        self.sent.retain(|&sent| sent != number);
        self.operations[number].all
    }

    /// Removes and returns the cookies of the operations whose operands are not used any more, and which report that.
    pub fn take_sent(&mut self) -> impl Iterator<Item = usize> + '_ {
        let operations = &self.operations;
        self.sent.drain(..).map(|number| operations[number].what.cookie)
    }

    /// Sends as many waiting requests as the limits allow; `send` returns false if there is no room for one. Returns
    /// true if any was sent.
    pub fn send_some(&mut self, mut send: impl FnMut(u32, &Request, ForeignBytes<'static>) -> bool) -> bool {
        let mut any = false;
        for _ in 0..self.work.len() {
            let Some(dest) = self.work.pop_front() else { break };
            loop {
                let queue = &mut self.queues[dest as usize];
                if queue.waiting.is_empty() || !queue.has_credit(self.piece) {
                    queue.listed = false;
                    break;
                }
                if !self.send_next(dest, &mut send) {
                    self.work.push_back(dest);
                    break;
                }
                any = true;
            }
        }
        any
    }

    /// Sends the next request to a rank. Returns false if there is no room for it.
    fn send_next(&mut self, dest: u32, send: &mut impl FnMut(u32, &Request, ForeignBytes<'static>) -> bool) -> bool {
        let Remotes { queues, operations, pieces, piece, sent: reported, .. } = self;
        let queue = &mut queues[dest as usize];
        let Some(&number) = queue.waiting.front() else { return true };
        let Open { what, sent, all, open } = &mut operations[number];
        let len = (what.len - *sent).min(*piece);
        let operands = match what.action.operands(len) {
            0 => ForeignBytes::EMPTY,
            // The operands of a compare-and-swap are never split.
            n if n != len => what.operands,
            _ => what.operands.part(*sent as usize, len as usize),
        };
        let entry = pieces.vacant_entry();
        let (action, segment, offset) = (what.action, what.segment, what.offset + *sent);
        let request = Request { id: entry.key() as u32, action, segment, offset, len };
        if !send(dest, &request, operands) {
            return false;
        }
        entry.insert(Fragment { operation: number, from: *sent, len });
        *sent += len;
        *open += 1;
        queue.open += 1;
        queue.results += what.action.result(len);
        if *sent == what.len {
            *all = true;
            queue.waiting.pop_front();
            if what.reports_sent {
                reported.push(number);
            }
        }
        true
    }

    /// Handles the reply of a rank's host to a request; it has `payload` bytes. `pid` returns the process of a rank of
    /// the job. Fails if the reply belongs to no request.
    pub fn has_answered(
        &mut self,
        src: u32,
        reply: Reply,
        payload: usize,
        pid: impl Fn(u32) -> u32,
    ) -> Result<Reported, EndpointError> {
        let ranks = self.queues.len();
        let Remotes { queues, operations, pieces, .. } = self;
        let wrong = |what| EndpointError::Offer { src, id: reply.id, what };
        let number = reply.id as usize;
        let known = pieces.get(number).is_some_and(|p| operations[p.operation].what.dest == src);
        if !known {
            return Err(wrong("replies to no request"));
        }
        let Fragment { operation, from, len } = pieces.remove(number);
        let Open { what, all, open, .. } = &mut operations[operation];
        *open -= 1;
        queues[src as usize].open -= 1;
        queues[src as usize].results -= what.action.result(len);
        let (dest, ended) = (what.dest, (*all && *open == 0).then_some(what.cookie));
        let mut result = match reply.status {
            Status::Done => Ok(()),
            Status::Unknown => Err(EndpointError::Refused { rank: dest, what: "there is no such window at that rank" }),
            Status::Outside => Err(EndpointError::Refused { rank: dest, what: "the range exceeds the window" }),
            Status::Impossible => Err(EndpointError::Refused { rank: dest, what: "the operation is invalid" }),
            Status::Orphaned(rank) if (rank as usize) < ranks && matches!(what.action, Action::Acquire(_)) => {
                Err(EndpointError::WindowLock { rank, pid: pid(rank) })
            }
            Status::Orphaned(rank) if (rank as usize) < ranks => Err(EndpointError::Orphaned { rank, pid: pid(rank) }),
            Status::Orphaned(_) => Err(wrong("names a rank that does not exist")),
        };
        let mut room = None;
        if result.is_ok() {
            match what.result {
                _ if payload as u64 != what.action.result(len) => {
                    result = Err(wrong("replies with a wrong number of bytes"));
                }
                to => room = to.filter(|_| payload > 0).map(|to| to.part(from as usize, payload)),
            }
        }
        if ended.is_some() {
            operations.remove(operation);
        }
        self.list(dest);
        Ok(Reported { room, result, ended })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: usize = 10 * GRAIN;

    fn operation(dest: u32, action: Action, len: u64, cookie: usize) -> Operation {
        let (operands, result) = (ForeignBytes::EMPTY, None);
        Operation { dest, action, segment: 1, offset: 0, len, operands, result, cookie, reports_sent: false }
    }

    /// Sends all that may be sent. Returns the requests.
    fn sent(remotes: &mut Remotes) -> Vec<Request> {
        let mut requests = Vec::new();
        remotes.send_some(|_, request, _| {
            requests.push(*request);
            true
        });
        requests
    }

    fn answer(remotes: &mut Remotes, src: u32, id: u32, status: Status) -> Result<Reported, EndpointError> {
        remotes.has_answered(src, Reply { id, status }, 0, |rank| 1000 + rank)
    }

    #[test]
    fn a_large_operation_is_split_and_only_so_many_requests_are_outstanding() {
        let mut remotes = Remotes::new(4, CHUNK);
        let pieces = OPEN_MAX as u64 + 2;
        // Acquiring a lock transfers no bytes, so its request may have any length.
        remotes.begin(operation(2, Action::Acquire(true), pieces * CHUNK as u64 - 1, 7));
        assert!(!remotes.send_some(|_, _, _| false) && remotes.has_work());
        let first = sent(&mut remotes);
        assert_eq!(first.len(), OPEN_MAX);
        assert!(first.iter().enumerate().all(|(i, r)| (r.offset, r.len) == ((i * CHUNK) as u64, CHUNK as u64)));
        assert!(!remotes.has_work());
        for request in &first {
            assert_eq!(answer(&mut remotes, 2, request.id, Status::Done).unwrap().ended, None);
        }
        let rest = sent(&mut remotes);
        assert_eq!(rest.iter().map(|r| r.len).collect::<Vec<_>>(), [CHUNK as u64, CHUNK as u64 - 1]);
        // Replies may arrive in any order.
        assert_eq!(answer(&mut remotes, 2, rest[1].id, Status::Done).unwrap().ended, None);
        let last = answer(&mut remotes, 2, rest[0].id, Status::Outside).unwrap();
        assert!(last.ended == Some(7) && last.result.is_err() && remotes.is_settled());
    }

    #[test]
    fn a_reply_without_a_request_and_a_reply_of_another_rank_are_errors() {
        let mut remotes = Remotes::new(4, CHUNK);
        remotes.begin(operation(2, Action::Release(true), 8, 7));
        let id = sent(&mut remotes)[0].id;
        assert!(answer(&mut remotes, 3, id, Status::Done).is_err());
        assert!(answer(&mut remotes, 2, id + 1, Status::Done).is_err());
        let orphaned = answer(&mut remotes, 2, id, Status::Orphaned(3)).unwrap();
        assert!(matches!(orphaned.result, Err(EndpointError::Orphaned { rank: 3, pid: 1003 })));
        assert!(answer(&mut remotes, 2, id, Status::Done).is_err());
        remotes.begin(operation(2, Action::Acquire(true), 8, 8));
        let id = sent(&mut remotes)[0].id;
        let orphaned = answer(&mut remotes, 2, id, Status::Orphaned(3)).unwrap();
        assert!(matches!(orphaned.result, Err(EndpointError::WindowLock { rank: 3, pid: 1003 })));
    }

    #[test]
    fn operations_on_segments_of_a_lost_rank_are_forgotten() {
        let mut remotes = Remotes::new(4, CHUNK);
        remotes.begin(operation(1, Action::Acquire(true), 3 * CHUNK as u64, 1));
        remotes.begin(operation(2, Action::Acquire(true), 8, 2));
        let requests = sent(&mut remotes);
        remotes.begin(operation(1, Action::Acquire(false), 8, 3));
        remotes.lose(1);
        assert!(sent(&mut remotes).is_empty() && !remotes.is_settled());
        assert!(answer(&mut remotes, 1, requests[0].id, Status::Done).is_err());
        let ended = requests.iter().find_map(|r| answer(&mut remotes, 2, r.id, Status::Done).ok()?.ended);
        assert!(ended == Some(2) && remotes.is_settled());
    }
}
