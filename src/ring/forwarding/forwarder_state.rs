//! State that all transit channels of a host share: the server of one-sided requests, the queues of its replies and of
//! the gateway's packets, the ranks that have died, and the sides whose links are up.

use super::own_packet::{trim, OwnPacket};
use super::route::Route;
use super::thread_split::thread_of;
use crate::failures::OutageFlood;
use crate::gateway::{Gateway, Mail, TunnelPacket};
use crate::layout::Class;
use crate::membership::Membership;
use crate::protocol::FORWARDER_DOORBELL;
use crate::rerouting::routing_table::RoutingTable;
use bytes::Bytes;
use ntbring_memory::InWindow;
use ntbring_ntb::Side;
use ntbring_rma::{Ranks, Registry, Server};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Interval between two checks for ranks that have died.
const WATCH_EVERY: Duration = Duration::from_millis(50);

/// Packets of the forwarder that leave by one side.
#[derive(Default)]
struct OwnQueue {
    packets: Mutex<VecDeque<OwnPacket>>,
    /// Number of entries, which is read before the lock is taken, so that no thread locks an empty queue.
    count: AtomicUsize,
}

/// State that all transit channels of a host share.
pub(super) struct ForwarderState {
    members: Arc<Membership>,
    /// Number of forwarder threads of this host.
    threads: usize,
    server: Mutex<Server>,
    /// Registry with the requests of local ranks. It shows without a lock that there are any.
    registry: Registry,
    /// Number of registration requests seen.
    seen: AtomicU64,
    /// Number of the server's requests that wait for locks, and a version that changes with that number.
    waiting: AtomicUsize,
    lock_queue_version: AtomicU32,
    own_queues: [OwnQueue; 2],
    /// Packets for the gateway that have arrived.
    mail: Mail,
    /// Routes of the host; None in rings that do not reroute.
    routes: Option<RoutingTable>,
    /// Flooding of outages; None in rings that reroute.
    outage_flood: Option<Mutex<OutageFlood>>,
    up: [AtomicBool; 2],
    /// Set for each rank, by its number, that is known to have died; and the time of the latest check.
    dead: Vec<AtomicBool>,
    watched: Mutex<Instant>,
    /// Set when this host's ranks have nothing more to do. A rank that ends from then on counts as having left, not as
    /// dead.
    leaving: AtomicBool,
}

impl ForwarderState {
    /// Creates the state of the forwarder of this process's host. `heals` is true in rings that reroute around links
    /// that are down; `threads` is the number of forwarder threads.
    pub fn new(members: &Arc<Membership>, heals: bool, threads: usize) -> ForwarderState {
        ForwarderState {
            members: members.clone(),
            threads,
            server: Mutex::new(server(members)),
            registry: members.registry(),
            seen: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            lock_queue_version: AtomicU32::new(0),
            own_queues: Default::default(),
            mail: Mail::default(),
            routes: heals.then(|| members.routes()),
            outage_flood: (!heals).then(|| Mutex::new(OutageFlood::new(members))),
            up: [true, true].map(AtomicBool::new),
            dead: (0..members.topology().size()).map(|_| AtomicBool::new(false)).collect(),
            watched: Mutex::new(Instant::now()),
            leaving: AtomicBool::new(false),
        }
    }

    /// Checks for ranks that have died, if the latest check was long enough ago. Packets for dead ranks, or whose way
    /// leads through their hosts, are dropped from then on, since no lane would ever have room for them.
    pub fn watch(&self, now: Instant) {
        let Ok(mut watched) = self.watched.try_lock() else { return };
        if self.leaving.load(Ordering::Relaxed) || now.saturating_duration_since(*watched) < WATCH_EVERY {
            return;
        }
        *watched = now;
        let dead = self.members.dead();
        dead.iter().for_each(|dead| self.dead[dead.rank as usize].store(true, Ordering::Relaxed));
        self.members.take_down_links_to(&dead);
        // In rings that reroute, the manager driver observes the ports.
        if self.routes.is_none() {
            self.members.sides_to(&dead).for_each(|side| self.set_up(side, false));
        }
    }

    /// In rings that do not reroute, checks for links that have gone down and informs the neighbours. Packets for such
    /// a link are dropped. Returns the remaining time until the next check if it is too early; None in rings that
    /// reroute.
    pub fn look_at_links(&self, now: Instant) -> Option<Duration> {
        let (outages, rest) = lock(self.outage_flood.as_ref()?).attend(now);
        if !outages.is_empty() {
            self.members.sides_over(outages).for_each(|side| self.set_up(side, false));
        }
        rest
    }

    /// Returns true if the link on a side has gone down in a ring that does not reroute. Packets that arrive by it from
    /// then on may be invalid.
    pub fn has_been_down(&self, side: Side) -> bool {
        self.members.has_been_down(side)
    }

    /// Marks the host as leaving: ranks that end from now on count as having left, not as dead.
    pub fn leave(&self) {
        self.leaving.store(true, Ordering::Relaxed);
    }

    /// Returns true if a rank is known to have died.
    pub fn is_gone(&self, rank: u32) -> bool {
        self.dead[rank as usize].load(Ordering::Relaxed)
    }

    /// Returns true if packets can leave by a side.
    pub fn is_up(&self, side: Side) -> bool {
        self.up[side as usize].load(Ordering::Relaxed)
    }

    /// Sets whether packets can leave by a side. All threads are woken by a change, since packets that wait for a link
    /// which is down now must be dropped.
    pub fn set_up(&self, side: Side, up: bool) {
        if self.up[side as usize].swap(up, Ordering::Relaxed) != up {
            (1..self.threads).for_each(|thread| self.members.ring(FORWARDER_DOORBELL + thread));
        }
    }

    /// Returns a version that changes with the number of requests that wait for locks; None if no request waits. No
    /// doorbell rings when a lock is released, so steps must be repeated while it is Some.
    pub fn lock_queue_version(&self) -> Option<u32> {
        (self.waiting.load(Ordering::Relaxed) > 0).then(|| self.lock_queue_version.load(Ordering::Relaxed))
    }

    /// Lets the server serve the requests that it can serve now. Returns the number of requests that stopped waiting.
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

    /// Passes a request to the server, as [`Server::take`] does.
    pub fn take(&self, route: Route, lane: &InWindow, offset: usize, len: usize) -> bool {
        let mut server = self.server();
        let taken = server.take((route.src, route.dst), lane, offset, len);
        self.hand_over(&mut server);
        taken
    }

    /// Removes and returns the forwarder's next packet that leaves by a side.
    pub fn own_packet(&self, side: Side) -> Option<OwnPacket> {
        let own_queue = &self.own_queues[side as usize];
        if own_queue.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut packets = lock(&own_queue.packets);
        let packet = packets.pop_front();
        trim(&mut packets);
        own_queue.count.fetch_sub(packet.is_some().into(), Ordering::AcqRel);
        packet
    }

    /// Tells the server that a reply has left; packets of tunnels have no effect.
    pub fn sent(&self, packet: &OwnPacket) {
        if let OwnPacket::Reply(answer) = packet {
            self.server().sent(answer);
        }
    }

    /// Passes a packet of a tunnel to the gateway, and wakes the thread that has it.
    pub fn tunnel_packet(&self, route: Route, bytes: Bytes) {
        self.mail.put(TunnelPacket { host: self.members.topology().host_of(route.src), bytes });
        self.wake(FORWARDER_DOORBELL);
    }

    /// Lets the gateway make a step, if it has anything to do. Returns the number of packets and entries.
    pub fn step_gateway(&self, gateway: &mut Gateway, now: impl FnOnce() -> Instant) -> usize {
        if !gateway.has_work(&self.mail) {
            return 0;
        }
        let (topology, host) = (self.members.topology(), self.members.host());
        let leaving = self.leaving.load(Ordering::Relaxed);
        gateway.step(&self.mail, leaving, now(), &mut |packet| {
            // Both processes of a tunnel may be on hosts of one machine, one of which has no rank of this job.
            if packet.host == host {
                return self.mail.put(packet);
            }
            let route = Route { src: self.members.rank(), dst: topology.ranks_of(packet.host)[0] };
            self.send(OwnPacket::Tunnel(route, packet.bytes));
        })
    }

    /// Moves the server's replies to the queues of the sides by which they leave.
    fn hand_over(&self, server: &mut Server) {
        let (before, now) = (self.waiting.load(Ordering::Relaxed), server.waiting());
        if before != now {
            self.waiting.store(now, Ordering::Relaxed);
            self.lock_queue_version.fetch_add(1, Ordering::Relaxed);
        }
        if before < now {
            self.wake(FORWARDER_DOORBELL);
        }
        while let Some(answer) = server.answers.pop_front() {
            self.send(OwnPacket::Reply(answer));
        }
    }

    /// Adds a packet to the queue of the side by which it leaves, and wakes the thread that sends it.
    fn send(&self, packet: OwnPacket) {
        let topology = self.members.topology();
        let to = topology.host_of(packet.route().dst);
        // A packet without a route at present is dropped by its transit channel, unless links have changed by then.
        let routes = self.routes.as_ref().map(RoutingTable::read).filter(|routes| routes.is_published());
        let way = routes.and_then(|routes| routes.side(to));
        let side = way.unwrap_or_else(|| topology.direction(self.members.host(), to));
        let own_queue = &self.own_queues[side as usize];
        lock(&own_queue.packets).push_back(packet);
        own_queue.count.fetch_add(1, Ordering::AcqRel);
        self.wake(FORWARDER_DOORBELL + thread_of(self.threads, side, Class::Urgent));
    }

    /// Wakes a forwarder thread. With a single thread this does nothing, since the caller is that thread.
    fn wake(&self, doorbell: usize) {
        if self.threads > 1 {
            self.members.ring(doorbell);
        }
    }

    fn server(&self) -> MutexGuard<'_, Server> {
        lock(&self.server)
    }

    /// Returns lines on the requests that wait, for the diagnosis of a hang.
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

/// Locks a mutex, even if it is poisoned. A thread that has panicked has left the value as it was between two calls, or
/// the panic has ended the job.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
