//! Links and hosts that fail and return.

use super::{host, settled, LONG};
use crate::deadlock::Waits;
use crate::network::Network;
use crate::record::Stamp;
use crate::routes::Plan;
use crate::shape::Shape;
use crate::survey::Survey;
use crate::{Hwid, Lid, Rules, Table};
use std::time::Duration;

/// A step of a scenario.
#[derive(Clone, Copy, Debug)]
enum Step {
    Cut(usize),
    Mend(usize),
    Off(usize),
    On(usize),
    /// The next step follows this many microseconds later, and not when all has settled.
    Soon(u64),
}
use Step::*;

const SCENARIOS: &[(&str, &[Step])] = &[
    ("ring:4", &[Cut(0), Mend(0)]),
    ("ring:4", &[Cut(0), Soon(0), Cut(2), Mend(0), Soon(3), Mend(2)]),
    ("ring:5", &[Off(0), On(0)]),
    ("ring:5", &[Off(0), Soon(1), Off(1), Soon(2), On(0), Soon(5), On(1)]),
    ("ring:8", &[Off(0), Off(1), Off(2), On(2), On(0), On(1)]),
    // Two halves, each with a master, that are joined again with different epochs.
    ("line:6", &[Cut(2), Cut(4), Mend(4), Cut(3), Mend(3), Mend(2)]),
    ("line:6", &[Cut(2), Soon(7), Mend(2), Soon(1), Cut(2), Soon(2), Mend(2)]),
    ("broken-ring:6", &[Mend(5), Cut(1), Off(0), On(0)]),
    ("ring:2", &[Cut(0), Cut(1), Mend(1), Mend(0)]),
    ("torus:3x3", &[Off(0), Off(4), Cut(7), On(4), On(0)]),
    ("torus:4x4", &[Cut(0), Soon(1), Cut(5), Soon(1), Cut(9), Soon(1), Off(6), Soon(1), Off(0), Soon(9), On(6), On(0)]),
];

/// Versions of all hosts' tables. Those of hosts that are off count as the oldest.
fn stamps(network: &Network) -> Vec<Option<Stamp>> {
    (0..network.shape().hosts.len()).map(|host| Some(network.manager(host)?.table().stamp())).collect()
}

fn perform(network: &mut Network, steps: &[Step]) {
    let mut before = stamps(network);
    for (i, step) in steps.iter().enumerate() {
        match *step {
            Cut(link) => network.set_link(link, false).unwrap(),
            Mend(link) => network.set_link(link, true).unwrap(),
            Off(host) => network.set_host(host, false).unwrap(),
            On(host) => network.set_host(host, true).unwrap(),
            Soon(_) => {}
        }
        match (step, steps.get(i + 1)) {
            (_, Some(Soon(_))) => {}
            (Soon(time), _) => network.run(Duration::from_micros(*time)).unwrap(),
            _ => network.settle(LONG).unwrap_or_else(|error| panic!("{}, {step:?}: {error}", network.shape().name)),
        }
        let now = stamps(network);
        for (old, new) in before.iter().zip(&now) {
            assert!(old.is_none() || new.is_none() || old <= new, "an old table has replaced a new one");
        }
        before = now;
    }
}

#[test]
fn networks_heal() {
    for (shape, steps) in SCENARIOS {
        let mut network = settled(Shape::parse(shape).unwrap(), Rules::default());
        perform(&mut network, steps);
        let survey = Survey::of(&network);
        assert_eq!((survey.detours, survey.cycle), (0, None), "{shape}: {steps:?}");
        // The network stays in this state.
        let packets = network.traffic().0;
        network.run(Duration::from_secs(1)).unwrap();
        assert_eq!(network.agree(), Ok(()), "{shape}: {steps:?}");
        let polls = network.traffic().0 - packets;
        let hosts = network.shape().hosts.len() as u64;
        assert!(polls <= 11 * 2 * hosts * hosts, "{shape}: {polls} packets in a second of peace");
    }
}

#[test]
fn networks_heal_although_packets_are_lost() {
    for every in [3, 5, 17] {
        for (shape, steps) in SCENARIOS.iter().filter(|(shape, _)| !shape.starts_with("torus")) {
            let mut network = Network::started(Shape::parse(shape).unwrap(), Rules::default()).unwrap();
            network.set_loss(every);
            network.run(Duration::from_millis(50)).unwrap();
            perform_blindly(&mut network, steps);
            network.set_loss(0);
            network.settle(LONG).unwrap_or_else(|error| panic!("{shape}, 1 of {every} lost: {error}"));
        }
    }
}

/// Applies the steps without a check in between that the managers agree.
fn perform_blindly(network: &mut Network, steps: &[Step]) {
    for step in steps {
        let soon: Vec<Step> = vec![*step, Soon(900)];
        perform(network, &soon);
    }
}

/// A change is healed in a few searches, each of which takes a hop there and back, two hops, three, and so on. No
/// timer has to expire: the shortest is 10 ms.
#[test]
fn changes_are_healed_without_timers() {
    let changes: &[(&str, &[Step], Step)] = &[
        ("ring:16", &[], Cut(8)),
        ("ring:16", &[], Off(0)),
        ("ring:16", &[Off(0)], On(0)),
        ("ring:16", &[Off(5)], On(5)),
        ("ring:16", &[Cut(2), Off(0)], Off(1)),
        // The part that is cut off has hosts that do not notice the cut themselves.
        ("line:8", &[], Cut(2)),
        ("line:8", &[Cut(2)], Mend(2)),
        ("torus:4x4", &[], Off(0)),
    ];
    for (shape, before, change) in changes {
        let mut network = settled(Shape::parse(shape).unwrap(), Rules::default());
        perform(&mut network, before);
        let start = network.now();
        perform(&mut network, &[*change]);
        let time = network.last_change() - start;
        assert!(time < Duration::from_millis(1), "{shape}, {before:?}, {change:?}: {time:?}");
    }
}

/// The new master is far from the cut, and learns of it only from requests of other hosts.
#[test]
fn a_standby_that_is_taken_for_the_master_looks_again() {
    let mut shape = Shape::parse("line:5").unwrap();
    shape.set_hwids(&[1, 9, 5, 3, 7]).unwrap();
    let mut network = settled(shape, Rules::default());
    let start = network.now();
    network.set_link(0, false).unwrap();
    network.settle(LONG).unwrap();
    assert_eq!(network.manager(1).unwrap().master(), Hwid(3));
    assert!(network.last_change() - start < Duration::from_millis(1), "{:?}", network.last_change() - start);
}

#[test]
fn the_next_host_takes_over_from_a_dead_master() {
    let mut network = settled(Shape::parse("ring:5").unwrap(), Rules::default());
    network.set_host(0, false).unwrap();
    network.settle(LONG).unwrap();
    let second = network.manager(1).unwrap();
    assert_eq!((second.master(), second.table().hosts().len()), (Hwid(102), 4));
    assert_eq!(second.table().lid(), Lid(1));
}

fn lids(table: &Table) -> Vec<(Hwid, Lid)> {
    let mut lids: Vec<_> = table.hosts().iter().map(|entry| (entry.hwid, entry.lid)).collect();
    lids.sort();
    lids
}

/// While a job runs no host gets another local id, and packets of the old and the new routes may be in flight
/// together.
#[test]
fn jobs_keep_their_ids_and_cannot_deadlock_while_routes_change() {
    for name in ["ring:4", "ring:7", "ring:16", "torus:4x4"] {
        let mut network = settled(Shape::parse(name).unwrap(), Rules::default());
        let count = network.shape().hosts.len();
        (0..count).for_each(|host| network.set_busy(host, true).unwrap());
        let before = lids(network.manager(0).unwrap().table());
        let mut waits = Waits::new();
        for (link, up) in [(1, false), (3, false), (1, true), (2, false), (3, true), (2, true)] {
            network.set_link(link, up).unwrap();
            network.settle(LONG).unwrap();
            let table = network.manager(0).unwrap().table().clone();
            if table.hosts().len() == count {
                assert_eq!(lids(&table), before, "{name}");
                let plan = Plan::new(&network.shape().graph(0), 2, Some(&before));
                (0..count).for_each(|from| (0..count).for_each(|to| waits.add(&plan.channels(from, to))));
            }
        }
        assert_eq!(waits.cycle(), None, "{name}");
    }
}

/// Between jobs the tables are those of a network that has always been in this state.
#[test]
fn ids_are_made_afresh_between_jobs() {
    let mut network = settled(Shape::parse("ring:6").unwrap(), Rules::default());
    let before = lids(network.manager(0).unwrap().table());
    for link in [0, 4, 2] {
        network.set_link(link, false).unwrap();
        network.settle(LONG).unwrap();
    }
    for link in [4, 2, 0] {
        network.set_link(link, true).unwrap();
        network.settle(LONG).unwrap();
    }
    assert_eq!(lids(network.manager(0).unwrap().table()), before);
}

#[test]
fn a_slower_link_loses_its_routes() {
    let mut network = settled(Shape::parse("ring:4").unwrap(), Rules::default());
    network.set_weight(0, 9).unwrap();
    network.run(Duration::from_millis(1)).unwrap();
    let survey = Survey::of(&network);
    assert_eq!((survey.links[0].routes, survey.detours), ([0, 0], 0));
    let table = network.manager(host(&network, 101)).unwrap().table();
    assert_eq!(table.host(Hwid(102)).unwrap().path.to_string(), "0,0,0");
}
