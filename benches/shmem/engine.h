/*
 * engine.h - runs the rows of a one-sided benchmark, over OpenSHMEM or MPI: warm-up, batches, medians, output.
 *
 *   PROGRAM [--peer P] [--cores LIST] [--budget SECONDS] [--limit SECONDS] [ROW]...
 *
 * Without a ROW all are run; they are known by their names. PE 0 prints one line for each:
 *
 *   put_8B 16.2 ns
 *
 * --peer     the PE that PE 0 works with in rows of a pair (default 1); all others wait in a barrier
 * --cores    binds PE i to the i-th of these cores, if there are enough for all
 * --budget   seconds that a row may take (default 0.2), divided into batches; the median of the batches counts
 * --limit    seconds after which no new row is begun (default 120)
 *
 * The program supplies the functions of "supplied by the program"; the engine knows neither library.
 */
#ifndef BENCH_SHMEM_ENGINE_H
#define BENCH_SHMEM_ENGINE_H

#include "../mpi/common.h"

enum unit {
    UNIT_US,                            /* time of an operation, in us */
    UNIT_NS,                            /* the same, in ns */
    UNIT_RATE,                          /* operations a second, in millions: M/s */
    UNIT_BANDWIDTH                      /* MB/s, 10^6 bytes a second */
};

struct row {
    const char *name;
    enum unit unit;
    long bytes;                         /* bytes of an operation */
    int each;                           /* operations of an iteration */
    /* Does `n` iterations. Returns the seconds that they took, or 0 on PEs whose time does not count. */
    double (*work)(const struct row *row, long n);
};

/* PE of this process, number of PEs, and the partner of this PE in rows of a pair: of PE 0 the peer, of all others 0. */
extern int me, all, other;
/* The value of --peer. */
extern int distance;
/* True if this PE takes part in rows of a pair. */
extern int in_pair;

/* Supplied by the program: all PEs call them together. */
void together(void);                    /* a barrier */
long agree(long value);                 /* returns PE 0's value */
double slowest(double seconds);         /* returns the largest value, at PE 0 */

/* Reads the options. To be called once PE and number of PEs are known; exits if they are wrong. */
void options(int argc, char **argv);

/* Runs those of `rows` that were asked for. */
void run_rows(const struct row *rows, int count);

/* Returns how many operations of `bytes` an iteration of a bandwidth row has. */
int window_of(long bytes);

#endif
