//! When others have died, or links have gone down where nothing goes round them: what concerns who is lost by that is
//! forgotten, and the caller is told; everything else goes on.
//!
//! Nothing fails here. Requests that wait for a lost rank, and later ones, stay pending for ever; the caller,
//! who knows all of that too, ends it when it hears [`Event::Lost`].

use super::{Endpoint, EndpointError, Event};
use ntbring_ring::Loss;

/// The peers that are lost to a rank.
#[derive(Default)]
pub(super) struct Losses {
    known: Vec<Loss>,
    /// The extent of the damage that has been seen, and of what was seen to.
    seen: usize,
    settled: usize,
}

impl Losses {
    /// The cause of the loss of a rank, if it was lost.
    pub fn of(&self, rank: u32) -> Option<Loss> {
        self.known.iter().find(|loss| loss.rank() == rank).copied()
    }
}

impl Endpoint {
    /// Of a poll that looked everywhere and found nothing. Packets of dead ranks, and those that a link has delivered, are taken
    /// first: losses count from the second such poll on after they were seen.
    #[inline]
    pub(super) fn check_losses(&mut self) -> Result<(), EndpointError> {
        let extent = self.idle.extent();
        if extent == 0 {
            return Ok(());
        }
        if std::mem::replace(&mut self.losses.seen, extent) == extent && self.losses.settled != extent {
            self.take_losses();
            self.losses.settled = extent;
        }
        // Ranks of one host share memory that only MPICH knows what hangs on.
        match self.losses.known.iter().find(|loss| self.shares_host(loss)) {
            Some(loss) => Err((*loss).into()),
            None => Ok(()),
        }
    }

    fn shares_host(&self, loss: &Loss) -> bool {
        matches!(loss, Loss::Died(dead) if dead.host == self.members.host())
    }

    #[cold]
    fn take_losses(&mut self) {
        let damage = self.idle.damage();
        self.members.part_from(&damage.dead);
        for side in self.members.sides_over(damage.outages) {
            self.out.close(side);
            self.inbound.close(side);
        }
        if let Some(gap) = self.members.gap(&damage) {
            self.groups.cut(gap);
        }
        for loss in self.members.losses(&damage) {
            let rank = loss.rank();
            if self.losses.of(rank).is_some() {
                continue;
            }
            // Whoever fails because others have failed cannot say more than that.
            log::warn!("rank {}: {loss}", self.members.rank());
            self.losses.known.push(loss);
            self.out.lose(rank);
            self.inbound.lose(rank);
            self.credits.lose(rank);
            self.offers.lose(rank);
            self.remotes.lose(rank);
            self.groups.lose(loss);
            self.offers.events.push_back(Event::Lost(loss));
        }
        self.idle.busy();
    }
}
