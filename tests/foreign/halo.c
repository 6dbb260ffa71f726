/* A periodic field that moves by one cell in each step: two steps right, then one left. Each step needs a neighbour's
 * cell. */
#include <mpi.h>
#include <stdio.h>

#define CELLS 1000
#define STEPS 300

int main(int argc, char **argv)
{
    int rank, size, wrong = 0, all = 0;
    static long field[CELLS + 2], next[CELLS + 2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = (rank + size - 1) % size, right = (rank + 1) % size;
    for (int i = 1; i <= CELLS; i++)
        field[i] = (long) rank * CELLS + i - 1;
    for (int step = 0; step < STEPS; step++) {
        MPI_Sendrecv(&field[CELLS], 1, MPI_LONG, right, 0, &field[0], 1, MPI_LONG, left, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&field[1], 1, MPI_LONG, left, 1, &field[CELLS + 1], 1, MPI_LONG, right, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 1; i <= CELLS; i++)
            next[i] = step % 3 == 2 ? field[i + 1] : field[i - 1];
        for (int i = 1; i <= CELLS; i++)
            field[i] = next[i];
    }
    long total = (long) size * CELLS;
    for (int i = 1; i <= CELLS; i++)
        wrong += field[i] != ((long) rank * CELLS + i - 1 - STEPS / 3 + total) % total;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf(all ? "%d cells are wrong\n" : "ok\n", all);
    MPI_Finalize();
    return 0;
}
