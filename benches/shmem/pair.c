/* pair.c - one-sided operations of a pair over OpenSHMEM (1.4; what 1.5 adds where it is there). Rows: see pair.h. */
#include <shmem.h>

#define HAS_GLOBALS
#if SHMEM_MAJOR_VERSION > 1 || SHMEM_MINOR_VERSION >= 5
#define HAS_NBI_ATOMICS
#endif
#include "pair.h"
#include "sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long global_word;
static char *heap;                      /* symmetric, ROOM bytes */
static long *word, *counter;            /* symmetric, in lines of their own */
static char *local;
static long fetched[MANY];

AT_ORIGIN(put_one, shmem_putmem(heap, local, 8, other); shmem_quiet(), )
AT_ORIGIN(put_global, shmem_putmem(&global_word, local, 8, other); shmem_quiet(), )
AT_ORIGIN(get_one, shmem_getmem(local, heap, 8, other), )
AT_ORIGIN(p_many, for (int k = 0; k < MANY; k++) shmem_long_p((long *) heap, i, other); shmem_quiet(), )
AT_ORIGIN(put_nbi_many, for (int k = 0; k < MANY; k++) shmem_putmem_nbi(heap, local, 8, other); shmem_quiet(), )
AT_ORIGIN(put_many, for (int k = 0; k < row->each; k++) shmem_putmem_nbi(heap, local, (size_t) row->bytes, other); shmem_quiet(), )
AT_ORIGIN(get_many, for (int k = 0; k < row->each; k++) shmem_getmem_nbi(local, heap, (size_t) row->bytes, other); shmem_quiet(), )
AT_ORIGIN(add_many, for (int k = 0; k < MANY; k++) shmem_long_atomic_add(counter, 1, other); shmem_quiet(), )
AT_ORIGIN(fetch_one, fetched[0] += shmem_long_atomic_fetch_add(counter, 1, other), )
#ifdef HAS_NBI_ATOMICS
AT_ORIGIN(fetch_nbi_many, for (int k = 0; k < MANY; k++) shmem_long_atomic_fetch_add_nbi(&fetched[k], counter, 1, other); shmem_quiet(), )
#endif

double fetch_contended(const struct row *row, long n)
{
    (void) row;
    if (!in_pair)
        return 0;
    double start = now();
    for (long i = 0; i < n; i++)
        fetched[0] += shmem_long_atomic_fetch_add(counter, 1, 0);
    return now() - start;
}

double pingpong(const struct row *row, long n)
{
    static long round;

    (void) row;
    if (!in_pair)
        return 0;
    double start = now();
    for (long i = 0; i < n; i++) {
        round++;
        if (me == 0)
            shmem_long_p(word, round, other);
        shmem_long_wait_until(word, SHMEM_CMP_GE, round);
        if (me != 0)
            shmem_long_p(word, round, other);
    }
    return now() - start;
}

/* Puts known bytes, gets them back, and adds: the rows are of no use if these do not work. */
static int works(void)
{
    int good = 1;

    if (me == 0) {
        for (long i = 0; i < ROOM; i++)
            local[i] = (char) (i * 31 + (i >> 8));
        shmem_putmem(heap, local, (size_t) ROOM, other);
        shmem_quiet();
        memset(local, 0, (size_t) ROOM);
        shmem_getmem(local, heap, (size_t) ROOM, other);
        for (long i = 0; i < ROOM; i++)
            good &= local[i] == (char) (i * 31 + (i >> 8));
        long before = shmem_long_atomic_fetch_add(counter, 3, other);
        good &= shmem_long_atomic_fetch_add(counter, 1, other) == before + 3;
    }
    return (int) agree(good);
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    heap = shmem_malloc((size_t) ROOM + 8192);
    local = malloc((size_t) ROOM);
    if (!heap || !local)
        shmem_global_exit(1);
    memset(heap, 0, (size_t) ROOM + 8192);
    memset(local, 0, (size_t) ROOM);
    word = (long *) (heap + ROOM);
    counter = (long *) (heap + ROOM + 4096);
    shmem_barrier_all();
    if (!works()) {
        fprintf(stderr, "PE %d: wrong data arrived\n", me);
        shmem_global_exit(1);
    }
    complete_rows();
    run_rows(rows, ROWS);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
