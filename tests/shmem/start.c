/* Initialisation: nested, repeated, after the end; contents of globals outlive it. */
#include "check.h"

static long word = 5;

static int is_initialised(void) {
    int initialised = -1;
    shmem_query_initialized(&initialised);
    return initialised;
}

int main(void) {
    CHECK_EQ(is_initialised(), 0);
    for (int round = 0; round < 4; round++) {
        int provided = -1;
        shmem_init();
        shmem_init();
        CHECK_EQ(shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided), 0);
        CHECK(provided >= SHMEM_THREAD_FUNNELED);
        shmem_query_thread(&provided);
        CHECK(provided >= SHMEM_THREAD_FUNNELED && provided <= SHMEM_THREAD_MULTIPLE);
        shmem_init_thread(SHMEM_THREAD_SINGLE, NULL);
        int me = shmem_my_pe(), pes = shmem_n_pes();
        CHECK_EQ(word, 5 + round);
        long *heap = shmem_calloc(1, sizeof(long));
        shmem_barrier_all();
        shmem_long_atomic_inc(&word, (me + 1) % pes);
        shmem_long_atomic_add(heap, me + 1, (me + 1) % pes);
        /* Each of these is a barrier that completes operations; only the last one ends the library. */
        shmem_finalize();
        CHECK_EQ(*heap, (me + pes - 1) % pes + 1);
        shmem_finalize();
        shmem_finalize();
        CHECK_EQ(is_initialised(), 1);
        CHECK_EQ(shmem_long_g(&word, (me + 1) % pes), 6 + round);
        if (round == 3)
            passed("start");
        shmem_finalize();
        CHECK_EQ(is_initialised(), 0);
        CHECK_EQ(word, 6 + round);
    }
    return 0;
}
