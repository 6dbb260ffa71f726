//! The state of a rank that waits to leave until its peers have taken the messages sent to them.

use std::time::{Duration, Instant};

/// Peers may compute for any time before they take the messages sent to them; after this time the user is informed.
const WARN_AFTER: Duration = Duration::from_secs(10);

/// Interval between two checks for external peers that no longer take anything.
const LOOKS: Duration = Duration::from_secs(1);

/// State of a rank that waits to leave.
#[derive(Default)]
pub struct FlushState {
    since: Option<Instant>,
    looked: Option<Instant>,
    warned: bool,
}

impl FlushState {
    /// Records at `now` that the rank still waits. Returns true if external peers must be looked at, and true if the
    /// user must be informed.
    pub fn wait(&mut self, now: Instant) -> (bool, bool) {
        let since = *self.since.get_or_insert(now);
        let look = now - *self.looked.get_or_insert(now) > LOOKS;
        if look {
            self.looked = Some(now);
        }
        let warn = !self.warned && now - since > WARN_AFTER;
        self.warned |= warn;
        (look, warn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn external_peers_are_looked_at_regularly_and_the_user_is_informed_once() {
        let (mut flush_state, start) = (FlushState::default(), Instant::now());
        let waits: Vec<_> = (0..60).map(|half| flush_state.wait(start + half * LOOKS / 2)).collect();
        // A check is due when more than the interval has passed since the previous one.
        assert_eq!(waits.iter().filter(|wait| wait.0).count(), 19);
        assert_eq!(waits.iter().position(|wait| wait.1), Some(21));
        assert_eq!(waits.iter().filter(|wait| wait.1).count(), 1);
    }
}
