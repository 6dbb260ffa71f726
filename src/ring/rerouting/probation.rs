//! Link-flap hysteresis: a link that comes up again is used at once for destinations without another route, and for all
//! others only after it has stayed up for some time.

use ntbring_ntb::LinkState;
use std::time::Duration;

/// Time that a link must stay up after an outage before routes that have an alternative use it. Without it, a loose
/// cable would move all traffic back and forth.
pub(super) const PROBATION: Duration = Duration::from_millis(200);

/// Routing weight of a hop over a proven link...
const PROVEN: u32 = 1;
/// ...and over one that is on probation: more than any route over proven links.
const UNPROVEN: u32 = crate::topology::HOSTS_MAX as u32;

/// Change of a link's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The link is down. `proven` is false if it was still on probation.
    Down { proven: bool },
    /// The link is up, and a hop over it has this weight from now on.
    Up { weight: u32 },
}

impl Change {
    /// Returns true if the link is up and proven.
    pub fn is_plain(self) -> bool {
        self == Change::Up { weight: PROVEN }
    }
}

/// State of a link, as observed at its port so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Link {
    /// The port was not observed yet.
    #[default]
    Unseen,
    Down,
    /// Up since this time, and on probation.
    Unproven(Duration),
    Up,
}

impl Link {
    /// Returns true if packets may be sent over the link.
    pub fn is_up(self) -> bool {
        matches!(self, Link::Unproven(_) | Link::Up)
    }

    /// Updates the state with the port's state at time `now`. Returns the change, if there is one.
    pub fn look(&mut self, now: Duration, state: LinkState) -> Option<Change> {
        let (next, change) = match (*self, state) {
            (Link::Down, LinkState::Down) => return None,
            (before, LinkState::Down) => (Link::Down, Change::Down { proven: !matches!(before, Link::Unproven(_)) }),
            (Link::Unseen, LinkState::Up) => (Link::Up, Change::Up { weight: PROVEN }),
            (Link::Down, LinkState::Up) => (Link::Unproven(now), Change::Up { weight: UNPROVEN }),
            (Link::Unproven(since), LinkState::Up) if now >= since + PROBATION => {
                (Link::Up, Change::Up { weight: PROVEN })
            }
            (Link::Unproven(_) | Link::Up, LinkState::Up) => return None,
        };
        *self = next;
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the changes if a port shows these states, observed every 100 ms.
    fn changes(shown: &[LinkState]) -> Vec<Option<Change>> {
        let mut link = Link::default();
        assert!(!link.is_up());
        let looks = shown.iter().zip(0..);
        looks.map(|(state, i)| link.look(Duration::from_millis(100 * i), *state)).collect()
    }

    const UP: Option<Change> = Some(Change::Up { weight: PROVEN });
    const AGAIN: Option<Change> = Some(Change::Up { weight: UNPROVEN });
    const DOWN: Option<Change> = Some(Change::Down { proven: true });
    const DOWN_AGAIN: Option<Change> = Some(Change::Down { proven: false });

    #[test]
    fn a_link_is_trusted_at_first_and_then_when_it_has_stayed_up() {
        use LinkState::{Down, Up};
        assert_eq!(changes(&[Up, Up, Down, Down, Up, Up, Up, Up]), [UP, None, DOWN, None, AGAIN, None, UP, None]);
        assert_eq!(changes(&[Down, Up, Up, Up]), [DOWN, AGAIN, None, UP]);
    }

    #[test]
    fn a_link_that_comes_and_goes_stays_on_probation() {
        use LinkState::{Down, Up};
        let shown = [Up, Down, Up, Down, Up, Up, Down, Up];
        assert_eq!(changes(&shown), [UP, DOWN, AGAIN, DOWN_AGAIN, AGAIN, None, DOWN_AGAIN, AGAIN]);
    }

    #[test]
    fn every_other_way_is_cheaper_than_an_unproven_link() {
        assert!(UNPROVEN > (crate::topology::HOSTS_MAX as u32 - 1) * PROVEN);
    }
}
