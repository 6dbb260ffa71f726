/*
 * engine.h - runs the tests of one MPI benchmark: options, sizes, warm-up, batches, medians, output.
 *
 *   PROGRAM [--peer P] [--cores LIST] [--budget SECONDS] [--limit SECONDS] [TEST[=SIZES]]...
 *
 * Without a TEST all are run, with their own sizes. Rank 0 prints a line of JSON a figure:
 *
 *   {"test":"latency","bytes":8,"value":0.31,"unit":"us"}
 *
 * --peer     the rank that rank 0 talks to in tests of a pair (default 1); all other ranks wait
 * --cores    binds rank i to the i-th of these cores, if they suffice for all ranks. Done after MPI_Init and for the calling thread
 *            only: threads of the MPI itself stay free, and no MPI takes a single core for the whole machine
 * --budget   what a figure may cost (default 0.3). Batches are as long as a BATCHES-th of it, however slow the MPI is; where
 *            one iteration takes longer than that there are fewer batches, down to 3
 * --limit    no new figure is begun after that time (default 120)
 *
 * Each figure is the median of its batches: on a machine with fewer cores than ranks a mean would show the scheduler.
 */
#ifndef BENCH_ENGINE_H
#define BENCH_ENGINE_H

#include <mpi.h>

#include "common.h"

#define BATCHES 11

struct test {
    const char *name;
    const char *unit;
    const char *sizes;               /* unless the command line says otherwise */
    int pair;                        /* only rank 0 and its peer take part */
    long multiple;                   /* sizes are multiples of this */
    /* Does `n` iterations; returns the seconds that count, or 0 on ranks whose time does not. */
    double (*work)(long bytes, long n);
    /* Makes the printed value of the seconds per iteration of the slowest rank. */
    double (*value)(double seconds, long bytes);
    /* Sends known data once and returns the number of wrong bytes that arrived here; may be NULL. */
    long (*check)(long bytes);
};

/* Set before anything of a test is called. */
extern int my_rank, all_ranks;
/* In tests of a pair: the other one. */
extern int other_rank;
/* MPI_STATUSES_IGNORE: GCC takes the constant for an array of no elements and warns where it is used. */
extern MPI_Status *no_statuses;

/* The largest size that any chosen test uses is given to `prepare`, which allocates. Returns main's exit status. */
int run_tests(int argc, char **argv, const struct test *tests, int count, void (*prepare)(long largest), void (*finish)(void));

/* Memory whose pages have been touched; ends the job if there is none. */
char *touched(long bytes);

/* Data that depends on place and seed, and the number of bytes that differ from it. */
void fill(char *buffer, long bytes, int seed);
long wrong(const char *buffer, long bytes, int seed);

/* A value function for latencies. */
double microseconds(double seconds, long bytes);

#endif
