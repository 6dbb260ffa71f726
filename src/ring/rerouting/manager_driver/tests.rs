//! All manager drivers of a ring in one process, which communicate through memory, in virtual time.

use super::super::hysteresis::STABLE_AFTER;
use super::*;
use crate::layout::LANE_MIN;
use ntbring_manager::PACKET_MAX;
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_queue::{Producer, Reliability};

const STEP: Duration = Duration::from_millis(1);

/// Number of steps within which a ring must have settled.
const LONG: usize = 100_000;

struct Ring {
    topology: Arc<Topology>,
    manager_drivers: Vec<ManagerDriver>,
    /// Hosts that are stopped, or have not started yet.
    asleep: Vec<usize>,
    routes: Vec<RoutingTable>,
    /// True where the port of a host on a side is down.
    down: Vec<[bool; 2]>,
    now: Instant,
}

impl Ring {
    fn new(hosts: usize) -> Ring {
        let topology = Arc::new(Topology::new(hosts, &(0..hosts as i32).collect::<Vec<_>>()).unwrap());
        let now = Instant::now();
        let words: Vec<Region> = (0..hosts).map(|_| Region::anonymous(RoutingTable::BYTES)).collect();
        let manager_driver =
            |host: usize| ManagerDriver::new(topology.clone(), host, RoutingTable::new(words[host].clone()), now);
        Ring {
            manager_drivers: (0..hosts).map(manager_driver).collect(),
            asleep: vec![],
            routes: words.into_iter().map(RoutingTable::new).collect(),
            down: vec![[false; 2]; hosts],
            topology,
            now,
        }
    }

    fn settled(hosts: usize) -> Ring {
        let mut ring = Ring::new(hosts);
        ring.settle();
        ring
    }

    /// Takes the link to the right of host `link` down, or up.
    fn set(&mut self, link: usize, up: bool) {
        let right = self.topology.neighbour(link, Side::Right);
        self.down[link][Side::Right as usize] = !up;
        self.down[right][Side::Left as usize] = !up;
    }

    /// Returns true if packets cross the link on a side of a host.
    fn crosses(&self, host: usize, side: Side) -> bool {
        let there = self.topology.neighbour(host, side);
        !self.down[host][side as usize] && !self.down[there][side.opposite() as usize]
    }

    fn look(&mut self, host: usize) {
        let down = self.down[host];
        let state = |side: Side| if down[side as usize] { LinkState::Down } else { LinkState::Up };
        self.manager_drivers[host].attend(self.now, state);
    }

    fn awake(&self) -> Vec<usize> {
        (0..self.manager_drivers.len()).filter(|host| !self.asleep.contains(host)).collect()
    }

    /// Delivers one packet if there is one. Returns true if there was.
    fn carry(&mut self) -> bool {
        for (host, side) in self.awake().into_iter().flat_map(|host| Side::BOTH.map(|side| (host, side))) {
            let Some(packet) = self.manager_drivers[host].next(side).map(<[u8]>::to_vec) else { continue };
            self.manager_drivers[host].sent(side);
            let there = self.topology.neighbour(host, side);
            if self.crosses(host, side) && !self.asleep.contains(&there) {
                self.manager_drivers[there].take(side.opposite(), &packet).unwrap();
            }
            return true;
        }
        false
    }

    fn step(&mut self) {
        self.now += STEP;
        self.awake().into_iter().for_each(|host| self.look(host));
        while self.carry() {}
    }

    fn run(&mut self, time: Duration) {
        (0..time.as_millis()).for_each(|_| self.step());
    }

    /// Returns true if every host's routes are the shortest that exist.
    fn is_right(&self) -> bool {
        let hosts = self.manager_drivers.len();
        let leads = |from: usize, to: usize, side: Side| {
            let mut at = from;
            while at != to && self.crosses(at, side) {
                at = self.topology.neighbour(at, side);
            }
            at == to
        };
        (0..hosts * hosts).map(|i| (i / hosts, i % hosts)).filter(|(from, to)| from != to).all(|(from, to)| {
            let snapshot = self.routes[from].read();
            let length = |side: Side| leads(from, to, side).then(|| self.topology.links(from, to, side));
            let best = Side::BOTH.into_iter().filter_map(length).min();
            snapshot.is_published() && snapshot.side(to).map(length) == best.map(Some)
        })
    }

    /// Lets time pass until the routes are right. Panics if they do not become right.
    fn settle(&mut self) {
        for _ in 0..LONG {
            if self.is_right() {
                return;
            }
            self.step();
        }
        let states: Vec<_> = self.manager_drivers.iter().map(ManagerDriver::describe).collect();
        panic!("the ways do not become right, ports down: {:?}, {states:#?}", self.down);
    }

    fn side(&self, from: usize, to: usize) -> Option<Side> {
        self.routes[from].read().side(to)
    }

    fn generations(&self) -> Vec<u32> {
        self.routes.iter().map(|routes| routes.read().generation()).collect()
    }
}

#[test]
fn ways_lead_round_a_link_that_is_down_and_back_when_it_is_up() {
    for hosts in 2..=7 {
        let mut ring = Ring::settled(hosts);
        for link in 0..hosts {
            ring.set(link, false);
            ring.settle();
            ring.set(link, true);
            ring.settle();
        }
    }
    for hosts in [16, 17, 33, 64] {
        let mut ring = Ring::settled(hosts);
        ring.set(hosts - 11, false);
        ring.settle();
    }
}

#[test]
fn what_is_cut_off_cannot_be_reached_until_it_is_joined_again() {
    for hosts in 2..=6 {
        for link in 1..hosts {
            let mut ring = Ring::settled(hosts);
            ring.set(0, false);
            ring.settle();
            ring.set(link, false);
            ring.settle();
            assert_eq!((ring.side(0, 1), ring.side(1, 0)), (None, None));
            ring.set(0, true);
            ring.settle();
            ring.set(link, true);
            ring.settle();
        }
    }
}

#[test]
fn a_link_that_is_down_for_one_of_its_ends_is_down_for_all() {
    for (hosts, side) in [(2, Side::Left), (3, Side::Right), (5, Side::Left)] {
        let mut ring = Ring::settled(hosts);
        ring.down[1][side as usize] = true;
        ring.settle();
        ring.down[1][side as usize] = false;
        ring.settle();
    }
}

/// The other end does not observe the outage, and its requests over that link are not answered; but it is informed the
/// other way round the ring.
#[test]
fn that_a_link_is_down_for_one_of_its_ends_is_known_within_a_second() {
    const SOON: Duration = Duration::from_secs(1);
    for (hosts, side) in (3..=8).flat_map(|hosts| Side::BOTH.map(|side| (hosts, side))) {
        for host in 0..hosts {
            let mut ring = Ring::settled(hosts);
            // Covers different phases between the manager's periodic requests.
            ring.run(STEP * 97 * host as u32);
            for up in [false, true] {
                ring.down[host][side as usize] = !up;
                ring.run(SOON);
                assert!(ring.is_right(), "the {side} port of host {host} of {hosts}, up: {up}");
            }
        }
    }
}

#[test]
fn one_end_after_the_other_is_known_within_a_second_too() {
    for hosts in 3..=6 {
        let mut ring = Ring::settled(hosts);
        for link in (0..hosts).cycle().take(2 * hosts) {
            let right = ring.topology.neighbour(link, Side::Right);
            for (host, side, up) in [
                (link, Side::Right, false),
                (right, Side::Left, false),
                (link, Side::Right, true),
                (right, Side::Left, true),
            ] {
                ring.down[host][side as usize] = !up;
                ring.run(Duration::from_secs(1));
                assert!(ring.is_right(), "link {link} of {hosts}, host {host} up: {up}");
            }
        }
    }
}

/// A slow host must not count as dead.
#[test]
fn a_host_that_is_stopped_for_seconds_keeps_its_links() {
    let mut ring = Ring::settled(5);
    let before = ring.generations();
    for host in [0, 3] {
        ring.asleep = vec![host];
        ring.run(Duration::from_secs(5));
        ring.asleep.clear();
        ring.run(Duration::from_secs(1));
        assert_eq!(ring.generations(), before, "host {host}");
    }
}

#[test]
fn a_link_that_is_down_from_the_start_is_gone_round() {
    let mut ring = Ring::new(4);
    ring.set(2, false);
    ring.step();
    // Before any host has heard of another: the two at the ends of the link know from their ports.
    assert_eq!((ring.side(2, 3), ring.side(3, 2)), (Some(Side::Left), Some(Side::Right)));
    ring.settle();
}

#[test]
fn a_host_turns_round_before_it_has_heard_of_the_others() {
    let mut ring = Ring::settled(4);
    ring.set(1, false);
    ring.now += LOOK;
    ring.look(1);
    let all = |ring: &Ring, side| [0, 2, 3].iter().all(|&to| ring.side(1, to) == side);
    assert!(all(&ring, Some(Side::Left)));
    ring.set(0, false);
    ring.now += LOOK;
    ring.look(1);
    assert!(all(&ring, None));
}

#[test]
fn a_link_that_has_come_up_is_used_when_it_has_stayed_up_unless_it_is_the_only_way() {
    let mut ring = Ring::settled(4);
    ring.set(0, false);
    ring.settle();
    ring.set(0, true);
    ring.run(STABLE_AFTER / 2);
    assert_eq!((ring.side(0, 1), ring.side(1, 0)), (Some(Side::Left), Some(Side::Right)));
    // From now on there is no other route.
    ring.set(2, false);
    ring.run(STABLE_AFTER / 4);
    assert!(ring.is_right());
    assert_eq!((ring.side(0, 1), ring.side(1, 0)), (Some(Side::Right), Some(Side::Left)));
}

#[test]
fn a_link_that_comes_and_goes_moves_nothing_to_and_fro() {
    let mut ring = Ring::settled(5);
    ring.set(1, false);
    ring.settle();
    ring.run(STABLE_AFTER);
    let before = ring.generations();
    for up in [true, false].repeat(20) {
        ring.set(1, up);
        ring.run(STABLE_AFTER / 3);
    }
    assert_eq!(ring.generations(), before);
}

#[test]
fn links_that_all_come_and_go_are_used_while_they_are_up() {
    for hosts in [2, 4] {
        let mut ring = Ring::settled(hosts);
        for up in [false, true].repeat(20) {
            (0..hosts).for_each(|link| ring.set(link, up));
            ring.run(STABLE_AFTER / 3);
            assert!(ring.is_right(), "up: {up}");
        }
    }
}

#[test]
fn nothing_is_said_of_hosts_that_have_only_just_begun() {
    let mut ring = Ring::new(4);
    ring.asleep = vec![2];
    ring.run(GRACE / 2);
    assert_eq!(ring.generations(), [0; 4]);
    ring.asleep.clear();
    ring.settle();
    // The wait for a host that does not start is limited.
    let mut ring = Ring::new(4);
    ring.asleep = vec![2];
    ring.run(GRACE + 2 * RULES.reply_timeout * RULES.tries.into());
    assert_eq!([0, 1, 3].map(|host| ring.side(host, 2)), [None; 3]);
    assert_eq!((ring.side(1, 3), ring.side(3, 1)), (Some(Side::Left), Some(Side::Right)));
    ring.asleep.clear();
    ring.settle();
}

#[test]
fn in_peace_nothing_changes_and_little_is_sent() {
    let mut ring = Ring::settled(6);
    let reroutes = |ring: &Ring| ring.manager_drivers.iter().map(ManagerDriver::reroutes).collect::<Vec<_>>();
    let before = (ring.generations(), reroutes(&ring));
    ring.run(Duration::from_secs(3));
    assert_eq!((ring.generations(), reroutes(&ring)), before);
    ring.set(3, false);
    ring.settle();
    assert!(reroutes(&ring).iter().zip(before.1).all(|(now, before)| *now > before));
}

#[test]
fn what_finds_no_room_is_bounded_and_made_good_for() {
    let mut ring = Ring::settled(5);
    ring.set(0, false);
    for _ in 0..10_000 {
        ring.now += STEP;
        (0..5).for_each(|host| ring.look(host));
    }
    let most = ring.manager_drivers.iter().flat_map(|manager_driver| &manager_driver.unsent).map(VecDeque::len).max();
    assert!(most <= Some(UNSENT_MAX));
    ring.settle();
}

#[test]
fn what_is_no_packet_is_an_error() {
    let mut ring = Ring::settled(3);
    for bytes in [&b""[..], b"ntm\x01", &[0xff; PACKET_MAX]] {
        assert!(matches!(ring.manager_drivers[0].take(Side::Left, bytes), Err(ManagerError::Packet { port: 0, .. })));
    }
    assert!(ring.is_right());
}

#[test]
fn a_thread_may_sleep_until_something_is_due() {
    let ring = Ring::settled(4);
    assert!(ring.manager_drivers.iter().all(|manager_driver| (NAP..=SLEEP).contains(&manager_driver.rest())));
}

#[test]
fn every_packet_fits_the_smallest_lane_that_is_checked() {
    let lane = OutWindow::new(Region::anonymous(LANE_MIN));
    let (credit, tail) = (InWindow::new(Region::anonymous(16)), OutWindow::new(Region::anonymous(8)));
    let lane = Producer::new(lane, credit).checked(Reliability::Retry, tail);
    assert!(lane.entry_max() >= PACKET_MAX, "{} bytes", lane.entry_max());
}

#[test]
fn changes_are_told_in_words() {
    use Side::{Left, Right};
    let before = [Some(Right), Some(Right), Some(Right), Some(Left)];
    let words = describe(&before, &[Some(Right), Some(Left), Some(Left), None]);
    let expected = "hosts 1, 2 are now reached to the left, host 3 cannot be reached any more";
    assert_eq!(words.as_deref(), Some(expected));
    assert_eq!(describe(&before, &before), None);
}
