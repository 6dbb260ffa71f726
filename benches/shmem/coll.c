/*
 * coll.c - collectives of all PEs, by the calls of OpenSHMEM 1.4 with active sets, which all libraries have.
 *
 *   barrier, bcast_SIZE, reduce_SIZE, fcollect_SIZE                                             us
 *
 * They are called back to back. In a broadcast each PE is the root in turn, since a fixed root would run ahead; a
 * barrier after every SETS calls lets the work arrays be used again. Reductions sum 64-bit integers and leave the
 * result at all PEs; the size is that of one vector, of fcollect that of one PE. The slowest PE counts.
 */
#include "sync.h"

#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SETS 64
#define MOST (64L << 10)
#define WORK_LONGS (MOST / 8 / 2 + 1 > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? MOST / 8 / 2 + 1 : SHMEM_REDUCE_MIN_WRKDATA_SIZE)

static long bcast_sync[SETS][SHMEM_BCAST_SYNC_SIZE];
static long reduce_sync[2][SHMEM_REDUCE_SYNC_SIZE];
static long collect_sync[2][SHMEM_COLLECT_SYNC_SIZE];
static long *work[2], *from, *to[2];

static double barriers(const struct row *row, long n)
{
    (void) row;
    double start = now();
    for (long i = 0; i < n; i++)
        shmem_barrier_all();
    return now() - start;
}

static double bcasts(const struct row *row, long n)
{
    double start = now();
    for (long i = 0; i < n; i++) {
        shmem_broadcast64(to[0], from, (size_t) row->bytes / 8, (int) (i % all), 0, 0, all, bcast_sync[i % SETS]);
        if (i % SETS == SETS - 1)
            shmem_barrier_all();
    }
    double seconds = now() - start;
    shmem_barrier_all();
    return seconds;
}

static double reductions(const struct row *row, long n)
{
    double start = now();
    for (long i = 0; i < n; i++)
        shmem_long_sum_to_all(to[i % 2], from, (int) (row->bytes / 8), 0, 0, all, work[i % 2], reduce_sync[i % 2]);
    return now() - start;
}

static double fcollects(const struct row *row, long n)
{
    double start = now();
    for (long i = 0; i < n; i++)
        shmem_fcollect64(to[i % 2], from, (size_t) row->bytes / 8, 0, 0, all, collect_sync[i % 2]);
    return now() - start;
}

static const struct row rows[] = {
    {"barrier", UNIT_US, 0, 1, barriers},
    {"bcast_8B", UNIT_US, 8, 1, bcasts},
    {"bcast_64KiB", UNIT_US, 64L << 10, 1, bcasts},
    {"reduce_8B", UNIT_US, 8, 1, reductions},
    {"reduce_64KiB", UNIT_US, 64L << 10, 1, reductions},
    {"fcollect_8B", UNIT_US, 8, 1, fcollects},
    {"fcollect_64KiB", UNIT_US, 64L << 10, 1, fcollects},
};

static void set_up(long *sync, long count)
{
    for (long i = 0; i < count; i++)
        sync[i] = SHMEM_SYNC_VALUE;
}

/* Adds and collects once and compares. */
static int works(void)
{
    int good = 1;

    from[0] = me + 1;
    shmem_barrier_all();
    shmem_long_sum_to_all(to[0], from, 1, 0, 0, all, work[0], reduce_sync[0]);
    good &= to[0][0] == (long) all * (all + 1) / 2;
    shmem_fcollect64(to[1], from, 1, 0, 0, all, collect_sync[0]);
    for (int pe = 0; pe < all; pe++)
        good &= to[1][pe] == pe + 1;
    shmem_barrier_all();
    return good;
}

int main(int argc, char **argv)
{
    begin(argc, argv);
    set_up(bcast_sync[0], SETS * SHMEM_BCAST_SYNC_SIZE);
    set_up(reduce_sync[0], 2 * SHMEM_REDUCE_SYNC_SIZE);
    set_up(collect_sync[0], 2 * SHMEM_COLLECT_SYNC_SIZE);
    from = shmem_malloc((size_t) MOST);
    for (int i = 0; i < 2; i++) {
        work[i] = shmem_malloc(WORK_LONGS * sizeof(long));
        to[i] = shmem_malloc((size_t) MOST * (size_t) all);
    }
    if (!from || !work[0] || !work[1] || !to[0] || !to[1])
        shmem_global_exit(1);
    memset(from, 0, (size_t) MOST);
    shmem_barrier_all();
    if (!works()) {
        fprintf(stderr, "PE %d: wrong data arrived\n", me);
        shmem_global_exit(1);
    }
    run_rows(rows, (int) (sizeof(rows) / sizeof(rows[0])));
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
