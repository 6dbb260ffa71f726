/*
 * rma.c - one-sided figures on a window of MPI_Win_allocate, all ranks under MPI_Win_lock_all. Options: see engine.h.
 *
 *   put, get, accumulate, fetch_and_op, compare_and_swap
 *               one operation and MPI_Win_flush                                                 us
 *   put_bw, get_bw, accumulate_bw
 *               64 operations, then MPI_Win_flush; bytes over time                              MB/s (10^6 bytes/s)
 *   fetch_and_op_rate, compare_and_swap_rate
 *               64 operations, then MPI_Win_flush; operations over time                         op/s
 *
 * Rank 0 is the origin and its peer the target, which waits in MPI_Recv meanwhile, so that an MPI
 * library that needs the target's help gets it.
 * Accumulate and fetch_and_op add 64-bit integers.
 */
#include "engine.h"

#include <stdint.h>
#include <stdlib.h>

#define WINDOW 64
#define WINDOW_BYTES (256L << 20)
#define TAG_DONE 1

static char *base;
static char *local;
static char *result;
static MPI_Win window;

static int window_of(long bytes)
{
    long fitting = WINDOW_BYTES / bytes;
    return fitting >= WINDOW ? WINDOW : fitting > 1 ? (int) fitting : 1;
}

static void put(long bytes)
{
    MPI_Put(local, (int) bytes, MPI_CHAR, other_rank, 0, (int) bytes, MPI_CHAR, window);
}

static void get(long bytes)
{
    MPI_Get(local, (int) bytes, MPI_CHAR, other_rank, 0, (int) bytes, MPI_CHAR, window);
}

static void accumulate(long bytes)
{
    int count = (int) (bytes / 8);
    MPI_Accumulate(local, count, MPI_INT64_T, other_rank, 0, count, MPI_INT64_T, MPI_SUM, window);
}

static void fetch_and_op(long bytes)
{
    (void) bytes;
    MPI_Fetch_and_op(local, result, MPI_INT64_T, other_rank, 0, MPI_SUM, window);
}

static void compare_and_swap(long bytes)
{
    (void) bytes;
    MPI_Compare_and_swap(local, local, result, MPI_INT64_T, other_rank, 0, window);
}

/* Runs iterations of `each` operations and a flush; the target only waits for the end. */
static double operations(void (*operation)(long bytes), long bytes, long n, int each)
{
    if (my_rank != 0) {
        MPI_Recv(NULL, 0, MPI_CHAR, 0, TAG_DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    double start = now();
    for (long i = 0; i < n; i++) {
        for (int k = 0; k < each; k++)
            operation(bytes);
        MPI_Win_flush(other_rank, window);
    }
    double seconds = now() - start;
    MPI_Send(NULL, 0, MPI_CHAR, other_rank, TAG_DONE, MPI_COMM_WORLD);
    return seconds;
}

static double puts_one(long bytes, long n)
{
    return operations(put, bytes, n, 1);
}

static double gets_one(long bytes, long n)
{
    return operations(get, bytes, n, 1);
}

static double accumulates_one(long bytes, long n)
{
    return operations(accumulate, bytes, n, 1);
}

static double fetches(long bytes, long n)
{
    return operations(fetch_and_op, bytes, n, 1);
}

static double swaps(long bytes, long n)
{
    return operations(compare_and_swap, bytes, n, 1);
}

static double puts_many(long bytes, long n)
{
    return operations(put, bytes, n, window_of(bytes));
}

static double gets_many(long bytes, long n)
{
    return operations(get, bytes, n, window_of(bytes));
}

static double accumulates_many(long bytes, long n)
{
    return operations(accumulate, bytes, n, window_of(bytes));
}

static double fetches_many(long bytes, long n)
{
    return operations(fetch_and_op, bytes, n, WINDOW);
}

static double swaps_many(long bytes, long n)
{
    return operations(compare_and_swap, bytes, n, WINDOW);
}

static double mb_s(double seconds, long bytes)
{
    return (double) bytes * window_of(bytes) / seconds / 1e6;
}

static double operations_s(double seconds, long bytes)
{
    (void) bytes;
    return WINDOW / seconds;
}

/* Puts data and gets it back; the target only waits. */
static long check_put_get(long bytes)
{
    long bad = 0;

    if (my_rank == 0) {
        fill(local, bytes, 1);
        put(bytes);
        MPI_Win_flush(other_rank, window);
        fill(local, bytes, 2);
        get(bytes);
        MPI_Win_flush(other_rank, window);
        bad = wrong(local, bytes, 1);
        MPI_Send(NULL, 0, MPI_CHAR, other_rank, TAG_DONE, MPI_COMM_WORLD);
    } else {
        MPI_Recv(NULL, 0, MPI_CHAR, 0, TAG_DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return bad;
}

/* Puts numbers, adds to them, exchanges the first, and gets them back. */
static long check_sums(long bytes)
{
    int64_t *numbers = (int64_t *) local, *old = (int64_t *) result, first;
    long count = bytes / 8, bad = 0;

    if (my_rank != 0) {
        MPI_Recv(NULL, 0, MPI_CHAR, 0, TAG_DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return 0;
    }
    for (long i = 0; i < count; i++)
        numbers[i] = i + 7;
    put(bytes);
    MPI_Win_flush(other_rank, window);
    accumulate(bytes);
    MPI_Win_flush(other_rank, window);
    fetch_and_op(bytes);
    MPI_Win_flush(other_rank, window);
    bad += *old != 14;
    first = numbers[0] = 21;
    compare_and_swap(bytes);
    MPI_Win_flush(other_rank, window);
    bad += *old != first;
    get(bytes);
    MPI_Win_flush(other_rank, window);
    for (long i = 0; i < count; i++)
        bad += numbers[i] != (i == 0 ? 21 : 2 * (i + 7));
    MPI_Send(NULL, 0, MPI_CHAR, other_rank, TAG_DONE, MPI_COMM_WORLD);
    return bad;
}

/* Put and get come first, because some MPI libraries fail in the other tests. */
static const struct test tests[] = {
    {"put", "us", "8,64,512,4K,32K,256K,1M,4M", 1, 1, puts_one, microseconds, check_put_get},
    {"get", "us", "8,64,512,4K,32K,256K,1M,4M", 1, 1, gets_one, microseconds, check_put_get},
    {"put_bw", "MB/s", "8,64,512,4K,32K,256K,1M,4M", 1, 1, puts_many, mb_s, check_put_get},
    {"get_bw", "MB/s", "8,64,512,4K,32K,256K,1M,4M", 1, 1, gets_many, mb_s, check_put_get},
    {"fetch_and_op", "us", "8", 1, 8, fetches, microseconds, check_sums},
    {"compare_and_swap", "us", "8", 1, 8, swaps, microseconds, check_sums},
    {"fetch_and_op_rate", "op/s", "8", 1, 8, fetches_many, operations_s, check_sums},
    {"compare_and_swap_rate", "op/s", "8", 1, 8, swaps_many, operations_s, check_sums},
    {"accumulate", "us", "8,64,512,4K,32K,256K,1M,4M", 1, 8, accumulates_one, microseconds, check_sums},
    {"accumulate_bw", "MB/s", "8,64,512,4K,32K,256K,1M,4M", 1, 8, accumulates_many, mb_s, check_sums},
};

static void prepare(long largest)
{
    /* A size of 0 would give a window without room for any operation. */
    long room = largest > 8 ? largest : 8;

    local = touched(room);
    result = touched(8);
    MPI_Win_allocate((MPI_Aint) room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
    for (long i = 0; i < room; i++)
        base[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
}

static void finish(void)
{
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    free(local);
    free(result);
}

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), prepare, finish);
}
