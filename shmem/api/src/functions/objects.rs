//! Teams, contexts, order and locks.

use crate::family::{Family, Group};

pub(super) const TEAMS: Group = Group::new(
    "Teams",
    &[
        Family::single("shmem_team_my_pe", "int", "shmem_team_t team", "teams::my_pe"),
        Family::single("shmem_team_n_pes", "int", "shmem_team_t team", "teams::n_pes"),
        Family::single(
            "shmem_team_get_config",
            "int",
            "shmem_team_t team, long config_mask, shmem_team_config_t *config",
            "teams::get_config",
        ),
        Family::single(
            "shmem_team_translate_pe",
            "int",
            "shmem_team_t src_team, int src_pe, shmem_team_t dest_team",
            "teams::translate_pe",
        ),
        Family::single(
            "shmem_team_split_strided",
            "int",
            "shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t *config, \
             long config_mask, shmem_team_t *new_team",
            "teams::split_strided",
        ),
        Family::single(
            "shmem_team_split_2d",
            "int",
            "shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask, \
             shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask, \
             shmem_team_t *yaxis_team",
            "teams::split_2d",
        ),
        Family::single("shmem_team_destroy", "void", "shmem_team_t team", "teams::destroy"),
        Family::single("shmem_team_sync", "int", "shmem_team_t team", "collectives::team_sync"),
    ],
);

pub(super) const CONTEXTS: Group = Group::new(
    "Contexts",
    &[
        Family::single("shmem_ctx_create", "int", "long options, shmem_ctx_t *ctx", "contexts::ctx_create"),
        Family::single(
            "shmem_team_create_ctx",
            "int",
            "shmem_team_t team, long options, shmem_ctx_t *ctx",
            "contexts::team_create_ctx",
        ),
        Family::single("shmem_ctx_destroy", "void", "shmem_ctx_t ctx", "contexts::ctx_destroy"),
        Family::single("shmem_ctx_get_team", "int", "shmem_ctx_t ctx, shmem_team_t *team", "contexts::ctx_get_team"),
        Family::single(
            "shmem_ctx_session_start",
            "void",
            "shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask",
            "contexts::session_start",
        ),
        Family::single("shmem_ctx_session_stop", "void", "shmem_ctx_t ctx", "contexts::session_stop"),
    ],
);

pub(super) const ORDER: Group = Group::new(
    "Order and completion",
    &[
        Family::single("shmem_fence", "void", "", "order::fence").ctx(),
        Family::single("shmem_quiet", "void", "", "order::quiet").ctx(),
        Family::single("shmem_pe_quiet", "void", "const int *target_pes, size_t npes", "order::pe_quiet").ctx(),
    ],
);

pub(super) const LOCKS: Group = Group::new(
    "Locks",
    &[
        Family::single("shmem_set_lock", "void", "long *lock", "locks::set_lock"),
        Family::single("shmem_clear_lock", "void", "long *lock", "locks::clear_lock"),
        Family::single("shmem_test_lock", "int", "long *lock", "locks::test_lock"),
    ],
);
