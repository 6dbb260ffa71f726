/* app.c - see app.h. */
#include "app.h"

#include <stdio.h>
#include <stdlib.h>

int my_rank, all_ranks;

static double began;

void start(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all_ranks);
    if (all_ranks > RANKS_MOST || (all_ranks & (all_ranks - 1))) {
        if (my_rank == 0)
            fprintf(stderr, "the number of ranks must be a power of two, at most %d\n", RANKS_MOST);
        MPI_Finalize();
        exit(2);
    }
    began = now();
}

int finish(const char *name, long wrong)
{
    long all_wrong;

    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    double seconds = now() - began;
    if (my_rank == 0 && all_wrong == 0)
        print_figure(name, 0, seconds * 1e3, "ms");
    if (my_rank == 0 && all_wrong > 0)
        fprintf(stderr, "%s: %ld wrong results\n", name, all_wrong);
    MPI_Finalize();
    return all_wrong > 0;
}

void *zeroed(long bytes)
{
    void *memory = calloc(1, (size_t) bytes);

    if (!memory) {
        fprintf(stderr, "rank %d: not enough memory for %ld bytes\n", my_rank, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    return memory;
}
