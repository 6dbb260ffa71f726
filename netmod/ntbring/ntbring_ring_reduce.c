/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

/* Reductions with one rank on each host in which all ranks communicate with their neighbours
 * only. They support predefined operations and types: contiguous elements, combined in any order
 * of the ranks. */

#include "mpidimpl.h"
#include "ntbring_pass.h"

#define SEGMENT MPIDI_NTBRING_SEGMENT_SZ
#define DEPTH MPIDI_NTBRING_SEGMENTS_UNDER_WAY

static void reduce_local(MPIDI_NTBRING_pass_t * pass, const void *in, void *inout, MPI_Aint count,
                         MPI_Datatype datatype, MPI_Op op)
{
    MPIDI_NTBRING_pass_note(pass, MPIR_Reduce_local(in, inout, count, datatype, op));
}

/* Reduce: the reverse of a broadcast. Both halves of the ring are reduced towards the root, in
 * segments. */
int MPIDI_NTBRING_ring_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                              MPI_Datatype datatype, MPI_Op op, int root, MPIR_Comm * comm,
                              MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_pass_t pass = { comm, MPIR_REDUCE_TAG, errflag, MPI_SUCCESS };
    MPIDI_NTBRING_way_t way = MPIDI_NTBRING_way_from(root, comm);
    MPI_Aint width = MPIR_Datatype_get_basic_size(datatype);
    MPI_Aint most = SEGMENT / width;
    MPI_Aint segments = (count + most - 1) / most;
    MPI_Aint span = MPL_MIN(most, count) * width;
    MPIR_Request *come[DEPTH][2];
    MPIR_Request *gone[DEPTH];
    char *places;
    MPIR_CHKLMEM_DECL(1);
#define LENGTH(i) MPL_MIN(most, count - (i) * most)
#define MINE(i) ((const char *) sendbuf + (i) * most * width)
    /* the buffer of a received segment, which is in use until the sum has been sent on */
#define PLACE(i, from) (places + (((i) % (2 * DEPTH)) * way.num_further + (from)) * span)

    MPIR_CHKLMEM_MALLOC(places, char *,
                        MPL_MIN(2 * DEPTH, segments) * way.num_further * span + 1, mpi_errno,
                        "segments", MPL_MEM_BUFFER);
    /* a software pipeline: the first DEPTH rounds only post receives, the last DEPTH only wait
     * for sends */
    for (MPI_Aint next = 0; next < segments + 2 * DEPTH; next++) {
        MPI_Aint now = next - DEPTH, past = now - DEPTH;
        if (!way.is_root && past >= 0 && past < segments) {
            MPIDI_NTBRING_pass_finish(&pass, gone[past % DEPTH]);
        }
        if (now >= 0 && now < segments) {
            const char *sum = MINE(now);
            if (way.is_root) {
                char *result = (char *) recvbuf + now * most * width;
                if (sendbuf != MPI_IN_PLACE) {
                    memcpy(result, sum, LENGTH(now) * width);
                }
                for (int i = 0; i < way.num_further; i++) {
                    MPIDI_NTBRING_pass_finish_all_of(&pass, come[now % DEPTH][i], LENGTH(now) * width);
                    reduce_local(&pass, PLACE(now, i), result, LENGTH(now), datatype, op);
                }
            } else {
                if (way.num_further > 0) {
                    MPIDI_NTBRING_pass_finish_all_of(&pass, come[now % DEPTH][0], LENGTH(now) * width);
                    reduce_local(&pass, sum, PLACE(now, 0), LENGTH(now), datatype, op);
                    sum = PLACE(now, 0);
                }
                MPIDI_NTBRING_pass_send(&pass, sum, LENGTH(now), datatype, way.nearer,
                                        &gone[now % DEPTH]);
            }
        }
        for (int i = 0; i < way.num_further && next < segments; i++) {
            MPIDI_NTBRING_pass_receive(&pass, PLACE(next, i), LENGTH(next), datatype,
                                       way.further[i], &come[next % DEPTH][i]);
        }
    }
    mpi_errno = MPIDI_NTBRING_pass_outcome(&pass);
#undef LENGTH
#undef MINE
#undef PLACE

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* A vector that is divided into two parts for each rank, of which one moves right and the other
 * left. */
typedef struct {
    MPIDI_NTBRING_pass_t pass;
    const void *sendbuf;
    void *recvbuf;
    MPI_Aint count, width;
    MPI_Datatype datatype;
    MPI_Op op;
    int to[2];
    MPIR_Request *come[2][NTBRING_HOSTS_MAX];
    MPIR_Request *gone[2][NTBRING_HOSTS_MAX];
} parts_t;

/* Returns the part that started i hops back against the direction of a side. */
static int part_of(const parts_t * parts, int side, int i)
{
    int size = parts->pass.comm->local_size;
    return 2 * ((parts->pass.comm->rank + size + (side == 0 ? -i : i)) % size) + side;
}

static MPI_Aint part_begin(const parts_t * parts, int part)
{
    return part * parts->count / (2 * parts->pass.comm->local_size);
}

static MPI_Aint part_length(const parts_t * parts, int part)
{
    return part_begin(parts, part + 1) - part_begin(parts, part);
}

static void *part_at(const parts_t * parts, const void *buf, int part)
{
    return (char *) buf + part_begin(parts, part) * parts->width;
}

static void receive_part(parts_t * parts, int side, int i)
{
    int part = part_of(parts, side, i);
    MPIDI_NTBRING_pass_receive(&parts->pass, part_at(parts, parts->recvbuf, part),
                               part_length(parts, part), parts->datatype, parts->to[1 - side],
                               &parts->come[side][i]);
}

static void finish_part(parts_t * parts, int side, int i)
{
    MPIDI_NTBRING_pass_finish_all_of(&parts->pass, parts->come[side][i],
                                     part_length(parts, part_of(parts, side, i)) * parts->width);
}

static void add_to_part(parts_t * parts, int side, int i)
{
    int part = part_of(parts, side, i);
    reduce_local(&parts->pass, part_at(parts, parts->sendbuf, part),
                 part_at(parts, parts->recvbuf, part), part_length(parts, part), parts->datatype,
                 parts->op);
}

static void send_part(parts_t * parts, int side, int i, const void *buf)
{
    int part = part_of(parts, side, i);
    MPIDI_NTBRING_pass_send(&parts->pass, part_at(parts, buf, part), part_length(parts, part),
                            parts->datatype, parts->to[side], &parts->gone[side][i]);
}

/* Reduce-scatter: each part moves round the ring and collects the contributions of all ranks.
 * The rank before the one at which it started completes the sum, and sends it on first. */
static void sum_up_parts(parts_t * parts)
{
    int last = parts->pass.comm->local_size - 1;

    for (int i = 1; i <= last; i++) {
        receive_part(parts, 0, i);
        receive_part(parts, 1, i);
    }
    for (int i = 0; i <= last; i++) {
        for (int side = 0; side < 2; side++) {
            if (i > 0) {
                finish_part(parts, side, i);
                add_to_part(parts, side, i);
            }
            send_part(parts, side, i, i > 0 ? parts->recvbuf : parts->sendbuf);
        }
    }
}

/* Allgather: the completed sums move round the ring and replace the partial sums in recvbuf. */
static void hand_parts_round(parts_t * parts)
{
    int last = parts->pass.comm->local_size - 1;

    for (int i = 0; i < last; i++) {
        for (int side = 0; side < 2; side++) {
            MPIDI_NTBRING_pass_finish(&parts->pass, parts->gone[side][i]);
            receive_part(parts, side, i);
        }
    }
    for (int i = 0; i < last; i++) {
        for (int side = 0; side < 2; side++) {
            finish_part(parts, side, i);
            if (i < last - 1) {
                send_part(parts, side, i, parts->recvbuf);
            } else {
                parts->gone[side][i] = NULL;
            }
        }
    }
    for (int i = 0; i <= last; i++) {
        MPIDI_NTBRING_pass_finish(&parts->pass, parts->gone[0][i]);
        MPIDI_NTBRING_pass_finish(&parts->pass, parts->gone[1][i]);
    }
}

int MPIDI_NTBRING_ring_allreduce_parts(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                       MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                       MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int size = comm->local_size, rank = comm->rank;
    parts_t parts = {
        .pass = {comm, MPIR_ALLREDUCE_TAG, errflag, MPI_SUCCESS},
        .sendbuf = sendbuf,
        .recvbuf = recvbuf,
        .count = count,
        .width = MPIR_Datatype_get_basic_size(datatype),
        .datatype = datatype,
        .op = op,
        .to = {(rank + 1) % size, (rank + size - 1) % size}
    };
    MPIR_CHKLMEM_DECL(1);

    if (sendbuf == MPI_IN_PLACE) {
        char *mine;
        MPIR_CHKLMEM_MALLOC(mine, char *, count * parts.width, mpi_errno, "vector", MPL_MEM_BUFFER);
        memcpy(mine, recvbuf, count * parts.width);
        parts.sendbuf = mine;
    }
    sum_up_parts(&parts);
    hand_parts_round(&parts);
    mpi_errno = MPIDI_NTBRING_pass_outcome(&parts.pass);

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
