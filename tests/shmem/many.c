/* More PEs than processors wait for each other: a token goes round many times, then all write to all. */
#include "check.h"

static long token, arrived[64];
static uint64_t counter;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), next = (me + 1) % pes;
    CHECK(pes <= 64);
    for (long r = 1; r <= 100; r++) {
        if (me == 0)
            shmem_long_p(&token, r, next);
        shmem_long_wait_until(&token, SHMEM_CMP_GE, r);
        if (me != 0)
            shmem_long_p(&token, r, next);
    }
    for (long r = 1; r <= 50; r++) {
        for (int pe = 0; pe < pes; pe++)
            shmem_long_p(&arrived[me], r, pe);
        shmem_long_wait_until_all(arrived, (size_t)pes, NULL, SHMEM_CMP_GE, r);
        shmem_uint64_atomic_inc(&counter, next);
        shmem_uint64_wait_until(&counter, SHMEM_CMP_GE, (uint64_t)r);
        shmem_sync_all();
    }
    passed("many");
    shmem_finalize();
    return 0;
}
