/* Four threads of each PE put, get and operate at once, each with a context of its own and with the default one. */
#include "check.h"
#include <pthread.h>

#define THREADS 4
#define ROUNDS 400
static long words[THREADS][64], shared_count, own_count[THREADS];
static uint64_t signals[THREADS], answers[THREADS];
static int failures;

static void *work(void *arg) {
    long t = (long)arg;
    int me = shmem_my_pe(), pes = shmem_n_pes();
    shmem_ctx_t ctx;
    CHECK_EQ(shmem_ctx_create(t % 2 ? SHMEM_CTX_PRIVATE : SHMEM_CTX_SERIALIZED, &ctx), 0);
    long source[64], back[64];
    for (long r = 1; r <= ROUNDS; r++) {
        int pe = (int)((me + r) % pes), next = (me + 1) % pes, before = (me + pes - 1) % pes;
        shmem_long_atomic_inc(&shared_count, pe);
        shmem_ctx_long_atomic_fetch_add(ctx, &own_count[t], t + 1, pe);
        for (int i = 0; i < 64; i++)
            source[i] = me * 1000000 + r * 100 + i;
        shmem_ctx_long_put_signal(ctx, words[t], source, 64, &signals[t], (uint64_t)r, SHMEM_SIGNAL_SET, next);
        shmem_ctx_quiet(ctx);
        shmem_ctx_long_get_nbi(ctx, back, words[t], 64, next);
        shmem_ctx_quiet(ctx);
        for (int i = 0; i < 64; i++)
            failures += back[i] != source[i];
        shmem_signal_wait_until(&signals[t], SHMEM_CMP_GE, (uint64_t)r);
        for (int i = 0; i < 64; i++)
            failures += words[t][i] != before * 1000000 + r * 100 + i;
        /* The neighbour's data of the next round must not arrive before these are read. */
        shmem_uint64_atomic_inc(&answers[t], before);
        shmem_uint64_wait_until(&answers[t], SHMEM_CMP_GE, (uint64_t)r);
        CHECK_EQ(failures, 0);
    }
    shmem_ctx_destroy(ctx);
    return NULL;
}

int main(void) {
    int provided = -1;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    CHECK_EQ(provided, SHMEM_THREAD_MULTIPLE);
    pthread_t threads[THREADS];
    for (long t = 0; t < THREADS; t++)
        CHECK_EQ(pthread_create(&threads[t], NULL, work, (void *)t), 0);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    shmem_barrier_all();
    static long sum, all;
    all = shared_count;
    CHECK_EQ(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &all, 1), 0);
    CHECK_EQ(sum, (long)THREADS * ROUNDS * shmem_n_pes());
    for (int t = 0; t < THREADS; t++) {
        all = own_count[t];
        CHECK_EQ(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &all, 1), 0);
        CHECK_EQ(sum, (long)(t + 1) * ROUNDS * shmem_n_pes());
    }
    passed("threads");
    shmem_finalize();
    return 0;
}
