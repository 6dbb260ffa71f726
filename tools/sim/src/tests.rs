//! Whole networks in virtual time.

mod collectives;

use super::agenda::{ms, us};
use super::machine::Simulation;
use super::net::{Form, Net};
use super::plan::{Faults, Outage};
use super::retry::attempts;
use super::traffic::{Call, Multicast, Pacing, Pattern, Traffic};
use super::{run, Parameters, Plan, Report, SimError};
use ntbring_ntb::Side;

fn parameters() -> Parameters {
    toml::from_str(include_str!("../parameters.toml")).unwrap()
}

fn plan(form: &str, traffic: Traffic) -> Plan {
    let all = parameters();
    Plan {
        form: form.parse().unwrap(),
        links: vec![all.link("gen3x8").unwrap()],
        host: all.host("i7-8700k").unwrap(),
        protocol: all.protocol("ntbring").unwrap(),
        threads: 1,
        traffic,
        faults: Faults::default(),
        seed: 1,
    }
}

fn made(pattern: Pattern, pacing: Pacing, bytes: u64) -> Traffic {
    Traffic::Made { pattern, pacing, bytes }
}

/// Returns the plan with the smallest possible lanes.
fn small(mut plan: Plan) -> Plan {
    (plan.protocol.chunk, plan.protocol.lane) = (200, 1024);
    plan
}

/// Runs a plan and checks the properties that every run must have.
fn sound(plan: &Plan) -> Report {
    let report = run(plan).unwrap_or_else(|error| panic!("{} {:?}: {error}", plan.form, plan.traffic));
    assert_eq!(report.bytes_in, report.bytes_out, "{} {:?}", plan.form, plan.traffic);
    assert_eq!(report.overtaken, 0, "{} {:?}", plan.form, plan.traffic);
    assert!(report.messages > 0 && report.busiest <= 1.0);
    report
}

const PATTERNS: [Pattern; 5] =
    [Pattern::Neighbour, Pattern::Uniform, Pattern::Opposite, Pattern::AllToAll, Pattern::Incast];

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let load = Pacing::Load { load: 0.6, time: us(400), warm_up: us(50) };
    let mut plan = plan("torus:4x4", made(Pattern::Uniform, load, 5000));
    plan.threads = 2;
    let text = |plan: &Plan| serde_json::to_string(&sound(plan)).unwrap();
    let first = text(&plan);
    assert_eq!(first, text(&plan));
    plan.seed = 2;
    assert_ne!(first, text(&plan));
}

#[test]
fn everything_comes_in_order_whatever_the_traffic() {
    let forms = ["ring:2", "ring:5", "ring:8", "line:6", "torus:4x4", "torus:3x2"];
    for (i, (form, pattern)) in forms.iter().flat_map(|form| PATTERNS.map(|p| (form, p))).enumerate() {
        let pacing = [Pacing::Window { open: 4, count: 12 }, Pacing::Local { time: us(20), warm_up: 0 }][i % 2];
        let mut plan = small(plan(form, made(pattern, pacing, 3000)));
        plan.threads = 1 + i % 4;
        sound(&plan);
    }
}

/// Checks the smallest buffers with a load beyond the capacity of the network.
#[test]
fn large_networks_under_random_traffic_do_not_deadlock() {
    for (form, pattern, threads) in [
        ("ring:64", Pattern::Uniform, 1),
        ("ring:33", Pattern::Opposite, 2),
        ("torus:8x8", Pattern::Uniform, 1),
        ("torus:12x10", Pattern::Uniform, 2),
        ("torus:12x10", Pattern::Opposite, 1),
        ("torus:32x32", Pattern::Uniform, 1),
        ("line:40", Pattern::Uniform, 1),
        ("ring:40", Pattern::Incast, 1),
    ] {
        let pacing = Pacing::Window { open: 4, count: if form == "torus:32x32" { 4 } else { 8 } };
        let mut plan = small(plan(form, made(pattern, pacing, 1000)));
        plan.threads = threads;
        assert!(sound(&plan).waits > 0, "{form}: the buffers were never full");
    }
}

/// Checks that a ring without the dateline does deadlock, and that this is detected.
#[test]
fn a_deadlock_would_be_seen() {
    let plan = small(plan("ring:8", made(Pattern::Opposite, Pacing::Window { open: 8, count: 50 }, 2000)));
    sound(&plan);
    let mut simulation = Simulation::new(&plan).unwrap();
    simulation.net.flat = true;
    match simulation.run() {
        Err(SimError::Deadlock { missing, waiting, .. }) => assert!(missing > 0 && waiting > 0),
        other => panic!("{other:?}"),
    }
}

/// Takes down two links of a ring, one after the other, during traffic, with random packet loss in addition.
#[test]
fn what_links_lose_comes_all_the_same_and_in_order() {
    let outage = |cable, down, up| Outage { cable, down: ms(down), up: ms(up) };
    for (hosts, loss) in [(3, 0.0), (5, 0.0), (6, 0.001)] {
        let load = Pacing::Load { load: 0.004, time: ms(900), warm_up: 0 };
        let mut plan = plan(&format!("ring:{hosts}"), made(Pattern::Uniform, load, 30_000));
        let outages = vec![outage(0, 100, 350), outage(2, 600, 800)];
        plan.faults = Faults { retry: true, loss, outages };
        let report = sound(&plan);
        assert!(report.reroutes > 0 && report.resent > 0, "{report:?}");
        if hosts == 3 {
            assert_eq!(report, sound(&plan));
        }
    }
}

#[test]
fn random_losses_are_sent_again_on_any_network() {
    for form in ["ring:20", "torus:3x3", "line:4"] {
        let pacing = Pacing::Window { open: 2, count: 10 };
        let mut plan = plan(form, made(Pattern::Uniform, pacing, 20_000));
        plan.faults = Faults { retry: true, loss: 0.02, outages: Vec::new() };
        let report = sound(&plan);
        assert!(report.lost > 0 && report.resent > 0 && report.reroutes == 0, "{form} {report:?}");
    }
}

/// SPAX: a message arrives within n attempts with probability 1 - p^n. With a fixed seed the result is deterministic;
/// the bound is five standard deviations.
#[test]
fn the_rate_of_success_within_n_attempts_is_one_less_p_to_the_n() {
    const MESSAGES: usize = 4000;
    for (loss, back) in [(0.1, false), (0.3, false), (0.5, false), (0.5, true)] {
        let tries = attempts(loss, back, MESSAGES, 1000, 7).unwrap();
        assert_eq!(tries.len(), MESSAGES);
        for n in 1..=6 {
            let within = tries.iter().filter(|&&tries| tries <= n).count() as f64 / MESSAGES as f64;
            let expected = 1.0 - loss.powi(n as i32);
            let deviation = (expected * (1.0 - expected) / MESSAGES as f64).sqrt();
            assert!((within - expected).abs() <= 5.0 * deviation, "p {loss}, n {n}: {within}, not {expected}");
        }
    }
}

#[test]
fn traces_are_followed() {
    let form: Form = "ring:4".parse().unwrap();
    let trace = Traffic::trace("0 0 1 100\n10 1 3 9000\n20 3 0 1\n", form.hosts()).unwrap();
    let report = sound(&plan("ring:4", trace.clone()));
    assert_eq!((report.messages, report.bytes_in), (3, 9101));
    let mut lossy = plan("ring:4", trace);
    lossy.faults = Faults { retry: true, loss: 0.2, outages: Vec::new() };
    assert_eq!(sound(&lossy).messages, 3);
}

#[test]
fn impossible_plans_are_refused() {
    let base = || plan("ring:4", made(Pattern::Neighbour, Pacing::Local { time: 1, warm_up: 0 }, 8));
    let outage = Outage { cable: 0, down: 1, up: 2 };
    type Change<'a> = &'a dyn Fn(&mut Plan);
    let cases: [(Change<'_>, &str); 6] = [
        (&|plan| plan.threads = 9, "1 to 8 forwarder threads"),
        (&|plan| plan.faults.loss = 0.1, "need retry"),
        (&|plan| plan.protocol.lane = 512, "too small"),
        (&|plan| plan.protocol.chunk = 1 << 20, "do not fit"),
        (&|plan| plan.faults = Faults { retry: true, loss: 1.5, outages: vec![] }, "below 1"),
        (
            &|plan| {
                plan.form = Form::Torus(4, 4);
                plan.faults = Faults { retry: true, loss: 0.0, outages: vec![outage] };
            },
            "rings of 3 to 64",
        ),
    ];
    for (change, what) in cases {
        let mut plan = base();
        change(&mut plan);
        let error = run(&plan).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn names_that_the_parameters_do_not_have_are_named() {
    let error = parameters().link("gen9").unwrap_err().to_string();
    assert!(error.contains("gen9") && error.contains("gen3x8"), "{error}");
}

/// Checks messages to a list of hosts: each host gets the message once, each link carries it once, and it arrives no
/// later than a separate message to each host.
#[test]
fn lists_of_hosts_get_one_message_by_each_link() {
    for (hosts, src) in [(3, 0), (4, 1), (7, 6), (16, 5)] {
        let form = format!("ring:{hosts}");
        let lists: [Vec<usize>; 3] =
            [0..hosts, src..src + 2, 0..hosts / 2].map(|list| list.map(|h| h % hosts).filter(|h| *h != src).collect());
        for to in lists.into_iter().filter(|to| !to.is_empty()) {
            let call = Multicast { at: 0, src, to: to.clone(), bytes: 64 };
            let one = sound(&plan(&form, Traffic::Multicast(vec![call])));
            let calls = to.iter().map(|dst| Call { at: 0, src, dst: *dst, bytes: 64 }).collect();
            let each = sound(&plan(&form, Traffic::Trace(calls)));
            assert_eq!(one.messages, each.messages);
            let net = Net::new(form.parse().unwrap(), false).unwrap();
            let furthest = |right: bool| {
                let part = to.iter().filter(|dst| (net.side(src, **dst) == Side::Right) == right);
                part.map(|dst| net.distance(src, *dst)).max().unwrap_or(0)
            };
            assert_eq!(one.packets as usize, furthest(true) + furthest(false), "{form} {to:?}");
            assert_eq!(each.packets as usize, to.iter().map(|dst| net.distance(src, *dst)).sum::<usize>());
            assert!(one.packets <= each.packets);
        }
    }
}

#[test]
fn several_messages_to_several_hosts_come_in_order() {
    let call = |n: usize| Multicast {
        at: us(1) * (n as u64 / 8),
        src: n % 5,
        to: (0..5).filter(|dst| *dst != n % 5).collect(),
        bytes: 100,
    };
    let mut plan = small(plan("ring:5", Traffic::Multicast((0..200).map(call).collect())));
    assert_eq!(sound(&plan).messages, 800);
    for (wrong, what) in [
        (Multicast { to: vec![1, 1], ..call(0) }, "invalid hosts"),
        (Multicast { to: vec![], ..call(0) }, "invalid hosts"),
        (Multicast { to: vec![0], ..call(0) }, "invalid hosts"),
        (Multicast { to: vec![5], ..call(0) }, "invalid hosts"),
        (Multicast { bytes: 201, ..call(0) }, "more than one packet"),
    ] {
        plan.traffic = Traffic::Multicast(vec![wrong]);
        assert!(run(&plan).unwrap_err().to_string().contains(what));
    }
    plan.form = Form::Torus(3, 3);
    assert!(run(&plan).unwrap_err().to_string().contains("round rings"));
}
