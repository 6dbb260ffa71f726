/*
 * Each PE puts a message into the next PE's memory and signals it; then all PEs add up what they
 * have received. Compile with oshcc, run with oshrun.
 */
#include <shmem.h>
#include <stdio.h>

#define WORDS 1000

/* Global objects are symmetric: each PE has them, and others can access them. */
static long inbox[WORDS];
static uint64_t arrived;
static long received, total;

int main(void)
{
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes(), next = (me + 1) % n, before = (me + n - 1) % n;

    long message[WORDS];
    for (int i = 0; i < WORDS; i++)
        message[i] = me * WORDS + i;
    shmem_long_put_signal(inbox, message, WORDS, &arrived, 1, SHMEM_SIGNAL_SET, next);

    shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, 1);
    int wrong = 0;
    for (int i = 0; i < WORDS; i++)
        wrong += inbox[i] != before * WORDS + i;
    printf("PE %d of %d: %d words from PE %d, %d of them wrong\n", me, n, WORDS, before, wrong);

    received = WORDS - wrong;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &total, &received, 1);
    if (me == 0)
        printf("all PEs together received %ld words\n", total);
    shmem_finalize();
    return wrong != 0;
}
