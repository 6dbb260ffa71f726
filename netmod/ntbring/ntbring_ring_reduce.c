/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

/* Reductions of one rank a host in which everybody talks to its neighbours only. Operations and types
 * are MPI's own: elements side by side, in any order of the ranks. */

#include "mpidimpl.h"
#include "ntbring_pass.h"

#define SEGMENT MPIDI_NTBRING_SEGMENT_SZ
#define DEPTH MPIDI_NTBRING_SEGMENTS_UNDER_WAY

static void reduce_local(MPIDI_NTBRING_pass_t * pass, const void *in, void *inout, MPI_Aint count,
                         MPI_Datatype datatype, MPI_Op op)
{
    MPIDI_NTBRING_pass_note(pass, MPIR_Reduce_local(in, inout, count, datatype, op));
}

/* A broadcast backwards: both halves of the ring are reduced towards the root, in segments. */
int MPIDI_NTBRING_ring_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                              MPI_Datatype datatype, MPI_Op op, int root, MPIR_Comm * comm,
                              MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_pass_t pass = { comm, MPIR_REDUCE_TAG, errflag, MPI_SUCCESS };
    int size = comm->local_size, rank = comm->rank;
    int hops = (rank - root + size) % size;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int to = hops <= MPIDI_NTBRING_HOPS_RIGHT(size) ? left : right;
    int from[2], num_from = 0;
    MPI_Aint width = MPIR_Datatype_get_basic_size(datatype);
    MPI_Aint most = SEGMENT / width;
    MPI_Aint segments = (count + most - 1) / most;
    MPIR_Request *come[DEPTH][2];
    MPIR_Request *gone[DEPTH];
    char *places;
    MPIR_CHKLMEM_DECL(1);
#define LENGTH(i) MPL_MIN(most, count - (i) * most)
#define MINE(i) ((const char *) sendbuf + (i) * most * width)
    /* what comes has a place until it has gone on */
#define PLACE(i, child) (places + (((i) % (2 * DEPTH)) * num_from + (child)) * span)

    if (hops < MPIDI_NTBRING_HOPS_RIGHT(size)) {
        from[num_from++] = right;
    }
    if ((hops == 0 ? 0 : size - hops) < MPIDI_NTBRING_HOPS_LEFT(size)) {
        from[num_from++] = left;
    }
    MPI_Aint span = MPL_MIN(most, count) * width;
    MPIR_CHKLMEM_MALLOC(places, char *, MPL_MIN(2 * DEPTH, segments) * num_from * span + 1, mpi_errno,
                        "segments", MPL_MEM_BUFFER);
    /* the first DEPTH times only receives are posted, the last only what was sent is waited for */
    for (MPI_Aint next = 0; next < segments + 2 * DEPTH; next++) {
        MPI_Aint now = next - DEPTH, past = now - DEPTH;
        if (hops > 0 && past >= 0 && past < segments) {
            MPIDI_NTBRING_pass_finish(&pass, gone[past % DEPTH]);
        }
        if (now >= 0 && now < segments) {
            const char *sum = MINE(now);
            if (hops == 0) {
                char *result = (char *) recvbuf + now * most * width;
                if (sendbuf != MPI_IN_PLACE) {
                    memcpy(result, sum, LENGTH(now) * width);
                }
                for (int i = 0; i < num_from; i++) {
                    MPIDI_NTBRING_pass_finish_all_of(&pass, come[now % DEPTH][i], LENGTH(now) * width);
                    reduce_local(&pass, PLACE(now, i), result, LENGTH(now), datatype, op);
                }
            } else {
                if (num_from > 0) {
                    MPIDI_NTBRING_pass_finish_all_of(&pass, come[now % DEPTH][0], LENGTH(now) * width);
                    reduce_local(&pass, sum, PLACE(now, 0), LENGTH(now), datatype, op);
                    sum = PLACE(now, 0);
                }
                MPIDI_NTBRING_pass_send(&pass, sum, LENGTH(now), datatype, to, &gone[now % DEPTH]);
            }
        }
        for (int i = 0; i < num_from && next < segments; i++) {
            MPIDI_NTBRING_pass_receive(&pass, PLACE(next, i), LENGTH(next), datatype, from[i],
                                       &come[next % DEPTH][i]);
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

/* Each rank's part of one half of the vector is summed up on a way round to the right, and then handed
 * round; the other half's go left. */
int MPIDI_NTBRING_ring_allreduce_parts(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                       MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                       MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_pass_t pass = { comm, MPIR_ALLREDUCE_TAG, errflag, MPI_SUCCESS };
    int size = comm->local_size, rank = comm->rank, last = size - 1;
    int to[2] = { (rank + 1) % size, (rank + last) % size };
    MPI_Aint width = MPIR_Datatype_get_basic_size(datatype);
    MPIR_Request *come[2][NTBRING_HOSTS_MAX];
    MPIR_Request *gone[2][NTBRING_HOSTS_MAX];
    MPIR_CHKLMEM_DECL(1);
    /* that which started, or starts, so many ranks back on the way of a side */
#define PART(side, i) (2 * ((rank + size + ((side) == 0 ? -(i) : (i))) % size) + (side))
#define BEGIN(part) ((part) * count / (2 * size))
#define AT(buf, part) ((char *) (buf) + BEGIN(part) * width)
#define LENGTH(part) (BEGIN((part) + 1) - BEGIN(part))
#define RECEIVE(side, i) \
    MPIDI_NTBRING_pass_receive(&pass, AT(recvbuf, PART(side, i)), LENGTH(PART(side, i)), datatype, \
                               to[1 - (side)], &come[side][i])
#define FINISH_RECEIVE(side, i) \
    MPIDI_NTBRING_pass_finish_all_of(&pass, come[side][i], LENGTH(PART(side, i)) * width)
#define SEND(side, i, buf) \
    MPIDI_NTBRING_pass_send(&pass, AT(buf, PART(side, i)), LENGTH(PART(side, i)), datatype, \
                            to[side], &gone[side][i])

    if (sendbuf == MPI_IN_PLACE) {
        char *mine;
        MPIR_CHKLMEM_MALLOC(mine, char *, count * width, mpi_errno, "vector", MPL_MEM_BUFFER);
        memcpy(mine, recvbuf, count * width);
        sendbuf = mine;
    }

    for (int i = 1; i <= last; i++) {
        RECEIVE(0, i);
        RECEIVE(1, i);
    }
    for (int i = 0; i < last; i++) {
        for (int side = 0; side < 2; side++) {
            if (i > 0) {
                int part = PART(side, i);
                FINISH_RECEIVE(side, i);
                reduce_local(&pass, AT(sendbuf, part), AT(recvbuf, part), LENGTH(part), datatype, op);
            }
            SEND(side, i, i > 0 ? recvbuf : sendbuf);
        }
    }
    for (int side = 0; side < 2; side++) {
        int part = PART(side, last);
        FINISH_RECEIVE(side, last);
        reduce_local(&pass, AT(sendbuf, part), AT(recvbuf, part), LENGTH(part), datatype, op);
        SEND(side, last, recvbuf);
    }
    /* the sums take the places of what has gone */
    for (int i = 0; i < last; i++) {
        for (int side = 0; side < 2; side++) {
            MPIDI_NTBRING_pass_finish(&pass, gone[side][i]);
            RECEIVE(side, i);
        }
    }
    for (int i = 0; i < last; i++) {
        for (int side = 0; side < 2; side++) {
            FINISH_RECEIVE(side, i);
            if (i < last - 1) {
                SEND(side, i, recvbuf);
            } else {
                gone[side][i] = NULL;
            }
        }
    }
    for (int i = 0; i <= last; i++) {
        MPIDI_NTBRING_pass_finish(&pass, gone[0][i]);
        MPIDI_NTBRING_pass_finish(&pass, gone[1][i]);
    }
    mpi_errno = MPIDI_NTBRING_pass_outcome(&pass);
#undef PART
#undef BEGIN
#undef AT
#undef LENGTH
#undef RECEIVE
#undef FINISH_RECEIVE
#undef SEND

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
