/*
 * instructions.c - a ping-pong in lock step, for counting the instructions of a message.
 *
 *   instructions ROUND_TRIPS        between ranks 0 and 1, 8 bytes each way; all other ranks wait
 *
 * A tool that counts instructions (valgrind's callgrind) runs every rank. MPI_Send and MPI_Recv are
 * called in functions of their own, counted_send and counted_receive, which the tool reports by
 * name. A rank calls MPI_Recv only after the other rank's
 * MPI_Send has returned, of which it learns through a pipe, outside MPI. The message has then
 * arrived and the first poll finds it, so the number of instructions does not depend on the speed
 * of either rank. Both ranks must be processes of one machine.
 */
#include <mpi.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MESSAGE 8
#define TAG_DATA 1
#define PLACE_MOST 64

static char message[MESSAGE];

/* Neither static nor inlined nor cloned, since the tool finds these functions by name. */
void counted_send(int to);
void counted_receive(int from);

__attribute__((noinline)) void counted_send(int to)
{
    MPI_Send(message, MESSAGE, MPI_CHAR, to, TAG_DATA, MPI_COMM_WORLD);
}

__attribute__((noinline)) void counted_receive(int from)
{
    MPI_Recv(message, MESSAGE, MPI_CHAR, from, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void fail(const char *what)
{
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

/* Creates a named pipe that both ranks can open. */
static void make_pipe(const char *directory, int reader, char *name)
{
    snprintf(name, PLACE_MOST, "%s/to-%d", directory, reader);
    if (mkfifo(name, 0600))
        fail("cannot make a pipe");
}

static int open_pipe(const char *name)
{
    /* The pipe is opened for reading and writing, so that opening does not wait for the other
     * rank. */
    int pipe = open(name, O_RDWR);

    if (pipe < 0)
        fail("cannot open a pipe");
    return pipe;
}

static void tell(int pipe)
{
    if (write(pipe, "", 1) != 1)
        fail("cannot write to a pipe");
}

static void wait_for(int pipe)
{
    char byte;

    if (read(pipe, &byte, 1) != 1)
        fail("cannot read from a pipe");
}

/* Opens both pipes, which rank 0 creates; their names are removed once both ranks have opened
 * them. */
static void connect_pipes(int rank, int *own, int *others)
{
    char directory[] = "/tmp/ntbring-instructions-XXXXXX";
    char names[2][PLACE_MOST] = {"", ""};

    if (rank == 0) {
        if (!mkdtemp(directory))
            fail("cannot make a directory in /tmp");
        make_pipe(directory, 0, names[0]);
        make_pipe(directory, 1, names[1]);
    }
    MPI_Bcast(names, sizeof(names), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (rank < 2) {
        *own = open_pipe(names[rank]);
        *others = open_pipe(names[1 - rank]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && (unlink(names[0]) || unlink(names[1]) || rmdir(directory)))
        fail("cannot remove the pipes");
}

static void ping_pong(int rank, long round_trips)
{
    int own = -1, others = -1;

    connect_pipes(rank, &own, &others);
    for (long i = 0; i < round_trips && rank < 2; i++) {
        if (rank == 0) {
            counted_send(1);
            tell(others);
        }
        wait_for(own);
        counted_receive(1 - rank);
        if (rank == 1) {
            counted_send(0);
            tell(others);
        }
    }
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    long round_trips = argc == 2 ? strtol(argv[1], NULL, 10) : 0;
    if (round_trips < 1 || size < 2) {
        if (rank == 0)
            fprintf(stderr, "usage, on 2 ranks or more: instructions ROUND_TRIPS\n");
        MPI_Finalize();
        return 2;
    }
    ping_pong(rank, round_trips);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
