//! Two hosts whose writes take their time, in every order that the wires permit.

use super::*;
use crate::fabric::{Backend, OpenPort, PortAddress, Windows};
use crate::loopback::Loopback;
use crate::{PortIndex, PortList};

/// Bytes of the memory that one host writes at the other: the table and a count of deposits.
const MEMORY: usize = TABLE + 8;
const BELL: usize = 3;

/// The writes of one host on their way: the memory as it was written, and as it has arrived.
struct Wire {
    written: Region,
    arrived: Region,
    rings: u32,
}

impl Wire {
    fn new() -> Wire {
        Wire { written: Region::anonymous(MEMORY), arrived: Region::anonymous(MEMORY), rings: 0 }
    }

    /// Lets everything arrive. A wire keeps the order of writes: a deposit arrives before a later confirmation.
    fn deliver(&mut self) -> u32 {
        for offset in (0..MEMORY).step_by(8) {
            let word = self.written.word(offset).load(Ordering::Relaxed);
            self.arrived.word(offset).store(word, Ordering::Relaxed);
        }
        std::mem::take(&mut self.rings)
    }

    fn deposits(region: &Region) -> &AtomicU64 {
        region.word(TABLE)
    }
}

/// A host that sends (0) and one that receives (1). Both have a second link, to a host that is always idle.
struct Pair {
    notices: [Notices; 2],
    echoes: [Echo; 2],
    /// From the sender, and from the receiver.
    wires: [Wire; 2],
}

impl Pair {
    fn new() -> Pair {
        let wires = [Wire::new(), Wire::new()];
        let tables = [(0, 1), (1, 0)].map(|(own, other): (usize, usize)| {
            Tables::new(InWindow::new(wires[other].arrived.clone()), OutWindow::new(wires[own].written.clone()))
        });
        let notices = [0, 1].map(|host| {
            // The idle host confirms every request at once.
            let idle = Region::anonymous(TABLE);
            let mirror = idle.part(SEEN, SEEN);
            let idle = Tables::new(InWindow::new(idle), OutWindow::new(mirror));
            Notices::new(Region::anonymous(STATE), [tables[host].clone(), idle])
        });
        Pair { notices, echoes: Default::default(), wires }
    }

    /// Steps the echo of a host. Returns the number of rings that it repeats.
    fn echo(&mut self, host: usize) -> u32 {
        let rings = std::cell::Cell::new(0);
        self.echoes[host].step(&self.notices[host], Side::Left, |_| rings.set(rings.get() + 1));
        rings.get()
    }
}

/// State of a receiver.
#[derive(Clone, Copy, PartialEq)]
enum Sleep {
    Awake,
    /// Asked; it has to look once more.
    Armed {
        seen: bool,
    },
    /// Until it is rung, or for a short time only.
    Asleep {
        seen: bool,
    },
}

/// Runs a receiver that sleeps `sleeps` times; one in `drops` rings is lost on its way. Returns how many of these
/// sleeps could only end by a time-out although their requests were known to have arrived; with `trusting`, every
/// request counts as known.
fn lost(sleeps: u64, seed: u64, drops: u32, trusting: bool) -> u64 {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut pair = Pair::new();
    let (mut state, mut rings, mut at) = (Sleep::Awake, 0_u32, 0_u32);
    // Deposits made, and found; a sender that has deposited, but not looked for a request yet.
    let (mut made, mut found, mut half) = (0_u64, 0_u64, false);
    let (mut done, mut lost) = (0, 0);
    // Steps of the sender's echo since the latest event that may lead to a ring.
    let mut idle = 0;
    while done < sleeps {
        match random.u8(..16) {
            0..=2 if !half && made == found => {
                made += 1;
                Wire::deposits(&pair.wires[0].written).store(made, Ordering::Relaxed);
                half = true;
            }
            3..=5 if half => {
                let rung = pair.notices[0].answers(Side::Left, BELL) && (drops == 0 || random.u32(..drops) > 0);
                pair.wires[0].rings += u32::from(rung);
                (half, idle) = (false, 0);
            }
            6 => rings += pair.wires[0].deliver(),
            7 => drop(pair.wires[1].deliver()),
            8 => {
                pair.wires[0].rings += pair.echo(0);
                idle += 1;
            }
            9 => _ = pair.echo(1),
            _ => match state {
                Sleep::Awake => {
                    found = Wire::deposits(&pair.wires[0].arrived).load(Ordering::Relaxed);
                    at = rings;
                    let seen = pair.notices[1].ask(BELL, rings);
                    state = Sleep::Armed { seen: seen || trusting };
                }
                Sleep::Armed { seen } => {
                    let now = Wire::deposits(&pair.wires[0].arrived).load(Ordering::Relaxed);
                    state = if now == found { Sleep::Asleep { seen } } else { Sleep::Awake };
                }
                Sleep::Asleep { seen } => {
                    let is_rung = rings != at;
                    // A ring that was lost is repeated at the second echo after it.
                    let is_coming = half || pair.wires[0].rings > 0 || drops > 0 && idle < 5;
                    // Nothing will ring any more for a deposit that was not taken.
                    let is_lost = seen && !is_rung && !is_coming && made != found;
                    lost += u64::from(is_lost);
                    if is_rung || !seen || is_lost {
                        done += 1;
                        state = Sleep::Awake;
                    }
                }
            },
        }
    }
    lost
}

#[test]
fn no_sleep_ends_by_its_time_out_however_late_requests_arrive() {
    assert_eq!((0..10).map(|seed| lost(100_000, seed, 0, false)).sum::<u64>(), 0);
}

#[test]
fn a_ring_that_is_lost_is_repeated() {
    assert_eq!((0..3).map(|seed| lost(30_000, seed, 4, false)).sum::<u64>(), 0);
}

#[test]
fn no_confirmation_is_expected_of_an_absent_neighbour() {
    let pair = Pair::new();
    assert!(!pair.notices[1].ask(BELL, 0));
    pair.notices[1].set_absent(Side::Left, true);
    assert!(pair.notices[1].ask(BELL, 0));
    pair.notices[1].set_absent(Side::Left, false);
    assert!(!pair.notices[1].ask(BELL, 0));
}

#[test]
fn requests_that_are_trusted_to_have_arrived_lose_rings() {
    assert!(lost(100_000, 1, 0, true) > 0);
}

#[test]
fn a_neighbour_rings_once_for_each_request() {
    let pair = Pair::new();
    let mut wires = pair.wires;
    let [sender, receiver] = &pair.notices;
    assert!(!sender.answers(Side::Left, BELL), "no request was made");
    // A request that is repeated is the same as long as it has not been answered.
    for _ in 0..3 {
        assert!(!receiver.ask(BELL, 0));
        wires[1].deliver();
    }
    assert!(sender.answers(Side::Left, BELL) && !sender.answers(Side::Left, BELL));
    assert!(!sender.answers(Side::Left, BELL + 1), "another doorbell");
    receiver.ask(BELL, 1);
    assert!(!sender.answers(Side::Left, BELL), "it has not arrived");
    wires[1].deliver();
    assert!(sender.answers(Side::Left, BELL));
}

#[test]
fn a_request_is_known_to_have_arrived_after_two_echoes() {
    let mut pair = Pair::new();
    assert!(!pair.notices[1].ask(BELL, 0));
    pair.wires[1].deliver();
    pair.echo(0);
    pair.wires[0].deliver();
    assert!(!pair.notices[1].ask(BELL, 0));
    pair.echo(0);
    pair.wires[0].deliver();
    assert!(pair.notices[1].ask(BELL, 0) && !pair.notices[1].ask(BELL, 1));
}

#[test]
fn ports_ring_only_sleepers() {
    let windows = Windows { bytes: 4096, accounts: false, ports: PortList::default() };
    let hosts = [(); 2].map(|()| Loopback.create(windows).unwrap());
    let ports = [0, 1].map(|host| {
        let on = |side: Side| PortIndex::ALL[side as usize];
        let opposite = |side: Side| PortAddress { host: hosts[1 - host].address(), port: on(side.opposite()) };
        let open = |side| match hosts[host].port(on(side), &opposite(side)).unwrap() {
            OpenPort::Software(port) => port,
            OpenPort::Adapter(_) => unreachable!("loopback is software"),
        };
        let tables = Side::BOTH.map(|side| {
            let port = open(side);
            let at = side.opposite() as u64 * 4096;
            Tables::new(port.incoming().part(0, TABLE), port.outgoing(at, 4096).unwrap().part(0, TABLE))
        });
        let notices = Arc::new(Notices::new(Region::anonymous(STATE), tables));
        Side::BOTH.map(|side| notices.port(Arc::new(open(side)), side))
    });
    let [_, sender] = &ports[0];
    let [receiver, _] = &ports[1];
    sender.ring(BELL);
    assert_eq!(receiver.doorbells(), 0, "no thread sleeps");
    let vector = receiver.vector(BELL);
    let ticket = vector.arm();
    assert!(!ticket.seen);
    sender.ring(BELL);
    assert!(vector.sleep(ticket, Duration::from_secs(60)));
    vector.disarm();
    // Nothing has confirmed the request, so a sleep is short.
    let ticket = vector.arm();
    assert!(!vector.sleep(ticket, Duration::from_secs(60)));
    vector.disarm();
}
