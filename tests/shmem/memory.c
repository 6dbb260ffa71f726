/* The symmetric heap: the same offsets everywhere, contents kept by realloc, a full heap that stays usable. */
#include "check.h"
#include <shmemx.h>

#define BLOCKS 60
static uint64_t offset, offsets[64];
static unsigned long state = 12345;

static unsigned random_number(void) {
    state = state * 6364136223846793005ul + 1442695040888963407ul;
    return (unsigned)(state >> 33);
}

/* All PEs must have the block at the same distance from the first one. */
static void same_everywhere(const void *block, const void *base) {
    offset = (uint64_t)((const char *)block - (const char *)base);
    CHECK_EQ(shmem_uint64_fcollect(SHMEM_TEAM_WORLD, offsets, &offset, 1), 0);
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        CHECK_EQ(offsets[pe], offset);
}

/* A heap larger than the machine's memory: what does not fit is refused everywhere, and the rest can be used. */
static int larger_than_memory(void) {
    size_t reserved;
    shmemx_heap_info(&reserved, NULL, NULL, NULL);
    CHECK_EQ(reserved >> 40, 20);
    CHECK(shmem_malloc((size_t)10 << 40) == NULL);
    long *block = shmem_calloc(100, sizeof(long));
    CHECK(block);
    int me = shmem_my_pe(), pes = shmem_n_pes();
    shmem_long_p(&block[99], me + 1, (me + 1) % pes);
    shmem_barrier_all();
    CHECK_EQ(block[99], (me + pes - 1) % pes + 1);
    passed("memory");
    shmem_finalize();
    return 0;
}

int main(int argc, char **argv) {
    shmem_init();
    if (argc > 1 && strcmp(argv[1], "large") == 0)
        return larger_than_memory();
    int me = shmem_my_pe(), pes = shmem_n_pes(), next = (me + 1) % pes;
    size_t reserved, backed, used, largest;
    shmemx_heap_info(&reserved, &backed, &used, &largest);
    CHECK(reserved >= backed && backed >= used && largest <= reserved);
    size_t used_first = used;
    char *base = shmem_malloc(1);
    CHECK(base);
    unsigned char *blocks[BLOCKS] = {0};
    size_t lengths[BLOCKS] = {0};
    for (int step = 0; step < 1000; step++) {
        int k = (int)(random_number() % BLOCKS);
        size_t len = random_number() % 4 ? random_number() % 5000 : random_number() % 200000;
        unsigned char *block = blocks[k];
        for (size_t i = 0; i < lengths[k]; i += 97)
            CHECK_EQ(block[i], pattern((unsigned)(me + k), i));
        if (!block && step % 5 == 0) {
            size_t align = (size_t)8 << random_number() % 12;
            block = shmem_align(align, len);
            CHECK_EQ((uintptr_t)block % align, 0);
        } else if (!block && step % 5 == 1) {
            block = shmem_calloc(len, 1);
            for (size_t i = 0; i < len; i++)
                CHECK_EQ(block[i], 0);
        } else if (!block) {
            block = step % 2 ? shmem_malloc(len) : shmem_malloc_with_hints(len, SHMEM_MALLOC_ATOMICS_REMOTE);
        } else if (step % 3) {
            size_t kept = len < lengths[k] ? len : lengths[k];
            block = shmem_realloc(block, len);
            for (size_t i = 0; i < kept; i++)
                CHECK_EQ(block[i], pattern((unsigned)(me + k), i));
        } else {
            shmem_free(block);
            block = NULL;
            len = 0;
        }
        CHECK(block || len == 0);
        if (!block)
            len = 0;
        blocks[k] = block;
        lengths[k] = len;
        fill(block, (unsigned)(me + k), len);
        if (step % 50 == 0)
            same_everywhere(block ? (char *)block : base, base);
    }
    for (int k = 0; k < BLOCKS; k++)
        shmem_free(blocks[k]);
    CHECK(shmem_malloc(0) == NULL);
    CHECK(shmem_calloc(0, 8) == NULL);
    CHECK(shmem_align(3, 8) == NULL);
    shmem_free(NULL);
    /* More than there is: nobody gets it, and what there was stays. */
    long *kept = shmem_malloc(sizeof(long));
    *kept = 77 + me;
    shmem_barrier_all();
    CHECK(shmem_malloc(reserved + 1) == NULL);
    CHECK(shmem_malloc((size_t)-1) == NULL);
    CHECK(shmem_calloc((size_t)-1 / 2, 4) == NULL);
    CHECK(shmem_realloc(kept, reserved + 1) == NULL);
    CHECK_EQ(shmem_long_g(kept, next), 77 + next);
    size_t count = 0;
    void *chain = NULL, **block;
    while ((block = shmem_malloc(reserved / 40 + 1)) != NULL) {
        *block = chain;
        chain = block;
        count++;
    }
    CHECK(count >= 20 && count < 40);
    CHECK_EQ(shmem_long_g(kept, next), 77 + next);
    while (chain) {
        void *before = *(void **)chain;
        shmem_free(chain);
        chain = before;
    }
    void *most = shmem_malloc(reserved / 2);
    CHECK(most);
    same_everywhere(most, base);
    shmem_free(most);
    shmem_free(kept);
    shmem_free(base);
    shmemx_heap_info(NULL, NULL, &used, NULL);
    CHECK_EQ(used, used_first);
    passed("memory");
    shmem_finalize();
    return 0;
}
