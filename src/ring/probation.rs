//! When a link counts as up: at once for what has no other way, and for everything else only when it has stayed up.

use ntbring_ntb::LinkState;
use std::time::Duration;

/// How long a link must have been up after it was down, for ways to lead over it that could lead elsewhere. Otherwise a
/// loose cable would move all traffic to and fro.
pub(super) const PROBATION: Duration = Duration::from_millis(200);

/// What a hop over a link costs in the eyes of the network manager...
const PROVEN: u32 = 1;
/// ...and over one that is on probation: more than any way over others.
const UNPROVEN: u32 = crate::topology::HOSTS_MAX as u32;

/// What has become of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It is down. Whether it had been up for long.
    Down { proven: bool },
    /// It is up, and a hop over it costs this from now on.
    Up { weight: u32 },
}

impl Change {
    /// Whether it is up and nothing is to be said against it.
    pub fn is_plain(self) -> bool {
        self == Change::Up { weight: PROVEN }
    }
}

/// A link as its port has shown it so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Link {
    /// Not yet.
    #[default]
    Unseen,
    Down,
    /// Up since this time.
    Unproven(Duration),
    Up,
}

impl Link {
    /// Whether anything may be sent by it.
    pub fn is_up(self) -> bool {
        matches!(self, Link::Unproven(_) | Link::Up)
    }

    /// Takes what the port says at a time. Returns what is different now.
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

    /// What a port shows, a look each 100 ms.
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
