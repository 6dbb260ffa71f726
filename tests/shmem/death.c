/* A PE is killed while the others wait for it in some way: the job must end. */
#include "check.h"
#include <signal.h>
#include <unistd.h>

static long word, lock;
static uint64_t sig;

int main(int argc, char **argv) {
    shmem_init();
    const char *how = argc > 1 ? argv[1] : "barrier";
    int me = shmem_my_pe(), pes = shmem_n_pes(), victim = pes - 1;
    long *heap = shmem_calloc(1 << 17, sizeof(long));
    if (strcmp(how, "lock") == 0 && me == victim)
        shmem_set_lock(&lock);
    shmem_barrier_all();
    if (me == victim) {
        usleep(300000);
        kill(getpid(), SIGKILL);
    }
    if (strcmp(how, "barrier") == 0)
        shmem_barrier_all();
    else if (strcmp(how, "wait") == 0)
        shmem_long_wait_until(&word, SHMEM_CMP_NE, 0);
    else if (strcmp(how, "signal") == 0)
        shmem_signal_wait_until(&sig, SHMEM_CMP_NE, 0);
    else if (strcmp(how, "lock") == 0)
        shmem_set_lock(&lock);
    else if (strcmp(how, "team") == 0)
        shmem_team_sync(SHMEM_TEAM_WORLD);
    else if (strcmp(how, "sleep") == 0)
        sleep(60);
    else
        for (;;) {
            shmem_long_put(heap, heap, 1 << 17, victim);
            shmem_long_atomic_fetch_inc(heap, victim);
        }
    printf("FAIL: PE %d goes on\n", me);
    return 0;
}
