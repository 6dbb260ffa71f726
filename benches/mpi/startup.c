/*
 * startup.c - measures the cost of being an MPI program.
 *
 *   startup             MPI_Init, MPI_Finalize: to be timed from outside
 *   startup --memory    after MPI_Init and one MPI_Allreduce, the mean over ranks of /proc/self's
 *                       resident and proportional set size in KiB; the latter counts a page that p
 *                       processes share as a p-th
 *   startup --version   the text of MPI_Get_library_version
 */
#include <mpi.h>

#include <stdio.h>
#include <string.h>

#include "common.h"

/* Returns the value of the line that begins with `name`, or 0. */
static double kib(const char *file, const char *name)
{
    char line[256];
    double value = 0;
    FILE *in = fopen(file, "r");

    while (in && fgets(line, sizeof(line), in))
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name), "%lf", &value);
    if (in)
        fclose(in);
    return value;
}

static void memory(void)
{
    int rank, ranks;
    double one = 1, sum, mine[2], all[2];

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    mine[0] = kib("/proc/self/smaps_rollup", "Rss:");
    mine[1] = kib("/proc/self/smaps_rollup", "Pss:");
    MPI_Reduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        print_figure("memory_rss", 0, all[0] / ranks, "KiB");
        print_figure("memory_pss", 0, all[1] / ranks, "KiB");
    }
}

static void version(void)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;

    MPI_Get_library_version(text, &length);
    puts(text);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc == 2 && strcmp(argv[1], "--memory") == 0)
        memory();
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        version();
    MPI_Finalize();
    return 0;
}
