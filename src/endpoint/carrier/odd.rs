//! Violations of the protocol of parcels.

/// A violation of the protocol by the other side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Odd(pub(super) &'static str);
