/* Preparation and check of reductions. */

/* Bytes for the elements of all types, with guards. */
#define SPACE (MOST * 16 + 128)

struct operation {
    void (*value)(void *to, int pe, int j);
    void (*combine)(void *to, const void *x);
};
#define ROW(SHAPE, F, T, ...) {value_##F, combine_##F},
static const struct operation operations[] = {
#include ROWS
};
#undef ROW

/* Bytes of an element that have a meaning. */
static size_t meaning(const struct row *row) {
    return row->is_float && row->size == 16 ? 10 : row->size;
}

/* Fills both memories with guards, and the first one with the values of a PE. */
static void prepare(size_t r, int pe, size_t n, unsigned char *memory[2]) {
    size_t size = rows[r].size;
    memset(memory[0], 0xa5, n * size + 128);
    memset(memory[1], 0xa5, n * size + 128);
    for (size_t i = 0; i < n && i < PERIOD; i++)
        operations[r].value(memory[0] + 64 + i * size, pe, (int)i);
    for (size_t i = PERIOD; i < n; i++)
        memcpy(memory[0] + 64 + i * size, memory[0] + 64 + (i - PERIOD) * size, size);
}

/* Checks the result over `members[first..last]`. */
static void verify(size_t r, const int *members, int first, int last, size_t n, unsigned char *memory[2],
                   int in_place) {
    const struct row *row = &rows[r];
    size_t size = row->size;
    static const unsigned char guard[64] = {[0 ... 63] = 0xa5};
    for (int k = 0; k < 2; k++) {
        CHECK_BYTES(row->name, memory[k], guard, 64);
        CHECK_BYTES(row->name, memory[k] + 64 + n * size, guard, 64);
    }
    unsigned char *dest = memory[in_place ? 0 : 1] + 64;
    _Alignas(16) unsigned char want[PERIOD][16], value[16];
    memset(want, 0, sizeof want);
    for (int j = 0; j < PERIOD; j++)
        for (int k = first; k < last; k++) {
            operations[r].value(value, members[k], j);
            if (k == first)
                memcpy(want[j], value, size);
            else
                operations[r].combine(want[j], value);
        }
    for (size_t i = 0; i < n; i++)
        if (memcmp(dest + i * size, want[i % PERIOD], meaning(row)) != 0) {
            printf("PE %d: %s, element %zu of %zu over %d PEs%s\n", shmem_my_pe(), row->name, i, n, last - first,
                   in_place ? ", in place" : "");
            CHECK_BYTES(row->name, dest + i * size, want[i % PERIOD], meaning(row));
        }
}
