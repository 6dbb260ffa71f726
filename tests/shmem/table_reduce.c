/* Every reduction and scan on teams: few and many elements, in place and not, in the heap and in globals. */
#include "check.h"
#define ROWS "reduce.inc"
#include "reductions.h"
#define ON_TEAM(F, T, V, OP) \
    static void run_##F(struct call *c) { CHECK_EQ(F(c->team, (T *)c->dest, (const T *)c->source, c->n), 0); } \
    OPERATION(F, T, V, OP)
#define REDUCE_AND(F, T, ...) ON_TEAM(F, T, BITS, AND)
#define REDUCE_OR(F, T, ...) ON_TEAM(F, T, BITS, OR)
#define REDUCE_XOR(F, T, ...) ON_TEAM(F, T, BITS, XOR)
#define REDUCE_MAX(F, T, ...) ON_TEAM(F, T, ORDERED, MAX)
#define REDUCE_MIN(F, T, ...) ON_TEAM(F, T, ORDERED, MIN)
#define REDUCE_SUM(F, T, ...) ON_TEAM(F, T, SMALL, SUM)
#define REDUCE_PROD(F, T, ...) ON_TEAM(F, T, FACTOR, PROD)
#define INSCAN(F, T, ...) ON_TEAM(F, T, SMALL, SUM)
#define EXSCAN(F, T, ...) ON_TEAM(F, T, SMALL, SUM)
enum {
    IS_REDUCE_AND, IS_REDUCE_OR, IS_REDUCE_XOR, IS_REDUCE_MAX, IS_REDUCE_MIN, IS_REDUCE_SUM, IS_REDUCE_PROD, IS_INSCAN,
    IS_EXSCAN
};
#include "rows.h"
#include "reduction_check.h"

static _Alignas(64) unsigned char global[2][SPACE];

/* One call on a team of PEs whose numbers in the world are known. */
static void one(size_t r, shmem_team_t team, const int *members, int count, size_t n, unsigned char *memory[2]) {
    const struct row *row = &rows[r];
    int me = shmem_team_my_pe(team);
    unsigned char *source = memory[0] + 64, *dest = memory[1] + 64;
    for (int in_place = 0; in_place < 2; in_place++) {
        prepare(r, members[me], n, memory);
        /* The PEs must have prepared their memory before one writes to it. */
        shmem_team_sync(team);
        struct call c = {.team = team, .dest = in_place ? source : dest, .source = source, .n = n};
        row->run(&c);
        int first = 0, last = count;
        if (row->shape == IS_INSCAN)
            last = me + 1;
        if (row->shape == IS_EXSCAN)
            last = me;
        verify(r, members, first, last, n, memory, in_place);
        shmem_team_sync(team);
    }
}

int main(void) {
    shmem_init();
    unsigned char *heap[2] = {shmem_malloc(SPACE), shmem_malloc(SPACE)}, *globals[2] = {global[0], global[1]};
    CHECK(heap[0] && heap[1]);
    int pes = shmem_n_pes(), all[64], even[64];
    CHECK(pes <= 64);
    for (int i = 0; i < pes; i++)
        all[i] = i, even[i] = 2 * i;
    shmem_team_t evens;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (pes + 1) / 2, NULL, 0, &evens), 0);
    for (size_t r = 0; r < N_ROWS; r++) {
        static const size_t sizes[] = {0, 1, 7, 600};
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            one(r, SHMEM_TEAM_WORLD, all, pes, sizes[i], i % 2 ? heap : globals);
            if (evens != SHMEM_TEAM_INVALID)
                one(r, evens, even, (pes + 1) / 2, sizes[i], i % 2 ? globals : heap);
        }
        if (is_first_of_its_size(r))
            one(r, SHMEM_TEAM_WORLD, all, pes, MOST, heap);
    }
    passed("table_reduce");
    shmem_finalize();
    return 0;
}
