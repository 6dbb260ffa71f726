// Names for all types in C++, with and without a context.
#include <shmem.h>

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                              \
    do {                                                                                              \
        if (!(condition)) {                                                                           \
            std::printf("FAIL: PE %d, %s:%d: %s\n", shmem_my_pe(), __FILE__, __LINE__, #condition);   \
            shmem_global_exit(1);                                                                     \
        }                                                                                             \
    } while (0)

namespace {

int next_pe;
shmem_ctx_t context;

template <typename T>
void moves() {
    static T word, words[4];
    T source[4] = {T(1), T(2), T(3), T(4)};
    shmem_p(&word, T(5), next_pe);
    shmem_put(context, words, source, 4, next_pe);
    shmem_ctx_quiet(context);
    shmem_barrier_all();
    CHECK(word == T(5) && words[3] == T(4));
    CHECK(shmem_g(&word, next_pe) == T(5));
    shmem_get_nbi(source, &words[1], 1, next_pe);
    shmem_quiet();
    CHECK(source[0] == T(2));
    shmem_barrier_all();
}

template <typename T>
void atomics() {
    static T word;
    CHECK(shmem_atomic_fetch_add(&word, T(4), next_pe) == T(0));
    shmem_atomic_inc(context, &word, next_pe);
    shmem_ctx_quiet(context);
    shmem_wait_until(&word, SHMEM_CMP_EQ, T(5));
    shmem_barrier_all();
}

}  // namespace

int main() {
    shmem_init();
    next_pe = (shmem_my_pe() + 1) % shmem_n_pes();
    CHECK(shmem_ctx_create(0, &context) == 0);
    moves<float>();
    moves<double>();
    moves<long double>();
    moves<char>();
    moves<signed char>();
    moves<short>();
    moves<int>();
    moves<long>();
    moves<long long>();
    moves<unsigned char>();
    moves<unsigned short>();
    moves<unsigned>();
    moves<unsigned long>();
    moves<unsigned long long>();
    atomics<int>();
    atomics<long>();
    atomics<unsigned>();
    atomics<unsigned long>();
    static long sum, mine = 1;
    CHECK(shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &mine, 1) == 0);
    CHECK(sum == shmem_n_pes());
    shmem_ctx_destroy(context);
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        std::printf("ok overloads\n");
        std::fflush(stdout);
    }
    shmem_finalize();
    return 0;
}
