//! Errors of lane entries.

/// An invalid lane entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The kind is unknown, or it is a routed kind in a direct lane, or the other way round.
    #[error("an entry of kind {kind:#x} is not valid in this lane")]
    Kind {
        /// The kind.
        kind: u8,
    },
    /// The entry is shorter than its kind requires.
    #[error("an entry of kind {kind:#x} with {len} bytes is too short")]
    Short {
        /// The kind.
        kind: u8,
        /// Length of the entry in bytes.
        len: usize,
    },
    /// A field has an impossible value.
    #[error("an entry of kind {kind:#x} has an impossible {field}: {value}")]
    Field {
        /// The kind.
        kind: u8,
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
    },
}
