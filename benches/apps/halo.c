/*
 * halo.c - Jacobi's iteration for Laplace's equation on a square, divided into a grid of ranks.
 *
 * In every sweep each rank exchanges the borders of its part with its four neighbours, and all add
 * up the changes. The initial values are a mode of the iteration: each sweep multiplies all values
 * by the same known factor, so that all results can be checked. With more ranks there are fewer
 * sweeps, since on few cores each takes longer.
 */
#include "app.h"

#include <math.h>
#include <stdlib.h>

#define N 128                   /* points of the square along each side, without its border of zeroes */
#define SWEEPS 64000            /* of all ranks together */
#define WAVES_DOWN 1
#define WAVES_ACROSS 2
#define PI 3.14159265358979323846
#define PRECISION 1e-9

enum side { UP, DOWN, LEFT, RIGHT, SIDES };

/* The part of this rank: `rows` by `columns` points with a border around them, the first of which is
 * point (top, left) of the square. */
static int rows, columns, top, left;
static int sweeps;
static int neighbour[SIDES];
static MPI_Comm grid;
static MPI_Datatype border;       /* at the left or right */

static long place(int r, int c)
{
    return (long) r * (columns + 2) + c;
}

static void divide(void)
{
    int dims[2] = {0, 0}, endless[2] = {0, 0}, mine[2], rank;

    MPI_Dims_create(all_ranks, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, endless, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, mine);
    MPI_Cart_shift(grid, 0, 1, &neighbour[UP], &neighbour[DOWN]);
    MPI_Cart_shift(grid, 1, 1, &neighbour[LEFT], &neighbour[RIGHT]);
    rows = N / dims[0];
    columns = N / dims[1];
    top = mine[0] * rows;
    left = mine[1] * columns;
    MPI_Type_vector(rows, 1, columns + 2, MPI_DOUBLE, &border);
    MPI_Type_commit(&border);
}

static double initial(int r, int c)
{
    return sin(WAVES_DOWN * PI * (top + r) / (N + 1)) * sin(WAVES_ACROSS * PI * (left + c) / (N + 1));
}

static double factor(void)
{
    return (cos(WAVES_DOWN * PI / (N + 1)) + cos(WAVES_ACROSS * PI / (N + 1))) / 2;
}

static void exchange(double *values)
{
    MPI_Request requests[2 * SIDES];
    MPI_Status statuses[2 * SIDES];
    const long outer[SIDES] = {place(0, 1), place(rows + 1, 1), place(1, 0), place(1, columns + 1)};
    const long inner[SIDES] = {place(1, 1), place(rows, 1), place(1, 1), place(1, columns)};

    for (int side = UP; side < SIDES; side++) {
        int across = side == LEFT || side == RIGHT;
        int count = across ? 1 : columns;
        MPI_Datatype type = across ? border : MPI_DOUBLE;
        /* What goes out to one side comes in at the opposite one. */
        MPI_Irecv(values + outer[side], count, type, neighbour[side], side ^ 1, grid, &requests[side]);
        MPI_Isend(values + inner[side], count, type, neighbour[side], side, grid, &requests[SIDES + side]);
    }
    MPI_Waitall(2 * SIDES, requests, statuses);
}

/* Computes the next values and returns the sum of the squares of the changes here. */
static double sweep(const double *old, double *new)
{
    double change = 0;

    for (int r = 1; r <= rows; r++)
        for (int c = 1; c <= columns; c++) {
            long at = place(r, c);
            new[at] = (old[at - 1] + old[at + 1] + old[at - columns - 2] + old[at + columns + 2]) / 4;
            change += (new[at] - old[at]) * (new[at] - old[at]);
        }
    return change;
}

static long wrong_values(const double *values)
{
    double shrunk = pow(factor(), sweeps);
    long wrong = 0;

    for (int r = 1; r <= rows; r++)
        for (int c = 1; c <= columns; c++)
            wrong += fabs(values[place(r, c)] - shrunk * initial(r, c)) > PRECISION;
    return wrong;
}

/* The squares of the initial values add up to (N + 1)^2 / 4. */
static int wrong_change(double change)
{
    double size = (N + 1) / 2.0, last = (1 - factor()) * pow(factor(), sweeps - 1);

    return fabs(change / (size * size * last * last) - 1) > PRECISION;
}

int main(int argc, char **argv)
{
    double change = 0, all_changes = 0;

    start(&argc, &argv);
    sweeps = SWEEPS / all_ranks;
    divide();
    long bytes = place(rows + 2, 0) * (long) sizeof(double);
    double *old = zeroed(bytes), *new = zeroed(bytes);
    for (int r = 1; r <= rows; r++)
        for (int c = 1; c <= columns; c++)
            old[place(r, c)] = initial(r, c);
    for (int s = 0; s < sweeps; s++) {
        exchange(old);
        change = sweep(old, new);
        MPI_Allreduce(&change, &all_changes, 1, MPI_DOUBLE, MPI_SUM, grid);
        double *swap = old;
        old = new;
        new = swap;
    }
    long wrong = wrong_values(old) + wrong_change(all_changes);
    free(old);
    free(new);
    MPI_Type_free(&border);
    MPI_Comm_free(&grid);
    return finish("halo", wrong);
}
