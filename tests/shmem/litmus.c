/* What must be seen in order: puts with a fence between them, a signal after its data, an atomic after a put. */
#include "check.h"

#define WORDS 96
static long first, second, array[WORDS], ready;
static uint64_t signals[2], answer;
static shmem_ctx_t context;

enum { DEFAULT, CONTEXT, ATOMIC, ATOMIC_SET, KINDS };

/* PE `me` writes to `target` and is written to, all PEs at once. `kind` says how the first word is written. */
static void in_stream(long rounds, int target, int kind) {
    first = second = 0;
    shmem_barrier_all();
    long seen = 0;
    for (long r = 1; r <= rounds || seen < rounds; r++) {
        if (r <= rounds && kind == CONTEXT) {
            shmem_ctx_long_p(context, &first, r, target);
            shmem_ctx_fence(context);
            shmem_ctx_long_p(context, &second, r, target);
        } else if (r <= rounds) {
            if (kind == ATOMIC)
                shmem_long_atomic_inc(&first, target);
            else if (kind == ATOMIC_SET)
                shmem_long_atomic_set(&first, r, target);
            else
                shmem_long_p(&first, r, target);
            shmem_fence();
            shmem_long_p(&second, r, target);
        }
        long before = seen;
        seen = r <= rounds ? shmem_long_atomic_fetch(&second, shmem_my_pe()) : seen;
        if (r > rounds) {
            shmem_long_wait_until(&second, SHMEM_CMP_GT, seen);
            seen = second;
        }
        long other = *(volatile long *)&first;
        if (other < seen || seen < before)
            FAIL("round %ld: the second word is %ld, was %ld, and the first is %ld", r, seen, before, other);
    }
    shmem_quiet();
    shmem_barrier_all();
}

/* As above, but the receiver answers each round. `kind` says how it learns that the data have arrived. */
static void in_turn(long rounds, int target, int from, int kind, size_t words) {
    static long source[WORDS];
    ready = 0;
    signals[0] = signals[1] = answer = 0;
    shmem_barrier_all();
    for (long r = 1; r <= rounds; r++) {
        for (size_t i = 0; i < words; i++)
            source[i] = r + (long)i;
        if (kind == 0) {
            shmem_long_put(array, source, words, target);
            shmem_fence();
            shmem_long_p(&ready, r, target);
        } else if (kind == 1) {
            shmem_long_put_nbi(array, source, words, target);
            shmem_fence();
            shmem_long_atomic_inc(&ready, target);
        } else if (kind == 2) {
            shmem_long_put_signal(array, source, words, &signals[0], (uint64_t)r, SHMEM_SIGNAL_SET, target);
        } else {
            shmem_long_put_signal_nbi(array, source, words, &signals[1], 1, SHMEM_SIGNAL_ADD, target);
        }
        if (kind < 2)
            shmem_long_wait_until(&ready, SHMEM_CMP_GE, r);
        else
            shmem_signal_wait_until(&signals[kind - 2], SHMEM_CMP_GE, (uint64_t)r);
        for (size_t i = 0; i < words; i++)
            if (array[i] != r + (long)i)
                FAIL("kind %d, round %ld: word %zu of %zu is %ld, not %ld", kind, r, i, words, array[i], r + (long)i);
        shmem_signal_add(&answer, 1, from);
        shmem_signal_wait_until(&answer, SHMEM_CMP_GE, (uint64_t)r);
        if (kind % 2)
            shmem_quiet();
    }
    shmem_barrier_all();
}

int main(int argc, char **argv) {
    shmem_init();
    long rounds = argc > 1 ? atol(argv[1]) : 2000;
    int me = shmem_my_pe(), pes = shmem_n_pes();
    CHECK_EQ(shmem_ctx_create(SHMEM_CTX_PRIVATE, &context), 0);
    for (int shift = 1; shift < pes || shift == 1; shift = shift == 1 && pes > 3 ? pes / 2 : pes) {
        int target = (me + shift) % pes, from = (me + pes - shift % pes) % pes;
        for (int kind = 0; kind < KINDS; kind++)
            in_stream(rounds, target, kind);
        for (int kind = 0; kind < 4; kind++) {
            in_turn(rounds / 8, target, from, kind, 1);
            in_turn(rounds / 8, target, from, kind, WORDS);
        }
    }
    passed("litmus");
    shmem_finalize();
    return 0;
}
