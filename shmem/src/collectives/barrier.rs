//! The barrier: flags of all to all for few PEs, which takes one round; otherwise by dissemination. Where not all memory is
//! mapped, mailboxes that hosts pass on round the ring are faster.

use super::exchange;
use crate::groups::{Flag, Group};
use crate::reach::Pes;

/// Largest number of PEs for a barrier of one round.
const ONE_ROUND: usize = 8;

/// Waits until all PEs of a team have called it.
pub fn synchronise(pes: &Pes, group: &Group) {
    let (n, me, area) = (group.n(), group.me(), group.area());
    if n == 1 {
        return;
    }
    if exchange::has_mailboxes(pes, group, 0) {
        // SAFETY: there are no bytes.
        return unsafe { exchange::allgather(pes, group, std::ptr::null(), 0, |_, _| {}) };
    }
    let _turn = group.turn();
    let number = area.begin_barrier();
    let raise = |at: usize, flag| area.raise(pes, &pes.peers[group.members()[at]], at, flag, number);
    if n <= ONE_ROUND {
        let others = || (1..n).map(|i| (me + i) % n);
        others().for_each(|other| raise(other, Flag::Of(me)));
        others().for_each(|other| area.wait(pes, Flag::Of(other), number));
        return area.have_met();
    }
    let mut distance = 1;
    for round in 0.. {
        raise((me + distance) % n, Flag::Round(round));
        area.wait(pes, Flag::Round(round), number);
        distance *= 2;
        if distance >= n {
            return area.have_met();
        }
    }
}
