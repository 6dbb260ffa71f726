/*
 * engine.h - runs the tests of one MPI benchmark: options, sizes, warm-up, batches, medians, output.
 *
 *   PROGRAM [--peer P] [--cores LIST] [--budget SECONDS] [--limit SECONDS] [--patience SECONDS]
 *           [TEST[=SIZES]]...
 *
 * Without a TEST all are run, with their own sizes. Rank 0 prints one line of JSON for each figure:
 *
 *   {"test":"latency","bytes":8,"value":0.31,"unit":"us"}
 *
 * --peer     the partner of rank 0 in tests of a pair (default 1); all other ranks wait
 * --cores    binds rank i to the i-th of these cores, if there are enough for all ranks. It is done
 *            after MPI_Init and for the calling thread only: threads of the MPI library stay free,
 *            and no MPI library mistakes a single core for the whole machine
 * --budget   seconds that a figure may take (default 0.3). A batch takes a BATCHES-th of it, however
 *            slow the MPI library is; where one iteration takes longer than that there are fewer
 *            batches, down to 3, and where it takes longer than the budget, 1
 * --limit    seconds after which no new figure is begun (default 120)
 * --patience seconds after which a figure is taken for hanging: SIGALRM ends the process, and so the
 *            job (default: none)
 *
 * Each figure is the median of its batches: on a machine with fewer cores than ranks a mean would
 * depend on the scheduler.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include <mpi.h>

#include "common.h"

#define BATCHES 11

struct test {
    const char *name;
    const char *unit;
    const char *sizes;               /* default sizes */
    int pair;                        /* nonzero if only rank 0 and its peer take part */
    long multiple;                   /* sizes are multiples of this */
    /* Does `n` iterations. Returns the measured seconds, or 0 on ranks whose time does not
     * count. */
    double (*work)(long bytes, long n);
    /* Computes the printed value from the seconds per iteration of the slowest rank. */
    double (*value)(double seconds, long bytes);
    /* Sends known data once and returns the number of wrong bytes that arrived here; may be NULL. */
    long (*check)(long bytes);
};

/* Rank of this process, and number of ranks; set before any function of a test is called. */
extern int my_rank, all_ranks;
/* In tests of a pair: the rank of the partner. */
extern int other_rank;
/* MPI_STATUSES_IGNORE. With the constant itself GCC warns, because it takes it for an array
 * without elements. */
extern MPI_Status *no_statuses;

/* Runs the tests. `prepare` allocates buffers for the largest size of all chosen tests. Returns
 * the exit status of main. */
int run_tests(int argc, char **argv, const struct test *tests, int count, void (*prepare)(long largest), void (*finish)(void));

/* Returns memory whose pages have been touched; ends the job if there is not enough. */
char *touched(long bytes);

/* Fill a buffer with data that depends on position and seed, and count the bytes that differ
 * from it. */
void fill(char *buffer, long bytes, int seed);
long wrong(const char *buffer, long bytes, int seed);

/* Converts seconds to microseconds: the value function of latencies. */
double microseconds(double seconds, long bytes);

#endif
