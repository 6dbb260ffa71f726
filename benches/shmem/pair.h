/*
 * pair.h - the table of the rows of a pair, which is the same over OpenSHMEM (pair.c) and MPI windows (pair_mpi.c).
 * PE 0 works on memory of its peer, if nothing else is said.
 *
 *   put_8B, get_8B, fetch_add         one operation, complete at the target                            ns
 *   put_global_8B                     put_8B, to a static variable instead of the heap; OpenSHMEM only ns
 *   put_rate, put_nbi_rate            64 puts of 8 bytes (shmem_long_p, shmem_putmem_nbi), then quiet  M/s
 *   put_quiet_rate                    each put of 8 bytes followed by quiet                            M/s
 *   add_rate                          64 atomic additions without result, then quiet                   M/s
 *   fetch_add_rate                    atomic fetch-add, one after the other                            M/s
 *   fetch_add_nbi_rate                64 non-blocking ones, then quiet; OpenSHMEM 1.5                  M/s
 *   fetch_add_contended               both PEs, on the same word of PE 0                               ns
 *   pingpong                          put a word, wait for the partner's; one way                      ns
 *   put_bw_SIZE, get_bw_SIZE          64 operations (at most 32 MiB), then quiet                       MB/s
 */
#ifndef BENCH_SHMEM_PAIR_H
#define BENCH_SHMEM_PAIR_H

#include "engine.h"

#define MANY 64
#define ROOM (4L << 20)

double put_one(const struct row *row, long n);
double put_global(const struct row *row, long n);
double get_one(const struct row *row, long n);
double put_many(const struct row *row, long n);
double put_nbi_many(const struct row *row, long n);
double get_many(const struct row *row, long n);
double p_many(const struct row *row, long n);
double add_many(const struct row *row, long n);
double fetch_one(const struct row *row, long n);
double fetch_nbi_many(const struct row *row, long n);
double fetch_contended(const struct row *row, long n);
double pingpong(const struct row *row, long n);

#define BANDWIDTHS(TEXT, BYTES) \
    {"put_bw_" TEXT, UNIT_BANDWIDTH, BYTES, 0, put_many}, {"get_bw_" TEXT, UNIT_BANDWIDTH, BYTES, 0, get_many}

static struct row rows[] = {
    {"put_8B", UNIT_NS, 8, 1, put_one},
#ifdef HAS_GLOBALS
    {"put_global_8B", UNIT_NS, 8, 1, put_global},
#endif
    {"get_8B", UNIT_NS, 8, 1, get_one},
    {"put_rate", UNIT_RATE, 8, MANY, p_many},
    {"put_nbi_rate", UNIT_RATE, 8, MANY, put_nbi_many},
    {"put_quiet_rate", UNIT_RATE, 8, 1, put_one},
    {"fetch_add", UNIT_NS, 8, 1, fetch_one},
    {"fetch_add_rate", UNIT_RATE, 8, 1, fetch_one},
#ifdef HAS_NBI_ATOMICS
    {"fetch_add_nbi_rate", UNIT_RATE, 8, MANY, fetch_nbi_many},
#endif
    {"add_rate", UNIT_RATE, 8, MANY, add_many},
    {"fetch_add_contended", UNIT_NS, 8, 1, fetch_contended},
    {"pingpong", UNIT_NS, 8, 2, pingpong},
    BANDWIDTHS("1KiB", 1L << 10),
    BANDWIDTHS("4KiB", 4L << 10),
    BANDWIDTHS("16KiB", 16L << 10),
    BANDWIDTHS("64KiB", 64L << 10),
    BANDWIDTHS("256KiB", 256L << 10),
    BANDWIDTHS("512KiB", 512L << 10),
    BANDWIDTHS("1MiB", 1L << 20),
    BANDWIDTHS("4MiB", 4L << 20),
};

#define ROWS ((int) (sizeof(rows) / sizeof(rows[0])))

/* Fills in the number of operations of bandwidth rows. */
static inline void complete_rows(void)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].each == 0)
            rows[i].each = window_of(rows[i].bytes);
}

/* Defines a row's function: PE 0 does BODY `n` times, then END; the others return at once. */
#define AT_ORIGIN(NAME, BODY, END)                \
    double NAME(const struct row *row, long n)    \
    {                                             \
        (void) row;                               \
        if (me != 0)                              \
            return 0;                             \
        double start = now();                     \
        for (long i = 0; i < n; i++) {            \
            BODY;                                 \
        }                                         \
        END;                                      \
        return now() - start;                     \
    }

#endif
