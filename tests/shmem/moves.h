/*
 * What the tables of puts and of gets share: a slot of memory for each function, and how elements are laid out in it.
 * SCALAR, STRIDED and BLOCKED are the shapes of functions with other arguments than the rest.
 */

/* Bytes for a function: guards around 100 blocks of 2 elements in 4. */
#define SLOT 8192
/* What bytes have that nobody may touch. */
#define FILLER 0xa5

static unsigned seed(int pe, size_t row) {
    return (unsigned)(pe * 17 + row * 3 + 1);
}

/* Elements of one byte, for which no alignment is needed, are not aligned. */
static size_t offset(const struct row *row) {
    return row->size == 1 ? 61 : 64;
}

/* Counts and distances for a function, for about n elements. */
static struct call arguments(const struct row *row, size_t n) {
    struct call c = {.n = n, .block = 1, .dst = 1, .sst = 1};
    if (row->shape == SCALAR)
        c.n = 1;
    if (row->shape == STRIDED)
        c.dst = 2, c.sst = 3;
    if (row->shape == BLOCKED)
        c.block = 2, c.dst = 3, c.sst = 4;
    return c;
}

/* What a function does, in plain C. */
static void copy_elements(const struct call *c, size_t size, unsigned char *dest, const unsigned char *source) {
    for (size_t i = 0; i < c->n; i++)
        memcpy(dest + i * (size_t)c->dst * size, source + i * (size_t)c->sst * size, c->block * size);
}
