//! Errors of collectives.

/// Why a collective has failed at this member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharedError {
    /// A member has called a collective of another size.
    #[error("rank {member} of the communicator has called a collective with another size than this one")]
    OtherSize {
        /// The number of the member.
        member: usize,
    },
    /// A member has left the collective before its end.
    #[error("rank {member} of the communicator has failed in a collective, or called another one")]
    Left {
        /// The number of the member.
        member: usize,
    },
    /// A member has given up the collective, for instance because a process was lost.
    #[error("rank {member} of the communicator has given up a collective because of a failure")]
    Failed {
        /// The number of the member.
        member: usize,
    },
    /// The kernel does not copy the bytes that a member has posted by address.
    #[error("the kernel cannot copy the bytes of rank {member} of the communicator, although it could before")]
    Unreadable {
        /// The number of the member.
        member: usize,
    },
    /// The wait was given up ([`crate::Waiting::pass_time`]).
    #[error("the wait for other ranks was given up")]
    GivenUp,
}
