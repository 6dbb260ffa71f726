//! Execution of requests on the segments of a host, and their replies.
//!
//! Nothing here blocks: a request that needs a lock which is held is queued in order, and tried again at every step.
//! The queues are bounded, since a rank may only have [`OPEN_MAX`] requests open to another.

use super::instructions;
use super::operate::accumulate;
use super::packet::{Action, Reply, Request, Status, OPEN_MAX};
use super::registry::{Change, Registry};
use ntbring_host::{barrier, Segment};
use ntbring_memory::InWindow;
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

/// Interval between two checks for dead lock holders.
const CHECK_HOLDERS_EVERY: Duration = Duration::from_millis(100);

/// Maximum number of replies that have left and are not counted as sent yet: each thread of the host may have put one into
/// its lane, and the requester may have seen it and sent another request by another lane.
const LEAVING_MAX: usize = 8;

type Bytes = SmallVec<[u8; 64]>;

/// The ranks of the job, as the server needs to know them.
pub trait Ranks {
    /// Returns true if `rank` is a rank of the job and runs in the process `pid` of this host.
    fn is_process(&self, rank: u32, pid: u32) -> bool;
    /// Returns true if `rank` is no rank of the job, or has died.
    fn is_gone(&self, rank: u32) -> bool;
}

/// A request that waits for a lock.
struct Pending {
    from: u32,
    to: u32,
    request: Request,
    operands: Bytes,
}

/// A registered segment with the requests that wait for its locks.
struct Served {
    segment: Segment,
    /// Atomic operations that wait for the segment's lock, in order.
    atomics: VecDeque<Pending>,
    /// Requests that wait for the window's lock, in order.
    acquires: VecDeque<Pending>,
    /// Ranks that share the window's lock by requests, once for each time that they hold it.
    sharers: Vec<u32>,
}

/// A reply that is to be sent.
pub struct Answer {
    /// The rank that owns the memory.
    pub from: u32,
    /// The rank that sent the request.
    pub to: u32,
    reply: Reply,
    payload: Bytes,
}

impl Answer {
    /// Returns the size of the encoded reply, bytes.
    pub fn size(&self) -> usize {
        Reply::LEN + self.payload.len()
    }

    /// Returns the head and the payload of the reply, which follow each other in the packet.
    pub fn parts(&self) -> ([u8; Reply::LEN], &[u8]) {
        (self.reply.bytes(), &self.payload)
    }
}

/// Server of a host's segments, with their open requests.
pub struct Server {
    /// The rank in whose name segments are locked.
    rank: u32,
    registry: Registry,
    segments: HashMap<u64, Served>,
    /// Number of unanswered requests of each rank.
    open: HashMap<u32, usize>,
    /// Maximum number of unanswered requests of one rank, with those whose replies are leaving.
    limit: usize,
    /// Maximum number of bytes that a reply may carry.
    result_max: u64,
    /// Number of requests that wait for a lock.
    waiting: usize,
    /// Time of the latest check for dead lock holders.
    checked: Instant,
    /// True if sleepers execute the expensive side of the memory barrier.
    paired: bool,
    /// Replies to be sent.
    pub answers: VecDeque<Answer>,
}

impl Server {
    /// Creates the server of a host with `local` ranks. There must be one only; it locks segments in the name of
    /// `rank`. Replies of up to `packet_max` bytes fit into all lanes on their way.
    pub fn new(rank: u32, local: usize, packet_max: usize, registry: Registry, now: Instant) -> Server {
        Server {
            rank,
            registry,
            segments: HashMap::new(),
            open: HashMap::new(),
            limit: OPEN_MAX * local + LEAVING_MAX,
            result_max: packet_max.saturating_sub(Reply::LEN) as u64,
            waiting: 0,
            checked: now,
            paired: barrier::available(),
            answers: VecDeque::new(),
        }
    }

    /// Returns the number of requests that wait for a lock. No doorbell rings when a lock is released.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Answers registrations of the host's ranks, and tries again to serve requests that wait for locks. Returns the
    /// number of requests that stopped waiting.
    #[inline]
    pub fn step(&mut self, ranks: &impl Ranks, now: Instant) -> usize {
        if !self.registry.has_news() && self.waiting == 0 {
            return 0;
        }
        let before = self.waiting;
        self.update_registrations(ranks);
        let tokens: SmallVec<[u64; 4]> = match self.waiting {
            0 => SmallVec::new(),
            _ => self.segments.iter().filter(|(_, s)| s.has_waiting()).map(|(&token, _)| token).collect(),
        };
        for token in tokens {
            self.retry(token);
        }
        if self.waiting > 0 && now.saturating_duration_since(self.checked) >= CHECK_HOLDERS_EVERY {
            self.checked = now;
            self.fail_orphans(ranks);
        }
        before.saturating_sub(self.waiting)
    }

    /// Accepts the request of rank `from` to rank `to` of this host, whose head and operands are the `len` bytes at
    /// `offset` of a lane. Returns false if its sender has more open requests than allowed.
    pub fn take(&mut self, (from, to): (u32, u32), lane: &InWindow, offset: usize, len: usize) -> bool {
        let open = self.open.entry(from).or_default();
        *open += 1;
        if *open > self.limit {
            return false;
        }
        let mut head = [0; Request::LEN];
        lane.read(offset, &mut head);
        let (at, operands) = (offset + Request::LEN, len - Request::LEN);
        let request = match Request::parse(&head, operands) {
            Ok(request) if request.action.result(request.len) <= self.result_max => request,
            Ok(Request { id, .. }) | Err(id) => {
                self.answer((from, to), id, Status::Impossible, Bytes::new());
                return true;
            }
        };
        let Some(served) = self.segments.get_mut(&request.segment) else {
            self.answer((from, to), request.id, Status::Unknown, Bytes::new());
            return true;
        };
        let size = served.segment.size();
        if request.offset > size || request.len > size - request.offset {
            self.answer((from, to), request.id, Status::Outside, Bytes::new());
            return true;
        }
        if request.action == Action::Put {
            served.segment.sink().write(request.offset as usize, lane.foreign(at, operands));
            served.segment.ring_sleepers(self.paired);
            self.answer((from, to), request.id, Status::Done, Bytes::new());
            return true;
        }
        let mut bytes = Bytes::from_elem(0, operands);
        lane.read(at, &mut bytes);
        let pending = Pending { from, to, request, operands: bytes };
        match request.action {
            Action::Acquire(_) => served.acquires.push_back(pending),
            action if action.is_atomic() => served.atomics.push_back(pending),
            action => {
                let answer = served.at_once(from, action, &request, &pending.operands);
                served.segment.ring_sleepers(self.paired);
                self.answer((from, to), request.id, answer.0, answer.1);
                if matches!(action, Action::Release(_)) {
                    self.retry(request.segment);
                }
                return true;
            }
        }
        self.waiting += 1;
        self.retry(request.segment);
        true
    }

    /// Counts a reply as sent; to be called when it was.
    pub fn sent(&mut self, answer: &Answer) {
        if let Some(open) = self.open.get_mut(&answer.to) {
            *open = open.saturating_sub(1);
        }
    }

    fn answer(&mut self, (from, to): (u32, u32), id: u32, status: Status, payload: Bytes) {
        self.answers.push_back(Answer { from: to, to: from, reply: Reply { id, status }, payload });
    }

    fn update_registrations(&mut self, ranks: &impl Ranks) {
        let Server { registry, segments, .. } = self;
        registry.grant(|owner, change| match change {
            Change::Register(address) if ranks.is_process(owner, address.file.pid) => match Segment::open(&address) {
                Ok(segment) => {
                    segments.insert(address.file.token, Served::new(segment));
                    true
                }
                Err(error) => {
                    log::error!("window memory of rank {owner} cannot be served: {error}");
                    false
                }
            },
            Change::Register(_) => false,
            Change::Deregister(address) => segments.remove(&address.file.token).is_some(),
        });
        self.waiting = self.segments.values().map(|s| s.atomics.len() + s.acquires.len()).sum();
    }

    /// Serves requests that wait for the locks of a segment, as long as locks can be acquired.
    fn retry(&mut self, token: u64) {
        let rank = self.rank;
        loop {
            let Some(served) = self.segments.get_mut(&token) else { return };
            let Some((done, payload)) = served.next_atomic(rank).or_else(|| served.next_acquire()) else { return };
            self.waiting -= 1;
            self.answer((done.from, done.to), done.request.id, Status::Done, payload);
        }
    }

    /// Answers requests that wait for a lock, of a segment or of its window, whose holder has died or is not a rank.
    /// Requests of such ranks are dropped, so that no lock is granted to them.
    fn fail_orphans(&mut self, ranks: &impl Ranks) {
        let mut orphans = Vec::new();
        for served in self.segments.values_mut().filter(|served| served.has_waiting()) {
            if let Some(holder) = served.segment.holder().filter(|&holder| ranks.is_gone(holder)) {
                orphans.extend(served.atomics.drain(..).map(|pending| (pending, holder)));
            }
            let waiting = served.acquires.len();
            served.drop_gone(ranks);
            self.waiting -= waiting - served.acquires.len();
            orphans.extend(served.orphaned_acquires(ranks));
        }
        for (pending, holder) in orphans {
            self.waiting -= 1;
            self.answer((pending.from, pending.to), pending.request.id, Status::Orphaned(holder), Bytes::new());
        }
    }

    /// Returns lines on the waiting requests, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        let waiting = self.segments.iter().filter(|(_, s)| s.has_waiting()).map(|(token, s)| {
            format!(
                "window memory {token:x}: {} operations wait for the lock of rank {:?}, {} ranks for the window's",
                s.atomics.len(),
                s.segment.holder(),
                s.acquires.len()
            )
        });
        waiting.collect()
    }
}

impl Served {
    fn new(segment: Segment) -> Served {
        Served { segment, atomics: VecDeque::new(), acquires: VecDeque::new(), sharers: Vec::new() }
    }

    fn has_waiting(&self) -> bool {
        !self.atomics.is_empty() || !self.acquires.is_empty()
    }

    /// Carries out an action of rank `from` that needs no lock.
    fn at_once(&mut self, from: u32, action: Action, request: &Request, operands: &[u8]) -> (Status, Bytes) {
        let (at, len) = (request.offset as usize, request.len as usize);
        let is_aligned = len > 0 && at % len == 0;
        match action {
            Action::Atomic(..) | Action::AtomicSwap if !is_aligned => (Status::Impossible, Bytes::new()),
            Action::Atomic(op, _) => {
                let before = instructions::operate(self.segment.bytes(), at, len, op, operands);
                (Status::Done, Bytes::from_slice(&before[..len]))
            }
            Action::AtomicSwap => {
                let before = instructions::swap(self.segment.bytes(), at, len, operands);
                (Status::Done, Bytes::from_slice(&before[..len]))
            }
            Action::Release(alone) if !self.segment.release(alone) => (Status::Impossible, Bytes::new()),
            Action::Release(alone) => {
                if let Some(at) = self.sharers.iter().position(|&sharer| sharer == from && !alone) {
                    self.sharers.swap_remove(at);
                }
                (Status::Done, Bytes::new())
            }
            _ => (Status::Done, self.read(request)),
        }
    }

    /// Drops the requests for the window's lock of ranks that are gone, and their reservation of it.
    fn drop_gone(&mut self, ranks: &impl Ranks) {
        if self.acquires.is_empty() {
            return;
        }
        self.acquires.retain(|pending| !ranks.is_gone(pending.from));
        if let Some(reserver) = self.segment.reserver().filter(|&reserver| ranks.is_gone(reserver)) {
            self.segment.cancel_reservation(reserver);
        }
    }

    /// Removes and returns the requests that wait for the window's lock in vain, since a holder is gone, each with that
    /// holder. Ranks that share the lock without requests are not known.
    fn orphaned_acquires(&mut self, ranks: &impl Ranks) -> Vec<(Pending, u32)> {
        if self.acquires.is_empty() {
            return Vec::new();
        }
        if let Some(holder) = self.segment.exclusive_holder().filter(|&holder| ranks.is_gone(holder)) {
            return self.acquires.drain(..).map(|pending| (pending, holder)).collect();
        }
        let Some(&sharer) = self.sharers.iter().find(|&&sharer| ranks.is_gone(sharer)) else { return Vec::new() };
        let is_alone = |pending: &Pending| pending.request.action == Action::Acquire(true);
        let (alone, shared) = std::mem::take(&mut self.acquires).into_iter().partition(is_alone);
        self.acquires = shared;
        VecDeque::into_iter(alone).map(|pending| (pending, sharer)).collect()
    }

    fn read(&self, request: &Request) -> Bytes {
        let mut bytes = Bytes::from_elem(0, request.len as usize);
        self.segment.source().read(request.offset as usize, &mut bytes);
        bytes
    }

    /// Carries out the first atomic operation that waits, if the segment's lock can be acquired for `rank`.
    fn next_atomic(&mut self, rank: u32) -> Option<(Pending, Bytes)> {
        if self.atomics.is_empty() || !self.segment.try_lock(rank) {
            return None;
        }
        let pending = self.atomics.pop_front()?;
        let before = self.read(&pending.request);
        let mut after = before.clone();
        match pending.request.action {
            Action::Accumulate(op, kind) | Action::Fetch(op, kind) if !pending.operands.is_empty() => {
                accumulate(op, kind, &mut after, &pending.operands);
            }
            Action::Swap => {
                let (compare, new) = pending.operands.split_at(pending.operands.len() / 2);
                if *compare == before[..] {
                    after.copy_from_slice(new);
                }
            }
            _ => {}
        }
        if after != before {
            self.segment.sink().write_bytes(pending.request.offset as usize, &after);
        }
        self.segment.unlock();
        let payload = if pending.request.action.result(pending.request.len) > 0 { before } else { Bytes::new() };
        Some((pending, payload))
    }

    /// Grants the window's lock to the first waiting request that can have it.
    fn next_acquire(&mut self) -> Option<(Pending, Bytes)> {
        let segment = &self.segment;
        let can_have = |pending: &Pending| matches!(pending.request.action, Action::Acquire(alone) if segment.try_acquire(pending.from, alone));
        let first = self.acquires.iter().position(can_have)?;
        let pending = self.acquires.remove(first)?;
        if pending.request.action == Action::Acquire(false) {
            self.sharers.push(pending.from);
        }
        Some((pending, Bytes::new()))
    }
}

#[cfg(test)]
mod tests;
