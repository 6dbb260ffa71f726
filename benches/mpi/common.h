/*
 * common.h - what all benchmarks need that has nothing to do with MPI: the clock, lists of sizes, medians, pinning, output.
 *
 * Sizes are written as numbers with an optional K or M (binary), separated by commas; A..B stands for A and its doubles up to B.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#define SIZES_MOST 64
#define LARGEST_SIZE (1L << 30)
#define CORES_MOST 1024

struct sizes {
    int count;
    long of[SIZES_MOST];
};

struct cores {
    int count;
    int of[CORES_MOST];
};

/* Seconds since some moment; the same moment for all processes of this machine. */
double now(void);

/* Each returns 0, or -1 if the text cannot be understood. */
int parse_sizes(const char *text, struct sizes *sizes);
int parse_cores(const char *text, struct cores *cores);
int parse_seconds(const char *text, double *seconds);

/* Binds the calling thread to a core; -1 with errno set if that fails. */
int pin_to(int core);

/* Sorts `values`. */
double median(double *values, int count);

/* One figure, as a line of JSON. */
void print_figure(const char *test, long bytes, double value, const char *unit);

#endif
