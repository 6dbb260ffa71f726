//! A value for each of the two builds.

/// A value for each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<T> {
    /// The value of OLD.
    pub old: T,
    /// The value of NEW.
    pub new: T,
}
