/* MPI and OpenSHMEM in one program: all orders of their beginnings and ends, and communication through both in turn. */
#include "check.h"
#include <mpi.h>

static long word, sum;

int main(int argc, char **argv) {
    const char *order = argc > 1 ? argv[1] : "mm";
    int level;
    if (order[0] == 'm')
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    shmem_init();
    if (order[0] == 's')
        MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    int me = shmem_my_pe(), pes = shmem_n_pes(), rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    CHECK_EQ(rank, me);
    CHECK_EQ(size, pes);
    int next = (me + 1) % pes, before = (me + pes - 1) % pes;
    for (long r = 1; r <= 50; r++) {
        shmem_long_p(&word, r * 100 + me, next);
        long got = -1, mine = r * 1000 + me;
        MPI_Sendrecv(&mine, 1, MPI_LONG, before, 1, &got, 1, MPI_LONG, next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK_EQ(got, r * 1000 + next);
        shmem_long_wait_until(&word, SHMEM_CMP_GE, r * 100);
        CHECK_EQ(word, r * 100 + before);
        MPI_Allreduce(&mine, &got, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        sum = mine;
        CHECK_EQ(shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &sum, 1), 0);
        CHECK_EQ(sum, got);
        /* MPI sends what a put has brought. */
        shmem_barrier_all();
        MPI_Bcast(&word, 1, MPI_LONG, 0, MPI_COMM_WORLD);
        CHECK_EQ(word, r * 100 + pes - 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (order[1] == 'm')
        MPI_Finalize();
    shmem_barrier_all();
    shmem_long_p(&word, me, next);
    shmem_barrier_all();
    CHECK_EQ(word, before);
    if (order[1] == 'm') {
        passed("hybrid");
        shmem_finalize();
        return 0;
    }
    shmem_finalize();
    long mine = 1, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (all != pes)
        printf("FAIL: %ld of %d\n", all, pes);
    else if (rank == 0)
        printf("ok hybrid\n");
    MPI_Finalize();
    return 0;
}
