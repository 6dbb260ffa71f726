/* Every collective that moves data, on all PEs and on a part of them: few and many elements, the heap and globals. */
#include "check.h"
#define ROWS "collective.inc"
#define ADAPTER(F, ...) static void run_##F(struct call *c) { CHECK_EQ(F(__VA_ARGS__), 0); }
#define BOTH(T) c->team, (T *)c->dest, (const T *)c->source
#define BROADCAST(F, T, ...) ADAPTER(F, BOTH(T), c->n, c->pe)
#define COLLECT(F, T, ...) ADAPTER(F, BOTH(T), c->n)
#define FCOLLECT COLLECT
#define ALLTOALL COLLECT
#define ALLTOALLS(F, T, ...) ADAPTER(F, BOTH(T), c->dst, c->sst, c->n)
enum { IS_BROADCAST, IS_COLLECT, IS_FCOLLECT, IS_ALLTOALL, IS_ALLTOALLS };
#include "rows.h"
#include "collective_check.h"

static _Alignas(64) unsigned char global[2][MOVE_SPACE];

static void one(size_t r, shmem_team_t team, const int *members, int count, size_t n, unsigned char *memory[2],
                int in_place) {
    const struct row *row = &rows[r];
    int me = shmem_team_my_pe(team), root = (int)((r + n) % (size_t)count);
    struct call c = {.team = team, .pe = root, .dst = 1, .sst = 1};
    c.n = row->shape == IS_COLLECT ? length_of(members[me], n) : n;
    if (row->shape == IS_ALLTOALLS)
        c.dst = 2, c.sst = 3;
    c.source = memory[0] + 64;
    c.dest = memory[in_place ? 0 : 1] + 64;
    size_t dest_len = prepare_moves(row, members[me], count, n, memory);
    unsigned char *want = malloc(dest_len + 128);
    memcpy(want, (unsigned char *)c.dest - 64, dest_len + 128);
    unsigned char *to = want + 64;
    switch (row->shape) {
    case IS_BROADCAST:
        for (size_t i = 0; i < n * row->size; i++)
            to[i] = pattern(seed_of(members[root]), i);
        break;
    case IS_COLLECT:
        for (int k = 0; k < count; k++)
            for (size_t i = 0; i < length_of(members[k], n) * row->size; i++)
                *to++ = pattern(seed_of(members[k]), i);
        break;
    case IS_FCOLLECT:
        for (int k = 0; k < count; k++)
            for (size_t i = 0; i < n * row->size; i++)
                *to++ = pattern(seed_of(members[k]), i);
        break;
    default:
        exchange(row->size, n, &c, members, me, count, to);
    }
    /* The PEs must have prepared their memory before one writes to it. */
    shmem_team_sync(team);
    row->run(&c);
    CHECK_BYTES(row->name, (unsigned char *)c.dest - 64, want, dest_len + 128);
    free(want);
    shmem_team_sync(team);
}

int main(void) {
    shmem_init();
    unsigned char *heap[2] = {shmem_malloc(MOVE_SPACE), shmem_malloc(MOVE_SPACE)}, *globals[2] = {global[0], global[1]};
    CHECK(heap[0] && heap[1]);
    int pes = shmem_n_pes(), all[PES], odd[PES];
    CHECK(pes <= PES);
    for (int i = 0; i < pes; i++)
        all[i] = i, odd[i] = 2 * i + 1;
    shmem_team_t odds = SHMEM_TEAM_INVALID;
    if (pes > 1)
        CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, pes / 2, NULL, 0, &odds), 0);
    for (size_t r = 0; r < N_ROWS; r++) {
        static const size_t sizes[] = {0, 1, 7, 600, MOST};
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            size_t n = sizes[i];
            if (n == MOST && !is_first_of_its_size(r))
                continue;
            if (n == MOST && rows[r].shape != IS_BROADCAST)
                n /= (size_t)pes;
            one(r, SHMEM_TEAM_WORLD, all, pes, n, i % 2 ? heap : globals, 0);
            if (rows[r].shape == IS_BROADCAST)
                one(r, SHMEM_TEAM_WORLD, all, pes, n, i % 2 ? globals : heap, 1);
            if (odds != SHMEM_TEAM_INVALID)
                one(r, odds, odd, pes / 2, n, i % 2 ? globals : heap, 0);
        }
    }
    passed("table_collective");
    shmem_finalize();
    return 0;
}
