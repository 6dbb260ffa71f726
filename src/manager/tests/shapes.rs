//! Rings, lines, broken rings and tori: routes are shortest, evenly split, and cannot deadlock.

use super::weigh;
use super::{settled, survey};
use crate::class_step;
use crate::deadlock::{Channel, Waits};
use crate::routes::Plan;
use crate::shape::Shape;
use crate::survey::Survey;
use crate::{Hwid, Lid, Rules, CLASSES_MAX};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

fn check(survey: &Survey) {
    let name = &survey.name;
    assert_eq!(survey.detours, 0, "{name}: routes that are not the shortest");
    assert_eq!(survey.cycle, None, "{name}");
    assert!(survey.hosts.iter().all(|host| host.master == Hwid(101)), "{name}");
    assert_eq!(survey.routes.len(), survey.hosts.len() * (survey.hosts.len() - 1), "{name}");
}

/// In a ring each of the n hosts has k = n / 2 or (n - 1) / 2 others in a direction, so that 1 + 2 + ... routes lead
/// over each direction of a link. Of those to the opposite host, if there is one, half lead over it.
#[test]
fn rings_are_balanced() {
    for hosts in 3..=16usize {
        let survey = survey(&format!("ring:{hosts}"));
        check(&survey);
        let near = (hosts - 1) / 2;
        let sure = near * (near + 1) / 2;
        let (least, most) = match hosts % 2 {
            0 => (sure + hosts / 2 / 2, sure + (hosts / 2).div_ceil(2)),
            _ => (sure, sure),
        };
        assert_eq!(survey.load, (least, most), "ring of {hosts}");
        assert_eq!(survey.ties, if hosts % 2 == 0 { hosts } else { 0 });
    }
    check(&survey("ring:1"));
    // Two hosts with two cables: one route in each direction.
    check(&survey("ring:2"));
}

#[test]
fn lines_and_broken_rings_have_one_way_each() {
    for (hosts, kind) in (2..=16).flat_map(|hosts| ["line", "broken-ring"].map(|kind| (hosts, kind))) {
        let survey = survey(&format!("{kind}:{hosts}"));
        check(&survey);
        let cut = |link: usize| (link + 1) * (hosts - 1 - link);
        for (i, link) in survey.links.iter().enumerate().filter(|(_, link)| link.up) {
            assert_eq!(link.routes, [cut(i); 2], "{kind} of {hosts}, link {i}");
        }
        assert!(survey.routes.iter().all(|route| route.class < 2 && route.ways == 1));
    }
}

/// In a row of n each host has 1 + 1 + 2 + 2 + ... hops to the others, times the hosts of a column. As many links as
/// hosts lead in either direction.
#[test]
fn tori_have_shortest_routes_and_even_loads() {
    for (width, height) in [(2, 2), (3, 2), (3, 3), (4, 3), (4, 4), (5, 4), (8, 8)] {
        let survey = survey(&format!("torus:{width}x{height}"));
        check(&survey);
        let hops = |n: usize| (0..n).map(|d| d.min(n - d)).sum::<usize>();
        let (across, along) = (hops(width) * height, hops(height) * width);
        // Half of them lead in each direction; one more where that is not a whole number.
        let (least, most) = (across.min(along) / 2, across.max(along).div_ceil(2));
        // For the largest torus the routes are not balanced to the last one.
        let slack = usize::from(width == 8);
        assert_eq!(survey.load, (least - slack, most + slack), "torus of {width} x {height}");
        assert!(survey.routes.iter().all(|route| route.class < 2));
    }
}

#[test]
fn the_longest_way_works() {
    check(&survey("line:64"));
}

/// The argument of docs/protocol.md, checked for every possible route in every class: routes of any number of tables
/// with the same local ids then cannot deadlock together.
#[test]
fn no_route_whatever_can_close_a_cycle() {
    let rings = (2..=8).flat_map(|n| [format!("ring:{n}"), format!("line:{n}"), format!("broken-ring:{n}")]);
    for name in rings.chain(["torus:2x2", "torus:3x2", "torus:3x3", "torus:4x4", "torus:8x8"].map(String::from)) {
        let shape = Shape::parse(&name).unwrap();
        for root in 0..shape.hosts.len() {
            let graph = shape.graph(root);
            let lids: BTreeMap<Hwid, Lid> = graph.search().into_iter().map(|host| host.0).zip((1..).map(Lid)).collect();
            let lid = |hwid: Hwid| lids[&hwid];
            let mut waits = Waits::new();
            for (&before, &first) in &lids {
                for (port, here) in graph.links(before) {
                    for (on, next) in graph.links(here.hwid) {
                        let step = class_step(first, lid(here.hwid), lid(next.hwid));
                        for class in 0..CLASSES_MAX {
                            let from = Channel { host: before, port, class };
                            let to = Channel { host: here.hwid, port: on, class: class + step };
                            waits.add(&[from, to]);
                        }
                    }
                }
            }
            assert_eq!(waits.cycle(), None, "{name} with master {root}");
        }
    }
}

/// Without classes the shortest routes of a ring have a cycle, and it is detected.
#[test]
fn a_ring_of_one_class_would_deadlock() {
    for hosts in 5..=8 {
        let plan = Plan::new(&Shape::ring(hosts).unwrap().graph(0), 2, None);
        let mut waits = Waits::new();
        for (from, to) in (0..hosts).flat_map(|from| (0..hosts).map(move |to| (from, to))) {
            let flat = plan.channels(from, to).into_iter().map(|channel| Channel { class: 0, ..channel });
            waits.add(&flat.collect::<Vec<_>>());
        }
        assert!(waits.cycle().is_some(), "ring of {hosts}");
    }
}

/// With one class there are routes between all hosts, too: longer ones, and never a cycle.
#[test]
fn one_class_is_enough_for_some_route() {
    for (name, short) in
        [("ring:5", false), ("ring:8", false), ("torus:5x5", false), ("torus:4x4", true), ("line:6", true)]
    {
        let rules = Rules { classes: 1, ..Rules::default() };
        let survey = Survey::of(&settled(Shape::parse(name).unwrap(), rules));
        assert_eq!((survey.cycle.is_none(), survey.detours == 0), (true, short), "{name}");
        assert!(survey.routes.iter().all(|route| route.class == 0));
    }
}

#[test]
fn slow_links_are_avoided() {
    // The far end of the slow link is nearer in the other direction.
    let shape = Shape::from_links("1.1 2.0\n2.1 3.0\n3.1 1.0 weight=5", weigh).unwrap();
    let survey = Survey::of(&settled(shape, Rules::default()));
    assert_eq!((survey.links[2].routes, survey.detours), ([0, 0], 0));
    assert!(survey.routes.iter().all(|route| route.cost <= 2));
    // The cost of a link is the larger one of those that its two ends report.
    let graph = Shape::from_links("1.1 2.0 model=slow\n2.1 1.0 model=fast", weigh).unwrap().graph(0);
    let plan = Plan::new(&graph, 2, None);
    assert_eq!(plan.path(0, 1).to_string(), "0");
}

fn acyclic(plan: &Plan) -> bool {
    let (count, mut waits) = (plan.hosts().len(), Waits::new());
    (0..count).for_each(|from| (0..count).for_each(|to| waits.add(&plan.channels(from, to))));
    waits.cycle().is_none()
}

proptest! {
    /// Checks any graph, with any previous local ids of the hosts, and any number of classes.
    #[test]
    fn any_graph_has_routes_without_a_cycle(
        cables in proptest::collection::vec((0usize..8, 0u8..4, 0usize..8, 0u8..4, 1u32..4), 1..14),
        lids in Just((1..=8u8).collect::<Vec<_>>()).prop_shuffle(),
        classes in 1..=CLASSES_MAX,
    ) {
        let mut text = String::new();
        let mut used = BTreeSet::new();
        for (a, p, b, q, weight) in cables {
            if a != b && !used.contains(&(a, p)) && !used.contains(&(b, q)) {
                used.extend([(a, p), (b, q)]);
                text += &format!("{}.{p} {}.{q} weight={weight}\n", a + 1, b + 1);
            }
        }
        let Ok(shape) = Shape::from_links(&text, weigh) else { return Ok(()) };
        let graph = shape.graph(0);
        let kept: Vec<_> = shape.hosts.iter().copied().zip(lids.into_iter().map(Lid)).collect();
        for plan in [Plan::new(&graph, classes, None), Plan::new(&graph, classes, Some(&kept))] {
            prop_assert!(acyclic(&plan));
            let count = plan.hosts().len();
            prop_assert_eq!(count, graph.search().len());
            for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
                prop_assert_eq!(plan.path(from, to).is_empty(), from == to);
                prop_assert_eq!(plan.channels(from, to).len(), plan.path(from, to).len());
            }
        }
    }
}
