//! Collectives of whole rings in virtual time.

use super::{plan, small, sound};
use crate::collective::Operation;
use crate::plan::Faults;
use crate::traffic::Traffic;
use crate::{run, Plan};
use ntbring_collectives::Kind;

const KINDS: [Kind; 5] =
    [Kind::Broadcast { root: 1 }, Kind::Reduce { root: 2 }, Kind::Allreduce, Kind::Allgather, Kind::Alltoall];

/// Returns a collective of vectors or blocks of that many bytes.
fn collective(hosts: u64, kind: Kind, bytes: u64, in_place: bool) -> Plan {
    let (elements, element_size) = match kind {
        Kind::Allgather | Kind::Alltoall => (1, bytes),
        _ => (bytes / 8, 8),
    };
    plan(&format!("ring:{hosts}"), Traffic::Collective(Operation { kind, elements, element_size, in_place }))
}

#[test]
fn the_same_collective_gives_the_same_report() {
    for kind in KINDS {
        let plan = collective(6, kind, 200_000, false);
        let text = || serde_json::to_string(&sound(&plan)).unwrap();
        assert_eq!(text(), text());
    }
}

/// Checks that all bytes which the algorithms send arrive, also through the smallest lanes, and that no time is below that
/// of the bytes over the links of one host.
#[test]
fn every_byte_of_a_collective_arrives() {
    for (hosts, kind) in [4, 5, 6, 9].into_iter().flat_map(|hosts| KINDS.map(|kind| (hosts, kind))) {
        for bytes in [8, 4096, 100_000, 1_500_000] {
            let distances: u64 = (1..hosts).map(|host: u64| host.min(hosts - host)).sum();
            let expected = match kind {
                Kind::Broadcast { .. } | Kind::Reduce { .. } => (hosts - 1) * bytes,
                Kind::Allreduce if bytes > 16384 => 2 * (hosts - 1) * bytes,
                Kind::Allreduce | Kind::Allgather => hosts * (hosts - 1) * bytes,
                Kind::Alltoall if hosts <= 5 => hosts * distances * bytes,
                Kind::Alltoall => hosts * (hosts - 1) * bytes,
            };
            let mut plan = collective(hosts, kind, bytes, false);
            for lanes in ["as they are", "small"] {
                if lanes == "small" {
                    plan = small(plan);
                    if bytes > 100_000 {
                        continue;
                    }
                }
                let report = sound(&plan);
                let what = format!("{kind:?} of {bytes} on {hosts} hosts, lanes {lanes}");
                // A message without elements counts as one byte.
                assert!((expected..expected + 100).contains(&report.bytes_in), "{what}: {}", report.bytes_in);
                let least = bytes as f64 / 2.0 / 6e9 * 1e6;
                assert!(report.collective_us.max > least && report.collective_us.max < 1e5, "{what}: {report:?}");
            }
        }
    }
}

#[test]
fn copies_and_reductions_take_the_time_of_their_rank() {
    let time = |in_place, reduce| {
        let mut plan = collective(4, Kind::Allreduce, 400_000, in_place);
        plan.host.reduce = reduce;
        sound(&plan).collective_us.max
    };
    let (fast, slow) = (time(false, 1 << 50), time(false, 1_000_000_000));
    // Each rank adds three quarters of a vector.
    assert!((290.0..330.0).contains(&(slow - fast)), "{fast} {slow}");
    let copied = time(true, 1 << 50) - fast;
    assert!((30.0..50.0).contains(&copied), "{copied}");
}

#[test]
fn impossible_collectives_are_refused() {
    type Change<'a> = &'a dyn Fn(&mut Plan);
    let of = |plan: &mut Plan, change: &dyn Fn(&mut Operation)| {
        if let Traffic::Collective(operation) = &mut plan.traffic {
            change(operation);
        }
    };
    let cases: [(Change<'_>, &str); 6] = [
        (&|plan| plan.form = "torus:2x2".parse().unwrap(), "on rings"),
        (&|plan| plan.faults = Faults { retry: true, ..Faults::default() }, "without packet loss"),
        (&|plan| plan.form = "ring:3".parse().unwrap(), "MPICH's algorithms"),
        (&|plan| of(plan, &|operation| operation.elements = 0), "at least one element"),
        (&|plan| of(plan, &|operation| operation.kind = Kind::Broadcast { root: 4 }), "the root"),
        (
            &|plan| of(plan, &|operation| (operation.kind, operation.in_place) = (Kind::Alltoall, true)),
            "MPICH's algorithms",
        ),
    ];
    for (change, what) in cases {
        let mut plan = collective(4, Kind::Allgather, 100, false);
        change(&mut plan);
        let error = run(&plan).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}
