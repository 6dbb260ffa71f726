/* A queue of work: PEs take items by fetch_inc, mark them by compare_swap, and count results by all kinds of atomics. */
#include "check.h"

#define ITEMS 2000
static long next_item;
static int owners[ITEMS];
static unsigned long bits, sum;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    unsigned long mine = 0;
    for (;;) {
        long item = shmem_long_atomic_fetch_inc(&next_item, 0);
        if (item >= ITEMS)
            break;
        int owner = shmem_int_atomic_compare_swap(&owners[item], 0, me + 1, (int)(item % pes));
        CHECK_EQ(owner, 0);
        shmem_ulong_atomic_add(&sum, (unsigned long)item, pes - 1);
        mine += (unsigned long)item;
    }
    shmem_ulong_atomic_xor(&bits, 1ul << me, pes - 1);
    static unsigned long total;
    total = mine;
    CHECK_EQ(shmem_ulong_sum_reduce(SHMEM_TEAM_WORLD, &total, &total, 1), 0);
    CHECK_EQ(total, (unsigned long)ITEMS * (ITEMS - 1) / 2);
    shmem_barrier_all();
    CHECK_EQ(shmem_ulong_g(&sum, pes - 1), (unsigned long)ITEMS * (ITEMS - 1) / 2);
    CHECK_EQ(shmem_ulong_g(&bits, pes - 1), (1ul << pes) - 1);
    CHECK_EQ(shmem_long_g(&next_item, 0), ITEMS + pes);
    for (long item = 0; item < ITEMS; item += 97) {
        int owner = shmem_int_g(&owners[item], (int)(item % pes));
        CHECK(owner >= 1 && owner <= pes);
    }
    passed("queue");
    shmem_finalize();
    return 0;
}
