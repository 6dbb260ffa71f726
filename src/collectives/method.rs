//! The choice of a method for a collective.

use crate::allgather::Allgather;
use crate::alltoall::Alltoall;
use crate::broadcast::Broadcast;
use crate::parts::Parts;
use crate::reduce::Reduce;
use crate::ring::{Carry, Ring};
use crate::schedule::{Plan, Schedule};

/// Sizes in bytes of the parts in which long vectors are passed on, so that all hosts copy at once (pipelining): of vectors
/// below the length `LONG`, and of others. `cargo xtask sim collectives` showed that shorter ones cost more than they save.
const SEGMENTS: [u64; 2] = [16384, 32768];
const LONG: u64 = 512 << 10;

/// Least lengths in bytes, for each rank, of vectors of which half goes all the way round in each direction: twice the
/// bandwidth, and twice as many hops. A reduction gains more, since its root has half of the work.
const HALVES_BROADCAST_MIN: u64 = 1 << 20;
const HALVES_REDUCE_MIN: u64 = 16384;

/// Least number of ranks on a ring on which not all are neighbours, so that passing blocks on from rank to rank avoids
/// the forwarders.
const RING_MIN_RANKS: u32 = 4;

/// Largest vector in bytes for which an allgather and a reduction of all vectors at every rank is cheaper than twice as
/// many rounds.
const GATHERED_ALLREDUCE_MAX: u64 = 16384;

/// Largest number of ranks on a ring on which no two ranks are more than two hops apart. Only there is an alltoall passed
/// on from rank to rank.
const ALLTOALL_MAX_RANKS: u32 = 5;

/// Kinds of collectives. Reductions combine elements one by one, in any order of the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The root's output becomes the output of all ranks.
    Broadcast {
        /// Rank whose output is sent.
        root: u32,
    },
    /// The root's output becomes the reduction of all inputs.
    Reduce {
        /// Rank that gets the result.
        root: u32,
    },
    /// Every output becomes the reduction of all inputs.
    Allreduce,
    /// Every output becomes the sequence of all inputs, in the order of ranks.
    Allgather,
    /// Block j of rank i's input becomes block i of rank j's output.
    Alltoall,
}

/// A collective as one rank sees it.
#[derive(Clone, Copy, Debug)]
pub struct Collective {
    /// Its kind.
    pub kind: Kind,
    /// Number of ranks, one on each host of the ring, in the order of hosts.
    pub ranks: u32,
    /// This rank.
    pub rank: u32,
    /// Elements of a vector, or of one rank's block.
    pub elements: u64,
    /// Size of an element in bytes.
    pub element_size: u64,
    /// True if this rank's input is in its output: the vector, or this rank's block of an allgather.
    pub in_place: bool,
}

/// The method for a collective. All ranks choose the same.
#[derive(Clone, Copy, Debug)]
pub enum Method {
    /// Messages between all ranks, as any network needs them.
    Messages,
    /// Messages between neighbours.
    Ring(Schedule),
}

/// Returns the method for a collective whose blocks are too large for boards.
#[inline]
pub fn begin(collective: &Collective) -> Method {
    let Collective { kind, ranks, rank, elements, element_size, in_place } = *collective;
    match kind {
        Kind::Alltoall if ranks > ALLTOALL_MAX_RANKS || in_place => Method::Messages,
        Kind::Reduce { .. } | Kind::Allreduce if elements == 0 || element_size == 0 => Method::Messages,
        _ if ranks >= RING_MIN_RANKS && rank < ranks => Method::Ring(schedule(collective)),
        _ => Method::Messages,
    }
}

/// Returns the schedule of a collective, even if another method is faster. An alltoall has one for 4 or 5 ranks only.
pub(crate) fn schedule(collective: &Collective) -> Schedule {
    let Collective { kind, ranks, rank, elements, element_size, in_place } = *collective;
    let (ring, bytes) = (Ring { ranks, rank }, elements.saturating_mul(element_size));
    // Vectors are cut into segments of whole elements, which have a part for each stream.
    let part = (SEGMENTS[usize::from(bytes >= LONG)] / element_size.max(1)).max(1);
    let carry = |least: u64| match ranks >= RING_MIN_RANKS && bytes >= least * u64::from(ranks) {
        true => (Carry::Halves, 2 * part),
        false => (Carry::Whole, part),
    };
    match kind {
        Kind::Broadcast { root } => {
            let (carry, segment) = carry(HALVES_BROADCAST_MIN);
            Schedule::new(Broadcast::new(ring.streams(root, carry), elements, segment), Plan::Broadcast)
        }
        Kind::Reduce { root } => {
            let (carry, segment) = carry(HALVES_REDUCE_MIN);
            Schedule::new(Reduce::new(ring.streams(root, carry), elements, segment, in_place), Plan::Reduce)
        }
        Kind::Allreduce if bytes <= GATHERED_ALLREDUCE_MAX => {
            Schedule::new(Allgather::reduced(ring, elements), Plan::Allgather)
        }
        Kind::Allreduce => Schedule::new(Parts::new(ring, elements, in_place), Plan::Parts),
        Kind::Allgather => Schedule::new(Allgather::new(ring, elements, in_place), Plan::Allgather),
        Kind::Alltoall => Schedule::new(Alltoall::new(ring, elements), Plan::Alltoall),
    }
}
