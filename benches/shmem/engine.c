/* engine.c - see engine.h. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BATCHES 11
#define ITERATIONS_MOST (1L << 30)
#define WINDOW 64
#define WINDOW_BYTES (32L << 20)

int me, all, other, in_pair, distance;

static struct {
    int peer;
    struct cores cores;
    double budget, limit, start;
    int names;
    char **name;
} opt = {.peer = 1, .budget = 0.2, .limit = 120};

static void usage(const char *what, const char *detail)
{
    if (me == 0)
        fprintf(stderr, "%s%s\n", what, detail);
    exit(2);
}

/* With more PEs than cores only the two measured PEs are bound; the others wait. */
static void bind_to_core(void)
{
    int core = me;

    if (all > opt.cores.count)
        core = me == 0 ? 0 : me == opt.peer ? 1 : opt.cores.count;
    if (core < opt.cores.count && pin_to(opt.cores.of[core]))
        perror("cannot bind to a core");
}

void options(int argc, char **argv)
{
    int at = 1;

    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        const char *option = argv[at], *value = argv[at + 1];
        struct sizes peer;
        int bad;
        if (strcmp(option, "--peer") == 0) {
            bad = parse_sizes(value, &peer) || peer.count != 1 || peer.of[0] < 1 || peer.of[0] >= all;
            opt.peer = bad ? 1 : (int) peer.of[0];
        } else if (strcmp(option, "--cores") == 0) {
            bad = parse_cores(value, &opt.cores);
        } else if (strcmp(option, "--budget") == 0) {
            bad = parse_seconds(value, &opt.budget);
        } else if (strcmp(option, "--limit") == 0) {
            bad = parse_seconds(value, &opt.limit);
        } else {
            bad = 1;
        }
        if (bad)
            usage("unknown option, or wrong value (known: --peer --cores --budget --limit): ", option);
    }
    opt.names = argc - at;
    opt.name = argv + at;
    if (all < 2)
        usage("two PEs are needed", "");
    distance = opt.peer;
    other = me == 0 ? opt.peer : 0;
    in_pair = me == 0 || me == opt.peer;
    bind_to_core();
    opt.start = now();
}

int window_of(long bytes)
{
    long fitting = WINDOW_BYTES / bytes;
    return fitting >= WINDOW ? WINDOW : fitting > 1 ? (int) fitting : 1;
}

/* Runs a batch of `n` iterations on all PEs. Returns, at PE 0, the seconds of the slowest PE. */
static double batch(const struct row *row, long n)
{
    together();
    return slowest(row->work(row, n));
}

/* Returns the number of iterations that take about `wanted` seconds. Also warms up. Only PE 0 decides. */
static long iterations(const struct row *row, double wanted)
{
    long n = 1;

    batch(row, 1);
    for (;;) {
        double taken = batch(row, n);
        /* A batch may have been interrupted: the shorter of two counts. */
        double again = batch(row, n);
        taken = again < taken ? again : taken;
        double factor = taken > 0 ? wanted / taken : 16;
        int enough = factor < 2 || n >= ITERATIONS_MOST / 16;
        double next = (double) n * (factor > 16 ? 16 : factor);
        n = agree(next < 1 ? 1 : (long) next);
        if (agree(enough))
            return n;
    }
}

static double value_of(const struct row *row, double seconds)
{
    switch (row->unit) {
    case UNIT_NS:
        return seconds * 1e9 / row->each;
    case UNIT_RATE:
        return row->each / seconds / 1e6;
    case UNIT_BANDWIDTH:
        return (double) row->bytes * row->each / seconds / 1e6;
    default:
        return seconds * 1e6 / row->each;
    }
}

static void run_row(const struct row *row)
{
    static const char *const units[] = {"us", "ns", "M/s", "MB/s"};
    double times[BATCHES];
    long n = iterations(row, opt.budget / BATCHES);

    for (int i = 0; i < BATCHES; i++)
        times[i] = batch(row, n) / (double) n;
    if (me == 0) {
        printf("%s %.6g %s\n", row->name, value_of(row, median(times, BATCHES)), units[row->unit]);
        fflush(stdout);
    }
}

static int is_wanted(const char *name)
{
    for (int i = 0; i < opt.names; i++)
        if (strcmp(name, opt.name[i]) == 0)
            return 1;
    return opt.names == 0;
}

void run_rows(const struct row *rows, int count)
{
    for (int i = 0; i < count; i++) {
        if (!is_wanted(rows[i].name))
            continue;
        if (!agree(now() - opt.start < opt.limit)) {
            if (me == 0)
                fprintf(stderr, "%s: out of time (--limit %g)\n", rows[i].name, opt.limit);
            return;
        }
        run_row(&rows[i]);
    }
}
