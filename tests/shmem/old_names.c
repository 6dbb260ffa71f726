/* Deprecated names: start_pes and what goes with it, waiting for a long, memory; and barriers of active sets. */
#include "check.h"

/* The header has a macro; the function is for other languages. */
#undef num_pes
int num_pes(void);
static long word, other, sync_words[_SHMEM_BARRIER_SYNC_SIZE];

int main(void) {
    start_pes(0);
    start_pes(4);
    int me = _my_pe(), pes = _num_pes(), next = (me + 1) % pes;
    CHECK_EQ(me, shmem_my_pe());
    CHECK_EQ(pes, shmem_n_pes());
    CHECK_EQ(num_pes(), pes);
    for (int i = 0; i < _SHMEM_BARRIER_SYNC_SIZE; i++)
        sync_words[i] = _SHMEM_SYNC_VALUE;
    long *a = shmalloc(100 * sizeof(long)), *b = shmemalign(256, 64);
    CHECK(a && b && (uintptr_t)b % 256 == 0);
    a[99] = me;
    a = shrealloc(a, 200 * sizeof(long));
    CHECK_EQ(a[99], me);
    shmem_barrier_all();
    CHECK_EQ(shmem_long_g(&a[99], next), next);
    shmem_long_p(&word, 3, next);
#undef shmem_wait
#undef shmem_wait_until
    (shmem_wait)(&word, 0);
    CHECK_EQ(word, 3);
    shmem_long_p(&other, 4, next);
    (shmem_wait_until)(&other, _SHMEM_CMP_GT, 3);
    CHECK_EQ(other, 4);
    if (me % 2 == 0)
        shmem_sync(0, 1, (pes + 1) / 2, sync_words);
    shmem_barrier(0, 0, pes, sync_words);
    shfree(b);
    shfree(a);
    passed("old_names");
    /* There is no finalize in such programs. */
    return 0;
}
