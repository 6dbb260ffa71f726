/*
 * limits.c - measures the limits of this machine for two processes on two cores, without any MPI.
 *
 *   limits --cores A,B [--budget SECONDS] [TEST[=SIZES]]...
 *
 *   cacheline       half the round trip of a flag between the cores: the better of one line, and  us
 *                   of one line for each direction
 *   call            a call of an empty function in a shared library, and its return               ns
 *   memcpy          one process copies from one private buffer to another                         MB/s
 *   raw_bandwidth   the raw window: one process copies from its buffer into a shared window, the  MB/s
 *                   other out of it to its own, chunk by chunk, with only flags between them
 *   raw_latency     half the round trip of a message through two such windows                     us
 *
 * The window (window.h) has the chunk size and the number of slots, out of CHUNKS and DEPTHS, that
 * are fastest for the message size. Sizes are given as in common.h.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../mpi/common.h"
#include "window.h"

#define BATCHES 11
#define ROOM (64L << 20)                /* bytes of the largest message */

static const long CHUNKS[] = {4096, 8192, 16384, 32768, 65536, 131072, 262144};
static const long DEPTHS[] = {4, 16, 64};

/* Number of slots of a window of messages that fit one line. */
#define DEPTH_INLINE 1024

struct shared {
    _Alignas(LINE) atomic_ulong order;      /* number of tasks begun */
    _Alignas(LINE) atomic_ulong done;
    _Alignas(LINE) atomic_ulong ping;
    _Alignas(LINE) atomic_ulong pong;
    struct work {
        void (*run)(int side, long n);
        long n, bytes, chunk, depth;
    } work;
    struct lane lanes[2];
};

static struct shared *shared;
static char *from, *to;
static double budget = 0.3;

static struct end open_end(int lane)
{
    return end_of(&shared->lanes[lane], shared->work.chunk, shared->work.depth);
}

static void one_line(int side, long n)
{
    unsigned long offset = side == 0 ? 1 : 2;

    for (unsigned long i = 0; i < (unsigned long) n; i++) {
        wait_for(&shared->ping, 2 * i + offset - 1);
        atomic_store_explicit(&shared->ping, 2 * i + offset, memory_order_release);
    }
    if (side == 0)
        wait_for(&shared->ping, 2 * (unsigned long) n);
}

static void two_lines(int side, long n)
{
    for (unsigned long i = 1; i <= (unsigned long) n; i++) {
        if (side == 0) {
            atomic_store_explicit(&shared->ping, i, memory_order_release);
            wait_for(&shared->pong, i);
        } else {
            wait_for(&shared->ping, i);
            atomic_store_explicit(&shared->pong, i, memory_order_release);
        }
    }
}

static void stream(int side, long n)
{
    struct end end = open_end(0);
    long bytes = shared->work.bytes;

    for (long i = 0; i < n; i++)
        if (side == 0)
            push(&end, from, bytes);
        else
            pull(&end, to, bytes);
}

static void round_trips(int side, long n)
{
    struct end out = open_end(side), in = open_end(1 - side);
    long bytes = shared->work.bytes;

    for (long i = 0; i < n; i++) {
        if (side == 0)
            push(&out, from, bytes);
        pull(&in, to, bytes);
        if (side == 1)
            push(&out, from, bytes);
    }
}

static void calls(int side, long n)
{
    int (*volatile function)(void) = getpagesize;

    for (long i = 0; i < n && side == 0; i++)
        function();
}

static void copies(int side, long n)
{
    for (long i = 0; i < n && side == 0; i++) {
        memcpy(to, from, (size_t) shared->work.bytes);
        /* Prevents the compiler from making only one of the copies. */
        __asm__ volatile("" ::: "memory");
    }
}

/* Clears the flags that the previous task has left. The other process must be idle. */
static void clear_flags(void)
{
    const struct work *work = &shared->work;

    atomic_store(&shared->ping, 0);
    atomic_store(&shared->pong, 0);
    for (int lane = 0; work->chunk > 0 && lane < 2; lane++) {
        struct end end = open_end(lane);
        atomic_store(&end.lane->taken, 0);
        for (end.count = 0; end.count < (unsigned long) end.depth; end.count++)
            atomic_store(&slot_of(&end)->full, 0);
    }
}

/* Returns the seconds that both processes take for `n` iterations. */
static double batch(long n)
{
    static unsigned long orders;

    clear_flags();
    shared->work.n = n;
    double start = now();
    atomic_store_explicit(&shared->order, ++orders, memory_order_release);
    shared->work.run(0, n);
    wait_for(&shared->done, orders);
    return now() - start;
}

/* Returns the number of iterations that take `wanted` seconds. A long batch is repeated before
 * it counts: another process may have used the core. */
static long iterations(double wanted)
{
    long n = 1;

    batch(1);
    for (;;) {
        double seconds = batch(n);
        for (int tries = 0; tries < 2 && seconds >= wanted / 2; tries++) {
            double again = batch(n);
            seconds = again < seconds ? again : seconds;
        }
        if (seconds >= wanted / 2) {
            double fitting = (double) n * wanted / seconds;
            return fitting < 1 ? 1 : (long) fitting;
        }
        n *= seconds * 16 < wanted ? 16 : 2;
    }
}

/* Returns the median of the seconds per iteration. */
static double measure(struct work work, double seconds, int batches)
{
    double times[BATCHES];

    shared->work = work;
    long n = iterations(seconds / batches);
    for (int b = 0; b < batches; b++)
        times[b] = batch(n) / (double) n;
    return median(times, batches);
}

/* Returns the seconds per iteration with the fastest shape of the window. */
static double best_window(void (*run)(int side, long n), long bytes)
{
    struct work best = {.run = run, .bytes = bytes, .chunk = INLINE_MOST, .depth = DEPTH_INLINE};
    double least = 0;
    size_t chunks = sizeof(CHUNKS) / sizeof(CHUNKS[0]), depths = sizeof(DEPTHS) / sizeof(DEPTHS[0]);

    if (bytes <= INLINE_MOST)
        return measure(best, budget, BATCHES);
    for (size_t c = 0; c < chunks; c++)
        for (size_t d = 0; d < depths; d++) {
            struct work work = {.run = run, .bytes = bytes, .chunk = CHUNKS[c], .depth = DEPTHS[d]};
            /* A chunk is at most as large as the message. */
            int last = CHUNKS[c] >= bytes;
            if (c > 0 && CHUNKS[c - 1] >= bytes)
                continue;
            work.chunk = last ? bytes : CHUNKS[c];
            if (work.depth * (work.chunk + 2 * LINE) > WINDOW_MOST)
                continue;
            double seconds = measure(work, budget / (double) (chunks * depths), 3);
            if (least <= 0 || seconds < least) {
                least = seconds;
                best = work;
            }
        }
    return measure(best, budget, BATCHES);
}

static double cacheline(long bytes)
{
    (void) bytes;
    double one = measure((struct work) {.run = one_line}, budget / 2, BATCHES);
    double two = measure((struct work) {.run = two_lines}, budget / 2, BATCHES);
    return (one < two ? one : two) * 1e6 / 2;
}

static double call_ns(long bytes)
{
    (void) bytes;
    return measure((struct work) {.run = calls}, budget, BATCHES) * 1e9;
}

static double memcpy_mb_s(long bytes)
{
    return (double) bytes / measure((struct work) {.run = copies, .bytes = bytes}, budget, BATCHES) / 1e6;
}

static double raw_bandwidth(long bytes)
{
    return (double) bytes / best_window(stream, bytes) / 1e6;
}

static double raw_latency(long bytes)
{
    return best_window(round_trips, bytes) * 1e6 / 2;
}

static const struct limit {
    const char *name, *unit, *sizes;
    double (*value)(long bytes);
} limits[] = {
    {"cacheline", "us", "0", cacheline},
    {"call", "ns", "0", call_ns},
    {"memcpy", "MB/s", "8..4M,64M", memcpy_mb_s},
    {"raw_bandwidth", "MB/s", "8..4M,64M", raw_bandwidth},
    {"raw_latency", "us", "8..4M", raw_latency},
};

static void usage(const char *what, const char *detail)
{
    fprintf(stderr, "limits: %s%s\n", what, detail);
    exit(2);
}

static void print(const struct limit *limit, const char *text)
{
    struct sizes sizes;

    if (parse_sizes(text, &sizes))
        usage("cannot understand these sizes: ", text);
    for (int i = 0; i < sizes.count; i++)
        if (sizes.of[i] > ROOM || (sizes.of[i] == 0 && strcmp(limit->sizes, "0") != 0))
            usage("sizes are 1 to 64M, not: ", text);
    for (int i = 0; i < sizes.count; i++)
        print_figure(limit->name, sizes.of[i], limit->value(sizes.of[i]), limit->unit);
}

static void print_named(const char *text)
{
    size_t length = strcspn(text, "=");

    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (strlen(limits[i].name) == length && strncmp(limits[i].name, text, length) == 0) {
            print(&limits[i], text[length] ? text + length + 1 : limits[i].sizes);
            return;
        }
    usage("unknown option or test: ", text);
}

/* Runs the other process, which takes its side of each task until it is killed. */
static void serve(int core)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (pin_to(core))
        perror("limits: cannot bind to a core");
    for (unsigned long order = 1;; order++) {
        wait_for(&shared->order, order);
        shared->work.run(1, shared->work.n);
        atomic_store_explicit(&shared->done, order, memory_order_release);
    }
}

static char *touched(long bytes)
{
    char *memory = aligned_alloc(4096, (size_t) bytes);

    if (!memory)
        usage("not enough memory", "");
    memset(memory, 1, (size_t) bytes);
    return memory;
}

int main(int argc, char **argv)
{
    struct cores cores = {.count = 0};
    const char *tests[64];
    int count = 0;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--cores") == 0 && parse_cores(value, &cores) == 0)
            i++;
        else if (strcmp(argv[i], "--budget") == 0 && parse_seconds(value, &budget) == 0)
            i++;
        else if (strncmp(argv[i], "--", 2) != 0 && count < 64)
            tests[count++] = argv[i];
        else
            usage("cannot understand: ", argv[i]);
    }
    if (cores.count < 2)
        usage("--cores must name two cores", "");
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        usage("not enough shared memory: ", strerror(errno));
    memset(shared, 0, sizeof(*shared));
    from = touched(ROOM);
    to = touched(ROOM);

    pid_t child = fork();
    if (child < 0)
        usage("cannot fork: ", strerror(errno));
    if (child == 0) {
        to = touched(ROOM);
        from = touched(ROOM);
        serve(cores.of[1]);
    }
    if (pin_to(cores.of[0]))
        perror("limits: cannot bind to a core");
    for (int i = 0; i < count; i++)
        print_named(tests[i]);
    for (size_t i = 0; count == 0 && i < sizeof(limits) / sizeof(limits[0]); i++)
        print(&limits[i], limits[i].sizes);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return 0;
}
