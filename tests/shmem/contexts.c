/* Contexts: options, those of teams with the team's numbers of PEs, sessions, order in one, very many. */
#include "check.h"

static long word, words[8];

static long resident(void) {
    long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &size, &pages) == 2);
    fclose(file);
    return pages;
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), next = (me + 1) % pes;
    static const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE,
                                   SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE, SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        shmem_ctx_t ctx;
        shmem_team_t team;
        CHECK_EQ(shmem_ctx_create(options[i], &ctx), 0);
        CHECK(ctx != SHMEM_CTX_INVALID && ctx != SHMEM_CTX_DEFAULT);
        CHECK_EQ(shmem_ctx_get_team(ctx, &team), 0);
        CHECK(team == SHMEM_TEAM_WORLD);
        shmem_ctx_long_p(ctx, &words[i], me + 1, next);
        shmem_ctx_fence(ctx);
        shmem_ctx_long_atomic_add(ctx, &words[i], 10, next);
        shmem_ctx_quiet(ctx);
        shmem_barrier_all();
        CHECK_EQ(words[i], (me + pes - 1) % pes + 11);
        shmem_ctx_session_config_t config = {.total_ops = 64};
        shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
        for (int k = 0; k < 64; k++)
            shmem_ctx_long_atomic_inc(ctx, &words[7], next);
        shmem_ctx_session_stop(ctx);
        int all[] = {next, me};
        shmem_ctx_pe_quiet(ctx, all, 2);
        shmem_sync_all();
        CHECK_EQ(words[7], 64 * ((long)i + 1));
        shmem_ctx_destroy(ctx);
        shmem_barrier_all();
    }
    shmem_team_t team;
    shmem_ctx_t ctx;
    CHECK_EQ(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team), 0);
    CHECK(team == SHMEM_TEAM_WORLD);
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    /* PE 0 of the reversed team is the last one of the world. */
    shmem_team_config_t config = {.num_contexts = 1};
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, -1, pes, &config, SHMEM_TEAM_NUM_CONTEXTS, &team), 0);
    CHECK_EQ(shmem_team_create_ctx(team, SHMEM_CTX_PRIVATE, &ctx), 0);
    shmem_ctx_long_p(ctx, &word, 5, pes - 1 - next);
    shmem_ctx_long_atomic_add(ctx, &word, 1, pes - 1 - next);
    int one = 0;
    shmem_ctx_pe_quiet(ctx, &one, 1);
    shmem_ctx_quiet(ctx);
    shmem_pe_quiet(&one, 1);
    shmem_pe_quiet(NULL, 0);
    shmem_barrier_all();
    CHECK_EQ(word, 6);
    long got = 0;
    shmem_ctx_long_get(ctx, &got, &word, 1, 0);
    CHECK_EQ(got, 6);
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(team);
    long before = 0;
    for (int i = 0; i < 100000; i++) {
        CHECK_EQ(shmem_ctx_create(options[i % 6], &ctx), 0);
        if (i % 1000 == 0)
            shmem_ctx_long_p(ctx, &words[6], i, next);
        shmem_ctx_destroy(ctx);
        if (i == 1000)
            before = resident();
    }
    CHECK(resident() < before + 100);
    passed("contexts");
    shmem_finalize();
    return 0;
}
