/*
 * app.h - the frame of the small applications: each is a program without options that solves one
 * problem of fixed size, checks its result, and prints the time that it took, from the end of
 * MPI_Init until all ranks are done, as one figure (common.h) in milliseconds. The number of ranks
 * must be a power of two, at most RANKS_MOST.
 */
#ifndef BENCH_APP_H
#define BENCH_APP_H

#include <mpi.h>

#include "../mpi/common.h"

#define RANKS_MOST 64

/* Rank of this process, and number of ranks; set by start. */
extern int my_rank, all_ranks;

/* Starts MPI and the clock. */
void start(int *argc, char ***argv);

/* Stops the clock, prints the figure and ends MPI. `wrong` is the number of wrong results here: if
 * any rank has one, the job fails. Returns the exit status of main. */
int finish(const char *name, long wrong);

/* Returns memory full of zeroes; ends the job if there is not enough. */
void *zeroed(long bytes);

#endif
