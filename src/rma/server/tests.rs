use super::*;
use crate::operate::{Kind, Op};
use crate::registry::words;
use ntbring_host::SegmentAddress;
use ntbring_memory::{OutWindow, Region};
use std::path::Path;

/// Ranks 0 to 3, of which 0 and 1 are on the server's host and some have died.
#[derive(Default)]
struct Job {
    dead: Vec<u32>,
}

impl Ranks for Job {
    fn is_process(&self, rank: u32, pid: u32) -> bool {
        rank < 2 && pid == std::process::id()
    }

    fn is_gone(&self, rank: u32) -> bool {
        rank >= 4 || self.dead.contains(&rank)
    }
}

struct Host {
    server: Server,
    ranks: Registry,
    job: Job,
    segment: Segment,
    address: SegmentAddress,
    now: Instant,
}

const SIZE: u64 = 256;

impl Host {
    fn new() -> Host {
        let region = Region::anonymous(Registry::bytes(2));
        let (ranks, registry) = (Registry::new(region.clone(), 2), Registry::new(region, 2));
        let (segment, address) = Segment::create(Path::new("/dev/shm"), SIZE).unwrap();
        let now = Instant::now();
        let mut host =
            Host { server: Server::new(0, 2, 1000, registry, now), ranks, job: Job::default(), segment, address, now };
        host.ranks.request(1, 1, Change::Register(address));
        host.server.step(&host.job, now);
        assert_eq!(host.ranks.answer(1), Some(true));
        host
    }

    /// Sends a request of rank `from` to rank 1; returns false if the server refused to take it.
    fn ask(&mut self, from: u32, action: Action, (offset, len): (u64, u64), operands: &[u8]) -> bool {
        let request = Request { id: from, action, segment: words(&self.address)[2], offset, len };
        self.ask_bytes(from, &[&request.bytes()[..], operands].concat())
    }

    fn ask_bytes(&mut self, from: u32, bytes: &[u8]) -> bool {
        let lane = Region::anonymous(4096);
        OutWindow::new(lane.clone()).write_bytes(64, bytes);
        self.server.take((from, 1), &InWindow::new(lane), 64, bytes.len())
    }

    /// Returns the next reply: the rank that it is for, its status and its payload.
    fn reply(&mut self) -> Option<(u32, Status, Vec<u8>)> {
        let answer = self.server.answers.pop_front()?;
        self.server.sent(&answer);
        let (head, payload) = answer.parts();
        let reply = Reply::parse(&head).unwrap();
        assert_eq!((reply.id, answer.from, answer.size()), (answer.to, 1, Reply::LEN + payload.len()));
        Some((answer.to, reply.status, payload.to_vec()))
    }

    fn step(&mut self) -> usize {
        self.server.step(&self.job, self.now)
    }
}

#[test]
fn puts_gets_and_atomic_operations_are_carried_out() {
    let mut host = Host::new();
    let sum = Action::Fetch(Op::Sum, Kind::U64);
    assert!(host.ask(2, Action::Put, (8, 8), &7u64.to_le_bytes()));
    assert!(host.ask(3, sum, (8, 8), &5u64.to_le_bytes()));
    assert!(host.ask(2, Action::Swap, (8, 8), &[12u64.to_le_bytes(), 20u64.to_le_bytes()].concat()));
    assert!(host.ask(2, Action::Get, (8, 8), &[]));
    let value = |n: u64| n.to_le_bytes().to_vec();
    assert_eq!(host.reply(), Some((2, Status::Done, vec![])));
    assert_eq!(host.reply(), Some((3, Status::Done, value(7))));
    assert_eq!(host.reply(), Some((2, Status::Done, value(12))));
    assert_eq!(host.reply(), Some((2, Status::Done, value(20))));
    assert_eq!(host.reply(), None);
}

#[test]
fn requests_for_memory_that_is_not_there_are_answered_with_the_cause() {
    let mut host = Host::new();
    for (offset, len) in [(SIZE, 1), (SIZE - 7, 8), (u64::MAX, 8)] {
        assert!(host.ask(2, Action::Get, (offset, len), &[]));
        assert_eq!(host.reply(), Some((2, Status::Outside, vec![])));
    }
    let unknown = Request { id: 2, action: Action::Get, segment: 1, offset: 0, len: 8 };
    assert!(host.ask_bytes(2, &unknown.bytes()));
    assert_eq!(host.reply(), Some((2, Status::Unknown, vec![])));
    // The reply would be larger than a packet; an operation that does not exist.
    assert!(host.ask(2, Action::Get, (0, 5000), &[]));
    assert_eq!(host.reply(), Some((2, Status::Impossible, vec![])));
    assert!(host.ask_bytes(2, &[2, 0, 0, 0, 99].iter().copied().chain([0; 27]).collect::<Vec<_>>()));
    assert_eq!(host.reply(), Some((2, Status::Impossible, vec![])));
}

#[test]
fn operations_wait_for_the_lock_and_locks_are_granted_in_turn() {
    let mut host = Host::new();
    assert!(host.segment.try_lock(1));
    assert!(host.ask(2, Action::Accumulate(Op::Sum, Kind::U8), (0, 1), &[3]));
    assert!(host.ask(2, Action::Acquire(true), (0, 0), &[]));
    assert!(host.ask(3, Action::Acquire(true), (0, 0), &[]));
    assert_eq!(host.reply(), Some((2, Status::Done, vec![])), "the window's lock is free");
    assert_eq!((host.reply(), host.server.waiting(), host.server.describe().len()), (None, 2, 1));
    host.segment.unlock();
    assert_eq!((host.step(), host.reply()), (1, Some((2, Status::Done, vec![]))));
    assert!(host.ask(2, Action::Release(true), (0, 0), &[]));
    let replies: Vec<u32> = std::iter::from_fn(|| host.reply()).map(|(to, ..)| to).collect();
    assert_eq!((replies, host.server.waiting()), (vec![2, 3], 0), "the lock goes to the rank that waits");
}

#[test]
fn operations_that_wait_for_a_dead_holder_fail() {
    let mut host = Host::new();
    assert!(host.segment.try_lock(1) && host.ask(2, Action::Swap, (0, 1), &[0, 1]));
    host.now += CHECK_HOLDERS_EVERY;
    assert_eq!((host.step(), host.reply()), (0, None), "the holder lives");
    host.job.dead.push(1);
    assert_eq!((host.step(), host.reply()), (0, None), "it is not time for another check");
    host.now += CHECK_HOLDERS_EVERY;
    assert_eq!((host.step(), host.reply()), (1, Some((2, Status::Orphaned(1), vec![]))));
}

#[test]
fn ranks_that_wait_for_a_windows_lock_are_told_which_holder_has_died() {
    let orphaned = |rank, holder| Some((rank, Status::Orphaned(holder), vec![]));
    for by_request in [false, true] {
        let mut host = Host::new();
        // The exclusive holder maps the window, or has asked the server for the lock.
        match by_request {
            false => assert!(host.segment.try_acquire(1, true)),
            true => assert!(host.ask(1, Action::Acquire(true), (0, 0), &[]) && host.reply().is_some()),
        }
        assert!(host.ask(2, Action::Acquire(true), (0, 0), &[]) && host.ask(3, Action::Acquire(false), (0, 0), &[]));
        host.now += CHECK_HOLDERS_EVERY;
        assert_eq!((host.step(), host.reply()), (0, None), "the holder lives");
        host.job.dead.push(1);
        host.now += CHECK_HOLDERS_EVERY;
        assert_eq!((host.step(), host.reply(), host.reply()), (2, orphaned(2, 1), orphaned(3, 1)));
    }
}

#[test]
fn the_death_of_a_rank_that_shares_a_windows_lock_concerns_exclusive_locks_only() {
    let mut host = Host::new();
    for rank in [2, 1] {
        assert!(host.ask(rank, Action::Acquire(false), (0, 0), &[]) && host.reply().is_some());
    }
    assert!(host.ask(1, Action::Release(false), (0, 0), &[]) && host.reply().is_some());
    assert!(host.ask(3, Action::Acquire(true), (0, 0), &[]));
    host.job.dead.push(1);
    host.now += CHECK_HOLDERS_EVERY;
    assert_eq!((host.step(), host.reply()), (0, None), "rank 1 had given the lock back");
    host.job.dead = vec![2];
    host.now += CHECK_HOLDERS_EVERY;
    assert_eq!((host.step(), host.reply()), (1, Some((3, Status::Orphaned(2), vec![]))));
    assert!(host.ask(0, Action::Acquire(false), (0, 0), &[]) && host.reply() == Some((0, Status::Done, vec![])));
}

#[test]
fn no_lock_is_granted_to_a_rank_that_has_died_while_it_waited() {
    let mut host = Host::new();
    assert!(host.segment.try_acquire(1, true));
    assert!(host.ask(2, Action::Acquire(true), (0, 0), &[]) && host.ask(3, Action::Acquire(true), (0, 0), &[]));
    assert_eq!(host.segment.reserver(), Some(2));
    host.job.dead.push(2);
    host.now += CHECK_HOLDERS_EVERY;
    assert_eq!((host.step(), host.server.waiting()), (1, 1));
    assert!(host.segment.release(true));
    assert_eq!((host.step(), host.reply()), (1, Some((3, Status::Done, vec![]))));
}

#[test]
fn a_rank_with_too_many_open_requests_is_refused_until_replies_are_sent() {
    let mut host = Host::new();
    let limit = 2 * OPEN_MAX + LEAVING_MAX;
    assert!((0..limit).all(|_| host.ask(2, Action::Get, (0, 1), &[])));
    assert!(!host.ask(2, Action::Get, (0, 1), &[]) && host.ask(3, Action::Get, (0, 1), &[]));
}

#[test]
fn only_processes_of_the_host_register_and_a_deregistered_segment_is_unknown() {
    let mut host = Host::new();
    host.ranks.request(0, 2, Change::Register(host.address));
    host.step();
    assert_eq!(host.ranks.answer(0), Some(false), "rank 2 is elsewhere");
    host.ranks.request(1, 1, Change::Deregister(host.address));
    host.step();
    assert_eq!(host.ranks.answer(1), Some(true));
    assert!(host.ask(2, Action::Get, (0, 1), &[]));
    assert_eq!(host.reply(), Some((2, Status::Unknown, vec![])));
}
