/* Every PE says hello to the first one. */
#include "check.h"

static int greeted;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    CHECK(me >= 0 && me < pes);
    shmem_int_atomic_add(&greeted, me + 1, 0);
    shmem_barrier_all();
    CHECK_EQ(shmem_int_g(&greeted, 0), pes * (pes + 1) / 2);
    passed("hello");
    shmem_finalize();
    return 0;
}
