/* coll_mpi.c - the rows of coll.c over MPI: barrier, broadcast with roots in turn, allreduce, allgather. */
#include "engine.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#define SETS 64
#define MOST (64L << 10)

static char *from, *to;

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

static double barriers(const struct row *row, long n)
{
    (void) row;
    double start = now();
    for (long i = 0; i < n; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    return now() - start;
}

static double bcasts(const struct row *row, long n)
{
    double start = now();
    for (long i = 0; i < n; i++) {
        MPI_Bcast(from, (int) row->bytes, MPI_CHAR, (int) (i % all), MPI_COMM_WORLD);
        if (i % SETS == SETS - 1)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    return now() - start;
}

static double reductions(const struct row *row, long n)
{
    double start = now();
    for (long i = 0; i < n; i++)
        MPI_Allreduce(from, to, (int) (row->bytes / 8), MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return now() - start;
}

static double fcollects(const struct row *row, long n)
{
    double start = now();
    for (long i = 0; i < n; i++)
        MPI_Allgather(from, (int) row->bytes, MPI_CHAR, to, (int) row->bytes, MPI_CHAR, MPI_COMM_WORLD);
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

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &all);
    options(argc, argv);
    from = calloc(1, (size_t) MOST);
    to = calloc((size_t) all, (size_t) MOST);
    if (!from || !to)
        MPI_Abort(MPI_COMM_WORLD, 1);
    run_rows(rows, (int) (sizeof(rows) / sizeof(rows[0])));
    MPI_Finalize();
    return 0;
}
