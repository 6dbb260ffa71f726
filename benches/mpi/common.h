/*
 * common.h - the parts of benchmarks that do not depend on MPI: the clock, lists of sizes, medians,
 * pinning, output.
 *
 * Sizes are written as numbers with an optional K or M (binary), separated by commas; A..B stands
 * for A and its doubles up to B.
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

/* Returns the seconds since some moment, which is the same for all processes of this machine. */
double now(void);

/* Parse text. Each returns 0, or -1 if the text is invalid. */
int parse_sizes(const char *text, struct sizes *sizes);
int parse_cores(const char *text, struct cores *cores);
int parse_seconds(const char *text, double *seconds);

/* Binds the calling thread to a core. Returns -1 with errno set if that fails. */
int pin_to(int core);

/* Returns the median of `values`, which it sorts. */
double median(double *values, int count);

/* Prints one figure as a line of JSON. */
void print_figure(const char *test, long bytes, double value, const char *unit);

#endif
