/* Two different executables in one job: the heap is symmetric, globals are not. OTHER makes the second one. */
#include "check.h"

#ifdef OTHER
long further[1000] = {5};
#endif
static long global = 3;

int main(int argc, char **argv) {
    (void)argv;
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
#ifdef OTHER
    if (pes == 1) {
        passed("mixed_other");
        return 0;
    }
    CHECK_EQ(further[0], 5);
    CHECK_EQ(me, pes - 1);
#else
    CHECK(me < pes - 1);
#endif
    long *heap = shmem_calloc(1, sizeof(long));
    shmem_long_p(heap, me + 1, (me + 1) % pes);
    shmem_barrier_all();
    CHECK_EQ(*heap, (me + pes - 1) % pes + 1);
    CHECK_EQ(shmem_addr_accessible(&global, (me + 1) % pes), 0);
    CHECK_EQ(shmem_addr_accessible(heap, (me + 1) % pes), 1);
    CHECK(shmem_ptr(&global, (me + 1) % pes) == NULL);
    /* Using them nevertheless is an error that ends the job. */
    if (argc > 1)
        shmem_long_p(&global, 1, (me + 1) % pes);
    passed("mixed");
    shmem_finalize();
    return 0;
}
