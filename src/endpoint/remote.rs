//! One-sided operations on segments of ranks that are not directly mappable: requests to their hosts, and the
//! replies.
//!
//! An operation that is larger than a packet is split into requests. At most [`OPEN_MAX`] requests may be outstanding
//! to one rank; the rest waits here, in the order of the calls, and is sent as replies arrive.

use super::arrival::{Arrival, Event};
use super::{Endpoint, EndpointError};
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_ring::relay::Route;
use ntbring_ring::Membership;
use ntbring_rma::{Action, Reply, Request, Status, GRAIN, OPEN_MAX};
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
    /// The cookie of the [`Event::Remote`].
    pub cookie: usize,
}

struct Open {
    what: Operation,
    /// Bytes that have been requested.
    sent: u64,
    /// True once all bytes have been requested.
    all: bool,
    /// Number of outstanding requests.
    open: usize,
}

struct Piece {
    operation: usize,
    from: u64,
    len: u64,
}

#[derive(Default)]
struct Queue {
    /// Operations of which a part is still to be requested.
    waiting: VecDeque<usize>,
    /// Number of outstanding requests.
    open: usize,
    listed: bool,
}

/// All operations on segments of other hosts.
pub(super) struct Remotes {
    /// One queue for each rank.
    queues: Vec<Queue>,
    /// Ranks to which a further request may be sent.
    work: VecDeque<u32>,
    operations: Slab<Open>,
    pieces: Slab<Piece>,
    /// Maximum number of bytes of a request.
    piece: u64,
    /// Number of operations begun.
    pub begun: u64,
}

impl Remotes {
    pub fn new(members: &Membership, chunk: usize) -> Remotes {
        Remotes {
            queues: (0..members.topology().size()).map(|_| Queue::default()).collect(),
            work: VecDeque::new(),
            operations: Slab::new(),
            pieces: Slab::new(),
            piece: (chunk / GRAIN * GRAIN).max(GRAIN) as u64,
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
            format!("{action:?} at rank {dest} ({} of {len} bytes asked for, {} not answered)", o.sent, o.open)
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
        let queue = &mut self.queues[dest as usize];
        if !queue.listed && !queue.waiting.is_empty() && queue.open < OPEN_MAX {
            queue.listed = true;
            self.work.push_back(dest);
        }
    }
}

impl Endpoint {
    /// True if the host of a rank whose segments are not mappable performs operations on them for this rank. Requests
    /// to hosts are not carried end to end: where links may go down, ranks send each other messages instead.
    pub fn is_served(&self, rank: u32) -> bool {
        let served = self.members.is_served() && self.out.caretaker.is_none();
        served && (rank as usize) < self.members.topology().size() && !self.is_near(rank)
    }

    /// Begins an operation. An [`Event::Remote`] reports its end.
    pub fn begin(&mut self, what: Operation) -> Result<(), EndpointError> {
        let expected = (what.action.operands(what.len), what.action.result(what.len));
        let given = (what.operands.len() as u64, what.result.map_or(0, |r| r.len() as u64));
        if !self.is_served(what.dest) || expected != given || !what.action.fits(what.len) {
            let text = format!("{:?} of {} bytes at rank {} is not served", what.action, what.len, what.dest);
            return Err(EndpointError::Argument(text));
        }
        let remotes = &mut self.remotes;
        remotes.begun += 1;
        if self.out.is_lost(what.dest) {
            return Ok(());
        }
        let number = remotes.operations.insert(Open { what, sent: 0, all: false, open: 0 });
        remotes.queues[what.dest as usize].waiting.push_back(number);
        remotes.list(what.dest);
        self.request_some();
        Ok(())
    }

    /// Sends as many waiting requests as the limits allow. Returns true if any was sent.
    pub(super) fn request_some(&mut self) -> bool {
        let mut any = false;
        for _ in 0..self.remotes.work.len() {
            let Some(dest) = self.remotes.work.pop_front() else { break };
            loop {
                let queue = &self.remotes.queues[dest as usize];
                if queue.waiting.is_empty() || queue.open >= OPEN_MAX {
                    self.remotes.queues[dest as usize].listed = false;
                    break;
                }
                if !self.request_next(dest) {
                    self.remotes.work.push_back(dest);
                    break;
                }
                any = true;
            }
        }
        any
    }

    /// Sends the next request to a rank. Returns false if there is no room for it.
    fn request_next(&mut self, dest: u32) -> bool {
        let Remotes { queues, operations, pieces, piece, .. } = &mut self.remotes;
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
        let route = Route { src: self.members.rank(), dst: dest };
        if !self.out.request(route, &request, operands) {
            return false;
        }
        entry.insert(Piece { operation: number, from: *sent, len });
        *sent += len;
        *open += 1;
        queue.open += 1;
        if *sent == what.len {
            *all = true;
            queue.waiting.pop_front();
        }
        true
    }

    /// Handles the reply to a request.
    pub(super) fn request_answered(&mut self, a: &Arrival, reply: Reply, payload: usize) -> Result<(), EndpointError> {
        let Remotes { queues, operations, pieces, .. } = &mut self.remotes;
        let wrong = |what| EndpointError::Offer { src: a.src, id: reply.id, what };
        let number = reply.id as usize;
        let known = pieces.get(number).is_some_and(|p| operations[p.operation].what.dest == a.src);
        if !known {
            return Err(wrong("answers what was not asked"));
        }
        let Piece { operation, from, len } = pieces.remove(number);
        let Open { what, all, open, .. } = &mut operations[operation];
        *open -= 1;
        queues[a.src as usize].open -= 1;
        let (dest, cookie, done) = (what.dest, what.cookie, *all && *open == 0);
        let mut result = match reply.status {
            Status::Done => Ok(()),
            Status::Unknown => Err(EndpointError::Refused { rank: dest, what: "there is no such window there" }),
            Status::Outside => Err(EndpointError::Refused { rank: dest, what: "it is not all in the window" }),
            Status::Impossible => Err(EndpointError::Refused { rank: dest, what: "it makes no sense" }),
            Status::Orphaned(rank) if (rank as usize) < self.members.topology().size() => {
                Err(EndpointError::Orphaned { rank, pid: self.members.pid(rank) })
            }
            Status::Orphaned(_) => Err(wrong("names a rank that there is not")),
        };
        if result.is_ok() {
            let expected = what.action.result(len);
            match what.result {
                _ if payload as u64 != expected => result = Err(wrong("answers with more or less than was asked for")),
                Some(room) if payload > 0 => {
                    self.inbound.copy_out(a.token.lane, a.offset, room.part(from as usize, payload));
                }
                _ => {}
            }
        }
        if done {
            // Also after a failure: the caller is given the error first, and then the event.
            operations.remove(operation);
            self.offers.events.push_back(Event::Remote { cookie });
        }
        self.remotes.list(dest);
        result
    }
}
