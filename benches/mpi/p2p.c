/*
 * p2p.c - point-to-point figures between two ranks, in the manner of the OSU micro-benchmarks.
 *
 *   mpicc -O2 -o p2p p2p.c
 *   mpiexec -n 4 ./p2p [--test NAME] [--peer P] [--min BYTES] [--max BYTES] [--iters N] [--quick]
 *
 * Everything happens between rank 0 and rank P (default 1); all other ranks wait in a barrier until the end. Rank 0 prints one
 * JSON line per figure:
 *
 *   {"test":"latency","bytes":8,"value":0.31,"unit":"us","peer":1}
 *
 * Tests (default: all, one after the other):
 *
 *   latency     half the round trip of a ping-pong, blocking MPI_Send and MPI_Recv              us
 *   bandwidth   a window of 64 MPI_Isends one way, then an empty answer; bytes over time        MB/s (10^6 bytes a second)
 *   bibw        as bandwidth, both ways at once; bytes of both directions over time             MB/s
 *   rate        message rate of a single pair: a window of 256 messages of 8 bytes one way,
 *               then an empty answer                                                            msg/s
 *
 * latency covers 0 B and the powers of two up to 4 MiB, bandwidth and bibw 1 B to 4 MiB; --min and --max narrow that. rate always
 * uses 8 bytes unless --min says otherwise. Each size is warmed up first, then measured in BATCHES batches, of which the median is
 * printed: on a machine with fewer cores than ranks a mean would show the scheduler. --iters sets the iterations of all batches of
 * a size together (a window counts as one), --quick divides the default by ten. When the warm-up shows that iterations take long, there
 * are fewer of them: no size takes much longer than BUDGET seconds.
 *
 * Works with any MPI: nothing but MPI-1 calls, MPI_Init_thread aside.
 */
#include <mpi.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 64
#define RATE_WINDOW 256
#define BATCHES 11
#define BUDGET 1.0
#define LARGEST (4L << 20)
#define TAG_DATA 1
#define TAG_ANSWER 2
#define TAG_ITERATIONS 3

struct options {
    const char *test;
    int peer;
    long min;
    long max;
    long iters;
    int quick;
};

/* One kind of measurement: `work` does `n` iterations as sender (rank 0) or receiver. */
struct test {
    const char *name;
    const char *unit;
    void (*work)(int sender, int other, long bytes, long n);
    /* Makes the printed value of the seconds per iteration. */
    double (*value)(double seconds, long bytes);
    long small_iters;                /* iterations in all for sizes up to 8 KiB; larger sizes get fewer */
    long least;                      /* the smallest size that makes sense */
    int only_small;                  /* one size only: 8 bytes, or --min */
};

/* Rank 0 sends from and receives into these; bibw needs both at once. Windows reuse them. */
static char *send_buffer;
static char *receive_buffer;
static int my_rank;

/* MPI_STATUSES_IGNORE, set in main: GCC takes the constant for an array of no elements and warns where it is used. */
static MPI_Status *no_statuses;

/* For what all ranks find alike: rank 0 says it, all end. */
static void usage(const char *what, const char *detail)
{
    if (my_rank == 0)
        fprintf(stderr, "p2p: %s%s\n", what, detail);
    MPI_Finalize();
    exit(2);
}

static void ping_pong(int sender, int other, long bytes, long n)
{
    for (long i = 0; i < n; i++) {
        if (sender) {
            MPI_Send(send_buffer, (int) bytes, MPI_CHAR, other, TAG_DATA, MPI_COMM_WORLD);
            MPI_Recv(receive_buffer, (int) bytes, MPI_CHAR, other, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(receive_buffer, (int) bytes, MPI_CHAR, other, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(send_buffer, (int) bytes, MPI_CHAR, other, TAG_DATA, MPI_COMM_WORLD);
        }
    }
}

static void post_sends(MPI_Request *requests, int window, int other, long bytes)
{
    for (int w = 0; w < window; w++)
        MPI_Isend(send_buffer, (int) bytes, MPI_CHAR, other, TAG_DATA, MPI_COMM_WORLD, &requests[w]);
}

static void post_receives(MPI_Request *requests, int window, int other, long bytes)
{
    for (int w = 0; w < window; w++)
        MPI_Irecv(receive_buffer, (int) bytes, MPI_CHAR, other, TAG_DATA, MPI_COMM_WORLD, &requests[w]);
}

static void answer(int sender, int other)
{
    if (sender)
        MPI_Recv(NULL, 0, MPI_CHAR, other, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(NULL, 0, MPI_CHAR, other, TAG_ANSWER, MPI_COMM_WORLD);
}

/* One iteration is one window and its answer. */
static void windows(int sender, int other, long bytes, long n, int window)
{
    MPI_Request requests[RATE_WINDOW];

    for (long i = 0; i < n; i++) {
        if (sender)
            post_sends(requests, window, other, bytes);
        else
            post_receives(requests, window, other, bytes);
        MPI_Waitall(window, requests, no_statuses);
        answer(sender, other);
    }
}

static void one_way(int sender, int other, long bytes, long n)
{
    windows(sender, other, bytes, n, WINDOW);
}

static void many_one_way(int sender, int other, long bytes, long n)
{
    windows(sender, other, bytes, n, RATE_WINDOW);
}

static void both_ways(int sender, int other, long bytes, long n)
{
    MPI_Request requests[2 * WINDOW];

    for (long i = 0; i < n; i++) {
        post_receives(requests, WINDOW, other, bytes);
        post_sends(requests + WINDOW, WINDOW, other, bytes);
        MPI_Waitall(2 * WINDOW, requests, no_statuses);
        answer(sender, other);
    }
}

static double half_round_trip_us(double seconds, long bytes)
{
    (void) bytes;
    return seconds * 1e6 / 2;
}

static double window_mb_s(double seconds, long bytes)
{
    return (double) bytes * WINDOW / seconds / 1e6;
}

static double two_windows_mb_s(double seconds, long bytes)
{
    return 2 * window_mb_s(seconds, bytes);
}

static double messages_s(double seconds, long bytes)
{
    (void) bytes;
    return RATE_WINDOW / seconds;
}

static const struct test tests[] = {
    {"latency", "us", ping_pong, half_round_trip_us, 22000, 0, 0},
    {"bandwidth", "MB/s", one_way, window_mb_s, 1100, 1, 0},
    {"bibw", "MB/s", both_ways, two_windows_mb_s, 1100, 1, 0},
    {"rate", "msg/s", many_one_way, messages_s, 11000, 0, 1},
};

static int ascending(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* Rank 0 says how many iterations come; the other rank obeys. 0 ends a size. */
static void obey(const struct test *test, int other, long bytes)
{
    for (;;) {
        long n = 0;
        MPI_Recv(&n, 1, MPI_LONG, other, TAG_ITERATIONS, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (n == 0)
            return;
        test->work(0, other, bytes, n);
    }
}

/* Seconds per iteration of one batch. */
static double batch(const struct test *test, int other, long bytes, long n)
{
    MPI_Send(&n, 1, MPI_LONG, other, TAG_ITERATIONS, MPI_COMM_WORLD);
    double start = MPI_Wtime();
    test->work(1, other, bytes, n);
    return (MPI_Wtime() - start) / (double) n;
}

static long iterations(const struct test *test, const struct options *options, long bytes)
{
    long all = options->iters;

    if (all == 0) {
        all = test->small_iters;
        if (bytes > 8192)
            all /= bytes > 256 * 1024 ? 40 : 8;
        if (options->quick)
            all /= 10;
    }
    long each = all / BATCHES;
    return each > 0 ? each : 1;
}

static void drive(const struct test *test, const struct options *options, long bytes)
{
    long n = iterations(test, options, bytes), most, end = 0;
    double times[BATCHES];

    /* Twice: the first messages may have connections and memory to set up, which says nothing about the next ones. */
    batch(test, options->peer, bytes, n / 20 + 1);
    times[0] = batch(test, options->peer, bytes, n / 5 + 1);
    most = (long) (BUDGET / BATCHES / times[0]);
    if (n > most)
        n = most > 0 ? most : 1;
    for (int b = 0; b < BATCHES; b++)
        times[b] = batch(test, options->peer, bytes, n);
    MPI_Send(&end, 1, MPI_LONG, options->peer, TAG_ITERATIONS, MPI_COMM_WORLD);

    qsort(times, BATCHES, sizeof(times[0]), ascending);
    printf("{\"test\":\"%s\",\"bytes\":%ld,\"value\":%.*f,\"unit\":\"%s\",\"peer\":%d}\n", test->name, bytes,
           test->only_small ? 0 : 3, test->value(times[BATCHES / 2], bytes), test->unit, options->peer);
    fflush(stdout);
}

static void run(const struct test *test, const struct options *options)
{
    long last = options->max < 0 ? LARGEST : options->max;
    long bytes = options->min > test->least ? options->min : test->least;

    if (test->only_small)
        last = bytes = options->min > 0 ? options->min : 8;
    while (bytes <= last) {
        if (my_rank == 0)
            drive(test, options, bytes);
        else
            obey(test, 0, bytes);
        bytes = bytes == 0 ? 1 : 2 * bytes;
    }
}

static long number(const char *option, const char *text, long least)
{
    char *rest = NULL;

    errno = 0;
    long value = text ? strtol(text, &rest, 10) : 0;
    if (!text || rest == text || *rest != '\0' || errno || value < least)
        usage("a number is missing or cannot be used after ", option);
    return value;
}

static struct options parse(int argc, char **argv, int ranks)
{
    struct options options = {.test = NULL, .peer = 1, .min = 0, .max = -1, .iters = 0, .quick = 0};

    for (int i = 1; i < argc; i++) {
        const char *option = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(option, "--quick") == 0) {
            options.quick = 1;
            continue;
        }
        if (strcmp(option, "--test") == 0)
            options.test = value ? value : "";
        else if (strcmp(option, "--peer") == 0)
            options.peer = (int) number(option, value, 1);
        else if (strcmp(option, "--min") == 0)
            options.min = number(option, value, 0);
        else if (strcmp(option, "--max") == 0)
            options.max = number(option, value, 0);
        else if (strcmp(option, "--iters") == 0)
            options.iters = number(option, value, 1);
        else
            usage("unknown option (known: --test --peer --min --max --iters --quick): ", option);
        i++;
    }
    if (options.max > 1L << 30 || options.min > 1L << 30)
        usage("sizes go up to 1 GiB", "");
    if (options.peer >= ranks)
        usage("the peer must be a rank other than 0 that exists; start more ranks or choose another --peer", "");
    return options;
}

int main(int argc, char **argv)
{
    int ranks, provided, known = 0;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &my_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    no_statuses = MPI_STATUSES_IGNORE;
    struct options options = parse(argc, argv, ranks);

    for (size_t t = 0; t < sizeof(tests) / sizeof(tests[0]); t++)
        known |= !options.test || strcmp(options.test, tests[t].name) == 0;
    if (!known)
        usage("unknown test (known: latency bandwidth bibw rate): ", options.test);

    long room = options.max > LARGEST ? options.max : LARGEST;
    if (options.min > room)
        room = options.min;
    send_buffer = malloc((size_t) room);
    receive_buffer = malloc((size_t) room);
    if (!send_buffer || !receive_buffer) {
        fprintf(stderr, "p2p: rank %d: not enough memory for two buffers of %ld bytes\n", my_rank, room);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    /* Touch every page before anything is measured. */
    memset(send_buffer, 'a', (size_t) room);
    memset(receive_buffer, 'b', (size_t) room);

    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank == 0 || my_rank == options.peer) {
        for (size_t t = 0; t < sizeof(tests) / sizeof(tests[0]); t++)
            if (!options.test || strcmp(options.test, tests[t].name) == 0)
                run(&tests[t], &options);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    free(send_buffer);
    free(receive_buffer);
    MPI_Finalize();
    return 0;
}
