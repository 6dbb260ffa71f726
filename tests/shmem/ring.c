/* A number goes round the ring of PEs many times, then a large array does. */
#include "check.h"

#define LARGE (3 << 20)
static long token;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), next = (me + 1) % pes;
    long rounds = 300;
    for (long r = 0; r < rounds; r++) {
        long value = r * pes + 1;
        if (me == 0)
            shmem_long_p(&token, value, next);
        shmem_long_wait_until(&token, SHMEM_CMP_GE, me == 0 ? value + pes - 1 : value + me - 1);
        if (me != 0)
            shmem_long_p(&token, token + 1, next);
    }
    unsigned char *array = shmem_calloc(1, LARGE + 2), *source = malloc(LARGE);
    static uint64_t arrived;
    CHECK(array && source);
    for (int r = 0; r < 3; r++) {
        fill(source, (unsigned)(me * 3 + r), LARGE);
        /* Neither address is aligned. */
        shmem_putmem_signal(array + 1, source, LARGE, &arrived, 1, SHMEM_SIGNAL_ADD, next);
        shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, (uint64_t)r + 1);
        fill(source, (unsigned)((me + pes - 1) % pes * 3 + r), LARGE);
        CHECK_BYTES("large put", array + 1, source, LARGE);
        CHECK_EQ(array[0], 0);
        CHECK_EQ(array[LARGE + 1], 0);
        shmem_barrier_all();
        memset(source, 0, LARGE);
        shmem_getmem(source, array + 1, LARGE, (me + pes - 1) % pes);
        unsigned char *want = malloc(LARGE);
        fill(want, (unsigned)((me + 2 * pes - 2) % pes * 3 + r), LARGE);
        CHECK_BYTES("large get", source, want, LARGE);
        free(want);
        shmem_barrier_all();
    }
    free(source);
    shmem_free(array);
    passed("ring");
    shmem_finalize();
    return 0;
}
