/* `shmem_ptr`: loads and stores at other PEs, in the heap and in globals; it agrees with the team of sharing PEs. */
#include "check.h"

static long global[2];
static long sum, want;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), local;
    long *heap = shmem_calloc(2, sizeof(long));
    CHECK(shmem_ptr(heap, me) == heap && shmem_ptr(&global[1], me) == &global[1]);
    CHECK(shmem_ptr(&local, me) == NULL && shmem_ptr(heap, -1) == NULL && shmem_ptr(heap, pes) == NULL);
    CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, heap, 0) == NULL);
    CHECK(shmem_team_ptr(SHMEM_TEAM_WORLD, heap, pes) == NULL);
    int sharing = 0;
    for (int pe = 0; pe < pes; pe++) {
        long *there = shmem_ptr(heap, pe), *global_there = shmem_ptr(global, pe);
        CHECK_EQ(there != NULL, global_there != NULL);
        CHECK(shmem_team_ptr(SHMEM_TEAM_WORLD, heap, pe) == there);
        int in_team = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED);
        CHECK_EQ(there != NULL, in_team >= 0);
        if (!there)
            continue;
        CHECK(shmem_team_ptr(SHMEM_TEAM_SHARED, heap, in_team) == there);
        sharing++;
        __atomic_fetch_add(&there[0], 1, __ATOMIC_RELAXED);
        __atomic_fetch_add(&global_there[0], 1, __ATOMIC_RELAXED);
        if (pe == (me + 1) % pes) {
            there[1] = me + 1;
            global_there[1] = me + 1;
        }
    }
    CHECK_EQ(sharing, shmem_team_n_pes(SHMEM_TEAM_SHARED));
    shmem_barrier_all();
    CHECK_EQ(heap[0], sharing);
    CHECK_EQ(global[0], sharing);
    int before = (me + pes - 1) % pes;
    if (shmem_ptr(heap, before)) {
        CHECK_EQ(heap[1], before + 1);
        CHECK_EQ(global[1], before + 1);
    }
    /* A PE that waits sees a store of another one, which does not call the library. */
    heap[1] = 0;
    shmem_barrier_all();
    long *there = shmem_ptr(heap, (me + 1) % pes);
    if (there)
        *(volatile long *)&there[1] = 5;
    if (shmem_ptr(heap, before))
        shmem_long_wait_until(&heap[1], SHMEM_CMP_EQ, 5);
    want = 1;
    CHECK_EQ(shmem_long_sum_reduce(SHMEM_TEAM_SHARED, &sum, &want, 1), 0);
    CHECK_EQ(sum, sharing);
    passed("shared");
    shmem_finalize();
    return 0;
}
