/* sync.c - what engine.h asks of a program, over OpenSHMEM. */
#include "sync.h"

#include <shmem.h>

static long agreed;
static double times[PES_MOST];

void together(void)
{
    shmem_barrier_all();
}

long agree(long value)
{
    if (me == 0)
        for (int pe = 0; pe < all; pe++)
            shmem_long_p(&agreed, value, pe);
    shmem_barrier_all();
    long result = *(volatile long *) &agreed;
    shmem_barrier_all();
    return result;
}

double slowest(double seconds)
{
    double most = 0;

    shmem_double_p(&times[me], seconds, 0);
    shmem_barrier_all();
    for (int pe = 0; pe < all; pe++) {
        double one = ((volatile double *) times)[pe];
        most = one > most ? one : most;
    }
    shmem_barrier_all();
    return most;
}

void begin(int argc, char **argv)
{
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    if (all > PES_MOST)
        shmem_global_exit(2);
    options(argc, argv);
}
