/*
 * p2p.c - point-to-point figures, in the manner of the OSU micro-benchmarks. Options: see engine.h.
 *
 * Between rank 0 and its peer, while all other ranks wait:
 *
 *   latency     half the round trip of a ping-pong, blocking MPI_Send and MPI_Recv              us
 *   bandwidth   a window of 64 MPI_Isends one way, then an empty answer; bytes over time        MB/s (10^6 bytes/s)
 *   bibw        as bandwidth, both ways at once; bytes of both directions over time             MB/s
 *   rate        a window of 256 messages one way, then an empty answer                          msg/s
 *
 * Between all ranks at once:
 *
 *   multibw     as bandwidth, of all pairs (i, i + ranks/2) together: two hosts with several ranks each
 *   multirate   as rate, of all pairs together
 *   ring        as bandwidth, all ranks together: each sends to the next and receives from the previous
 *
 * A window has fewer than 64 messages if they would exceed WINDOW_BYTES. As in OSU's benchmarks, all
 * messages of a window are sent from and received in one buffer. The program works with any MPI
 * library: it uses only calls of MPI-1, and MPI_Init_thread.
 */
#include "engine.h"

#include <stdlib.h>

#define WINDOW 64
#define WINDOW_BYTES (256L << 20)
#define RATE_WINDOW 256
#define TAG_DATA 1
#define TAG_ANSWER 2

/* The ranks to which this rank sends and from which it receives; -1 means none. */
struct ways {
    int to;
    int from;
};

static char *send_buffer;
static char *receive_buffer;

static int window_of(long bytes)
{
    long fitting = bytes > 0 ? WINDOW_BYTES / bytes : WINDOW;
    return fitting >= WINDOW ? WINDOW : fitting > 1 ? (int) fitting : 1;
}

static double ping_pong(long bytes, long n)
{
    double start = now();

    for (long i = 0; i < n; i++) {
        if (my_rank == 0) {
            MPI_Send(send_buffer, (int) bytes, MPI_CHAR, other_rank, TAG_DATA, MPI_COMM_WORLD);
            MPI_Recv(receive_buffer, (int) bytes, MPI_CHAR, other_rank, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(receive_buffer, (int) bytes, MPI_CHAR, other_rank, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(send_buffer, (int) bytes, MPI_CHAR, other_rank, TAG_DATA, MPI_COMM_WORLD);
        }
    }
    return my_rank == 0 ? now() - start : 0;
}

/* Runs `n` iterations; each is one window and its answer. */
static double windows(struct ways ways, long bytes, long n, int window)
{
    MPI_Request requests[2 * RATE_WINDOW];
    double start = now();

    for (long i = 0; i < n; i++) {
        int count = 0;
        for (int w = 0; w < window && ways.from >= 0; w++)
            MPI_Irecv(receive_buffer, (int) bytes, MPI_CHAR, ways.from, TAG_DATA, MPI_COMM_WORLD, &requests[count++]);
        for (int w = 0; w < window && ways.to >= 0; w++)
            MPI_Isend(send_buffer, (int) bytes, MPI_CHAR, ways.to, TAG_DATA, MPI_COMM_WORLD, &requests[count++]);
        MPI_Waitall(count, requests, no_statuses);
        if (ways.from >= 0)
            MPI_Send(NULL, 0, MPI_CHAR, ways.from, TAG_ANSWER, MPI_COMM_WORLD);
        if (ways.to >= 0)
            MPI_Recv(NULL, 0, MPI_CHAR, ways.to, TAG_ANSWER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    /* Only the time of senders counts: they know when all messages have arrived. */
    return ways.to >= 0 ? now() - start : 0;
}

static struct ways one_way(void)
{
    return my_rank == 0 ? (struct ways) {.to = other_rank, .from = -1} : (struct ways) {.to = -1, .from = other_rank};
}

static struct ways of_pairs(void)
{
    int half = all_ranks / 2;

    if (my_rank < half)
        return (struct ways) {.to = my_rank + half, .from = -1};
    return (struct ways) {.to = -1, .from = my_rank < 2 * half ? my_rank - half : -1};
}

static struct ways around(void)
{
    return (struct ways) {.to = (my_rank + 1) % all_ranks, .from = (my_rank + all_ranks - 1) % all_ranks};
}

static double bandwidth(long bytes, long n)
{
    return windows(one_way(), bytes, n, window_of(bytes));
}

static double both_ways(long bytes, long n)
{
    return windows((struct ways) {.to = other_rank, .from = other_rank}, bytes, n, window_of(bytes));
}

static double rate(long bytes, long n)
{
    return windows(one_way(), bytes, n, RATE_WINDOW);
}

static double together(struct ways ways, long bytes, long n, int window)
{
    MPI_Barrier(MPI_COMM_WORLD);
    return windows(ways, bytes, n, window);
}

static double multi_bandwidth(long bytes, long n)
{
    return together(of_pairs(), bytes, n, window_of(bytes));
}

static double multi_rate(long bytes, long n)
{
    return together(of_pairs(), bytes, n, RATE_WINDOW);
}

static double ring(long bytes, long n)
{
    return together(around(), bytes, n, window_of(bytes));
}

static double half_round_trip(double seconds, long bytes)
{
    (void) bytes;
    return seconds * 1e6 / 2;
}

static double mb_s(double seconds, long bytes)
{
    return (double) bytes * window_of(bytes) / seconds / 1e6;
}

static double both_mb_s(double seconds, long bytes)
{
    return 2 * mb_s(seconds, bytes);
}

static double messages_s(double seconds, long bytes)
{
    (void) bytes;
    return RATE_WINDOW / seconds;
}

static double multi_mb_s(double seconds, long bytes)
{
    return all_ranks / 2 * mb_s(seconds, bytes);
}

static double multi_messages_s(double seconds, long bytes)
{
    return all_ranks / 2 * messages_s(seconds, bytes);
}

static double ring_mb_s(double seconds, long bytes)
{
    return all_ranks * mb_s(seconds, bytes);
}

static long exchange(int to, int from, long bytes)
{
    fill(send_buffer, bytes, my_rank);
    MPI_Sendrecv(send_buffer, (int) bytes, MPI_CHAR, to, TAG_DATA, receive_buffer, (int) bytes, MPI_CHAR, from, TAG_DATA,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return wrong(receive_buffer, bytes, from);
}

static long check_pair(long bytes)
{
    return exchange(other_rank, other_rank, bytes);
}

static long check_ring(long bytes)
{
    return exchange(around().to, around().from, bytes);
}

static const struct test tests[] = {
    {"latency", "us", "0,1..4M", 1, 1, ping_pong, half_round_trip, check_pair},
    {"bandwidth", "MB/s", "1..4M,64M", 1, 1, bandwidth, mb_s, check_pair},
    {"bibw", "MB/s", "1..4M", 1, 1, both_ways, both_mb_s, check_pair},
    {"rate", "msg/s", "8,64,128", 1, 1, rate, messages_s, check_pair},
    {"multibw", "MB/s", "8,1K,64K,1M", 0, 1, multi_bandwidth, multi_mb_s, check_ring},
    {"multirate", "msg/s", "8,64,128", 0, 1, multi_rate, multi_messages_s, check_ring},
    {"ring", "MB/s", "8,1K,64K,1M", 0, 1, ring, ring_mb_s, check_ring},
};

static void prepare(long largest)
{
    send_buffer = touched(largest);
    receive_buffer = touched(largest);
}

static void finish(void)
{
    free(send_buffer);
    free(receive_buffer);
}

int main(int argc, char **argv)
{
    return run_tests(argc, argv, tests, sizeof(tests) / sizeof(tests[0]), prepare, finish);
}
