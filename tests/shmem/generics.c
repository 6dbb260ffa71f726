/* Names for all types in C11, with and without a context. */
#include "check.h"

#define TRY(T, one, two)                                                  \
    do {                                                                  \
        static T word, array[4], words[4];                                \
        T source[4] = {one, two, one, two};                               \
        shmem_p(&word, (T)one, next);                                     \
        shmem_p(ctx, &array[3], (T)two, next);                            \
        shmem_put(array, source, 2, next);                                \
        shmem_put_nbi(ctx, words, source, 4, next);                       \
        shmem_ctx_quiet(ctx);                                             \
        shmem_barrier_all();                                              \
        CHECK(word == (T)one && array[1] == (T)two && array[3] == (T)two); \
        CHECK(shmem_g(&words[1], next) == (T)two && shmem_g(ctx, &words[2], next) == (T)one); \
        const T *constant = words;                                        \
        shmem_get(source, constant, 4, next);                             \
        shmem_iget(ctx, source, constant, 1, 2, 2, next);                 \
        CHECK(source[1] == (T)one);                                       \
        CHECK_EQ(shmem_broadcast(SHMEM_TEAM_WORLD, array, words, 1, 0), 0); \
        shmem_barrier_all();                                              \
    } while (0)

#define TRY_ATOMICS(T)                                                    \
    do {                                                                  \
        static T word, later;                                             \
        shmem_atomic_set(&word, (T)5, next);                              \
        CHECK(shmem_atomic_fetch_add(ctx, &word, (T)2, next) == 5);       \
        CHECK(shmem_atomic_compare_swap(&word, (T)7, (T)9, next) == 7);   \
        shmem_atomic_inc(ctx, &word, next);                               \
        shmem_atomic_fetch_nbi(&later, &word, next);                      \
        shmem_quiet();                                                    \
        CHECK(later == 10);                                               \
        shmem_wait_until(&word, SHMEM_CMP_EQ, (T)10);                     \
        CHECK(shmem_test(&word, SHMEM_CMP_GT, (T)9));                     \
        shmem_barrier_all();                                              \
    } while (0)

int main(void) {
    shmem_init();
    int next = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_ctx_t ctx;
    CHECK_EQ(shmem_ctx_create(0, &ctx), 0);
    TRY(float, 1.5f, -2.5f);
    TRY(double, 1.25, -3);
    TRY(long double, 1.25L, -3);
    TRY(char, 'a', 'b');
    TRY(signed char, -1, 2);
    TRY(short, -300, 2);
    TRY(int, -70000, 2);
    TRY(long, -(1l << 40), 2);
    TRY(long long, 1ll << 50, 2);
    TRY(unsigned char, 200, 2);
    TRY(unsigned short, 60000, 2);
    TRY(unsigned, 4000000000u, 2);
    TRY(unsigned long, 1ul << 63, 2);
    TRY(unsigned long long, 1ull << 62, 2);
    TRY(size_t, 7, 2);
    TRY(int8_t, 7, 2);
    TRY_ATOMICS(int);
    TRY_ATOMICS(long);
    TRY_ATOMICS(long long);
    TRY_ATOMICS(unsigned);
    TRY_ATOMICS(unsigned long);
    TRY_ATOMICS(uint64_t);
    TRY_ATOMICS(ptrdiff_t);
    static double _Complex sum, part;
    part = 1.0;
    CHECK_EQ(shmem_sum_reduce(SHMEM_TEAM_WORLD, &sum, &part, 1), 0);
    CHECK(sum == shmem_n_pes());
    shmem_ctx_destroy(ctx);
    passed("generics");
    shmem_finalize();
    return 0;
}
