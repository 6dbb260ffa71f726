//! Simulations of all ranks of a ring, whose results are compared with those of a naive computation.

mod simulation;

use crate::{begin, Collective, Kind, Method};
use fastrand::Rng;
use proptest::prelude::*;
use simulation::{check, Order};

/// Numbers of ranks for which every schedule is simulated.
const RANKS: [u32; 11] = [2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 64];

/// Vectors that are cut into few or many segments, and whose number of elements is not divisible by that of the ranks.
/// The latter are divided into halves on rings of at least four ranks, the last two on all of them.
const VECTORS: [(u64, u64); 11] = [
    (1, 8),
    (3, 4),
    (61, 1),
    (127, 100),
    (129, 127),
    (1, 70000),
    (5, 65537),
    (9, 30000),
    (41, 65536),
    (7, 1 << 20),
    (307, 30000),
];

fn collective(kind: Kind, ranks: u32, (elements, element_size): (u64, u64), in_place: bool) -> Collective {
    Collective { kind, ranks, rank: 0, elements, element_size, in_place }
}

/// Simulates a collective in the three extreme orders and in a random one.
fn check_orders(collective: Collective) {
    for order in [Order::Eager, Order::Late, Order::LateBackwards, Order::Random] {
        check(collective, order, &mut Rng::with_seed(u64::from(collective.ranks)));
    }
}

#[test]
fn broadcasts_reach_all_ranks() {
    for ranks in RANKS {
        for vector in VECTORS.into_iter().chain([(0, 1)]) {
            for root in [0, 1, ranks / 2, ranks - 1] {
                check_orders(collective(Kind::Broadcast { root }, ranks, vector, false));
            }
        }
    }
}

#[test]
fn reductions_arrive_at_the_root() {
    for ranks in RANKS {
        for vector in VECTORS {
            for (root, in_place) in [(0, false), (1, true), (ranks / 2, true), (ranks - 1, false)] {
                check_orders(collective(Kind::Reduce { root }, ranks, vector, in_place));
            }
        }
    }
}

#[test]
fn all_ranks_get_the_same_reduction() {
    for ranks in RANKS {
        for vector in VECTORS {
            for in_place in [false, true] {
                check_orders(collective(Kind::Allreduce, ranks, vector, in_place));
            }
        }
    }
}

#[test]
fn all_ranks_gather_all_blocks() {
    for ranks in RANKS {
        for elements in [0, 1, 7, 13] {
            for in_place in [false, true] {
                check_orders(collective(Kind::Allgather, ranks, (elements, 3), in_place));
            }
        }
    }
}

#[test]
fn blocks_for_every_rank_arrive() {
    for ranks in [4, 5] {
        for elements in [0, 1, 7, 13] {
            check_orders(collective(Kind::Alltoall, ranks, (elements, 3), false));
        }
    }
}

#[test]
fn the_method_depends_on_sizes() {
    let name = |kind, ranks, elements, in_place| {
        let collective = Collective { kind, ranks, rank: 1, elements, element_size: 2, in_place };
        match begin(&collective) {
            Method::Messages => "messages",
            Method::Ring(_) => "ring",
        }
    };
    let root = Kind::Broadcast { root: 0 };
    assert_eq!([name(root, 3, 9, false), name(root, 4, 9, false)], ["messages", "ring"]);
    for kind in [Kind::Allreduce, Kind::Reduce { root: 3 }] {
        assert_eq!([name(kind, 4, 0, false), name(kind, 4, 1, true)], ["messages", "ring"]);
        assert_eq!(name(kind, 2, 1, false), "messages");
    }
    assert_eq!([name(Kind::Allgather, 3, 9, false), name(Kind::Allgather, 64, 0, false)], ["messages", "ring"]);
    let alltoall = |ranks, in_place| name(Kind::Alltoall, ranks, 1000, in_place);
    assert_eq!([3, 4, 5, 6].map(|ranks| alltoall(ranks, false)), ["messages", "ring", "ring", "messages"]);
    assert_eq!(alltoall(4, true), "messages");
}

#[test]
fn a_rank_outside_the_ring_has_no_schedule() {
    let wrong = Collective { rank: 4, ..collective(Kind::Allgather, 4, (1, 1), false) };
    assert!(matches!(begin(&wrong), Method::Messages));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// No order in which ranks run and transfers complete leads to a deadlock or a wrong result.
    #[test]
    fn every_order_of_completion_leads_to_the_result(
        ranks in 2u32..20,
        kind in 0..5,
        elements in 0u64..300,
        element_size in prop_oneof![1u64..40, 2000u64..70000],
        root in any::<u32>(),
        in_place in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let kind = match kind {
            0 => Kind::Broadcast { root: root % ranks },
            1 => Kind::Reduce { root: root % ranks },
            2 => Kind::Allreduce,
            3 => Kind::Allgather,
            _ => Kind::Alltoall,
        };
        let ranks = if kind == Kind::Alltoall { 4 + ranks % 2 } else { ranks };
        let in_place = in_place && kind != Kind::Alltoall;
        check(collective(kind, ranks, (elements, element_size), in_place), Order::Random, &mut Rng::with_seed(seed));
    }
}
