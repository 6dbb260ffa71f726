/*
 * cg.c - conjugate gradients for Laplace's equation on a square of N by N points. The sparse matrix
 * is stored by rows; each rank has those of N / ranks lines of the square.
 *
 * In every iteration each rank exchanges a line with each of its two neighbours, and all add up two
 * dot products. Several right-hand sides are solved, of which the solutions are known; fewer with
 * more ranks, since on few cores each takes longer.
 */
#include "app.h"

#include <math.h>
#include <stdlib.h>

#define N 64
#define SOLUTIONS 160           /* of all ranks together */
#define ITERATIONS_MOST 1000
#define RESIDUAL 1e-10
#define PRECISION 1e-7
#define TAG 1

/* The rows of the matrix that this rank has. Columns are places in a vector with one line of the
 * neighbour before its own points and one behind them. */
static struct matrix {
    int count;
    int *first;                 /* of row i the elements first[i] to first[i + 1] - 1 */
    int *column;
    double *value;
} matrix;

static int points, first_line;  /* points of this rank; the first of its lines */
static int before, behind;      /* ranks of the neighbours */

static void add(int column, double value)
{
    matrix.column[matrix.count] = column;
    matrix.value[matrix.count++] = value;
}

static void make_matrix(void)
{
    matrix.first = zeroed((points + 1) * (long) sizeof(int));
    matrix.column = zeroed(5 * points * (long) sizeof(int));
    matrix.value = zeroed(5 * points * (long) sizeof(double));
    for (int i = 0; i < points; i++) {
        int line = first_line + i / N, own = N + i;
        matrix.first[i] = matrix.count;
        if (line > 0)
            add(own - N, -1);
        if (i % N > 0)
            add(own - 1, -1);
        add(own, 4);
        if (i % N < N - 1)
            add(own + 1, -1);
        if (line < N - 1)
            add(own + N, -1);
    }
    matrix.first[points] = matrix.count;
}

static double dot(const double *a, const double *b)
{
    double here = 0, all;

    for (int i = N; i < N + points; i++)
        here += a[i] * b[i];
    MPI_Allreduce(&here, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Multiplies: y = A x. The neighbours' lines of x are fetched first. */
static void multiply(double *x, double *y)
{
    MPI_Request requests[4];
    MPI_Status statuses[4];

    MPI_Irecv(x, N, MPI_DOUBLE, before, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(x + N + points, N, MPI_DOUBLE, behind, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(x + N, N, MPI_DOUBLE, before, TAG, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(x + points, N, MPI_DOUBLE, behind, TAG, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, statuses);
    for (int i = 0; i < points; i++) {
        double sum = 0;
        for (int k = matrix.first[i]; k < matrix.first[i + 1]; k++)
            sum += matrix.value[k] * x[matrix.column[k]];
        y[N + i] = sum;
    }
}

/* y = a x + b y */
static void combine(double a, const double *x, double b, double *y)
{
    for (int i = N; i < N + points; i++)
        y[i] = a * x[i] + b * y[i];
}

/* Solves A x = r. Overwrites r. */
static void solve(double *x, double *r, double *direction, double *image)
{
    double squared = dot(r, r), enough = RESIDUAL * RESIDUAL * squared;

    combine(0, x, 0, x);
    combine(1, r, 0, direction);
    for (int i = 0; i < ITERATIONS_MOST && squared > enough; i++) {
        multiply(direction, image);
        double step = squared / dot(direction, image);
        combine(step, direction, 1, x);
        combine(-step, image, 1, r);
        double next = dot(r, r);
        combine(1, r, next / squared, direction);
        squared = next;
    }
}

static double solution(int number, int i)
{
    return (double) (((first_line * N + i) * 7L + number * 13L) % 101) / 101;
}

int main(int argc, char **argv)
{
    long wrong = 0;

    start(&argc, &argv);
    points = N / all_ranks * N;
    first_line = N / all_ranks * my_rank;
    before = my_rank > 0 ? my_rank - 1 : MPI_PROC_NULL;
    behind = my_rank < all_ranks - 1 ? my_rank + 1 : MPI_PROC_NULL;
    make_matrix();
    long bytes = (points + 2 * N) * (long) sizeof(double);
    double *x = zeroed(bytes), *r = zeroed(bytes), *direction = zeroed(bytes), *image = zeroed(bytes);
    for (int number = 0; number < SOLUTIONS / all_ranks; number++) {
        for (int i = 0; i < points; i++)
            x[N + i] = solution(number, i);
        multiply(x, r);
        solve(x, r, direction, image);
        for (int i = 0; i < points; i++)
            wrong += fabs(x[N + i] - solution(number, i)) > PRECISION;
    }
    free(x);
    free(r);
    free(direction);
    free(image);
    free(matrix.first);
    free(matrix.column);
    free(matrix.value);
    return finish("cg", wrong);
}
