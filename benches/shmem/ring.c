/*
 * ring.c - all PEs put to the next at once, or to the PE that is --peer further; a turn-around is a put and the quiet that waits for its reply.
 *
 *   turn_SIZE     turn-around of a put of that size, of the slowest PE                          us
 */
#include "sync.h"

#include <shmem.h>
#include <stdlib.h>
#include <string.h>

#define MOST (1L << 20)

static char *heap, *local;

static double turns(const struct row *row, long n)
{
    int next = (me + distance) % all;
    double start = now();
    for (long i = 0; i < n; i++) {
        shmem_putmem(heap, local, (size_t) row->bytes, next);
        shmem_quiet();
    }
    return now() - start;
}

static const struct row rows[] = {
    {"turn_4KiB", UNIT_US, 4L << 10, 1, turns},
    {"turn_16KiB", UNIT_US, 16L << 10, 1, turns},
    {"turn_64KiB", UNIT_US, 64L << 10, 1, turns},
    {"turn_256KiB", UNIT_US, 256L << 10, 1, turns},
    {"turn_1MiB", UNIT_US, 1L << 20, 1, turns},
};

int main(int argc, char **argv)
{
    begin(argc, argv);
    heap = shmem_malloc((size_t) MOST);
    local = malloc((size_t) MOST);
    if (!heap || !local)
        shmem_global_exit(1);
    memset(heap, 0, (size_t) MOST);
    memset(local, 1, (size_t) MOST);
    shmem_barrier_all();
    run_rows(rows, (int) (sizeof(rows) / sizeof(rows[0])));
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
