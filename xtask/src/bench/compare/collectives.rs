//! The measures of collectives: of every shape, in several sizes.

use crate::bench::compare::measures::{short, Measure};
use crate::bench::jobs::{Program, Shape, COLLECTIVES};

const SIZES: [u64; 4] = [8, 4 << 10, 64 << 10, 1 << 20];

/// Of two hosts of two ranks.
const FEW: [&str; 5] = ["bcast", "reduce", "allreduce", "allgather", "alltoall"];
const FEW_SIZES: [u64; 2] = [8, 64 << 10];

/// Returns all measures: first those of hosts of one rank, then those without binding, then those of hosts of two.
pub(super) fn measures() -> Vec<Measure> {
    let mut all = Vec::new();
    for ranks in [2, 4, 8] {
        all.extend(of_shape(Shape::Hosts(ranks), true, &COLLECTIVES, &SIZES));
    }
    for ranks in [2, 4] {
        all.extend(of_shape(Shape::Hosts(ranks), false, &COLLECTIVES, &SIZES));
    }
    all.extend(of_shape(Shape::Pairs, true, &FEW, &FEW_SIZES));
    all
}

fn of_shape(shape: Shape, bound: bool, tests: &[&'static str], sizes: &[u64]) -> Vec<Measure> {
    let end = ending(shape, bound);
    let measure = |name: String, test, bytes| Measure {
        bound,
        ..Measure::new(format!("{name}_{end}"), Program::Coll, shape, (test, bytes), 1.0)
    };
    let mut all = vec![measure("barrier".to_string(), "barrier", 0)];
    for test in tests {
        all.extend(sizes.iter().map(|bytes| measure(format!("{test}_{}", short(*bytes)), test, *bytes)));
    }
    all
}

fn ending(shape: Shape, bound: bool) -> String {
    match shape {
        Shape::Pairs => "2x2".to_string(),
        _ => format!("{}ranks{}", shape.ranks(), if bound { "" } else { "_unbound" }),
    }
}

/// Returns the words for the shape of a collective's measure; None for other measures.
pub(super) fn shape(measure: &Measure) -> Option<String> {
    let hosts = match measure.shape {
        Shape::Pairs => "2 hosts of 2 ranks".to_string(),
        shape => format!("{} hosts of one rank", shape.ranks()),
    };
    let free = if measure.bound { "" } else { ", unbound" };
    (measure.program == Program::Coll).then(|| format!("{hosts}{free}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_measure_has_a_name_and_a_figure_of_its_own() {
        let all = measures();
        assert_eq!(all.len(), 5 * (1 + 8 * 4) + 1 + 5 * 2);
        let names: BTreeSet<&str> = all.iter().map(|measure| measure.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        let figures: BTreeSet<_> = all.iter().map(|one| (one.figure(), one.shape.ranks(), one.bytes)).collect();
        assert_eq!(figures.len(), all.len());
        for name in ["barrier_2x2", "scan_4KiB_8ranks", "reduce_scatter_block_1MiB_4ranks_unbound"] {
            assert!(names.contains(name), "{name}");
        }
    }

    #[test]
    fn shapes_are_named() {
        let shapes: BTreeSet<String> = measures().iter().filter_map(shape).collect();
        assert_eq!(shapes.len(), 6);
        assert!(shapes.contains("4 hosts of one rank, unbound") && shapes.contains("2 hosts of 2 ranks"));
    }
}
