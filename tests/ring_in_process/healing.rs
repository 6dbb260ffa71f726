//! Forwarders of whole rings whose links go down and come up: the routes that they publish, and the packets on routes
//! that no longer exist. The test acts for the ranks; time is virtual except for the forwarder threads.

use super::*;
use ntbring_ntb::fault::Faults;
use ntbring_ntb::LinkState;
use ntbring_queue::{Consumer, Producer, Reliability};
use ntbring_ring::forwarder_threads::ForwarderThreads;
use ntbring_ring::layout::End;
use ntbring_ring::relay::{Forwarder, RelayCounters, RelayError, Route, ROUTED};
use ntbring_ring::{Membership, Topology, FORWARDER_DOORBELL};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::Instant;

const STEP: Duration = Duration::from_millis(1);

/// Number of steps, or of milliseconds, within which a ring must have settled.
const LONG: usize = 30_000;

/// Entry kind of a packet that forwarders pass on.
pub(super) const KIND: u8 = ROUTED | 1;

/// Joins a ring with one rank on each host; returns its members by rank.
fn join(hosts: usize, reliability: Reliability) -> Vec<Arc<Membership>> {
    let layout = Layout::blocks(&vec![1; hosts]);
    let fault = Faults::parse("command").unwrap();
    join_with(
        hosts,
        &tiny(&layout).with(|s| {
            s.ring.reliability = reliability;
            s.links.faults = fault;
        }),
    )
}

fn join_with(hosts: usize, settings: &Settings) -> Vec<Arc<Membership>> {
    let layout = Layout::blocks(&vec![1; hosts]);
    // The test takes the place of the threads.
    let settings = settings.clone().with(|s| s.ring.forwarder_threads = Some(1));
    let candidate = |rank: u32| Candidate::new(layout.topology(), rank, settings.clone()).unwrap();
    let candidates: Vec<Candidate> = (0..hosts as u32).map(candidate).collect();
    let cards: Vec<Card> = candidates.iter().map(Candidate::card).collect();
    std::thread::scope(|scope| {
        let cards = &cards;
        let all: Vec<_> = candidates.into_iter().map(|one| scope.spawn(move || one.join(cards).unwrap())).collect();
        all.into_iter().map(|one| Arc::new(one.join().unwrap())).collect()
    })
}

fn forwarder(members: &Arc<Membership>) -> (Forwarder, Arc<RelayCounters>) {
    let counters = Arc::new(RelayCounters::default());
    (Forwarder::new(members, members.links().unwrap(), counters.clone()), counters)
}

/// Takes the link to the right of a host down, or up.
fn set(members: &[Arc<Membership>], link: usize, state: LinkState) {
    members[link].set_link(Side::Right, state);
    members[(link + 1) % members.len()].set_link(Side::Left, state);
}

/// Returns true if every host's routes are the shortest that do not cross the links that are down. A link is named by
/// the host to its left.
fn are_right(members: &[Arc<Membership>], down: &[usize]) -> bool {
    let t: &Topology = members[0].topology();
    let leads = |from: usize, to: usize, side: Side| {
        let mut at = from;
        while at != to {
            let next = t.neighbour(at, side);
            if down.contains(if side == Side::Right { &at } else { &next }) {
                return false;
            }
            at = next;
        }
        true
    };
    (0..t.hosts() * t.hosts()).map(|i| (i / t.hosts(), i % t.hosts())).filter(|(a, b)| a != b).all(|(from, to)| {
        let snapshot = members[from].routes().read();
        let length = |side: Side| leads(from, to, side).then(|| t.links(from, to, side));
        let best = Side::BOTH.into_iter().filter_map(length).min();
        snapshot.is_published() && snapshot.side(to).map(length) == best.map(Some)
    })
}

pub(super) struct Ring {
    pub(super) members: Vec<Arc<Membership>>,
    pub(super) forwarders: Vec<Forwarder>,
    counters: Vec<Arc<RelayCounters>>,
    now: Instant,
}

impl Ring {
    pub(super) fn new(hosts: usize, reliability: Reliability) -> Ring {
        Ring::of(join(hosts, reliability))
    }

    pub(super) fn with(hosts: usize, settings: Settings) -> Ring {
        Ring::of(join_with(hosts, &settings))
    }

    fn of(members: Vec<Arc<Membership>>) -> Ring {
        let (forwarders, counters) = members.iter().map(forwarder).unzip();
        Ring { members, forwarders, counters, now: Instant::now() }
    }

    fn settled(hosts: usize) -> Ring {
        let mut ring = Ring::new(hosts, Reliability::Retry);
        ring.settle(&[]);
        ring
    }

    pub(super) fn step(&mut self) {
        self.now += STEP;
        for forwarder in &mut self.forwarders {
            forwarder.look_after(self.now).unwrap();
            forwarder.step().unwrap();
        }
    }

    /// Makes all forwarders check their links and inform their neighbours.
    pub(super) fn report_links(&mut self) {
        self.now += STEP;
        for forwarder in &self.forwarders {
            let _ = forwarder.look_at_links(self.now);
        }
        self.step();
    }

    /// Lets time pass until a condition is true.
    pub(super) fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Ring) -> bool) {
        for _ in 0..LONG {
            if is_so(self) {
                return;
            }
            self.step();
        }
        let states: Vec<_> = self.forwarders.iter().map(Forwarder::describe).collect();
        panic!("never: {what}, {states:#?}");
    }

    /// Lets time pass until the routes are right with these links down.
    pub(super) fn settle(&mut self, down: &[usize]) {
        self.until(&format!("ways without {down:?}"), |ring| are_right(&ring.members, down));
    }

    pub(super) fn set(&mut self, link: usize, state: LinkState) {
        set(&self.members, link, state);
    }

    /// Returns the lane from a host's rank to the forwarder of the next host.
    pub(super) fn out(&self, host: usize, side: Side) -> Producer {
        self.members[host].links().unwrap()[side as usize].producer(End::Rank(0), End::Forwarder, false)
    }

    /// Returns the lane to a host's rank from the forwarder of the next host.
    pub(super) fn inbox(&self, host: usize, side: Side) -> Consumer {
        self.members[host].links().unwrap()[side as usize].consumer(End::Forwarder, End::Rank(0), false)
    }

    fn dropped(&self) -> Vec<u64> {
        self.counters.iter().map(|counters| RelayCounters::sum(&counters.dropped)).collect()
    }
}

/// Writes an entry into a lane. Returns false if there is no room.
pub(super) fn put(lane: &mut Producer, kind: u8, bytes: &[u8]) -> bool {
    let Some(mut slot) = lane.reserve(bytes.len()) else { return false };
    slot.write_bytes(0, bytes);
    slot.commit(kind, bytes.len(), 0);
    true
}

/// Returns a packet between the ranks of two hosts.
pub(super) fn packet(src: u32, dst: u32) -> Vec<u8> {
    [&Route { src, dst }.bytes()[..], b"so far"].concat()
}

/// Takes an entry if there is one. Returns true if it is the expected one.
pub(super) fn took(lane: &mut Consumer, expected: &[u8]) -> bool {
    let Some(entry) = lane.take().unwrap() else { return false };
    let mut bytes = vec![0; entry.len];
    lane.window().read(entry.offset, &mut bytes);
    lane.release();
    assert_eq!((entry.kind, &bytes[..]), (KIND, expected));
    true
}

#[test]
fn ways_lead_round_links_that_are_down_and_back() {
    for hosts in 2..=5 {
        let mut ring = Ring::settled(hosts);
        for link in 0..hosts {
            ring.set(link, LinkState::Down);
            ring.settle(&[link]);
            ring.set(link, LinkState::Up);
            ring.settle(&[]);
        }
        assert_eq!(ring.dropped(), vec![0; hosts]);
        assert!(ring.counters.iter().all(|counters| counters.reroutes.load(Ordering::Relaxed) >= 2));
    }
}

#[test]
fn a_ring_that_is_cut_in_two_is_two_lines() {
    for hosts in 2..=5 {
        let mut ring = Ring::settled(hosts);
        let other = hosts / 2;
        ring.set(0, LinkState::Down);
        ring.set(other, LinkState::Down);
        ring.settle(&[0, other]);
        assert_eq!(ring.members[0].routes().read().side(1), None);
        ring.set(0, LinkState::Up);
        ring.settle(&[other]);
        ring.set(other, LinkState::Up);
        ring.settle(&[]);
    }
}

#[test]
fn forwarder_threads_see_it_though_nobody_rings() {
    for hosts in [2, 4] {
        let members = join(hosts, Reliability::Retry);
        let start = |members: &Arc<Membership>| {
            let ((forwarder, counters), bell) = (forwarder(members), members.clone());
            let vectors = vec![members.vector(FORWARDER_DOORBELL)];
            ForwarderThreads::start(vec![forwarder], counters, vectors, move |thread| bell.ring(thread), None).unwrap()
        };
        let threads: Vec<ForwarderThreads> = members.iter().map(start).collect();
        let settle = |down: &[usize]| {
            for _ in 0..LONG {
                if are_right(&members, down) {
                    return;
                }
                std::thread::sleep(STEP);
            }
            panic!(
                "never: ways without {down:?}, {:#?}",
                threads.iter().map(ForwarderThreads::describe).collect::<Vec<_>>()
            );
        };
        settle(&[]);
        set(&members, 1, LinkState::Down);
        settle(&[1]);
        set(&members, 1, LinkState::Up);
        settle(&[]);
        assert!(threads.iter().all(|thread| thread.fault().is_none()));
    }
}

#[test]
fn rings_that_do_not_mend_publish_no_ways() {
    for reliability in [Reliability::Off, Reliability::Detect] {
        let mut ring = Ring::new(4, reliability);
        ring.set(1, LinkState::Down);
        (0..3000).for_each(|_| ring.step());
        assert!(ring.members.iter().all(|members| !members.routes().read().is_published()));
        assert!(ring.forwarders.iter().all(|forwarder| forwarder.rest().is_none()));
    }
}

#[test]
fn packets_may_go_the_long_way() {
    for hosts in 3..=5 {
        let mut ring = Ring::settled(hosts);
        ring.set(0, LinkState::Down);
        ring.settle(&[0]);
        // From host 0 to the left, all the way round to host 1.
        let (mut from, mut to) = (ring.out(0, Side::Left), ring.inbox(1, Side::Right));
        assert!(put(&mut from, KIND, &packet(0, 1)));
        ring.until("a packet arrives", |_| took(&mut to, &packet(0, 1)));
        assert_eq!(ring.dropped(), vec![0; hosts]);
    }
}

#[test]
fn what_would_cross_a_link_that_is_down_is_dropped() {
    let mut ring = Ring::settled(4);
    ring.set(1, LinkState::Down);
    ring.settle(&[1]);
    // Its sender has not read the new routes yet.
    let mut from = ring.out(0, Side::Right);
    assert!(put(&mut from, KIND, &packet(0, 2)));
    ring.until("it is dropped", |ring| ring.dropped() == [0, 1, 0, 0]);
    // When the next one is sent, the link is up.
    ring.set(1, LinkState::Up);
    ring.settle(&[]);
    let mut to = ring.inbox(2, Side::Left);
    assert!(put(&mut from, KIND, &packet(0, 2)));
    ring.until("a packet arrives", |_| took(&mut to, &packet(0, 2)));
}

#[test]
fn what_waits_for_room_when_a_link_goes_down_is_dropped() {
    let mut ring = Ring::settled(4);
    let (mut from, mut to) = (ring.out(0, Side::Right), ring.inbox(2, Side::Left));
    // Host 2 receives nothing, until all lanes are full.
    let mut sent = 0;
    ring.until("all lanes are full", |_| match put(&mut from, KIND, &packet(0, 2)) {
        true => {
            sent += 1;
            false
        }
        false => true,
    });
    (0..100).for_each(|_| ring.step());
    while put(&mut from, KIND, &packet(0, 2)) {
        sent += 1;
    }
    (0..100).for_each(|_| ring.step());
    assert!(ring.forwarders[1].describe().iter().any(|line| line.contains("waits for room")));
    ring.set(1, LinkState::Down);
    ring.until("the lane is empty", |ring| {
        from.look_after(ring.now).unwrap();
        from.is_settled()
    });
    let dropped = ring.dropped()[1];
    assert!(dropped > 0);
    // Packets in the lane behind the link arrive late.
    ring.set(1, LinkState::Up);
    let mut taken = 0;
    ring.until("what was sent before arrives", |_| {
        taken += u64::from(took(&mut to, &packet(0, 2)));
        taken + dropped == sent
    });
}

#[test]
fn packets_that_have_lost_their_way_are_errors() {
    // From host 0 to the right: packets for host 1 itself, packets from host 1, and packets without a route.
    for (kind, bytes) in [(KIND, packet(0, 1)), (KIND, packet(1, 2)), (1, packet(0, 2)), (14, packet(0, 2))] {
        let mut ring = Ring::new(3, Reliability::Retry);
        let mut from = ring.out(0, Side::Right);
        assert!(put(&mut from, kind, &bytes));
        let error = ring.forwarders[1].step().unwrap_err();
        assert!(matches!(error, RelayError::Packet { from: 0, .. }), "{error}");
    }
}

#[test]
fn a_manager_that_cannot_be_understood_is_an_error() {
    let members = join(3, Reliability::Retry);
    let (mut one, _) = forwarder(&members[1]);
    // The test takes the place of the forwarder of host 0.
    let link = members[0].links().unwrap()[Side::Right as usize];
    let mut lane = link.control_out().unwrap();
    assert!(put(&mut lane, 14, b"what?"));
    one.look_after(Instant::now()).unwrap();
    let error = one.step().unwrap_err();
    assert!(matches!(error, RelayError::Manager { from: 0, .. }), "{error}");
    assert!(error.to_string().contains("host 0"), "{error}");
}
