/* A program that has its own version of functions, which call the library's by their other names. */
#include "check.h"
#include <pshmem.h>

static int puts_seen, barriers_seen;
static long word;

void shmem_long_put(long *dest, const long *source, size_t nelems, int pe) {
    puts_seen++;
    pshmem_long_put(dest, source, nelems, pe);
}

void shmem_barrier_all(void) {
    barriers_seen++;
    pshmem_barrier_all();
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    long value = me + 1;
    CHECK_EQ(barriers_seen, 0);
    shmem_barrier_all();
    CHECK_EQ(barriers_seen, 1);
    shmem_long_put(&word, &value, 1, (me + 1) % pes);
    shmem_put(&word, &value, 1, (me + 1) % pes);
    CHECK_EQ(puts_seen, 2);
    pshmem_barrier_all();
    CHECK_EQ(word, (me + pes - 1) % pes + 1);
    /* The library's own barriers are not the program's. */
    shmem_free(shmem_malloc(8));
    CHECK_EQ(barriers_seen, 1);
    passed("profiling");
    shmem_finalize();
    return 0;
}
