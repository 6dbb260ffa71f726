/*
 * sort.c - sorts random numbers by samples: each rank sorts its own, all agree on limits between
 * ranks with the help of some samples, each sends every other the numbers between its limits
 * (alltoallv), and sorts what has arrived.
 *
 * Afterwards no rank has a number above the first one of the next rank, and sum and count of all
 * numbers are as before.
 */
#include "app.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TOTAL (1 << 19)         /* numbers of all ranks */
#define ROUNDS 40
#define SAMPLES 64              /* of each rank */
#define DIGIT_BITS 11
#define DIGITS 3

static uint32_t *mine, *arrived, *spare;

static void make(int count, int round)
{
    uint32_t x = 2463534242u + 7919u * (uint32_t) (my_rank + all_ranks * round);

    for (int i = 0; i < count; i++) {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        mine[i] = x;
    }
}

/* Sorts by the digits of the numbers, the last one first. */
static void sort(uint32_t *numbers, int count)
{
    uint32_t *from = numbers, *to = spare;

    for (int digit = 0; digit < DIGITS; digit++) {
        int shift = digit * DIGIT_BITS, places[1 << DIGIT_BITS] = {0}, next = 0;
        for (int i = 0; i < count; i++)
            places[from[i] >> shift & ((1 << DIGIT_BITS) - 1)]++;
        for (int value = 0; value < 1 << DIGIT_BITS; value++) {
            int found = places[value];
            places[value] = next;
            next += found;
        }
        for (int i = 0; i < count; i++)
            to[places[from[i] >> shift & ((1 << DIGIT_BITS) - 1)]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != numbers)
        memcpy(numbers, from, (size_t) count * sizeof(numbers[0]));
}

/* Computes how many of the sorted numbers go to each rank. */
static void divide(int count, int *counts)
{
    uint32_t own[SAMPLES], all[SAMPLES * RANKS_MOST];
    int i = 0;

    for (int s = 0; s < SAMPLES; s++)
        own[s] = mine[(long) s * count / SAMPLES];
    MPI_Allgather(own, SAMPLES, MPI_UINT32_T, all, SAMPLES, MPI_UINT32_T, MPI_COMM_WORLD);
    sort(all, SAMPLES * all_ranks);
    for (int rank = 0; rank < all_ranks; rank++) {
        int begin = i;
        while (i < count && (rank == all_ranks - 1 || mine[i] < all[SAMPLES * (rank + 1)]))
            i++;
        counts[rank] = i - begin;
    }
}

/* Computes places from counts, and returns the sum of the counts. */
static int place(const int *counts, int *places)
{
    int sum = 0;

    for (int rank = 0; rank < all_ranks; rank++) {
        places[rank] = sum;
        sum += counts[rank];
    }
    return sum;
}

/* Sends each number to its rank and returns the number of those that have arrived here. */
static int exchange(const int *counts)
{
    int from[RANKS_MOST], here[RANKS_MOST], there[RANKS_MOST];

    MPI_Alltoall(counts, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
    place(counts, there);
    int count = place(from, here);
    MPI_Alltoallv(mine, counts, there, MPI_UINT32_T, arrived, from, here, MPI_UINT32_T, MPI_COMM_WORLD);
    return count;
}

static uint64_t sum_of(const uint32_t *numbers, int count)
{
    uint64_t sum = 0;

    for (int i = 0; i < count; i++)
        sum += numbers[i];
    return sum;
}

/* Counts the numbers here that are below the one before, and the wrong sums. */
static long wrong_order(int count, uint64_t sum_before)
{
    uint32_t last = count ? arrived[count - 1] : 0, previous = 0;
    uint64_t here[3] = {sum_before, sum_of(arrived, count), (uint64_t) count}, all[3];
    long wrong = 0;

    MPI_Exscan(&last, &previous, 1, MPI_UINT32_T, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < count; i++) {
        wrong += arrived[i] < (my_rank == 0 && i == 0 ? 0 : previous);
        previous = arrived[i];
    }
    MPI_Allreduce(here, all, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    return wrong + (all[0] != all[1]) + (all[2] != TOTAL);
}

int main(int argc, char **argv)
{
    int counts[RANKS_MOST];
    long wrong = 0, room = TOTAL * (long) sizeof(uint32_t);

    start(&argc, &argv);
    int count = TOTAL / all_ranks;
    mine = zeroed(room / all_ranks);
    arrived = zeroed(room);
    spare = zeroed(room);
    for (int round = 0; round < ROUNDS; round++) {
        make(count, round);
        uint64_t sum = sum_of(mine, count);
        sort(mine, count);
        divide(count, counts);
        int received = exchange(counts);
        sort(arrived, received);
        wrong += wrong_order(received, sum);
    }
    free(mine);
    free(arrived);
    free(spare);
    return finish("sort", wrong);
}
