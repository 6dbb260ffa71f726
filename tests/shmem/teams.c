/* Teams: strided ones of both directions, rows and columns, overlapping ones, translation, configuration, many. */
#include "check.h"
#include <shmemx.h>

static long source, dest;

/* The sum of one number of each member must be that of these PEs of the world. */
static void sum_over(shmem_team_t team, long want) {
    source = shmem_my_pe() + 1;
    dest = -1;
    CHECK_EQ(shmem_team_sync(team), 0);
    CHECK_EQ(shmem_long_sum_reduce(team, &dest, &source, 1), 0);
    CHECK_EQ(dest, want);
    shmem_team_sync(team);
}

static void strided(int me, int pes) {
    shmem_team_t team, inner;
    /* All PEs in reverse. */
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, -1, pes, NULL, 0, &team), 0);
    if (pes > 1) {
        CHECK_EQ(shmem_team_my_pe(team), pes - 1 - me);
        CHECK_EQ(shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD), pes - 1);
        CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, team), pes - 1);
    }
    sum_over(team, (long)pes * (pes + 1) / 2);
    /* The lower half of those, which are the last ones of the world. */
    int half = (pes + 1) / 2;
    CHECK_EQ(shmem_team_split_strided(team, 0, 1, half, NULL, 0, &inner), 0);
    CHECK_EQ(inner != SHMEM_TEAM_INVALID, me >= pes - half);
    CHECK_EQ(shmem_team_my_pe(inner), me >= pes - half ? pes - 1 - me : -1);
    CHECK_EQ(shmem_team_n_pes(inner), me >= pes - half ? half : -1);
    if (inner != SHMEM_TEAM_INVALID) {
        long want = 0;
        for (int pe = pes - half; pe < pes; pe++)
            want += pe + 1;
        sum_over(inner, want);
        CHECK_EQ(shmem_team_translate_pe(inner, half - 1, SHMEM_TEAM_WORLD), pes - half);
        if (half < pes)
            CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, inner), -1);
    }
    shmem_team_destroy(inner);
    shmem_team_destroy(team);
    /* One PE, stride 0. */
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, 0, 1, NULL, 0, &team), 0);
    CHECK_EQ(team != SHMEM_TEAM_INVALID, me == pes - 1);
    if (team != SHMEM_TEAM_INVALID)
        sum_over(team, pes);
    shmem_team_destroy(team);
    /* Impossible parts and parents. */
    team = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes + 1, NULL, 0, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
    CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
    CHECK(team == SHMEM_TEAM_INVALID);
    CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD), -1);
    CHECK_EQ(shmem_team_my_pe(SHMEM_TEAM_INVALID), -1);
    CHECK_EQ(shmem_team_n_pes(SHMEM_TEAM_INVALID), -1);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
}

static void two_dimensional(int me, int pes) {
    for (int width = 1; width <= pes + 1; width++) {
        int w = width < pes ? width : pes;
        shmem_team_t row, column;
        CHECK_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &row, NULL, 0, &column), 0);
        CHECK_EQ(shmem_team_my_pe(row), me % w);
        CHECK_EQ(shmem_team_my_pe(column), me / w);
        long in_row = 0, in_column = 0;
        for (int pe = 0; pe < pes; pe++) {
            in_row += pe / w == me / w ? pe + 1 : 0;
            in_column += pe % w == me % w ? pe + 1 : 0;
        }
        /* The two overlap, and so do they with the world. */
        for (int i = 0; i < 5; i++) {
            sum_over(row, in_row);
            sum_over(column, in_column);
            sum_over(SHMEM_TEAM_WORLD, (long)pes * (pes + 1) / 2);
        }
        shmem_team_destroy(row);
        shmem_team_destroy(column);
    }
}

static void configured(int me, int pes) {
    shmem_team_config_t config = {.num_contexts = 3};
    shmem_team_t team;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, &config, SHMEM_TEAM_NUM_CONTEXTS, &team), 0);
    config.num_contexts = -1;
    CHECK_EQ(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &config), 0);
    CHECK_EQ(config.num_contexts, 3);
    CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0);
    shmem_ctx_t contexts[3];
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(shmem_team_create_ctx(team, 0, &contexts[i]), 0);
        shmem_team_t of;
        CHECK_EQ(shmem_ctx_get_team(contexts[i], &of), 0);
        CHECK(of == team);
    }
    shmem_ctx_t further;
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &further) != 0);
    shmem_team_sync(team);
    shmem_ctx_long_p(contexts[1], &dest, 100 + me, (me + 1) % pes);
    shmem_ctx_quiet(contexts[1]);
    shmem_barrier_all();
    CHECK_EQ(dest, 100 + (me + pes - 1) % pes);
    /* With the team go its contexts. */
    shmem_team_destroy(team);
    config.num_contexts = 1;
    for (int i = 0; i < 2000; i++) {
        CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, pes, &config, SHMEM_TEAM_NUM_CONTEXTS, &team), 0);
        CHECK_EQ(shmem_team_create_ctx(team, 0, &contexts[0]), 0);
        shmem_team_destroy(team);
    }
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    CHECK_EQ(shmem_team_my_pe(SHMEM_TEAM_WORLD), me);
    CHECK_EQ(shmem_team_n_pes(SHMEM_TEAM_WORLD), pes);
    strided(me, pes);
    two_dimensional(me, pes);
    configured(me, pes);
    size_t used, later;
    for (int i = 0; i < 1000; i++) {
        shmem_team_t team;
        CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, (pes + 1) / 2, NULL, 0, &team), 0);
        if (team != SHMEM_TEAM_INVALID && i % 100 == 0)
            shmem_team_sync(team);
        shmem_team_destroy(team);
        if (i == 10)
            shmemx_heap_info(NULL, NULL, &used, NULL);
    }
    shmemx_heap_info(NULL, NULL, &later, NULL);
    CHECK_EQ(later, used);
    passed("teams");
    shmem_finalize();
    return 0;
}
