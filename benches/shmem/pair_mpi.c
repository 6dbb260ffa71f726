/*
 * pair_mpi.c - the rows of pair.h over MPI windows: MPI_Put, MPI_Get, MPI_Fetch_and_op, MPI_Accumulate, completed by
 * MPI_Win_flush, on a window of MPI_Win_allocate under MPI_Win_lock_all. A put and a non-blocking put are the same here.
 */
#include <mpi.h>

#include "pair.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLLS 16
#define WORD ROOM
#define COUNTER (ROOM + 4096)

static char *base, *local;
static int64_t number = 1, fetched;
static MPI_Win window;

void together(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

long agree(long value)
{
    MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    return value;
}

double slowest(double seconds)
{
    double most = 0;
    MPI_Allreduce(&seconds, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return most;
}

static void flush(void)
{
    MPI_Win_flush(other, window);
}

static void put(const void *from, long bytes, long place)
{
    MPI_Put(from, (int) bytes, MPI_CHAR, other, (MPI_Aint) place, (int) bytes, MPI_CHAR, window);
}

static void get(long bytes)
{
    MPI_Get(local, (int) bytes, MPI_CHAR, other, 0, (int) bytes, MPI_CHAR, window);
}

static void fetch_and_add(int target)
{
    MPI_Fetch_and_op(&number, &fetched, MPI_INT64_T, target, COUNTER, MPI_SUM, window);
}

static void add(void)
{
    MPI_Accumulate(&number, 1, MPI_INT64_T, other, COUNTER, 1, MPI_INT64_T, MPI_SUM, window);
}

AT_ORIGIN(put_one, put(local, 8, 0); flush(), )
AT_ORIGIN(get_one, get(8); flush(), )
AT_ORIGIN(p_many, for (int k = 0; k < MANY; k++) put(local, 8, 0); flush(), )
AT_ORIGIN(put_nbi_many, for (int k = 0; k < MANY; k++) put(local, 8, 0); flush(), )
AT_ORIGIN(put_many, for (int k = 0; k < row->each; k++) put(local, row->bytes, 0); flush(), )
AT_ORIGIN(get_many, for (int k = 0; k < row->each; k++) get(row->bytes); flush(), )
AT_ORIGIN(add_many, for (int k = 0; k < MANY; k++) add(); flush(), )
AT_ORIGIN(fetch_one, fetch_and_add(other); flush(), )

double fetch_contended(const struct row *row, long n)
{
    (void) row;
    if (!in_pair)
        return 0;
    double start = now();
    for (long i = 0; i < n; i++) {
        fetch_and_add(0);
        MPI_Win_flush(0, window);
    }
    return now() - start;
}

/* Waits until the word of this rank's own window has reached a value. Puts from afar may need a call that makes
 * progress. */
static void wait_for(int64_t wanted)
{
    volatile int64_t *word = (volatile int64_t *) (base + WORD);
    int found;

    for (long polls = 1; *word < wanted; polls++) {
        MPI_Win_sync(window);
        if (polls % POLLS == 0)
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
}

double pingpong(const struct row *row, long n)
{
    static int64_t round;

    (void) row;
    if (!in_pair)
        return 0;
    double start = now();
    for (long i = 0; i < n; i++) {
        round++;
        if (me != 0)
            wait_for(round);
        put(&round, 8, WORD);
        flush();
        if (me == 0)
            wait_for(round);
    }
    return now() - start;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    options(argc, argv);
    MPI_Win_allocate((MPI_Aint) ROOM + 8192, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    local = malloc((size_t) ROOM);
    if (!local)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(local, 0, (size_t) ROOM);
    memset(base, 0, (size_t) ROOM + 8192);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    complete_rows();
    run_rows(rows, ROWS);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
