/*
 * coll.c - collectives of all ranks. Options: see engine.h.
 *
 *   barrier                                                                                     us
 *   allreduce   sum of doubles; bytes are those of one vector                                   us
 *   alltoall    bytes are those for one destination                                             us
 *   alltoallv   bytes are those for every second destination; the others get half of them      us
 *   allgather   bytes are those of one rank                                                     us
 *   reduce_scatter_block
 *               sum of doubles; bytes are those of one rank's part of the sum                   us
 *   bcast       bytes are those of the message                                                  us
 *   reduce      sum of doubles; bytes are those of one vector                                   us
 *   scan        sum of doubles; bytes are those of one vector                                   us
 *
 * All are called back to back, without barriers, since those would measure the order in which ranks
 * leave the barrier. Except for the last three, a collective ends at no rank before all ranks have
 * begun it. In a broadcast the root, and in a reduction all other ranks, could run ahead: therefore
 * each rank is the root in turn, and no rank is ahead of another by more calls than there are ranks.
 * In a scan the first ranks could run ahead: therefore the order of the ranks is reversed in every
 * second call. All times are those of the slowest rank.
 */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

static char *send_buffer;
static char *receive_buffer;

/* All ranks, in reverse order. */
static MPI_Comm reversed;

/* Of alltoallv: numbers of bytes and places in the buffers, which are the same in both. */
static int *counts, *places;

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

/* The number of bytes between two ranks, which is the same in both directions. */
static long unequal(int one, int other, long bytes)
{
    return (one + other) % 2 ? bytes / 2 : bytes;
}

static void alltoallv(long bytes)
{
    (void) bytes;
    MPI_Alltoallv(send_buffer, counts, places, MPI_CHAR, receive_buffer, counts, places, MPI_CHAR, MPI_COMM_WORLD);
}

static void reduce_scatter_block(long bytes)
{
    MPI_Reduce_scatter_block(send_buffer, receive_buffer, (int) (bytes / 8), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void scan(long bytes, MPI_Comm comm)
{
    MPI_Scan(send_buffer, receive_buffer, (int) (bytes / 8), MPI_DOUBLE, MPI_SUM, comm);
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

/* The barrier at the end belongs to the measured time: on more ranks than cores, ranks leave the one before so late
 * that in a batch of few iterations the data wait for them already. In a batch of many it takes hardly any time. */
static double roots_in_turn(void (*collective)(long bytes, int root), long bytes, long n)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    for (long i = 0; i < n; i++)
        collective(bytes, (int) (i % all_ranks));
    MPI_Barrier(MPI_COMM_WORLD);
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

static double alltoallvs(long bytes, long n)
{
    for (int rank = 0; rank < all_ranks; rank++) {
        counts[rank] = (int) unequal(my_rank, rank, bytes);
        places[rank] = (int) (rank * bytes);
    }
    return back_to_back(alltoallv, bytes, n);
}

static double reduce_scatter_blocks(long bytes, long n)
{
    return back_to_back(reduce_scatter_block, bytes, n);
}

static double scans(long bytes, long n)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now();
    for (long i = 0; i < n; i++)
        scan(bytes, i % 2 ? reversed : MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return now() - start;
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

/* Element i of a rank's summands. */
static double summand(int rank, long i)
{
    return (double) (rank + i % 1000);
}

/* Fills the send buffer, and removes the sums of an earlier call from the receive buffer. */
static void fill_summands(long bytes)
{
    double *mine = (double *) send_buffer;

    for (long i = 0; i < bytes / 8; i++)
        mine[i] = summand(my_rank, i);
    memset(receive_buffer, 0, (size_t) bytes);
}

/* Counts the elements in the receive buffer that are not the sums of the ranks `first` to `last`, from element `from`
 * of the summands on. */
static long wrong_sums(int first, int last, long from, long bytes)
{
    const double *sums = (const double *) receive_buffer;
    long bad = 0;

    for (long i = 0; i < bytes / 8; i++) {
        double sum = 0;
        for (int rank = first; rank <= last; rank++)
            sum += summand(rank, from + i);
        bad += sums[i] != sum;
    }
    return bad;
}

static long check_allreduce(long bytes)
{
    fill_summands(bytes);
    allreduce(bytes);
    return wrong_sums(0, all_ranks - 1, 0, bytes);
}

static long check_reduce(long bytes)
{
    long bad = 0;

    for (int root = 0; root < all_ranks; root++) {
        fill_summands(bytes);
        reduce(bytes, root);
        bad += my_rank == root ? wrong_sums(0, all_ranks - 1, 0, bytes) : 0;
    }
    return bad;
}

static long check_reduce_scatter_block(long bytes)
{
    fill_summands(bytes * all_ranks);
    reduce_scatter_block(bytes);
    return wrong_sums(0, all_ranks - 1, my_rank * (bytes / 8), bytes);
}

static long check_scan(long bytes)
{
    fill_summands(bytes);
    scan(bytes, MPI_COMM_WORLD);
    long bad = wrong_sums(0, my_rank, 0, bytes);
    fill_summands(bytes);
    scan(bytes, reversed);
    return bad + wrong_sums(my_rank, all_ranks - 1, 0, bytes);
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

static long check_alltoallv(long bytes)
{
    long bad = 0;

    for (int to = 0; to < all_ranks; to++)
        fill(send_buffer + to * bytes, bytes, my_rank * all_ranks + to);
    fill(receive_buffer, bytes * all_ranks, -1);
    alltoallvs(bytes, 1);
    for (int from = 0; from < all_ranks; from++) {
        long count = unequal(from, my_rank, bytes);
        bad += wrong(receive_buffer + from * bytes, count, from * all_ranks + my_rank);
    }
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
    {"alltoallv", "us", "8,1K,64K", 0, 8, alltoallvs, microseconds, check_alltoallv},
    {"allgather", "us", "8,1K,64K", 0, 1, allgathers, microseconds, check_allgather},
    {"reduce_scatter_block", "us", "8,1K,64K", 0, 8, reduce_scatter_blocks, microseconds, check_reduce_scatter_block},
    {"scan", "us", "8,1K,64K,1M", 0, 8, scans, microseconds, check_scan},
};

static void prepare(long largest)
{
    send_buffer = touched(largest * all_ranks);
    receive_buffer = touched(largest * all_ranks);
    counts = (int *) touched(all_ranks * (long) sizeof(int));
    places = (int *) touched(all_ranks * (long) sizeof(int));
    MPI_Comm_split(MPI_COMM_WORLD, 0, -my_rank, &reversed);
}

static void finish(void)
{
    free(send_buffer);
    free(receive_buffer);
    free(counts);
    free(places);
    MPI_Comm_free(&reversed);
}

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), prepare, finish);
}
