/* Every function that waits for or tests memory: all comparisons at the limits of its type, then values of other PEs. */
#include "check.h"
#define ROWS "wait.inc"
#define LOAD(T) ({ T v_; memcpy(&v_, &c->value, sizeof v_); v_; })
#define ADAPTER(F, BODY) static void run_##F(struct call *c) { BODY; }
#define IVARS(T) (T *)c->dest
#define MANY(T) IVARS(T), c->n, c->status, c->op, LOAD(T)
#define EACH(T) IVARS(T), c->n, c->status, c->op, (const T *)c->source
#define SOME(T) IVARS(T), c->n, c->indices, c->status, c->op, LOAD(T)
#define SOME_EACH(T) IVARS(T), c->n, c->indices, c->status, c->op, (const T *)c->source
#define WAIT(F, T, ...) ADAPTER(F, F(IVARS(T), LOAD(T)))
#define WAIT_UNTIL(F, T, ...) ADAPTER(F, F(IVARS(T), c->op, LOAD(T)))
#define WAIT_UNTIL_ALL(F, T, ...) ADAPTER(F, F(MANY(T)))
#define WAIT_UNTIL_ANY(F, T, ...) ADAPTER(F, c->result = F(MANY(T)))
#define WAIT_UNTIL_SOME(F, T, ...) ADAPTER(F, c->result = F(SOME(T)))
#define WAIT_UNTIL_ALL_VECTOR(F, T, ...) ADAPTER(F, F(EACH(T)))
#define WAIT_UNTIL_ANY_VECTOR(F, T, ...) ADAPTER(F, c->result = F(EACH(T)))
#define WAIT_UNTIL_SOME_VECTOR(F, T, ...) ADAPTER(F, c->result = F(SOME_EACH(T)))
#define TEST(F, T, ...) ADAPTER(F, c->result = (uint64_t)F(IVARS(T), c->op, LOAD(T)))
#define TEST_ALL(F, T, ...) ADAPTER(F, c->result = (uint64_t)F(MANY(T)))
#define TEST_ANY WAIT_UNTIL_ANY
#define TEST_SOME WAIT_UNTIL_SOME
#define TEST_ALL_VECTOR(F, T, ...) ADAPTER(F, c->result = (uint64_t)F(EACH(T)))
#define TEST_ANY_VECTOR WAIT_UNTIL_ANY_VECTOR
#define TEST_SOME_VECTOR WAIT_UNTIL_SOME_VECTOR
enum {
    IS_WAIT, IS_WAIT_UNTIL, IS_WAIT_UNTIL_ALL, IS_WAIT_UNTIL_ALL_VECTOR, IS_WAIT_UNTIL_ANY, IS_WAIT_UNTIL_ANY_VECTOR,
    IS_WAIT_UNTIL_SOME, IS_WAIT_UNTIL_SOME_VECTOR,
    TESTS,
    IS_TEST, IS_TEST_ALL, IS_TEST_ALL_VECTOR, IS_TEST_ANY, IS_TEST_ANY_VECTOR, IS_TEST_SOME, IS_TEST_SOME_VECTOR
};
#include "rows.h"

#define N 5
static _Alignas(64) unsigned char global[N_ROWS * N * 8];
static const uint64_t limits[] = {0, 1, 0x7fff7fff7fff7fff, 0x8000800080008000, ~0ull};
#define N_LIMITS (sizeof limits / sizeof limits[0])
static const int comparisons[] = {SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE};

static int is_all(int shape) {
    return shape == IS_WAIT_UNTIL_ALL || shape == IS_WAIT_UNTIL_ALL_VECTOR || shape == IS_TEST_ALL ||
           shape == IS_TEST_ALL_VECTOR;
}

static int is_any(int shape) {
    return shape == IS_WAIT_UNTIL_ANY || shape == IS_WAIT_UNTIL_ANY_VECTOR || shape == IS_TEST_ANY ||
           shape == IS_TEST_ANY_VECTOR;
}

static int is_one(int shape) {
    return shape == IS_WAIT || shape == IS_WAIT_UNTIL || shape == IS_TEST;
}

static int holds(const struct row *row, int cmp, uint64_t x, uint64_t y) {
    int shift = 64 - 8 * (int)row->size;
    uint64_t a = x << shift, b = y << shift;
    int less = row->is_signed ? (int64_t)a < (int64_t)b : a < b;
    switch (cmp) {
    case SHMEM_CMP_EQ: return a == b;
    case SHMEM_CMP_NE: return a != b;
    case SHMEM_CMP_GT: return !less && a != b;
    case SHMEM_CMP_GE: return !less;
    case SHMEM_CMP_LT: return less;
    default: return less || a == b;
    }
}

/* Calls the function with these values and checks the result; a waiting one only if there is no need to wait. */
static void try(const struct row *row, unsigned char *ivars, const uint64_t *values, size_t n, const int *status,
                int cmp, uint64_t operand) {
    size_t satisfied = 0, considered = 0, indices[N] = {99, 99, 99, 99, 99};
    unsigned char each[N * 8];
    for (size_t i = 0; i < n; i++) {
        memcpy(ivars + i * row->size, &values[i], row->size);
        memcpy(each + i * row->size, &operand, row->size);
        considered += !(status && status[i]);
        satisfied += !(status && status[i]) && holds(row, cmp, values[i], operand);
    }
    struct call c = {.dest = ivars, .source = each, .n = n, .status = status, .op = cmp, .value = operand,
                     .indices = indices};
    if (row->shape == IS_WAIT) {
        /* The old function waits for anything but the value. */
        cmp = SHMEM_CMP_NE;
        satisfied = holds(row, cmp, values[0], operand);
    }
    int complete = is_all(row->shape) ? satisfied == considered : satisfied > 0 || considered == 0;
    if (row->shape < TESTS && !complete)
        return;
    row->run(&c);
    if (is_one(row->shape) || is_all(row->shape)) {
        if (row->shape > TESTS && (c.result != 0) != complete)
            FAIL("%s, cmp %d, operand %#llx: %lld", row->name, cmp, (unsigned long long)operand, (long long)c.result);
    } else if (is_any(row->shape)) {
        int right = satisfied == 0 ? c.result == SIZE_MAX
                                   : c.result < n && !(status && status[c.result]) &&
                                         holds(row, cmp, values[c.result], operand);
        if (!right)
            FAIL("%s, cmp %d: index %zu of %zu, where %zu hold", row->name, cmp, (size_t)c.result, n, satisfied);
    } else {
        if (c.result != satisfied)
            FAIL("%s, cmp %d: %zu elements, where %zu hold", row->name, cmp, (size_t)c.result, satisfied);
        unsigned seen = 0;
        for (size_t k = 0; k < satisfied; k++) {
            size_t i = indices[k];
            if (i >= n || (seen >> i & 1) || (status && status[i]) || !holds(row, cmp, values[i], operand))
                FAIL("%s, cmp %d: index %zu at %zu", row->name, cmp, i, k);
            seen |= 1u << i;
        }
    }
}

static void alone(const struct row *row, unsigned char *ivars) {
    static const int without[] = {1, 0, 0, 7, 0}, none[] = {1, 1, 1, 1, 1}, every[N] = {0};
    for (size_t k = 0; k < 6; k++)
        for (size_t i = 0; i < N_LIMITS; i++) {
            int cmp = comparisons[k];
            for (size_t j = 0; j < N_LIMITS; j++)
                try(row, ivars, &limits[j], 1, NULL, cmp, limits[i]);
            if (is_one(row->shape))
                continue;
            try(row, ivars, limits, N, NULL, cmp, limits[i]);
            try(row, ivars, limits, N, every, cmp, limits[i]);
            try(row, ivars, limits, N, without, cmp, limits[i]);
            try(row, ivars, limits, N, none, cmp, limits[i]);
            try(row, ivars, limits, 0, NULL, cmp, limits[i]);
        }
}

/* Waits with each function for what another PE writes; element 1 is excluded and never written. */
static void together(unsigned char *memory, int shift) {
    static const int status[] = {0, 1, 0, 0, 0};
    int target = (shmem_my_pe() + shift) % shmem_n_pes();
    memset(memory, 0, N_ROWS * N * 8);
    shmem_barrier_all();
    for (size_t r = 0; r < N_ROWS; r++) {
        const struct row *row = &rows[r];
        unsigned char *ivars = memory + r * N * 8;
        size_t n = is_one(row->shape) ? 1 : N, indices[N];
        static const uint64_t value = 42;
        uint64_t each[N];
        for (size_t i = 0; i < N; i++)
            memcpy((unsigned char *)each + i * row->size, &value, row->size);
        for (size_t i = 0; i < n; i++) {
            void *to = ivars + i * row->size;
            if (i == 1)
                continue;
            if (row->size == 2)
                shmem_put16(to, &value, 1, target);
            else if (row->size == 4)
                shmem_uint32_atomic_set(to, 42, target);
            else
                shmem_uint64_p(to, 42, target);
        }
        struct call c = {.dest = ivars, .source = each, .n = n, .status = status, .op = SHMEM_CMP_EQ, .value = 42,
                         .indices = indices};
        c.op = SHMEM_CMP_EQ;
        if (row->shape == IS_WAIT)
            c.value = 0;
        do
            row->run(&c);
        while (row->shape > TESTS && (is_any(row->shape) ? c.result == SIZE_MAX : c.result == 0));
        uint64_t got = 0;
        size_t seen = is_one(row->shape) || is_all(row->shape) ? 0 : is_any(row->shape) ? c.result : indices[0];
        CHECK(seen < n && seen != 1);
        memcpy(&got, ivars + seen * row->size, row->size);
        CHECK_EQ(got, 42);
    }
    shmem_barrier_all();
}

int main(void) {
    shmem_init();
    unsigned char *heap = shmem_malloc(N_ROWS * N * 8);
    CHECK(heap);
    for (size_t r = 0; r < N_ROWS; r++) {
        alone(&rows[r], heap);
        alone(&rows[r], global);
    }
    for (int shift = 0; shift < shmem_n_pes(); shift++) {
        together(heap, shift);
        together(global, shift);
    }
    passed("table_wait");
    shmem_finalize();
    return 0;
}
