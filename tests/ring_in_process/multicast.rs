//! Messages to several hosts at once: to all sets of hosts, from everybody; and forwarders step by step.

use super::healing::{put, took_any, Ring};
use super::*;
use ntbring_endpoint::wire::Packet;
use ntbring_endpoint::{Event, MULTICAST_MAX};
use ntbring_queue::Reliability;
use ntbring_ring::cast::{Cast, HostSet, CAST};
use ntbring_ring::relay::{RelayError, ROUTED};
use ntbring_ring::Topology;

fn sets(hosts: usize) -> impl Iterator<Item = HostSet> {
    (0..1u64 << hosts).map(HostSet::from_word)
}

/// What a rank sends to a set: it tells them apart, and is of any length.
fn bytes_of(src: u32, set: HostSet) -> Vec<u8> {
    let mut bytes = [&src.to_le_bytes()[..], &set.word().to_le_bytes()].concat();
    bytes.resize(12 + (src as usize * 331 + set.word() as usize * 97) % (MULTICAST_MAX - 11), src as u8);
    bytes
}

/// Everybody sends to all sets of hosts at the same time, and must get from each other rank, in order, what that has sent
/// to sets with this host.
fn everybody_to_all_sets(layout: &Layout, settings: &Settings) {
    run(layout, settings, |rank| {
        let t: Topology = layout.topology();
        let (me, host) = (rank.rank, t.host_of(rank.rank));
        let mut expected: Vec<_> = (0..layout.size() as u32)
            .map(|src| sets(layout.hosts).filter(move |set| src != me && set.contains(host)))
            .map(|sets| sets.peekable())
            .collect();
        for set in sets(layout.hosts) {
            rank.endpoint.multicast(set, &bytes_of(me, set)).map_err(|e| e.to_string())?;
        }
        while expected.iter_mut().any(|sets| sets.peek().is_some()) {
            let Event::Arrival(arrival) = rank.event()? else { return Err("another event".into()) };
            let Packet::Cast { hosts, .. } = arrival.packet else { return Err(format!("{:?}", arrival.packet)) };
            let set = expected[arrival.src as usize].next().ok_or("more than was sent")?;
            let bytes = rank.endpoint.multicast_bytes(&arrival);
            if bytes != bytes_of(arrival.src, set) || !hosts.contains(host) {
                return Err(format!("from {}: not what was sent to {set:?}", arrival.src));
            }
            rank.endpoint.release(arrival.token, 0).map_err(|e| e.to_string())?;
        }
        while !rank.endpoint.is_flushed() {
            rank.step(Duration::from_millis(1))?;
        }
        rank.barrier()
    });
}

#[test]
fn every_set_of_hosts_gets_what_was_sent_to_it() {
    for hosts in 3..=6 {
        let layout = Layout::blocks(&vec![1; hosts]);
        for reliability in [Reliability::Off, Reliability::Detect] {
            everybody_to_all_sets(&layout, &tiny(&layout).with(|s| s.ring.reliability = reliability));
        }
    }
}

#[test]
fn every_rank_of_the_hosts_gets_it_whoever_forwards() {
    let layout = Layout::blocks(&[2, 1, 3, 1, 2]);
    for threads in [1, 2, 4] {
        let settings = tiny(&layout).with(|s| {
            s.ring.xfer_threads = Some(threads);
            s.ring.local_lane = 4096;
        });
        everybody_to_all_sets(&layout, &settings);
        everybody_to_all_sets(
            &layout,
            &settings.with(|s| {
                s.endpoint.spin = Some(0);
                s.endpoint.yields = 0;
            }),
        );
    }
}

#[test]
fn it_is_repeated_where_links_are_not_trusted() {
    for layout in [Layout::blocks(&[1, 2, 1]), Layout::blocks(&[1; 4])] {
        everybody_to_all_sets(&layout, &tiny(&layout).with(|s| s.ring.reliability = Reliability::Retry));
    }
}

#[test]
fn what_cannot_be_sent_is_refused() {
    let layout = Layout::blocks(&[1; 4]);
    run(&layout, &settings(), |rank| {
        let refused = |result: Result<(), EndpointError>| matches!(result, Err(EndpointError::Argument(_)));
        assert!(refused(rank.endpoint.multicast(HostSet::from_word(1 << 4), b"to nobody")));
        assert!(refused(rank.endpoint.multicast(HostSet::from_word(1), &[0; MULTICAST_MAX + 1])));
        rank.barrier()
    });
}

/// Each link carries it once, and hosts that it does not concern deliver nothing.
#[test]
fn every_link_carries_it_once() {
    for hosts in 3..=6 {
        let mut ring = Ring::new(hosts, Reliability::Off);
        let t = ring.members[0].topology().clone();
        let mut outs: Vec<_> = (0..hosts).map(|host| Side::BOTH.map(|side| ring.out(host, side))).collect();
        let mut inboxes: Vec<_> = ring.members.iter().map(|members| members.delivery_in()).collect();
        for (src, set) in (0..hosts).flat_map(|src| sets(hosts).map(move |set| (src, set))) {
            let before = ring.forwarded();
            let mut links = 0;
            for (side, part) in Side::BOTH.into_iter().zip(set.parted(&t, src)).filter(|(_, part)| !part.is_empty()) {
                assert!(Cast::new(src as u32, part).put(&mut outs[src][side as usize], b"once"));
                links += part.hosts().map(|to| t.links(src, to, side)).max().unwrap();
            }
            let mut missing = set.without(src);
            ring.until("all have it", |_| {
                for (host, inbox) in inboxes.iter_mut().enumerate() {
                    if took_any(inbox) {
                        assert!(missing.contains(host), "host {host} of {set:?} from {src}");
                        missing = missing.without(host);
                    }
                }
                missing.is_empty()
            });
            (0..3).for_each(|_| ring.step());
            assert!(!inboxes.iter_mut().any(took_any));
            // The first link of each side is crossed by the sender's own writing.
            let sides = set.parted(&t, src).iter().filter(|part| !part.is_empty()).count();
            assert_eq!(ring.forwarded() - before, (links - sides) as u64, "{set:?} from {src}");
        }
    }
}

/// A rank that takes nothing does not keep it from others, nor do full lanes keep it from the rank.
#[test]
fn it_is_delivered_and_passed_on_whichever_can_be_done() {
    let mut ring = Ring::new(6, Reliability::Off);
    let mut out = ring.out(0, Side::Right);
    let mut inboxes: Vec<_> = ring.members.iter().map(|members| members.delivery_in()).collect();
    let set: HostSet = [1, 2, 3].into_iter().collect();
    let bytes = [7; MULTICAST_MAX];
    let mut sent = 0;
    // Host 1 takes nothing, the others all: they get one more than it has room for.
    let mut taken = [0; 6];
    for _ in 0..2000 {
        sent += usize::from(Cast::new(0, set).put(&mut out, &bytes));
        ring.step();
        (2..4).for_each(|host| taken[host] += usize::from(took_any(&mut inboxes[host])));
    }
    assert_eq!(taken[2], taken[3]);
    assert!(taken[2] > 4 && sent > taken[2], "{taken:?} of {sent}");
    let stuck = taken[2];
    // It has all of those, and then the rest goes on.
    ring.until("host 1 has them all", |_| {
        (1..4).for_each(|host| taken[host] += usize::from(took_any(&mut inboxes[host])));
        taken[1] == sent && taken[2] == sent && taken[3] == sent
    });
    assert!(stuck < sent);
}

#[test]
fn what_has_no_business_here_is_an_error() {
    // To nobody, to a host that is not there, to the sender's own, and to one that is nearer the other way.
    for hosts in [0u64, 1 << 9, 1 << 0, 1 << 4 | 1 << 2] {
        let mut ring = Ring::new(5, Reliability::Off);
        let mut out = ring.out(0, Side::Right);
        assert!(Cast::new(0, HostSet::from_word(hosts)).put(&mut out, b"what?"));
        let error = ring.forwarders[1].step().unwrap_err();
        assert!(matches!(error, RelayError::Packet { from: 0, .. }), "{error}");
    }
    let mut ring = Ring::new(5, Reliability::Off);
    let mut out = ring.out(0, Side::Right);
    assert!(put(&mut out, ROUTED | CAST, b"too short"));
    assert!(matches!(ring.forwarders[1].step(), Err(RelayError::Packet { from: 0, .. })));
}
