//! Handles and structures of the C interface.

use std::ffi::c_int;

/// `shmem_ctx_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Ctx(pub usize);

/// `shmem_team_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Team(pub usize);

impl Ctx {
    /// `SHMEM_CTX_INVALID`.
    pub const INVALID: Ctx = Ctx(0);
    /// `SHMEM_CTX_DEFAULT`.
    pub const DEFAULT: Ctx = Ctx(1);

    /// The smallest handle of a created context.
    const CREATED: usize = 2;

    /// Returns the handle of the created context with a number, from 0.
    pub fn created(number: usize) -> Ctx {
        Ctx(number + Self::CREATED)
    }

    /// Returns the number of a created context; None if the handle is that of another one, or of none.
    pub fn number(self) -> Option<usize> {
        self.0.checked_sub(Self::CREATED)
    }
}

impl Team {
    /// `SHMEM_TEAM_INVALID`.
    pub const INVALID: Team = Team(0);
    /// `SHMEM_TEAM_WORLD`.
    pub const WORLD: Team = Team(1);
    /// `SHMEM_TEAM_SHARED`.
    pub const SHARED: Team = Team(2);
}

/// `shmem_team_config_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct TeamConfig {
    /// Number of contexts that the team's PEs want to create on it.
    pub num_contexts: c_int,
}

/// `shmem_ctx_session_config_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct SessionConfig {
    /// Expected number of operations.
    pub total_ops: usize,
}
