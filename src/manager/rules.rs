//! Parameters of the managers of a network.

use std::time::Duration;

/// Parameters that all managers of a network share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    /// Number of lane classes that forwarders have, 1 to [`crate::CLASSES_MAX`].
    pub classes: u8,
    /// Time to wait for a reply before the request is repeated.
    pub reply_timeout: Duration,
    /// Largest number of times that a request is sent.
    pub tries: u8,
    /// Interval of the keep-alive requests from a standby to its master.
    pub poll: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Rules { classes: 2, reply_timeout: Duration::from_millis(10), tries: 3, poll: Duration::from_millis(100) }
    }
}
