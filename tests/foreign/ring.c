/* A token with a block of data goes round all PEs several times; a global object counts the visits. */
#include <shmem.h>
#include <stdio.h>

#define BLOCK 1000
#define ROUNDS 100

static long visits, wrong, all;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), size = shmem_n_pes(), next = (me + 1) % size;
    long *block = shmem_calloc(BLOCK, sizeof *block);
    uint64_t *token = shmem_calloc(1, sizeof *token);

    for (int round = 1; round <= ROUNDS; round++) {
        if (me > 0 || round > 1)
            shmem_signal_wait_until(token, SHMEM_CMP_EQ, me > 0 ? round : round - 1);
        for (int i = 0; i < BLOCK; i++) {
            wrong += block[i] != (me > 0 || round > 1 ? ((long) round - 1) * size + me + i - 1 : 0);
            block[i] = ((long) round - 1) * size + me + i;
        }
        shmem_long_atomic_inc(&visits, 0);
        shmem_long_put_signal(block, block, BLOCK, token, round, SHMEM_SIGNAL_SET, next);
    }
    shmem_barrier_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all, &wrong, 1);
    if (me == 0 && all + (visits != (long) ROUNDS * size) == 0)
        printf("ok\n");
    else if (me == 0)
        printf("%ld elements are wrong; %ld visits\n", all, visits);
    shmem_free(token);
    shmem_free(block);
    shmem_finalize();
    return 0;
}
