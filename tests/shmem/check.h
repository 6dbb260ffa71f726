/* Checks for the test programs: the first one that fails ends the job with a line that begins with FAIL. */
#ifndef CHECK_H
#define CHECK_H

#include <shmem.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints where a check failed and why, and ends the job. */
__attribute__((format(printf, 3, 4), noreturn, unused)) static void check_failed(const char *file, int line,
                                                                                 const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    printf("FAIL: PE %d, %s:%d: %s\n", shmem_my_pe(), file, line, text);
    fflush(stdout);
    shmem_global_exit(1);
    abort();
}

/* Fails with a formatted text. */
#define FAIL(...) check_failed(__FILE__, __LINE__, __VA_ARGS__)

/* Fails with the condition unless it holds. */
#define CHECK(condition)                 \
    do {                                 \
        if (!(condition))                \
            FAIL("%s", #condition);      \
    } while (0)

/* Fails with both values unless these integers are equal. */
#define CHECK_EQ(got, wanted)                                                                  \
    do {                                                                                       \
        long long got_ = (long long)(got), wanted_ = (long long)(wanted);                      \
        if (got_ != wanted_)                                                                   \
            FAIL("%s is %lld (%#llx), not %lld (%#llx) = %s", #got, got_,                      \
                 (unsigned long long)got_, wanted_, (unsigned long long)wanted_, #wanted);     \
    } while (0)

/* Says that the program has passed, when all PEs have come here. */
__attribute__((unused)) static void passed(const char *name) {
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        printf("ok %s\n", name);
        fflush(stdout);
    }
}

/* Byte i of the pattern of a seed. */
__attribute__((unused)) static unsigned char pattern(unsigned seed, size_t i) {
    return (unsigned char)(seed * 31 + i * 7 + (i >> 8) * 13 + 1);
}

/* Fills memory with the pattern of a seed. */
__attribute__((unused)) static void fill(void *to, unsigned seed, size_t len) {
    unsigned char *bytes = to;
    for (size_t i = 0; i < len; i++)
        bytes[i] = pattern(seed, i);
}

/* Fails unless memory has the wanted bytes. */
#define CHECK_BYTES(what, got, wanted, len) check_bytes(__FILE__, __LINE__, what, got, wanted, len)
__attribute__((unused)) static void check_bytes(const char *file, int line, const char *what, const void *got,
                                                const void *wanted, size_t len) {
    if (memcmp(got, wanted, len) == 0)
        return;
    const unsigned char *g = got, *w = wanted;
    size_t i = 0, wrong = 0;
    for (size_t k = len; k-- > 0;)
        if (g[k] != w[k]) {
            i = k;
            wrong++;
        }
    check_failed(file, line, "%s: byte %zu is %#x, not %#x; %zu of %zu bytes are wrong", what, i, g[i], w[i], wrong,
                 len);
}

#endif
