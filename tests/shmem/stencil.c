/* Heat in a rod: borders go to neighbours by put_signal; the result is that of one process. */
#include "check.h"

#define CELLS 64
#define STEPS 300
static double rod[2][CELLS + 2];
static uint64_t from_left, from_right;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    int n = CELLS * pes;
    double *alone[2] = {calloc((size_t)n + 2, sizeof(double)), calloc((size_t)n + 2, sizeof(double))};
    for (int i = 0; i < n; i++)
        alone[0][i + 1] = (i * 37) % 101;
    memcpy(rod[0], alone[0] + me * CELLS, sizeof rod[0]);
    shmem_barrier_all();
    for (int step = 0; step < STEPS; step++) {
        double *old = rod[step % 2], *new = rod[(step + 1) % 2];
        double *all = alone[step % 2], *later = alone[(step + 1) % 2];
        for (int i = 1; i <= n; i++)
            later[i] = 0.25 * all[i - 1] + 0.5 * all[i] + 0.25 * all[i + 1];
        for (int i = 1; i <= CELLS; i++)
            new[i] = 0.25 * old[i - 1] + 0.5 * old[i] + 0.25 * old[i + 1];
        uint64_t now = (uint64_t)step + 1;
        if (me > 0)
            shmem_double_put_signal_nbi(&new[CELLS + 1], &new[1], 1, &from_right, 1, SHMEM_SIGNAL_ADD, me - 1);
        if (me < pes - 1)
            shmem_double_put_signal(&new[0], &new[CELLS], 1, &from_left, now, SHMEM_SIGNAL_SET, me + 1);
        if (me > 0)
            shmem_signal_wait_until(&from_left, SHMEM_CMP_GE, now);
        if (me < pes - 1)
            CHECK(shmem_signal_wait_until(&from_right, SHMEM_CMP_GE, now) >= now);
    }
    for (int i = 1; i <= CELLS; i++)
        if (rod[STEPS % 2][i] != alone[STEPS % 2][me * CELLS + i])
            FAIL("cell %d is %g, not %g", i, rod[STEPS % 2][i], alone[STEPS % 2][me * CELLS + i]);
    /* Signals without data, and the functions that read and change them. */
    shmem_barrier_all();
    from_left = from_right = 0;
    shmem_barrier_all();
    int next = (me + 1) % pes;
    shmem_signal_set(&from_left, 7, next);
    shmem_ctx_signal_set(SHMEM_CTX_DEFAULT, &from_right, 40, next);
    shmem_fence();
    shmem_signal_add(&from_right, 1, next);
    shmem_ctx_signal_add(SHMEM_CTX_DEFAULT, &from_right, 1, next);
    CHECK_EQ(shmem_signal_wait_until(&from_left, SHMEM_CMP_NE, 0), 7);
    CHECK_EQ(shmem_signal_wait_until(&from_right, SHMEM_CMP_GT, 41), 42);
    CHECK_EQ(shmem_signal_fetch(&from_right), 42);
    shmem_barrier_all();
    shmem_putmem_signal(NULL, NULL, 0, &from_left, 3, SHMEM_SIGNAL_ADD, next);
    CHECK_EQ(shmem_signal_wait_until(&from_left, SHMEM_CMP_NE, 7), 10);
    passed("stencil");
    shmem_finalize();
    return 0;
}
