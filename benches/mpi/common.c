/* common.c - see common.h. */
#define _GNU_SOURCE
#include "common.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double) time.tv_sec + (double) time.tv_nsec * 1e-9;
}

/* Parses one number; sets `*text` to the text behind it. */
static int parse_size(const char **text, long *size)
{
    char *rest = NULL;

    if (!isdigit((unsigned char) **text))
        return -1;
    errno = 0;
    long value = strtol(*text, &rest, 10);
    if (errno || value > LARGEST_SIZE)
        return -1;
    if (*rest == 'K' || *rest == 'M') {
        int shift = *rest == 'K' ? 10 : 20;
        if (value > LARGEST_SIZE >> shift)
            return -1;
        value <<= shift;
        rest++;
    }
    *size = value;
    *text = rest;
    return 0;
}

static int add_size(struct sizes *sizes, long size)
{
    if (sizes->count == SIZES_MOST)
        return -1;
    sizes->of[sizes->count++] = size;
    return 0;
}

int parse_sizes(const char *text, struct sizes *sizes)
{
    sizes->count = 0;
    for (;;) {
        long first, last;
        if (parse_size(&text, &first))
            return -1;
        last = first;
        if (strncmp(text, "..", 2) == 0) {
            text += 2;
            if (first == 0 || parse_size(&text, &last))
                return -1;
        }
        if (add_size(sizes, first))
            return -1;
        for (long size = 2 * first; first > 0 && size <= last; size *= 2)
            if (add_size(sizes, size))
                return -1;
        if (*text == '\0')
            return 0;
        if (*text++ != ',')
            return -1;
    }
}

int parse_cores(const char *text, struct cores *cores)
{
    cores->count = 0;
    for (;;) {
        char *rest = NULL;
        errno = 0;
        long core = isdigit((unsigned char) *text) ? strtol(text, &rest, 10) : -1;
        if (core < 0 || core >= CPU_SETSIZE || errno || cores->count == CORES_MOST)
            return -1;
        cores->of[cores->count++] = (int) core;
        if (*rest == '\0')
            return 0;
        if (*rest != ',')
            return -1;
        text = rest + 1;
    }
}

int parse_seconds(const char *text, double *seconds)
{
    char *rest = NULL;
    double value = strtod(text, &rest);

    if (rest == text || *rest != '\0' || !(value > 0.0 && value < 1e6))
        return -1;
    *seconds = value;
    return 0;
}

int pin_to(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t) core, &set);
    return sched_setaffinity(0, sizeof(set), &set);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

double median(double *values, int count)
{
    qsort(values, (size_t) count, sizeof(values[0]), ascending);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

void print_figure(const char *test, long bytes, double value, const char *unit)
{
    printf("{\"test\":\"%s\",\"bytes\":%ld,\"value\":%.6g,\"unit\":\"%s\"}\n", test, bytes, value, unit);
    fflush(stdout);
}
