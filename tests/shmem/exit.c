/* The end of a job: by global_exit of one PE while others wait, by a plain return, by exit, by an exit handler. */
#include "check.h"
#include <unistd.h>

static long word;

static void late(void) {
    printf("late\n");
}

int main(int argc, char **argv) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes();
    const char *how = argc > 1 ? argv[1] : "return";
    shmem_long_atomic_inc(&word, (me + 1) % pes);
    if (strcmp(how, "return") == 0) {
        /* Without shmem_finalize. */
        passed("exit");
        return 0;
    }
    if (strcmp(how, "handler") == 0) {
        CHECK_EQ(atexit(late), 0);
        passed("exit");
        exit(0);
    }
    int status = atoi(how);
    if (me == pes - 1) {
        printf("ok exit");
        printf("\n");
        /* The text is in a buffer, which global_exit writes out. */
        shmem_global_exit(status);
    }
    if (me == 0)
        shmem_long_wait_until(&word, SHMEM_CMP_EQ, -1);
    shmem_barrier_all();
    for (;;)
        sleep(1);
}
