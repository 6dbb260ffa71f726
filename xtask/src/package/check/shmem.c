// A program of a user: each PE adds its number to a variable of PE 0.

#include <shmem.h>
#include <stdio.h>

static int sum;

int main(void)
{
    shmem_init();
    shmem_int_atomic_add(&sum, shmem_my_pe(), 0);
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        printf("sum %d of %d PEs\n", sum, shmem_n_pes());
    shmem_finalize();
    return 0;
}
