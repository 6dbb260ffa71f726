/*
 * fft.c - Fourier transforms of a plane of N by N complex numbers, forward and back in turn. Each
 * rank has N / ranks rows: it transforms them, the plane is transposed by an alltoall, and it
 * transforms the rows of the transposed plane. The result stays transposed, so that the way back is
 * the same.
 *
 * The plane is a wave, whose transform is zero but for one element.
 */
#include "app.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

#define N 256
#define TURNS 150               /* transforms forward and back */
#define WAVES_DOWN 5
#define WAVES_ACROSS 9
#define PI 3.14159265358979323846
#define PRECISION 1e-9

static int rows;                /* of this rank */
static double complex *plane, *packed, *arrived;
static double complex roots[2][N / 2];  /* of unity: forward and back */

static void swap(double complex *a, double complex *b)
{
    double complex old = *a;

    *a = *b;
    *b = old;
}

/* Transforms one row in place. */
static void transform(double complex *row, const double complex *root)
{
    for (int i = 1, j = 0; i < N; i++) {
        int bit = N / 2;
        for (; j & bit; bit /= 2)
            j ^= bit;
        j ^= bit;
        if (i < j)
            swap(&row[i], &row[j]);
    }
    for (int length = 2; length <= N; length *= 2)
        for (int begin = 0; begin < N; begin += length)
            for (int k = 0; k < length / 2; k++) {
                double complex even = row[begin + k], odd = row[begin + k + length / 2];
                double complex w = root[k * (N / length)];
                /* Written out, since the compiler's product of complex numbers checks for infinities. */
                double real = creal(odd) * creal(w) - cimag(odd) * cimag(w);
                double imaginary = creal(odd) * cimag(w) + cimag(odd) * creal(w);
                row[begin + k] = even + (real + imaginary * I);
                row[begin + k + length / 2] = even - (real + imaginary * I);
            }
}

/* Transposes the plane: each rank gets a square block of every other, and turns it. */
static void transpose(void)
{
    int block = rows * rows;

    for (int r = 0; r < rows; r++)
        for (int c = 0; c < N; c++)
            packed[c / rows * block + c % rows * rows + r] = plane[r * N + c];
    MPI_Alltoall(packed, block, MPI_C_DOUBLE_COMPLEX, arrived, block, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    for (int from = 0; from < all_ranks; from++)
        for (int r = 0; r < rows; r++)
            for (int c = 0; c < rows; c++)
                plane[r * N + from * rows + c] = arrived[from * block + r * rows + c];
}

static void transform_plane(const double complex *root)
{
    for (int r = 0; r < rows; r++)
        transform(plane + r * N, root);
    transpose();
    for (int r = 0; r < rows; r++)
        transform(plane + r * N, root);
}

static double complex wave(int r, int c)
{
    return cexp(2 * PI * I * ((double) (WAVES_DOWN * r + WAVES_ACROSS * c) / N));
}

static long wrong_spectrum(void)
{
    long wrong = 0;

    /* The spectrum is transposed: its rows are the frequencies across. */
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < N; c++) {
            int is_peak = my_rank * rows + r == WAVES_ACROSS && c == WAVES_DOWN;
            wrong += cabs(plane[r * N + c] / (N * N) - is_peak) > PRECISION;
        }
    return wrong;
}

static long wrong_wave(void)
{
    long wrong = 0;

    for (int r = 0; r < rows; r++)
        for (int c = 0; c < N; c++)
            wrong += cabs(plane[r * N + c] - wave(my_rank * rows + r, c)) > PRECISION;
    return wrong;
}

int main(int argc, char **argv)
{
    long wrong = 0;

    start(&argc, &argv);
    rows = N / all_ranks;
    long bytes = rows * N * (long) sizeof(plane[0]);
    plane = zeroed(bytes);
    packed = zeroed(bytes);
    arrived = zeroed(bytes);
    for (int k = 0; k < N / 2; k++) {
        roots[0][k] = cexp(-2 * PI * I * k / N);
        roots[1][k] = conj(roots[0][k]);
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < N; c++)
            plane[r * N + c] = wave(my_rank * rows + r, c);
    for (int turn = 0; turn < TURNS; turn++) {
        transform_plane(roots[0]);
        if (turn == 0)
            wrong += wrong_spectrum();
        transform_plane(roots[1]);
        for (int i = 0; i < rows * N; i++)
            plane[i] /= N * N;
    }
    wrong += wrong_wave();
    free(plane);
    free(packed);
    free(arrived);
    return finish("fft", wrong);
}
