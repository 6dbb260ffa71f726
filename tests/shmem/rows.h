/*
 * Rows of a table of functions that differ only in their types. The generated file ROWS has one line for each function,
 *
 *     ROW(SHAPE, function, type, context,)
 *
 * where SHAPE says what the function does, and the context is missing where the function takes none. A program defines
 * a macro for each shape, which defines the function `run_FUNCTION` that calls it with the members of `struct call`.
 */
#ifndef ROWS_H
#define ROWS_H

/* An element of 128 bits. */
typedef struct {
    _Alignas(16) uint64_t part[2];
} bits128;

/* The arguments of a call, and its result. */
struct call {
    void *dest;
    const void *source;
    size_t n;
    ptrdiff_t dst, sst;
    size_t block;
    uint64_t *sig;
    uint64_t signal;
    int op, pe;
    uint64_t value, compare, result;
    const int *status;
    size_t *indices;
    shmem_team_t team;
    int start, log_stride, size;
    long *sync;
    void *work;
};

/* A function of the table. */
struct row {
    const char *name;
    int shape;
    size_t size;
    int is_signed, is_float;
    void (*run)(struct call *);
};

/* The context of functions with one. */
__attribute__((unused)) static shmem_ctx_t context;

#define ROW(SHAPE, F, T, ...) SHAPE(F, T, __VA_ARGS__)
#endif

#ifdef ROWS
#include ROWS
#undef ROW
#define ROW(SHAPE, F, T, ...) {#F, IS_##SHAPE, sizeof(T), TYPE_IS(T, SIGNED_), TYPE_IS(T, FLOAT_), run_##F},
#define TYPE_IS(T, KIND)                                                                                     \
    _Generic((T *)0, KIND##TYPES, default: 0)
#define SIGNED_TYPES                                                                                         \
    char *: (char)-1 < 0, signed char *: 1, short *: 1, int *: 1, long *: 1, long long *: 1
#define FLOAT_TYPES float *: 1, double *: 1, long double *: 1
static const struct row rows[] = {
#include ROWS
};
#undef ROW
#define N_ROWS (sizeof rows / sizeof rows[0])

/* Many elements are tried with one type of each size. */
__attribute__((unused)) static int is_first_of_its_size(size_t r) {
    for (size_t i = 0; i < r; i++)
        if (rows[i].shape == rows[r].shape && rows[i].size == rows[r].size)
            return 0;
    return 1;
}
#endif
