//! Link-flap hysteresis: a link that comes up again is used at once for destinations without another route, and for all
//! others only after it has stayed up for some time.

use ntbring_ntb::LinkState;
use std::time::Duration;

/// Time that a link must stay up after an outage before routes that have an alternative use it. Without it, a loose
/// cable would move all traffic back and forth.
pub(super) const STABLE_AFTER: Duration = Duration::from_millis(200);

/// Routing weight of a hop over a proven link.
const PROVEN: u32 = 1;
/// Routing weight of a hop over a link that is under hysteresis: more than that of any route over proven links.
const UNPROVEN: u32 = crate::topology::HOSTS_MAX as u32;

/// Change of a link's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HealthChange {
    /// The link is down. `proven` is false if it was still under hysteresis.
    Down { proven: bool },
    /// The link is up, and a hop over it has this weight from now on.
    Up { weight: u32 },
}

impl HealthChange {
    /// Returns true if the link is up and proven.
    pub fn is_plain(self) -> bool {
        self == HealthChange::Up { weight: PROVEN }
    }
}

/// State of a link, as observed at its port so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum LinkHealth {
    /// The port has not been observed yet.
    #[default]
    Unseen,
    Down,
    /// The link has been up since this time, and is under hysteresis.
    Unproven(Duration),
    Up,
}

impl LinkHealth {
    /// Returns true if packets may be sent over the link.
    pub fn is_up(self) -> bool {
        matches!(self, LinkHealth::Unproven(_) | LinkHealth::Up)
    }

    /// Updates the state with the port's state at time `now`. Returns the change, if there is one.
    pub fn look(&mut self, now: Duration, state: LinkState) -> Option<HealthChange> {
        let (next, change) = match (*self, state) {
            (LinkHealth::Down, LinkState::Down) => return None,
            (before, LinkState::Down) => {
                (LinkHealth::Down, HealthChange::Down { proven: !matches!(before, LinkHealth::Unproven(_)) })
            }
            (LinkHealth::Unseen, LinkState::Up) => (LinkHealth::Up, HealthChange::Up { weight: PROVEN }),
            (LinkHealth::Down, LinkState::Up) => (LinkHealth::Unproven(now), HealthChange::Up { weight: UNPROVEN }),
            (LinkHealth::Unproven(since), LinkState::Up) if now >= since + STABLE_AFTER => {
                (LinkHealth::Up, HealthChange::Up { weight: PROVEN })
            }
            (LinkHealth::Unproven(_) | LinkHealth::Up, LinkState::Up) => return None,
        };
        *self = next;
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the changes if a port shows these states, observed every 100 ms.
    fn changes(shown: &[LinkState]) -> Vec<Option<HealthChange>> {
        let mut link = LinkHealth::default();
        assert!(!link.is_up());
        let looks = shown.iter().zip(0..);
        looks.map(|(state, i)| link.look(Duration::from_millis(100 * i), *state)).collect()
    }

    const UP: Option<HealthChange> = Some(HealthChange::Up { weight: PROVEN });
    const AGAIN: Option<HealthChange> = Some(HealthChange::Up { weight: UNPROVEN });
    const DOWN: Option<HealthChange> = Some(HealthChange::Down { proven: true });
    const DOWN_AGAIN: Option<HealthChange> = Some(HealthChange::Down { proven: false });

    #[test]
    fn a_link_is_trusted_at_first_and_then_when_it_has_stayed_up() {
        use LinkState::{Down, Up};
        assert_eq!(changes(&[Up, Up, Down, Down, Up, Up, Up, Up]), [UP, None, DOWN, None, AGAIN, None, UP, None]);
        assert_eq!(changes(&[Down, Up, Up, Up]), [DOWN, AGAIN, None, UP]);
    }

    #[test]
    fn a_link_that_flaps_stays_under_hysteresis() {
        use LinkState::{Down, Up};
        let shown = [Up, Down, Up, Down, Up, Up, Down, Up];
        assert_eq!(changes(&shown), [UP, DOWN, AGAIN, DOWN_AGAIN, AGAIN, None, DOWN_AGAIN, AGAIN]);
    }

    #[test]
    fn every_other_way_is_cheaper_than_an_unproven_link() {
        assert!(UNPROVEN > (crate::topology::HOSTS_MAX as u32 - 1) * PROVEN);
    }
}
