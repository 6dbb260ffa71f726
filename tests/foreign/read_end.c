/* Reads across the end of a file, one by one and by all together, blocking and not: the status counts what was read,
 * and what was read is right. The file is beside the program. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

enum { FULL = 1000, SHORT = 10, ASKED = 100 };

static int rank;

static void check(MPI_File file, MPI_Offset at, int expected, const char *how)
{
    int got[ASKED], count = -1;
    MPI_Status status;
    MPI_Request request;

    memset(got, 0, sizeof(got));
    if (strcmp(how, "read_at") == 0) {
        MPI_File_read_at(file, at, got, ASKED, MPI_INT, &status);
    } else if (strcmp(how, "read_at_all") == 0) {
        MPI_File_read_at_all(file, at, got, ASKED, MPI_INT, &status);
    } else if (strcmp(how, "iread_at") == 0) {
        MPI_File_iread_at(file, at, got, ASKED, MPI_INT, &request);
        MPI_Wait(&request, &status);
    } else {
        MPI_File_iread_at_all(file, at, got, ASKED, MPI_INT, &request);
        MPI_Wait(&request, &status);
    }
    MPI_Get_count(&status, MPI_INT, &count);
    int wrong = count != expected;
    for (int i = 0; i < expected && !wrong; i++) {
        wrong = got[i] != at / (int) sizeof(int) + i;
    }
    if (wrong) {
        fprintf(stderr, "rank %d: %s at %lld: %d numbers, expected %d\n", rank, how, (long long) at, count, expected);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

int main(int argc, char **argv)
{
    static const char *const ways[] = { "read_at", "read_at_all", "iread_at", "iread_at_all" };
    static int mine[FULL];
    char name[4096];
    int size;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_File_set_errhandler(MPI_FILE_NULL, MPI_ERRORS_ARE_FATAL);
    snprintf(name, sizeof(name), "%s.data", argv[0]);
    for (int i = 0; i < FULL; i++) {
        mine[i] = rank * FULL + i;
    }
    MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
    MPI_File_write_at_all(file, (MPI_Offset) rank * sizeof(mine), mine, FULL, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Offset end = (MPI_Offset) size * sizeof(mine);
    MPI_Offset across = end - SHORT * (MPI_Offset) sizeof(int);
    for (int way = 0; way < 4; way++) {
        check(file, 0, ASKED, ways[way]);
        check(file, across, SHORT, ways[way]);
        check(file, end, 0, ways[way]);
        /* each rank at a place of its own: only the last one meets the end */
        check(file, rank == size - 1 ? across : rank * (MPI_Offset) sizeof(mine), rank == size - 1 ? SHORT : ASKED,
              ways[way]);
    }
    MPI_File_close(&file);
    if (rank == 0) {
        printf("ok\n");
    }
    MPI_Finalize();
    return 0;
}
