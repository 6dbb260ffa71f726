/* Every deprecated collective on active sets: all PEs, the even ones, and all but the first. */
#include "check.h"
#define ROWS "active.inc"
#include "reductions.h"
#define ADAPTER(F, T, ...) \
    static void run_##F(struct call *c) { F((T *)c->dest, (const T *)c->source, __VA_ARGS__); }
#define SET c->start, c->log_stride, c->size, c->sync
#define MOVE(F, T, ...) ADAPTER(F, T, __VA_ARGS__) OPERATION(F, T, BITS, OR)
#define ACTIVE_BROADCAST(F, T, ...) MOVE(F, T, c->n, c->pe, SET)
#define ACTIVE_COLLECT(F, T, ...) MOVE(F, T, c->n, SET)
#define ACTIVE_FCOLLECT ACTIVE_COLLECT
#define ACTIVE_ALLTOALL ACTIVE_COLLECT
#define ACTIVE_ALLTOALLS(F, T, ...) MOVE(F, T, c->dst, c->sst, c->n, SET)
#define TO_ALL(F, T, V, OP) \
    ADAPTER(F, T, (int)c->n, c->start, c->log_stride, c->size, (T *)c->work, c->sync) OPERATION(F, T, V, OP)
#define ACTIVE_AND(F, T, ...) TO_ALL(F, T, BITS, AND)
#define ACTIVE_OR(F, T, ...) TO_ALL(F, T, BITS, OR)
#define ACTIVE_XOR(F, T, ...) TO_ALL(F, T, BITS, XOR)
#define ACTIVE_MAX(F, T, ...) TO_ALL(F, T, ORDERED, MAX)
#define ACTIVE_MIN(F, T, ...) TO_ALL(F, T, ORDERED, MIN)
#define ACTIVE_SUM(F, T, ...) TO_ALL(F, T, SMALL, SUM)
#define ACTIVE_PROD(F, T, ...) TO_ALL(F, T, FACTOR, PROD)
enum {
    IS_ACTIVE_BROADCAST, IS_ACTIVE_COLLECT, IS_ACTIVE_FCOLLECT, IS_ACTIVE_ALLTOALL, IS_ACTIVE_ALLTOALLS,
    MOVES,
    IS_ACTIVE_AND, IS_ACTIVE_OR, IS_ACTIVE_XOR, IS_ACTIVE_MAX, IS_ACTIVE_MIN, IS_ACTIVE_SUM, IS_ACTIVE_PROD
};
#include "rows.h"
#include "collective_check.h"
#include "reduction_check.h"

#define ROOM ((600 + 2) * 16 * PES * 3 + 128)
static _Alignas(64) unsigned char global[2][ROOM];
static long syncs[2][SHMEM_COLLECT_SYNC_SIZE];
static _Alignas(16) unsigned char work[600 * 16 + SHMEM_REDUCE_MIN_WRKDATA_SIZE * 16];

static void move(const struct row *row, struct call *c, const int *members, int me, size_t n,
                 unsigned char *memory[2]) {
    c->n = row->shape == IS_ACTIVE_COLLECT ? length_of(members[me], n) : n;
    if (row->shape == IS_ACTIVE_ALLTOALLS)
        c->dst = 2, c->sst = 3;
    size_t len = prepare_moves(row, members[me], c->size, n, memory);
    unsigned char *want = malloc(len + 128), *to = want + 64;
    memcpy(want, memory[1], len + 128);
    if (row->shape == IS_ACTIVE_BROADCAST) {
        /* The root's own destination stays as it is. */
        for (size_t i = 0; i < n * row->size && me != c->pe; i++)
            to[i] = pattern(seed_of(members[c->pe]), i);
    } else if (row->shape == IS_ACTIVE_COLLECT || row->shape == IS_ACTIVE_FCOLLECT) {
        for (int k = 0; k < c->size; k++) {
            size_t count = row->shape == IS_ACTIVE_COLLECT ? length_of(members[k], n) : n;
            for (size_t i = 0; i < count * row->size; i++)
                *to++ = pattern(seed_of(members[k]), i);
        }
    } else {
        exchange(row->size, n, c, members, me, c->size, to);
    }
    shmem_sync(c->start, c->log_stride, c->size, syncs[0]);
    row->run(c);
    CHECK_BYTES(row->name, memory[1], want, len + 128);
    free(want);
}

static void one(size_t r, int start, int log_stride, int size, size_t n, unsigned char *memory[2]) {
    const struct row *row = &rows[r];
    int members[PES], me = -1;
    for (int k = 0; k < size; k++) {
        members[k] = start + (k << log_stride);
        if (members[k] == shmem_my_pe())
            me = k;
    }
    if (me < 0)
        return;
    struct call c = {.start = start, .log_stride = log_stride, .size = size, .sync = syncs[1], .work = work, .n = n};
    c.source = memory[0] + 64;
    c.dest = memory[1] + 64;
    c.dst = c.sst = 1;
    c.pe = (int)((r + n) % (size_t)size);
    if (row->shape < MOVES) {
        move(row, &c, members, me, n, memory);
    } else {
        prepare(r, members[me], n, memory);
        shmem_sync(start, log_stride, size, syncs[0]);
        row->run(&c);
        verify(r, members, 0, size, n, memory, 0);
    }
    shmem_barrier(start, log_stride, size, syncs[0]);
}

int main(void) {
    shmem_init();
    unsigned char *heap[2] = {shmem_malloc(ROOM), shmem_malloc(ROOM)}, *globals[2] = {global[0], global[1]};
    CHECK(heap[0] && heap[1]);
    int pes = shmem_n_pes();
    CHECK(pes <= PES);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < SHMEM_COLLECT_SYNC_SIZE; i++)
            syncs[k][i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    static const size_t sizes[] = {1, 7, 600};
    for (size_t r = 0; r < N_ROWS; r++)
        for (size_t i = 0; i < 3; i++) {
            one(r, 0, 0, pes, sizes[i], i % 2 ? heap : globals);
            one(r, 0, 1, (pes + 1) / 2, sizes[i], i % 2 ? globals : heap);
            if (pes > 1)
                one(r, 1, 0, pes - 1, sizes[i], i % 2 ? heap : globals);
        }
    passed("table_active");
    shmem_finalize();
    return 0;
}
