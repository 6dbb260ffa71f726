/* Globals of all kinds are symmetric: initialised, zero, static in functions, very large; constants are not. */
#include "check.h"

#ifndef NAME
#define NAME "globals"
#endif

int initialised = 11;
long zero;
static short small[3] = {1, 2, 3};
static _Alignas(4096) char page[4096];
static char large[HUGE];
static char *pointer = page;
static FILE **stream = &stdout;
static const int constant = 5;
struct pair {
    char letter;
    double number;
} pair = {'x', 2.5};

static int *inner(void) {
    static int counter = 8;
    return &counter;
}

int main(void) {
    *inner() += 1;
    zero = -3;
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), next = (me + 1) % pes, before = (me + pes - 1) % pes;
    /* What was written before is still there. */
    CHECK_EQ(*inner(), 9);
    CHECK_EQ(zero, -3);
    CHECK(initialised == 11 && small[2] == 3 && pointer == page && pair.letter == 'x' && stream == &stdout);
    CHECK_EQ(shmem_addr_accessible(&constant, next), 0);
    shmem_barrier_all();
    shmem_int_p(&initialised, 100 + me, next);
    shmem_long_atomic_add(&zero, me, next);
    shmem_short_p(&small[1], (short)(me + 1), next);
    shmem_int_atomic_inc(inner(), next);
    shmem_double_p(&pair.number, me + 0.5, next);
    shmem_char_p(&page[4095], (char)me, next);
    shmem_char_p(&large[HUGE - 1], (char)(me + 1), next);
    shmem_char_p(&large[HUGE / 2], (char)(me + 2), next);
    shmem_barrier_all();
    CHECK_EQ(initialised, 100 + before);
    CHECK_EQ(zero, before - 3);
    CHECK(small[0] == 1 && small[1] == before + 1 && small[2] == 3);
    CHECK_EQ(*inner(), 10);
    CHECK(pair.number == before + 0.5);
    CHECK_EQ(page[4095], before);
    CHECK_EQ(pointer[4095], before);
    CHECK_EQ(large[HUGE - 1], before + 1);
    CHECK_EQ(shmem_char_g(&large[HUGE / 2], next), me + 2);
    passed(NAME);
    shmem_finalize();
    return 0;
}
