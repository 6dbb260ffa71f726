/* engine.c - see engine.h. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAG_ORDER 101
#define TAG_TIME 102
#define ITERATIONS_MOST (1L << 30)

/* Commands of rank 0 to the other ranks; a positive number is a number of iterations. */
#define ORDER_END 0L
#define ORDER_CHECK (-1L)

#define CHOSEN_MOST 64

int my_rank, all_ranks, other_rank;
MPI_Status *no_statuses;

struct options {
    int peer;
    struct cores cores;
    double budget;
    double limit;
    double patience;
    int count;
    struct chosen {
        const struct test *test;
        struct sizes sizes;
    } chosen[CHOSEN_MOST];
};

static struct options options = {.peer = 1, .budget = 0.3, .limit = 120};

/* Ends the job because of an error that all ranks detect; rank 0 prints the message. */
static void usage(const char *what, const char *detail)
{
    if (my_rank == 0)
        fprintf(stderr, "%s%s\n", what, detail);
    MPI_Finalize();
    exit(2);
}

static void choose(const struct test *test, const char *sizes)
{
    if (options.count == CHOSEN_MOST)
        usage("too many tests", "");
    struct chosen *chosen = &options.chosen[options.count++];
    chosen->test = test;
    if (parse_sizes(sizes, &chosen->sizes))
        usage("sizes are 0 to 1024M, separated by commas; not: ", sizes);
    for (int i = 0; i < chosen->sizes.count; i++)
        if (chosen->sizes.of[i] % test->multiple)
            usage("sizes must be multiples of 8 for this test: ", test->name);
}

static void choose_named(const char *text, const struct test *tests, int count)
{
    size_t length = strcspn(text, "=");

    for (int t = 0; t < count; t++)
        if (strlen(tests[t].name) == length && strncmp(tests[t].name, text, length) == 0) {
            choose(&tests[t], text[length] ? text + length + 1 : tests[t].sizes);
            return;
        }
    usage("unknown option or test: ", text);
}

static void parse(int argc, char **argv, const struct test *tests, int count)
{
    for (int i = 1; i < argc; i++) {
        const char *option = argv[i];
        if (strncmp(option, "--", 2) != 0) {
            choose_named(option, tests, count);
            continue;
        }
        const char *value = i + 1 < argc ? argv[++i] : "";
        struct sizes peer;
        int bad;
        if (strcmp(option, "--peer") == 0) {
            bad = parse_sizes(value, &peer) || peer.count != 1 || peer.of[0] < 1;
            options.peer = bad ? 1 : (int) peer.of[0];
        } else if (strcmp(option, "--cores") == 0) {
            bad = parse_cores(value, &options.cores);
        } else if (strcmp(option, "--budget") == 0) {
            bad = parse_seconds(value, &options.budget);
        } else if (strcmp(option, "--limit") == 0) {
            bad = parse_seconds(value, &options.limit);
        } else if (strcmp(option, "--patience") == 0) {
            bad = parse_seconds(value, &options.patience);
        } else {
            usage("unknown option (known: --peer --cores --budget --limit --patience): ", option);
            return;
        }
        if (bad)
            usage("a value is missing or cannot be used after ", option);
    }
    if (options.count == 0)
        for (int t = 0; t < count; t++)
            choose(&tests[t], tests[t].sizes);
    if (options.peer >= all_ranks)
        usage("the peer must be a rank other than 0 that exists; start more ranks or choose another --peer", "");
}

static int takes_part(const struct test *test, int rank)
{
    return !test->pair || rank == 0 || rank == options.peer;
}

static void order(const struct test *test, long what)
{
    for (int rank = 1; rank < all_ranks; rank++)
        if (takes_part(test, rank))
            MPI_Send(&what, 1, MPI_LONG, rank, TAG_ORDER, MPI_COMM_WORLD);
}

/* Returns the largest of the values that the ranks have computed, including this rank's own. */
static double largest_answer(const struct test *test, double own)
{
    for (int rank = 1; rank < all_ranks; rank++) {
        double theirs;
        if (!takes_part(test, rank))
            continue;
        MPI_Recv(&theirs, 1, MPI_DOUBLE, rank, TAG_TIME, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        own = theirs > own ? theirs : own;
    }
    return own;
}

static void obey(const struct test *test, long bytes)
{
    for (;;) {
        long what;
        MPI_Recv(&what, 1, MPI_LONG, 0, TAG_ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (what == ORDER_END)
            return;
        double answer = what == ORDER_CHECK ? (double) test->check(bytes) : test->work(bytes, what);
        MPI_Send(&answer, 1, MPI_DOUBLE, 0, TAG_TIME, MPI_COMM_WORLD);
    }
}

/* Runs a batch of `n` iterations. Returns the measured seconds of the slowest rank; `*taken` is
 * the duration of the whole batch, which counts against the budget. */
static double batch(const struct test *test, long bytes, long n, double *taken)
{
    double start = now();

    order(test, n);
    double seconds = largest_answer(test, test->work(bytes, n));
    *taken = now() - start;
    return seconds;
}

/* Returns 1 if batches of `n` take at least `wanted` seconds. Only repeated long batches count:
 * another process may have used the core for a while, and a batch that is too short cannot be
 * timed. A batch that exceeds the whole budget is long enough in any case. */
static int long_enough(const struct test *test, long bytes, long n, double wanted, double *taken)
{
    for (int tries = 0; tries < 3; tries++) {
        batch(test, bytes, n, taken);
        if (*taken < wanted)
            return 0;
        if (*taken > options.budget)
            return 1;
    }
    return 1;
}

/* Returns the number of iterations that take about `wanted` seconds; `*taken` is the duration of
 * a batch that is not much shorter. The batches also warm up: the first messages may have to set
 * up connections and memory. */
static long iterations(const struct test *test, long bytes, double wanted, double *taken)
{
    long n = 1;

    batch(test, bytes, 1, taken);
    while (!long_enough(test, bytes, n, wanted / 2, taken) && n < ITERATIONS_MOST) {
        double factor = wanted / *taken;
        n *= factor > 16 ? 16 : factor < 2 ? 2 : (long) factor;
    }
    double fitting = (double) n * wanted / *taken;
    return fitting < 1 ? 1 : fitting > (double) ITERATIONS_MOST ? ITERATIONS_MOST : (long) fitting;
}

static void check(const struct test *test, long bytes)
{
    order(test, ORDER_CHECK);
    double bad = largest_answer(test, (double) test->check(bytes));
    if (bad > 0) {
        fprintf(stderr, "%s, %ld bytes: wrong data arrived\n", test->name, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void drive(const struct test *test, long bytes)
{
    double times[BATCHES], taken, wanted = options.budget / BATCHES;
    int batches = 0;

    if (test->check)
        check(test, bytes);
    long n = iterations(test, bytes, wanted, &taken);
    double fitting = taken > 2 * wanted ? options.budget / taken : BATCHES;
    int enough = fitting < 1 ? 1 : fitting < 3 ? 3 : fitting > BATCHES ? BATCHES : (int) fitting;
    while (batches < enough)
        times[batches++] = batch(test, bytes, n, &taken) / (double) n;
    order(test, ORDER_END);
    print_figure(test->name, bytes, test->value(median(times, batches), bytes), test->unit);
}

/* Returns 0 if there is no time left. Only rank 0 measures the time, and it sends the result to
 * the others before each figure. */
static int goes_on(const struct test *test, double start)
{
    long more = 1;

    if (my_rank == 0) {
        more = now() - start < options.limit;
        order(test, more);
        if (!more)
            fprintf(stderr, "%s: out of time (--limit %g)\n", test->name, options.limit);
    } else {
        MPI_Recv(&more, 1, MPI_LONG, 0, TAG_ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return (int) more;
}

static void run(const struct chosen *chosen, double start)
{
    for (int i = 0; i < chosen->sizes.count; i++) {
        if (!takes_part(chosen->test, my_rank) || !goes_on(chosen->test, start))
            return;
        /* 0 means no alarm. */
        alarm((unsigned) options.patience);
        if (my_rank == 0)
            drive(chosen->test, chosen->sizes.of[i]);
        else
            obey(chosen->test, chosen->sizes.of[i]);
        alarm(0);
    }
}

/* Binds this rank to a core. With more ranks than cores only the two measured ranks are bound;
 * the others wait. */
static void bind_to_core(void)
{
    int core = my_rank;

    if (all_ranks > options.cores.count)
        core = my_rank == 0 ? 0 : my_rank == options.peer ? 1 : options.cores.count;
    if (core < options.cores.count && pin_to(options.cores.of[core]))
        perror("cannot bind to a core");
}

int run_tests(int argc, char **argv, const struct test *tests, int count, void (*prepare)(long largest), void (*finish)(void))
{
    int provided;
    long largest = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    double start = now();
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &all_ranks);
    no_statuses = MPI_STATUSES_IGNORE;
    parse(argc, argv, tests, count);
    other_rank = my_rank == 0 ? options.peer : 0;
    bind_to_core();

    for (int c = 0; c < options.count; c++)
        for (int i = 0; i < options.chosen[c].sizes.count; i++)
            if (options.chosen[c].sizes.of[i] > largest)
                largest = options.chosen[c].sizes.of[i];
    prepare(largest);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int c = 0; c < options.count; c++)
        run(&options.chosen[c], start);
    MPI_Barrier(MPI_COMM_WORLD);
    finish();
    MPI_Finalize();
    return 0;
}

char *touched(long bytes)
{
    char *memory = malloc((size_t) bytes + 64);

    if (!memory) {
        fprintf(stderr, "rank %d: not enough memory for %ld bytes\n", my_rank, bytes);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    memset(memory, 1, (size_t) bytes + 64);
    return memory;
}

static char at(long place, int seed)
{
    return (char) (place * 31 + (place >> 8) * 7 + seed * 131 + 5);
}

void fill(char *buffer, long bytes, int seed)
{
    for (long i = 0; i < bytes; i++)
        buffer[i] = at(i, seed);
}

long wrong(const char *buffer, long bytes, int seed)
{
    long count = 0;

    for (long i = 0; i < bytes; i++)
        count += buffer[i] != at(i, seed);
    return count;
}

double microseconds(double seconds, long bytes)
{
    (void) bytes;
    return seconds * 1e6;
}
