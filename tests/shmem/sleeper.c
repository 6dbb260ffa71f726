/* One PE sleeps; operations of all others on it are complete before it wakes. */
#include "check.h"
#include <time.h>
#include <unistd.h>

static long word, others[1000], counter;
static uint64_t signalled;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), rounds = 50;
    CHECK(pes > 1);
    long *block = shmem_malloc(1 << 20), *copy = malloc(1 << 20);
    CHECK(block && copy);
    shmem_barrier_all();
    if (me == 0) {
        sleep(2);
        CHECK_EQ(counter, (pes - 1) * rounds);
    } else {
        double begin = now();
        for (int r = 1; r <= rounds; r++) {
            shmem_long_p(&word, r, 0);
            for (int i = 0; i < 1000; i++)
                copy[i] = r + i;
            if (me == 1)
                shmem_long_put(others, copy, 1000, 0);
            shmem_quiet();
            CHECK(shmem_long_g(&word, 0) > 0);
            shmem_long_atomic_fetch_add(&counter, 1, 0);
            shmem_long_put_signal(block + 1000 * me, copy, 1000, &signalled, 1, SHMEM_SIGNAL_ADD, 0);
            shmem_long_get(copy + 2000, block + 1000 * me, 1000, 0);
            CHECK_EQ(copy[2999], r + 999);
        }
        if (me == 1)
            shmem_putmem(block, copy, 1000, 0);
        shmem_quiet();
        double taken = now() - begin;
        if (taken > 1.5)
            FAIL("operations on a sleeping PE took %.1f s", taken);
    }
    shmem_barrier_all();
    if (me == 0) {
        CHECK_EQ(others[999], rounds + 999);
        CHECK_EQ(signalled, (pes - 1) * rounds);
    }
    passed("sleeper");
    shmem_finalize();
    return 0;
}
