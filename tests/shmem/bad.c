/* Bad input: each case must end the job with a message that names the call, the argument and the PE. */
#include "check.h"
#include <unistd.h>

static long word;
static int words[4];

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "";
    long local = 0;
    shmem_team_t none = SHMEM_TEAM_INVALID;
    if (strcmp(what, "init") == 0) {
        shmem_long_p(&word, 1, 0);
        return 0;
    }
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    if (strcmp(what, "after") == 0) {
        shmem_finalize();
        shmem_barrier_all();
        return 0;
    }
    shmem_barrier_all();
    if (strcmp(what, "sizes") == 0)
        shmem_malloc(me == 0 ? 100 : 200);
    if (me != 0)
        for (;;)
            sleep(1);
    if (strcmp(what, "pe") == 0)
        shmem_long_p(&word, 1, pes);
    if (strcmp(what, "negative") == 0)
        local = shmem_long_atomic_fetch_inc(&word, -1);
    if (strcmp(what, "local") == 0)
        shmem_long_put(&local, &word, 1, pes - 1);
    if (strcmp(what, "end") == 0)
        shmem_getmem(&local, &word, (size_t)1 << 40, pes - 1);
    if (strcmp(what, "aligned") == 0)
        shmem_int_atomic_add((int *)((char *)words + 2), 1, pes - 1);
    if (strcmp(what, "cmp") == 0)
        shmem_long_wait_until(&word, 17, 0);
    if (strcmp(what, "free") == 0)
        shmem_free((char *)&local);
    if (strcmp(what, "team") == 0)
        shmem_team_sync((shmem_team_t)12345);
    if (strcmp(what, "invalid") == 0)
        shmem_long_sum_reduce(none, &word, &word, 1);
    if (strcmp(what, "context") == 0)
        shmem_ctx_long_p((shmem_ctx_t)999, &word, 1, 0);
    if (strcmp(what, "root") == 0)
        shmem_long_broadcast(SHMEM_TEAM_WORLD, &word, &word, 1, pes);
    if (strcmp(what, "signal") == 0)
        shmem_long_put_signal(&word, &local, 1, (uint64_t *)&local, 1, SHMEM_SIGNAL_SET, pes - 1);
    if (strcmp(what, "lock") == 0)
        shmem_clear_lock(&word);
    if (strcmp(what, "world") == 0)
        shmem_team_destroy(SHMEM_TEAM_WORLD);
    for (;;)
        sleep(1);
}
