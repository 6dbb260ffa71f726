/* Every function that writes to another PE, from every PE to every PE, to the heap and to globals. */
#include "check.h"
#define ROWS "put.inc"
#define P(F, T, ...) static void run_##F(struct call *c) { F(__VA_ARGS__ (T *)c->dest, *(const T *)c->source, c->pe); }
#define PUT(F, T, ...) static void run_##F(struct call *c) { F(__VA_ARGS__ (T *)c->dest, (const T *)c->source, c->n, c->pe); }
#define PUT_NBI PUT
#define IPUT(F, T, ...) static void run_##F(struct call *c) \
    { F(__VA_ARGS__ (T *)c->dest, (const T *)c->source, c->dst, c->sst, c->n, c->pe); }
#define IBPUT(F, T, ...) static void run_##F(struct call *c) \
    { F(__VA_ARGS__ (T *)c->dest, (const T *)c->source, c->dst, c->sst, c->block, c->n, c->pe); }
#define PUT_SIGNAL(F, T, ...) static void run_##F(struct call *c) \
    { F(__VA_ARGS__ (T *)c->dest, (const T *)c->source, c->n, c->sig, c->signal, c->op, c->pe); }
#define PUT_SIGNAL_NBI PUT_SIGNAL
enum { IS_P, IS_PUT, IS_PUT_NBI, IS_IPUT, IS_IBPUT, IS_PUT_SIGNAL, IS_PUT_SIGNAL_NBI };
#include "rows.h"
#define SCALAR IS_P
#define STRIDED IS_IPUT
#define BLOCKED IS_IBPUT
#include "moves.h"

static _Alignas(64) unsigned char global[N_ROWS * SLOT];
static uint64_t global_signals[N_ROWS];

static void check_row(size_t r, unsigned char *memory, size_t n, int from) {
    const struct row *row = &rows[r];
    struct call c = arguments(row, n);
    unsigned char want[SLOT];
    memset(want, FILLER, SLOT);
    unsigned char source[SLOT];
    fill(source, seed(from, r), SLOT);
    unsigned char *got = memory + r * SLOT;
    copy_elements(&c, row->size, want + offset(row), source + offset(row));
    if (row->shape == IS_P && row->size == sizeof(long double) && row->is_float)
        memcpy(want + offset(row) + 10, got + offset(row) + 10, 6);
    CHECK_BYTES(row->name, got, want, SLOT);
}

static void round_of(unsigned char *memory, uint64_t *signals, unsigned char *sources, size_t n, int shift) {
    int me = shmem_my_pe(), pes = shmem_n_pes();
    int target = (me + shift) % pes, from = (me + pes - shift) % pes;
    memset(memory, FILLER, N_ROWS * SLOT);
    for (size_t r = 0; r < N_ROWS; r++)
        signals[r] = 5;
    shmem_barrier_all();
    for (size_t r = 0; r < N_ROWS; r++) {
        const struct row *row = &rows[r];
        struct call c = arguments(row, n);
        unsigned char *source = sources + r * SLOT;
        fill(source, seed(me, r), SLOT);
        c.dest = memory + r * SLOT + offset(row);
        c.source = source + offset(row);
        c.pe = target;
        c.sig = &signals[r];
        c.signal = 1000 + r;
        c.op = r % 2 ? SHMEM_SIGNAL_SET : SHMEM_SIGNAL_ADD;
        row->run(&c);
    }
    /* A signal arrives after its data, also before anything else is known to be complete. */
    for (size_t r = 0; r < N_ROWS; r++) {
        if (rows[r].shape != IS_PUT_SIGNAL && rows[r].shape != IS_PUT_SIGNAL_NBI)
            continue;
        uint64_t wanted = 1000 + r + (r % 2 ? 0 : 5);
        CHECK_EQ(shmem_signal_wait_until(&signals[r], SHMEM_CMP_EQ, wanted), wanted);
        check_row(r, memory, n, from);
    }
    shmem_quiet();
    shmem_ctx_quiet(context);
    shmem_barrier_all();
    for (size_t r = 0; r < N_ROWS; r++)
        check_row(r, memory, n, from);
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    CHECK_EQ(shmem_ctx_create(0, &context), 0);
    unsigned char *heap = shmem_align(64, N_ROWS * SLOT);
    uint64_t *signals = shmem_calloc(N_ROWS, sizeof *signals);
    unsigned char *sources = malloc(N_ROWS * SLOT);
    CHECK(heap && signals && sources);
    static const size_t sizes[] = {0, 1, 3, 100};
    for (int shift = 0; shift < shmem_n_pes(); shift++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            round_of(heap, signals, sources, sizes[i], shift);
            round_of(global, global_signals, sources, sizes[i], shift);
        }
    shmem_ctx_destroy(context);
    passed("table_put");
    shmem_finalize();
    return 0;
}
