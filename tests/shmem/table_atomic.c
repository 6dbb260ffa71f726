/* Every atomic function, with values at the limits of its type, from every PE to every PE; neighbouring bytes stay. */
#include "check.h"
#define ROWS "atomic.inc"
/* Values travel in 64 bits, of which a function uses as many as its type has. */
#define LOAD(T, from) ({ T v_; memcpy(&v_, &(from), sizeof v_); v_; })
#define STORE(to, from) ({ __typeof__(from) v_ = (from); memcpy(&(to), &v_, sizeof v_); })
#define ADAPTER(F, BODY) static void run_##F(struct call *c) { BODY; }
#define VALUE(T) LOAD(T, c->value)
#define COND(T) LOAD(T, c->compare)
#define DEST(T) (T *)c->dest
#define LATER(T) (T *)c->work
#define ATOMIC_FETCH(F, T, ...) ADAPTER(F, STORE(c->result, F(__VA_ARGS__ DEST(T), c->pe)))
#define ATOMIC_SET(F, T, ...) ADAPTER(F, F(__VA_ARGS__ DEST(T), VALUE(T), c->pe))
#define ATOMIC_SWAP(F, T, ...) ADAPTER(F, STORE(c->result, F(__VA_ARGS__ DEST(T), VALUE(T), c->pe)))
#define ATOMIC_COMPARE_SWAP(F, T, ...) ADAPTER(F, STORE(c->result, F(__VA_ARGS__ DEST(T), COND(T), VALUE(T), c->pe)))
#define ATOMIC_FETCH_INC ATOMIC_FETCH
#define ATOMIC_INC(F, T, ...) ADAPTER(F, F(__VA_ARGS__ DEST(T), c->pe))
#define ATOMIC_FETCH_ADD ATOMIC_SWAP
#define ATOMIC_ADD ATOMIC_SET
#define ATOMIC_FETCH_AND ATOMIC_SWAP
#define ATOMIC_AND ATOMIC_SET
#define ATOMIC_FETCH_OR ATOMIC_SWAP
#define ATOMIC_OR ATOMIC_SET
#define ATOMIC_FETCH_XOR ATOMIC_SWAP
#define ATOMIC_XOR ATOMIC_SET
#define ATOMIC_FETCH_NBI(F, T, ...) ADAPTER(F, F(__VA_ARGS__ LATER(T), DEST(T), c->pe))
#define ATOMIC_SWAP_NBI(F, T, ...) ADAPTER(F, F(__VA_ARGS__ LATER(T), DEST(T), VALUE(T), c->pe))
#define ATOMIC_COMPARE_SWAP_NBI(F, T, ...) ADAPTER(F, F(__VA_ARGS__ LATER(T), DEST(T), COND(T), VALUE(T), c->pe))
#define ATOMIC_FETCH_INC_NBI ATOMIC_FETCH_NBI
#define ATOMIC_FETCH_ADD_NBI ATOMIC_SWAP_NBI
#define ATOMIC_FETCH_AND_NBI ATOMIC_SWAP_NBI
#define ATOMIC_FETCH_OR_NBI ATOMIC_SWAP_NBI
#define ATOMIC_FETCH_XOR_NBI ATOMIC_SWAP_NBI
enum {
    IS_ATOMIC_SET, IS_ATOMIC_INC, IS_ATOMIC_ADD, IS_ATOMIC_AND, IS_ATOMIC_OR, IS_ATOMIC_XOR,
    FETCHING,
    IS_ATOMIC_FETCH, IS_ATOMIC_SWAP, IS_ATOMIC_COMPARE_SWAP, IS_ATOMIC_FETCH_INC, IS_ATOMIC_FETCH_ADD,
    IS_ATOMIC_FETCH_AND, IS_ATOMIC_FETCH_OR, IS_ATOMIC_FETCH_XOR,
    LATER_SHAPES,
    IS_ATOMIC_FETCH_NBI, IS_ATOMIC_SWAP_NBI, IS_ATOMIC_COMPARE_SWAP_NBI, IS_ATOMIC_FETCH_INC_NBI,
    IS_ATOMIC_FETCH_ADD_NBI, IS_ATOMIC_FETCH_AND_NBI, IS_ATOMIC_FETCH_OR_NBI, IS_ATOMIC_FETCH_XOR_NBI
};
#include "rows.h"

/* Initial value, operand, and value to compare with. */
static const uint64_t cases[][3] = {
    {0, 1, 0},
    {5, 3, 5},
    {5, 3, 6},
    {~0ull, 1, ~0ull},
    {0x7fffffff7fffffff, 1, 0},
    {0x8000000080000000, ~0ull, 0x8000000080000000},
    {0x0123456789abcdef, 0xf0f0f0f00ff00ff0, 0x0123456789abcdef},
    {0x0123456789abcdef, 0xf0f0f0f0fff00ff0, 0x1123456799abcdef},
    {~0ull, ~0ull, ~0ull},
};
#define N_CASES (sizeof cases / sizeof cases[0])

/* A word with bytes on both sides that nobody may touch. Words of 32 bits are either half of an aligned 64-bit word. */
struct slot {
    unsigned char bytes[24];
};
#define WORDS (N_ROWS * N_CASES)
static _Alignas(64) struct slot global[WORDS];

static size_t place(size_t k) {
    return rows[k / N_CASES].size == 4 && k % N_CASES % 2 == 0 ? 12 : 8;
}

static uint64_t mask(const struct row *row, uint64_t value) {
    return row->size == 4 ? value & 0xffffffff : value;
}

/* What the word has after the function. */
static uint64_t after(const struct row *row, const uint64_t *values) {
    uint64_t old = values[0], v = values[1];
    switch (row->shape) {
    case IS_ATOMIC_SET: case IS_ATOMIC_SWAP: case IS_ATOMIC_SWAP_NBI:
        return mask(row, v);
    case IS_ATOMIC_COMPARE_SWAP: case IS_ATOMIC_COMPARE_SWAP_NBI:
        return mask(row, old) == mask(row, values[2]) ? mask(row, v) : mask(row, old);
    case IS_ATOMIC_INC: case IS_ATOMIC_FETCH_INC: case IS_ATOMIC_FETCH_INC_NBI:
        return mask(row, old + 1);
    case IS_ATOMIC_ADD: case IS_ATOMIC_FETCH_ADD: case IS_ATOMIC_FETCH_ADD_NBI:
        return mask(row, old + v);
    case IS_ATOMIC_AND: case IS_ATOMIC_FETCH_AND: case IS_ATOMIC_FETCH_AND_NBI:
        return mask(row, old & v);
    case IS_ATOMIC_OR: case IS_ATOMIC_FETCH_OR: case IS_ATOMIC_FETCH_OR_NBI:
        return mask(row, old | v);
    case IS_ATOMIC_XOR: case IS_ATOMIC_FETCH_XOR: case IS_ATOMIC_FETCH_XOR_NBI:
        return mask(row, old ^ v);
    default:
        return mask(row, old);
    }
}

static void round_of(struct slot *memory, int shift) {
    int target = (shmem_my_pe() + shift) % shmem_n_pes();
    static uint64_t results[WORDS];
    for (size_t k = 0; k < WORDS; k++) {
        memset(&memory[k], 0xa5, sizeof memory[k]);
        memcpy(memory[k].bytes + place(k), cases[k % N_CASES], rows[k / N_CASES].size);
    }
    memset(results, 0, sizeof results);
    shmem_barrier_all();
    for (size_t k = 0; k < WORDS; k++) {
        const struct row *row = &rows[k / N_CASES];
        const uint64_t *values = cases[k % N_CASES];
        struct call c = {.value = values[1], .compare = values[2], .work = &results[k], .pe = target};
        c.dest = memory[k].bytes + place(k);
        row->run(&c);
        if (row->shape < LATER_SHAPES)
            results[k] = c.result;
        if (row->shape > FETCHING && row->shape < LATER_SHAPES && results[k] != mask(row, values[0]))
            FAIL("%s, case %zu: %#llx was fetched from PE %d, not %#llx", row->name, k % N_CASES,
                 (unsigned long long)results[k], target, (unsigned long long)mask(row, values[0]));
    }
    shmem_quiet();
    shmem_ctx_quiet(context);
    for (size_t k = 0; k < WORDS; k++)
        if (rows[k / N_CASES].shape > LATER_SHAPES)
            CHECK_BYTES(rows[k / N_CASES].name, &results[k], cases[k % N_CASES], rows[k / N_CASES].size);
    shmem_barrier_all();
    for (size_t k = 0; k < WORDS; k++) {
        const struct row *row = &rows[k / N_CASES];
        struct slot want;
        memset(&want, 0xa5, sizeof want);
        uint64_t value = after(row, cases[k % N_CASES]);
        memcpy(want.bytes + place(k), &value, row->size);
        CHECK_BYTES(row->name, &memory[k], &want, sizeof want);
    }
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    CHECK_EQ(shmem_ctx_create(0, &context), 0);
    struct slot *heap = shmem_malloc(sizeof(struct slot) * WORDS);
    CHECK(heap);
    for (int shift = 0; shift < shmem_n_pes(); shift++) {
        round_of(heap, shift);
        round_of(global, shift);
    }
    shmem_ctx_destroy(context);
    passed("table_atomic");
    shmem_finalize();
    return 0;
}
