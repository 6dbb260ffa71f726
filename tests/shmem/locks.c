/* Locks: mutual exclusion of PEs and of threads of one PE, several locks, attempts; a release comes after its puts. */
#include "check.h"
#include <pthread.h>

#define THREADS 3
#define ROUNDS 60
static long lock, locks[4], free_lock;
static long inside[4], count[4];

/* Increments a count without atomics, which is right only under the lock. */
static void visit(long *with, int which) {
    shmem_set_lock(with);
    CHECK_EQ(shmem_long_atomic_fetch_inc(&inside[which], 0), 0);
    long now = shmem_long_g(&count[which], 0);
    shmem_long_p(&count[which], now + 1, 0);
    shmem_quiet();
    CHECK_EQ(shmem_long_atomic_fetch_add(&inside[which], -1, 0), 1);
    shmem_clear_lock(with);
}

static void *thread(void *arg) {
    for (int i = 0; i < ROUNDS; i++)
        visit(&lock, 0);
    return arg;
}

int main(void) {
    int provided = -1;
    CHECK_EQ(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
    CHECK_EQ(provided, SHMEM_THREAD_MULTIPLE);
    int me = shmem_my_pe(), pes = shmem_n_pes();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, thread, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    shmem_barrier_all();
    CHECK_EQ(shmem_long_g(&count[0], 0), (long)pes * THREADS * ROUNDS);
    /* Several locks, which PEs take in different orders. */
    for (int i = 0; i < 40; i++) {
        int which = 1 + (i + me) % 3;
        visit(&locks[which], which);
    }
    shmem_barrier_all();
    long sum = 0;
    for (int which = 1; which < 4; which++)
        sum += shmem_long_g(&count[which], 0);
    CHECK_EQ(sum, 40l * pes);
    /* Exactly one PE gets a lock that is free; the others fail until it is released. */
    static long got, mine;
    mine = shmem_test_lock(&free_lock) == 0;
    CHECK_EQ(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &got, &mine, 1), 0);
    CHECK_EQ(got, 1);
    if (mine)
        shmem_clear_lock(&free_lock);
    shmem_barrier_all();
    if (me == pes - 1) {
        CHECK_EQ(shmem_test_lock(&free_lock), 0);
        shmem_clear_lock(&free_lock);
    }
    passed("locks");
    shmem_finalize();
    return 0;
}
