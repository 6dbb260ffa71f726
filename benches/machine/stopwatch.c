/*
 * stopwatch.c - measures the duration of a command from outside: stopwatch REPEAT COMMAND [ARG]...
 *
 * Prints the median of REPEAT runs as the test "startup", in milliseconds. It blocks while it waits,
 * unlike a caller that polls. The command's output goes to /dev/null, its errors to stderr of this
 * program. The exit status is 1 if the command fails.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../mpi/common.h"

#define REPEAT_MOST 1000

/* Exit status of a child that could not execute the command. */
#define NOT_STARTED 127

static void become(char **command)
{
    int null = open("/dev/null", O_WRONLY);

    if (null >= 0)
        dup2(null, STDOUT_FILENO);
    execvp(command[0], command);
    fprintf(stderr, "stopwatch: cannot start %s: %s\n", command[0], strerror(errno));
    _exit(NOT_STARTED);
}

static double run(char **command)
{
    int status;
    double start = now();
    pid_t child = fork();

    if (child == 0)
        become(command);
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("stopwatch");
        exit(1);
    }
    double seconds = now() - start;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "stopwatch: the command failed\n");
        exit(1);
    }
    return seconds;
}

int main(int argc, char **argv)
{
    double times[REPEAT_MOST];
    int repeat = argc > 2 ? atoi(argv[1]) : 0;

    if (repeat < 1 || repeat > REPEAT_MOST) {
        fprintf(stderr, "usage: stopwatch REPEAT COMMAND [ARG]...\n");
        return 2;
    }
    for (int i = 0; i < repeat; i++)
        times[i] = run(argv + 2);
    print_figure("startup", 0, median(times, repeat) * 1e3, "ms");
    return 0;
}
