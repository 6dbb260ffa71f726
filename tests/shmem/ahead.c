/* Broadcasts in which roots run ahead of PEs that are late, mixed with other collectives, on the world and on a team with
 * another order of PEs: data of each one must be its own. */
#include "check.h"

#include <unistd.h>

#define ROUNDS 400
#define LARGEST 100000
#define VECTOR 3001

static unsigned state = 12345;

/* The same numbers at all PEs. */
static unsigned next_random(void) {
    state = state * 1103515245u + 12345u;
    return state >> 16;
}

int main(void) {
    static const size_t lens[] = {1, 7, 8, 48, 56, 57, 64, 200, 512, 513, 6000, LARGEST};
    static char source[LARGEST], dest[LARGEST];
    static long sums[VECTOR], sum[VECTOR];

    shmem_init();
    char *all = shmem_malloc((size_t)shmem_n_pes() * 6000);
    CHECK(all != NULL);
    int me = shmem_my_pe(), pes = shmem_n_pes();
    shmem_team_t teams[2] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_INVALID};
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, pes - 1, pes > 1 ? -1 : 0, pes, NULL, 0, &teams[1]), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        shmem_team_t team = teams[next_random() % 4 == 0];
        int root = next_random() % 2 ? (int)(next_random() % (unsigned)pes) : 0;
        size_t len = lens[next_random() % (round % 50 < 40 ? 9 : 12)];
        unsigned also = next_random() % (round < ROUNDS / 2 ? 40 : 4000);
        int slow = (int)(next_random() % (unsigned)pes);
        int is_root = shmem_team_my_pe(team) == root;
        if (is_root)
            fill(source, round, len);
        if (me == slow && round % 16 == 0)
            usleep(2000);
        memset(dest, 0, sizeof dest);
        CHECK_EQ(shmem_broadcastmem(team, dest, source, len, root), 0);
        /* The source may be reused at once. */
        if (is_root)
            memset(source, 0xee, sizeof source);
        for (size_t i = 0; i < len; i++)
            CHECK_EQ((unsigned char)dest[i], pattern(round, i));
        CHECK_EQ(dest[len % LARGEST], len == LARGEST ? dest[0] : 0);
        if (also == 0)
            shmem_barrier_all();
        if (also == 1) {
            sums[0] = me + 1;
            sums[1] = round;
            CHECK_EQ(shmem_long_sum_reduce(team, sum, sums, 2), 0);
            CHECK_EQ(sum[0], (long)pes * (pes + 1) / 2);
            CHECK_EQ(sum[1], (long)pes * round);
        }
        if (also == 2)
            shmem_team_sync(team);
        if (also >= 7 && also < 11) {
            size_t n = also < 9 ? 67 : VECTOR;
            for (size_t i = 0; i < n; i++)
                sums[i] = (long)(me + 1) * (long)(i + round);
            /* Also with the result in the place of the elements. */
            long *result = also % 2 ? sum : sums;
            CHECK_EQ(shmem_long_sum_reduce(team, result, sums, n), 0);
            for (size_t i = 0; i < n; i++)
                CHECK_EQ(result[i], (long)pes * (pes + 1) / 2 * (long)(i + round));
            memset(sums, 0xee, sizeof sums);
        }
        if (also >= 3 && also < 7) {
            size_t n = lens[also + 4];
            fill(source, round + (unsigned)shmem_team_my_pe(team), n);
            CHECK_EQ(shmem_fcollectmem(team, all, source, n), 0);
            memset(source, 0xee, sizeof source);
            for (int pe = 0; pe < pes; pe++)
                for (size_t i = 0; i < n; i++)
                    CHECK_EQ((unsigned char)all[(size_t)pe * n + i], pattern(round + (unsigned)pe, i));
        }
    }
    passed("ahead");
    shmem_finalize();
    return 0;
}
