/* A child process has its own globals; the parent's stay symmetric. */
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

static long word = 1, more[5000];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), next = (me + 1) % pes;
    more[4999] = me;
    long *heap = shmem_calloc(1, sizeof(long));
    shmem_barrier_all();
    fflush(stdout);
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            int right = word == 1 + i && more[4999] == me;
            word = 99;
            more[4999] = 98;
            _exit(right && word == 99 ? 7 : 1);
        }
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 7);
        CHECK_EQ(word, 1 + i);
        CHECK_EQ(more[4999], me);
        shmem_barrier_all();
        shmem_long_atomic_inc(&word, next);
        shmem_barrier_all();
    }
    CHECK_EQ(word, 4);
    int status = system("exit 5");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    FILE *pipe = popen("echo 42", "r");
    int number = 0;
    CHECK(pipe && fscanf(pipe, "%d", &number) == 1 && pclose(pipe) == 0);
    CHECK_EQ(number, 42);
    shmem_long_atomic_add(heap, me, next);
    shmem_long_p(&more[0], me, next);
    shmem_barrier_all();
    CHECK_EQ(*heap, (me + pes - 1) % pes);
    CHECK_EQ(more[0], (me + pes - 1) % pes);
    passed("fork");
    shmem_finalize();
    return 0;
}
