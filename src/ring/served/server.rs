//! Execution of requests on the segments of a host, and their replies.
//!
//! Nothing here blocks: a request that needs a lock which is held is queued in order, and tried again at every step.
//! The queues are bounded, since a rank may only have [`OPEN_MAX`] requests open to another.

use super::registry::{Registry, Wish};
use super::{Action, Reply, Request, Status, OPEN_MAX, REPLY};
use crate::relay::{Route, ROUTED};
use crate::Membership;
use ntbring_host::Segment;
use ntbring_memory::InWindow;
use ntbring_queue::Producer;
use smallvec::SmallVec;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between two checks for dead lock holders.
const GLANCE: Duration = Duration::from_millis(100);

type Bytes = SmallVec<[u8; 64]>;

/// A request that has to wait for a lock.
struct Job {
    route: Route,
    request: Request,
    operands: Bytes,
}

struct Served {
    segment: Segment,
    /// Atomic operations that wait for the segment's lock, in order.
    jobs: VecDeque<Job>,
    /// Requests that wait for the window's lock, in order.
    suitors: VecDeque<Job>,
}

/// A reply that is to be sent.
pub struct Answer {
    /// Route from the rank that owns the memory to the one that sent the request.
    pub route: Route,
    reply: Reply,
    payload: Bytes,
}

impl Answer {
    /// Writes the reply into a lane; returns false if there is no room.
    pub fn put(&self, lane: &mut Producer) -> bool {
        let len = Route::LEN + Reply::LEN + self.payload.len();
        let Some(mut slot) = lane.reserve(len) else { return false };
        slot.write_bytes(0, &self.route.bytes());
        slot.write_bytes(Route::LEN, &self.reply.bytes());
        slot.write_bytes(Route::LEN + Reply::LEN, &self.payload);
        slot.commit(ROUTED | REPLY, len, 0);
        true
    }
}

/// Server of a host's segments, with their open requests.
pub struct Server {
    members: Arc<Membership>,
    registry: Registry,
    segments: HashMap<u64, Served>,
    /// Number of unanswered requests of each rank.
    open: HashMap<u32, usize>,
    /// Maximum number of unanswered requests of one rank.
    limit: usize,
    /// Maximum number of bytes that a reply may carry.
    result_max: u64,
    /// Number of requests that wait for a lock.
    waiting: usize,
    glanced: Instant,
    /// Replies to be sent.
    pub answers: VecDeque<Answer>,
}

impl Server {
    /// Creates the server of this process's host. There must be one only.
    pub fn new(members: &Arc<Membership>) -> Server {
        Server {
            registry: members.registry(),
            segments: HashMap::new(),
            open: HashMap::new(),
            limit: OPEN_MAX * members.topology().ranks_of(members.host()).len(),
            // All lanes on the way accept a packet of that size.
            result_max: (members.packet_max() - Route::LEN - Reply::LEN) as u64,
            waiting: 0,
            glanced: Instant::now(),
            answers: VecDeque::new(),
            members: members.clone(),
        }
    }

    /// Returns the number of requests that wait for a lock. No doorbell rings when a lock is released.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Answers registrations of the host's ranks, and tries again to serve requests that wait for locks. Returns the
    /// number of requests that stopped waiting.
    #[inline]
    pub fn step(&mut self) -> usize {
        if !self.registry.has_news() && self.waiting == 0 {
            return 0;
        }
        let before = self.waiting;
        self.attend();
        let tokens: SmallVec<[u64; 4]> = match self.waiting {
            0 => SmallVec::new(),
            _ => self.segments.iter().filter(|(_, s)| s.has_waiting()).map(|(&token, _)| token).collect(),
        };
        for token in tokens {
            self.retry(token);
        }
        if self.waiting > 0 && self.glanced.elapsed() >= GLANCE {
            self.glanced = Instant::now();
            self.bury();
        }
        before.saturating_sub(self.waiting)
    }

    /// Accepts the request whose head and operands are the `len` bytes at `offset` of a lane. Returns false if its
    /// sender has more open requests than allowed.
    pub fn take(&mut self, route: Route, lane: &InWindow, offset: usize, len: usize) -> bool {
        let open = self.open.entry(route.src).or_default();
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
                self.answer(route, id, Status::Impossible, Bytes::new());
                return true;
            }
        };
        let Some(served) = self.segments.get_mut(&request.segment) else {
            self.answer(route, request.id, Status::Unknown, Bytes::new());
            return true;
        };
        let size = served.segment.size();
        if request.offset > size || request.len > size - request.offset {
            self.answer(route, request.id, Status::Outside, Bytes::new());
            return true;
        }
        if request.action == Action::Put {
            served.segment.sink().write(request.offset as usize, lane.foreign(at, operands));
            self.answer(route, request.id, Status::Done, Bytes::new());
            return true;
        }
        let mut bytes = Bytes::from_elem(0, operands);
        lane.read(at, &mut bytes);
        let job = Job { route, request, operands: bytes };
        match request.action {
            Action::Hold(_) => served.suitors.push_back(job),
            action if action.is_atomic() => served.jobs.push_back(job),
            action => {
                let answer = served.at_once(action, &request);
                self.answer(route, request.id, answer.0, answer.1);
                if matches!(action, Action::LetGo(_)) {
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
        if let Some(open) = self.open.get_mut(&answer.route.dst) {
            *open = open.saturating_sub(1);
        }
    }

    fn answer(&mut self, route: Route, id: u32, status: Status, payload: Bytes) {
        let back = Route { src: route.dst, dst: route.src };
        self.answers.push_back(Answer { route: back, reply: Reply { id, status }, payload });
    }

    fn attend(&mut self) {
        let Server { members, registry, segments, .. } = self;
        registry.grant(|owner, wish| match wish {
            Wish::Open(address) => {
                let known = (owner as usize) < members.topology().size() && members.pid(owner) == address.file.pid;
                let opened = known.then(|| Segment::open(&address));
                match opened {
                    Some(Ok(segment)) => {
                        let served = Served { segment, jobs: VecDeque::new(), suitors: VecDeque::new() };
                        segments.insert(address.file.token, served);
                        true
                    }
                    Some(Err(error)) => {
                        log::error!("window memory of rank {owner} cannot be served: {error}");
                        false
                    }
                    None => false,
                }
            }
            Wish::Close(address) => segments.remove(&address.file.token).is_some(),
        });
        self.waiting = self.segments.values().map(|s| s.jobs.len() + s.suitors.len()).sum();
    }

    /// Serves requests that wait for the locks of a segment, as long as locks can be acquired.
    fn retry(&mut self, token: u64) {
        let me = self.members.rank();
        loop {
            let Some(served) = self.segments.get_mut(&token) else { return };
            let Some((job, status, payload)) = served.next_job(me).or_else(|| served.next_suitor()) else { return };
            self.waiting -= 1;
            self.answer(job.route, job.request.id, status, payload);
        }
    }

    /// Answers requests that wait for a segment lock whose holder has died or is not a valid rank.
    fn bury(&mut self) {
        let (dead, size) = (self.members.dead(), self.members.topology().size());
        let gone = |rank: &u32| *rank as usize >= size || dead.iter().any(|dead| dead.rank == *rank);
        let mut orphans = Vec::new();
        for served in self.segments.values_mut() {
            if let Some(rank) = served.segment.holder().filter(gone) {
                orphans.extend(served.jobs.drain(..).map(|job| (job, rank)));
            }
        }
        for (job, rank) in orphans {
            self.waiting -= 1;
            self.answer(job.route, job.request.id, Status::Orphaned(rank), Bytes::new());
        }
    }

    /// Returns lines on the waiting requests, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        let waiting = self.segments.iter().filter(|(_, s)| s.has_waiting()).map(|(token, s)| {
            format!(
                "window memory {token:x}: {} operations wait for the lock of rank {:?}, {} ranks for the window's",
                s.jobs.len(),
                s.segment.holder(),
                s.suitors.len()
            )
        });
        waiting.collect()
    }
}

impl Served {
    fn has_waiting(&self) -> bool {
        !self.jobs.is_empty() || !self.suitors.is_empty()
    }

    /// Carries out an action that needs no lock.
    fn at_once(&self, action: Action, request: &Request) -> (Status, Bytes) {
        match action {
            Action::LetGo(alone) if !self.segment.let_go(alone) => (Status::Impossible, Bytes::new()),
            Action::LetGo(_) => (Status::Done, Bytes::new()),
            _ => (Status::Done, self.read(request)),
        }
    }

    fn read(&self, request: &Request) -> Bytes {
        let mut bytes = Bytes::from_elem(0, request.len as usize);
        self.segment.source().read(request.offset as usize, &mut bytes);
        bytes
    }

    /// Carries out the first atomic operation that waits, if the segment's lock can be acquired.
    fn next_job(&mut self, me: u32) -> Option<(Job, Status, Bytes)> {
        if self.jobs.is_empty() || !self.segment.try_lock(me) {
            return None;
        }
        let job = self.jobs.pop_front()?;
        let before = self.read(&job.request);
        let mut after = before.clone();
        match job.request.action {
            Action::Accumulate(op, kind) | Action::Fetch(op, kind) if !job.operands.is_empty() => {
                super::operate::accumulate(op, kind, &mut after, &job.operands);
            }
            Action::Swap => {
                let (compare, new) = job.operands.split_at(job.operands.len() / 2);
                if *compare == before[..] {
                    after.copy_from_slice(new);
                }
            }
            _ => {}
        }
        if after != before {
            self.segment.sink().write_bytes(job.request.offset as usize, &after);
        }
        self.segment.unlock();
        let payload = if job.request.action.result(job.request.len) > 0 { before } else { Bytes::new() };
        Some((job, Status::Done, payload))
    }

    /// Grants the window's lock to the first waiting request that can have it.
    fn next_suitor(&mut self) -> Option<(Job, Status, Bytes)> {
        let segment = &self.segment;
        let lucky =
            |job: &Job| matches!(job.request.action, Action::Hold(alone) if segment.try_hold(job.route.src, alone));
        let first = self.suitors.iter().position(lucky)?;
        let job = self.suitors.remove(first)?;
        Some((job, Status::Done, Bytes::new()))
    }
}
