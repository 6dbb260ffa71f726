/* What the tests of collectives on teams and on active sets share. */

/* The most PEs and elements. */
#define PES 16
#define MOST 20000
#define MOVE_SPACE ((MOST + 2 * PES) * 16 * 3 + 128)

static unsigned seed_of(int pe) {
    return (unsigned)pe * 7 + 3;
}

/* The number of elements that a PE gives to a collect of about n. */
__attribute__((unused)) static size_t length_of(int pe, size_t n) {
    return n == 0 ? 0 : n - 1 + (size_t)(pe * 3 + 1) % 3;
}

/* Fills the source with the pattern of a PE and the destination with guards. Returns the destination's length. */
static size_t prepare_moves(const struct row *row, int pe, int count, size_t n, unsigned char *memory[2]) {
    size_t all = (n + 2) * row->size * (size_t)count, len = 2 * all, source = 3 * all;
    if (source > MOVE_SPACE - 128)
        source = len = MOVE_SPACE - 128;
    memset(memory[0], 0xa5, 64);
    fill(memory[0] + 64, seed_of(pe), source);
    memset(memory[1], 0xa5, len + 128);
    return len;
}

/* What PE `me` of these receives if everyone sends different elements to everyone. */
static void exchange(size_t size, size_t n, const struct call *c, const int *members, int me, int count,
                     unsigned char *to) {
    for (int k = 0; k < count; k++)
        for (size_t i = 0; i < n; i++)
            for (size_t b = 0; b < size; b++) {
                size_t from = ((size_t)me * n + i) * (size_t)c->sst * size + b;
                to[((size_t)k * n + i) * (size_t)c->dst * size + b] = pattern(seed_of(members[k]), from);
            }
}
