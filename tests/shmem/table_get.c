/* Every function that reads from another PE, from every PE to every PE, from the heap and from globals. */
#include "check.h"
#define ROWS "get.inc"
#define G(F, T, ...) static void run_##F(struct call *c) { *(T *)c->dest = F(__VA_ARGS__ (const T *)c->source, c->pe); }
#define GET(F, T, ...) static void run_##F(struct call *c) { F(__VA_ARGS__ (T *)c->dest, (const T *)c->source, c->n, c->pe); }
#define GET_NBI GET
#define IGET(F, T, ...) static void run_##F(struct call *c) \
    { F(__VA_ARGS__ (T *)c->dest, (const T *)c->source, c->dst, c->sst, c->n, c->pe); }
#define IBGET(F, T, ...) static void run_##F(struct call *c) \
    { F(__VA_ARGS__ (T *)c->dest, (const T *)c->source, c->dst, c->sst, c->block, c->n, c->pe); }
enum { IS_G, IS_GET, IS_GET_NBI, IS_IGET, IS_IBGET };
#include "rows.h"
#define SCALAR IS_G
#define STRIDED IS_IGET
#define BLOCKED IS_IBGET
#include "moves.h"

static _Alignas(64) unsigned char global[N_ROWS * SLOT];

static void round_of(const unsigned char *memory, unsigned char *dests, size_t n, int shift) {
    int target = (shmem_my_pe() + shift) % shmem_n_pes();
    memset(dests, FILLER, N_ROWS * SLOT);
    for (size_t r = 0; r < N_ROWS; r++) {
        const struct row *row = &rows[r];
        struct call c = arguments(row, n);
        c.source = memory + r * SLOT + offset(row);
        c.dest = dests + r * SLOT + offset(row);
        c.pe = target;
        row->run(&c);
    }
    shmem_quiet();
    shmem_ctx_quiet(context);
    for (size_t r = 0; r < N_ROWS; r++) {
        const struct row *row = &rows[r];
        struct call c = arguments(row, n);
        unsigned char want[SLOT], source[SLOT], *got = dests + r * SLOT;
        memset(want, FILLER, SLOT);
        fill(source, seed(target, r), SLOT);
        copy_elements(&c, row->size, want + offset(row), source + offset(row));
        if (row->shape == IS_G && row->size == sizeof(long double) && row->is_float)
            memcpy(want + offset(row) + 10, got + offset(row) + 10, 6);
        CHECK_BYTES(row->name, got, want, SLOT);
    }
}

int main(void) {
    shmem_init();
    CHECK_EQ(shmem_ctx_create(0, &context), 0);
    unsigned char *heap = shmem_align(64, N_ROWS * SLOT);
    unsigned char *dests = NULL;
    CHECK(heap && posix_memalign((void **)&dests, 64, N_ROWS * SLOT) == 0);
    for (size_t r = 0; r < N_ROWS; r++) {
        fill(heap + r * SLOT, seed(shmem_my_pe(), r), SLOT);
        fill(global + r * SLOT, seed(shmem_my_pe(), r), SLOT);
    }
    shmem_barrier_all();
    static const size_t sizes[] = {0, 1, 3, 100};
    for (int shift = 0; shift < shmem_n_pes(); shift++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            round_of(heap, dests, sizes[i], shift);
            round_of(global, dests, sizes[i], shift);
        }
    shmem_barrier_all();
    shmem_ctx_destroy(context);
    passed("table_get");
    shmem_finalize();
    return 0;
}
