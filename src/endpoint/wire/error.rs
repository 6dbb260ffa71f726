//! What is wrong with an entry.

/// An entry that a peer should not have sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// An unknown kind, or a routed one in a direct lane or the other way round.
    #[error("an entry of kind {kind:#x} has no business in this lane")]
    Kind {
        /// The kind.
        kind: u8,
    },
    /// Too short for what its kind promises.
    #[error("an entry of kind {kind:#x} with {len} bytes is too short")]
    Short {
        /// The kind.
        kind: u8,
        /// Its bytes.
        len: usize,
    },
    /// A field with an impossible value.
    #[error("an entry of kind {kind:#x} has an impossible {field}: {value}")]
    Field {
        /// The kind.
        kind: u8,
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
    },
}
