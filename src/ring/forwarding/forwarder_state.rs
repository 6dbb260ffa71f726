//! State that all transit channels of a host share: the server of requests, answers on their way to the transit channel
//! by which they leave, and which links are up.

use super::route::Route;
use super::thread_split::thread_of;
use crate::failures::OutageFlood;
use crate::layout::Class;
use crate::membership::Membership;
use crate::protocol::FORWARDER_DOORBELL;
use crate::rerouting::routing_table::RoutingTable;
use ntbring_memory::InWindow;
use ntbring_ntb::Side;
use ntbring_rma::{Answer, Ranks, Registry, Server};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Between two looks at whether somebody has died.
const WATCH_EVERY: Duration = Duration::from_millis(50);

/// Answers that leave by one side.
#[derive(Default)]
struct ReplyQueue {
    answers: Mutex<VecDeque<Answer>>,
    /// Number of entries, so that no thread locks the queue in vain.
    count: AtomicUsize,
}

/// State that all transit channels of a host share.
pub(super) struct ForwarderState {
    members: Arc<Membership>,
    /// The threads that forward here.
    threads: usize,
    server: Mutex<Server>,
    /// The registry with requests of local ranks: shows without a lock that there are any.
    registry: Registry,
    /// Number of registration requests seen.
    seen: AtomicU64,
    /// Requests of the server that wait for locks, and how often these have become more or fewer.
    waiting: AtomicUsize,
    lock_queue_version: AtomicU32,
    reply_queues: [ReplyQueue; 2],
    /// The routes of the host, where traffic avoids links that are down.
    routes: Option<RoutingTable>,
    /// The flooding of outages, where no routes avoid such links.
    outage_flood: Option<Mutex<OutageFlood>>,
    up: [AtomicBool; 2],
    /// Ranks that have died, by rank, and when that was looked at.
    gone: Vec<AtomicBool>,
    watched: Mutex<Instant>,
    /// This host's ranks have nothing more to do: whoever ends now has left.
    leaving: AtomicBool,
}

impl ForwarderState {
    /// The forwarder state of this process's host, which heals if links that go down are gone round.
    pub fn new(members: &Arc<Membership>, heals: bool, threads: usize) -> ForwarderState {
        ForwarderState {
            members: members.clone(),
            threads,
            server: Mutex::new(server(members)),
            registry: members.registry(),
            seen: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            lock_queue_version: AtomicU32::new(0),
            reply_queues: Default::default(),
            routes: heals.then(|| members.routes()),
            outage_flood: (!heals).then(|| Mutex::new(OutageFlood::new(members))),
            up: [true, true].map(AtomicBool::new),
            gone: (0..members.topology().size()).map(|_| AtomicBool::new(false)).collect(),
            watched: Mutex::new(Instant::now()),
            leaving: AtomicBool::new(false),
        }
    }

    /// Looks whether somebody has died, if the latest look was long enough ago: what is for the dead, or is to pass their
    /// hosts, is dropped, for there will be no room for it.
    pub fn watch(&self, now: Instant) {
        let Ok(mut watched) = self.watched.try_lock() else { return };
        if self.leaving.load(Ordering::Relaxed) || now.saturating_duration_since(*watched) < WATCH_EVERY {
            return;
        }
        *watched = now;
        let dead = self.members.dead();
        dead.iter().for_each(|dead| self.gone[dead.rank as usize].store(true, Ordering::Relaxed));
        self.members.part_from(&dead);
        // Where links heal, the manager driver looks at the ports.
        if self.routes.is_none() {
            self.members.sides_to(&dead).for_each(|side| self.set_up(side, false));
        }
    }

    /// Looks which links have gone down, where nothing goes round them, and tells the neighbours, if it is time; if not,
    /// returns how soon to call again. Packets for such a link are dropped.
    pub fn look_at_links(&self, now: Instant) -> Option<Duration> {
        let (outages, rest) = lock(self.outage_flood.as_ref()?).attend(now);
        if !outages.is_empty() {
            self.members.sides_over(outages).for_each(|side| self.set_up(side, false));
        }
        rest
    }

    /// Returns true if the link on a side has gone down and no route avoids it: packets that arrive by it may be wrong then.
    pub fn has_been_down(&self, side: Side) -> bool {
        self.members.has_been_down(side)
    }

    /// From here on whoever ends has left, and not died.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Returns true if a rank has died, as far as was seen.
    pub fn is_gone(&self, rank: u32) -> bool {
        self.gone[rank as usize].load(Ordering::Relaxed)
    }

    /// Returns true if packets can leave by a side.
    pub fn is_up(&self, side: Side) -> bool {
        self.up[side as usize].load(Ordering::Relaxed)
    }

    /// Says whether they can from now on. Packets that wait for a link that is down now must be dropped, so all are woken.
    pub fn set_up(&self, side: Side, up: bool) {
        if self.up[side as usize].swap(up, Ordering::Relaxed) != up {
            (1..self.threads).for_each(|thread| self.members.ring(FORWARDER_DOORBELL + thread));
        }
    }

    /// If requests wait for locks, which nobody will ring for: how often they have become more or fewer.
    pub fn lock_queue_version(&self) -> Option<u32> {
        (self.waiting.load(Ordering::Relaxed) > 0).then(|| self.lock_queue_version.load(Ordering::Relaxed))
    }

    /// Has the server do what it can do now. Returns how much has moved.
    pub fn step(&self) -> usize {
        let requests = self.registry.requests();
        if requests == self.seen.load(Ordering::Relaxed) && self.lock_queue_version().is_none() {
            return 0;
        }
        self.seen.store(requests, Ordering::Relaxed);
        let mut server = self.server();
        let moved = server.step(self.members.as_ref(), Instant::now());
        self.hand_over(&mut server);
        moved
    }

    /// Has the server take a request, as [`Server::take`] does.
    pub fn take(&self, route: Route, lane: &InWindow, offset: usize, len: usize) -> bool {
        let mut server = self.server();
        let taken = server.take((route.src, route.dst), lane, offset, len);
        self.hand_over(&mut server);
        taken
    }

    /// The next answer that leaves by a side.
    pub fn answer(&self, side: Side) -> Option<Answer> {
        let reply_queue = &self.reply_queues[side as usize];
        if reply_queue.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let answer = lock(&reply_queue.answers).pop_front();
        reply_queue.count.fetch_sub(answer.is_some().into(), Ordering::AcqRel);
        answer
    }

    /// It has left.
    pub fn sent(&self, answer: &Answer) {
        self.server().sent(answer);
    }

    /// Puts answers where those look who send them, and wakes them.
    fn hand_over(&self, server: &mut Server) {
        let (before, now) = (self.waiting.load(Ordering::Relaxed), server.waiting());
        if before != now {
            self.waiting.store(now, Ordering::Relaxed);
            self.lock_queue_version.fetch_add(1, Ordering::Relaxed);
        }
        if before < now {
            self.wake(FORWARDER_DOORBELL);
        }
        let topology = self.members.topology();
        while let Some(answer) = server.answers.pop_front() {
            let to = topology.host_of(answer.to);
            // Without a way at present it is dropped by its transit channel, if links have not changed by then.
            let routes = self.routes.as_ref().map(RoutingTable::read).filter(|routes| routes.is_published());
            let way = routes.and_then(|routes| routes.side(to));
            let side = way.unwrap_or_else(|| topology.direction(self.members.host(), to));
            let reply_queue = &self.reply_queues[side as usize];
            lock(&reply_queue.answers).push_back(answer);
            reply_queue.count.fetch_add(1, Ordering::AcqRel);
            self.wake(FORWARDER_DOORBELL + thread_of(self.threads, side, Class::Urgent));
        }
    }

    /// Wakes a thread, unless it can only be the one that calls.
    fn wake(&self, doorbell: usize) {
        if self.threads > 1 {
            self.members.ring(doorbell);
        }
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        lock(&self.server)
    }

    /// Lines on what waits, for the diagnosis of a hang.
    pub fn describe(&self) -> Vec<String> {
        self.server().describe()
    }
}

/// Returns the server of one-sided operations of this process's host.
fn server(members: &Membership) -> Server {
    let local = members.topology().ranks_of(members.host()).len();
    let packet_max = members.packet_max() - Route::LEN;
    Server::new(members.rank(), local, packet_max, members.registry(), Instant::now())
}

impl Ranks for Membership {
    fn is_process(&self, rank: u32, pid: u32) -> bool {
        (rank as usize) < self.topology().size() && self.pid(rank) == pid
    }

    fn is_gone(&self, rank: u32) -> bool {
        rank as usize >= self.topology().size() || self.dead().iter().any(|dead| dead.rank == rank)
    }
}

/// Somebody who has panicked with it has left it as it was between two calls, or has ended the job.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
