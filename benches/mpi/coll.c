/*
 * coll.c - collectives of all ranks. Options: see engine.h.
 *
 *   barrier                                                                                     us
 *   allreduce   sum of doubles; bytes are those of one vector                                   us
 *   alltoall    bytes are those for one destination                                             us
 *   allgather   bytes are those of one rank                                                     us
 *   bcast       bytes are those of the message                                                  us
 *   reduce      sum of doubles; bytes are those of one vector                                   us
 *
 * All are called back to back, without barriers, since those would measure the order in which ranks
 * leave the barrier. Except for the last two, a collective ends at no rank before all ranks have
 * begun it. In a broadcast the root, and in a reduction all other ranks, could run ahead: therefore
 * each rank is the root in turn, and no rank is ahead of another by more calls than there are ranks.
 * All times are those of the slowest rank.
 */
#include "engine.h"

#include <stdlib.h>

static char *send_buffer;
static char *receive_buffer;

static void barrier(long bytes)
{
    (void) bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void allreduce(long bytes)
{
    MPI_Allreduce(send_buffer, receive_buffer, (int) (bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(long bytes)
{
    MPI_Alltoall(send_buffer, (int) bytes, MPI_CHAR, receive_buffer, (int) bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void allgather(long bytes)
{
    MPI_Allgather(send_buffer, (int) bytes, MPI_CHAR, receive_buffer, (int) bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static void bcast(long bytes, int root)
{
    MPI_Bcast(send_buffer, (int) bytes, MPI_CHAR, root, MPI_COMM_WORLD);
}

static void reduce(long bytes, int root)
{
    MPI_Reduce(send_buffer, receive_buffer, (int) (bytes / 8), MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
}

static double back_to_back(void (*collective)(long bytes), long bytes, long n)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    for (long i = 0; i < n; i++)
        collective(bytes);
    return now() - start;
}

static double roots_in_turn(void (*collective)(long bytes, int root), long bytes, long n)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    for (long i = 0; i < n; i++)
        collective(bytes, (int) (i % all_ranks));
    return now() - start;
}

static double barriers(long bytes, long n)
{
    return back_to_back(barrier, bytes, n);
}

static double allreduces(long bytes, long n)
{
    return back_to_back(allreduce, bytes, n);
}

static double alltoalls(long bytes, long n)
{
    return back_to_back(alltoall, bytes, n);
}

static double allgathers(long bytes, long n)
{
    return back_to_back(allgather, bytes, n);
}

static double bcasts(long bytes, long n)
{
    return roots_in_turn(bcast, bytes, n);
}

static double reduces(long bytes, long n)
{
    return roots_in_turn(reduce, bytes, n);
}

static void fill_summands(long bytes)
{
    double *mine = (double *) send_buffer;

    for (long i = 0; i < bytes / 8; i++)
        mine[i] = (double) (my_rank + i % 1000);
}

static long wrong_sums(long bytes)
{
    const double *sums = (const double *) receive_buffer;
    long bad = 0;

    for (long i = 0; i < bytes / 8; i++)
        bad += sums[i] != (double) (all_ranks * (all_ranks - 1) / 2 + all_ranks * (i % 1000));
    return bad;
}

static long check_allreduce(long bytes)
{
    fill_summands(bytes);
    allreduce(bytes);
    return wrong_sums(bytes);
}

static long check_reduce(long bytes)
{
    long bad = 0;

    fill_summands(bytes);
    for (int root = 0; root < all_ranks; root++) {
        /* Overwrites the sums of an earlier check. */
        fill(receive_buffer, bytes, root);
        reduce(bytes, root);
        bad += my_rank == root ? wrong_sums(bytes) : 0;
    }
    return bad;
}

static long check_alltoall(long bytes)
{
    long bad = 0;

    for (int to = 0; to < all_ranks; to++)
        fill(send_buffer + to * bytes, bytes, my_rank * all_ranks + to);
    alltoall(bytes);
    for (int from = 0; from < all_ranks; from++)
        bad += wrong(receive_buffer + from * bytes, bytes, from * all_ranks + my_rank);
    return bad;
}

static long check_allgather(long bytes)
{
    long bad = 0;

    fill(send_buffer, bytes, my_rank);
    allgather(bytes);
    for (int from = 0; from < all_ranks; from++)
        bad += wrong(receive_buffer + from * bytes, bytes, from);
    return bad;
}

static long check_bcast(long bytes)
{
    long bad = 0;

    for (int root = 0; root < all_ranks; root++) {
        fill(send_buffer, bytes, my_rank);
        bcast(bytes, root);
        bad += wrong(send_buffer, bytes, root);
    }
    return bad;
}

static const struct test tests[] = {
    {"barrier", "us", "0", 0, 1, barriers, microseconds, NULL},
    {"bcast", "us", "8,1K,64K,1M", 0, 1, bcasts, microseconds, check_bcast},
    {"reduce", "us", "8,1K,64K,1M", 0, 8, reduces, microseconds, check_reduce},
    {"allreduce", "us", "8,1K,64K,1M", 0, 8, allreduces, microseconds, check_allreduce},
    {"alltoall", "us", "8,1K,64K", 0, 1, alltoalls, microseconds, check_alltoall},
    {"allgather", "us", "8,1K,64K", 0, 1, allgathers, microseconds, check_allgather},
};

static void prepare(long largest)
{
    send_buffer = touched(largest * all_ranks);
    receive_buffer = touched(largest * all_ranks);
}

static void finish(void)
{
    free(send_buffer);
    free(receive_buffer);
}

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), prepare, finish);
}
