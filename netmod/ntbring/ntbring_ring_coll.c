/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

/* Collectives with one rank on each host in which all ranks communicate with their neighbours
 * only: ranks pass on the blocks for others, instead of letting forwarders do it. */

#include "mpidimpl.h"
#include "ntbring_pass.h"

#define SEGMENT MPIDI_NTBRING_SEGMENT_SZ
#define DEPTH MPIDI_NTBRING_SEGMENTS_UNDER_WAY

static void bcast_bytes(MPIDI_NTBRING_pass_t * pass, char *bytes, MPI_Aint total, int root)
{
    MPIDI_NTBRING_way_t way = MPIDI_NTBRING_way_from(root, pass->comm);
    MPI_Aint segments = (total + SEGMENT - 1) / SEGMENT;
    MPIR_Request *come[DEPTH];
    MPIR_Request *gone[DEPTH][2];
#define LENGTH(i) MPL_MIN(SEGMENT, total - (i) * SEGMENT)

    /* a software pipeline: the first DEPTH rounds only post receives, the last DEPTH only wait
     * for sends */
    for (MPI_Aint next = 0; next < segments + 2 * DEPTH; next++) {
        MPI_Aint now = next - DEPTH, past = now - DEPTH;
        if (now >= 0 && now < segments && !way.is_root) {
            MPIDI_NTBRING_pass_finish_all_of(pass, come[now % DEPTH], LENGTH(now));
        }
        if (next < segments && !way.is_root) {
            MPIDI_NTBRING_pass_receive(pass, bytes + next * SEGMENT, LENGTH(next), MPI_BYTE,
                                       way.nearer, &come[next % DEPTH]);
        }
        for (int i = 0; i < way.num_further; i++) {
            if (past >= 0 && past < segments) {
                MPIDI_NTBRING_pass_finish(pass, gone[past % DEPTH][i]);
            }
            if (now >= 0 && now < segments) {
                MPIDI_NTBRING_pass_send(pass, bytes + now * SEGMENT, LENGTH(now), MPI_BYTE,
                                        way.further[i], &gone[now % DEPTH][i]);
            }
        }
    }
#undef LENGTH
}

int MPIDI_NTBRING_ring_bcast(void *buffer, MPI_Aint count, MPI_Datatype datatype, int root,
                             MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_pass_t pass = { comm, MPIR_BCAST_TAG, errflag, MPI_SUCCESS };
    int is_contig;
    MPI_Aint total, true_lb, true_extent;
    char *bytes;
    MPIR_CHKLMEM_DECL(1);

    MPIR_Datatype_is_contig(datatype, &is_contig);
    MPIR_Datatype_get_size_macro(datatype, total);
    total *= count;
    if (total == 0) {
        goto fn_exit;
    }
    if (is_contig) {
        MPIR_Type_get_true_extent_impl(datatype, &true_lb, &true_extent);
        bytes = (char *) buffer + true_lb;
    } else {
        MPIR_CHKLMEM_MALLOC(bytes, char *, total, mpi_errno, "packed vector", MPL_MEM_BUFFER);
        if (comm->rank == root) {
            mpi_errno = MPIR_Localcopy(buffer, count, datatype, bytes, total, MPI_BYTE);
            MPIDI_NTBRING_pass_note(&pass, mpi_errno);
        }
    }
    bcast_bytes(&pass, bytes, total, root);
    mpi_errno = MPIDI_NTBRING_pass_outcome(&pass);
    MPIR_ERR_CHECK(mpi_errno);
    if (!is_contig && comm->rank != root) {
        mpi_errno = MPIR_Localcopy(bytes, total, MPI_BYTE, buffer, count, datatype);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Allgather: each rank's block is in its place in blocks, and is passed on to all other ranks. */
static void pass_all(MPIDI_NTBRING_pass_t * pass, void *blocks, MPI_Aint count,
                     MPI_Datatype datatype, MPI_Aint extent)
{
    int size = pass->comm->local_size, rank = pass->comm->rank;
    int to[2] = { (rank + 1) % size, (rank + size - 1) % size };
    int hops[2] = { MPIDI_NTBRING_HOPS_RIGHT(size), MPIDI_NTBRING_HOPS_LEFT(size) };
    MPIR_Request *come[2][NTBRING_HOSTS_MAX / 2 + 1];
    MPIR_Request *gone[NTBRING_HOSTS_MAX];
    int n = 0;
    /* the block of the rank that is i hops away against the direction of a stream; side 0 is the
     * stream to the right, side 1 that to the left */
#define BLOCK(side, i) ((char *) blocks + \
                        (rank + size + ((side) == 0 ? -(i) : (i))) % size * count * extent)

    for (int side = 0; side < 2; side++) {
        for (int i = 1; i <= hops[side]; i++) {
            MPIDI_NTBRING_pass_receive(pass, BLOCK(side, i), count, datatype, to[1 - side],
                                       &come[side][i]);
        }
    }
    for (int i = 0; i <= hops[0]; i++) {
        for (int side = 0; side < 2; side++) {
            if (i > 0 && i <= hops[side]) {
                MPIDI_NTBRING_pass_finish(pass, come[side][i]);
            }
            if (i < hops[side]) {
                MPIDI_NTBRING_pass_send(pass, BLOCK(side, i), count, datatype, to[side],
                                        &gone[n++]);
            }
        }
    }
    for (int i = 0; i < n; i++) {
        MPIDI_NTBRING_pass_finish(pass, gone[i]);
    }
#undef BLOCK
}

int MPIDI_NTBRING_ring_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                 MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_pass_t pass = { comm, MPIR_ALLGATHER_TAG, errflag, MPI_SUCCESS };
    MPI_Aint extent;

    MPIR_Datatype_get_extent_macro(recvtype, extent);
    if (sendbuf != MPI_IN_PLACE) {
        mpi_errno = MPIR_Localcopy(sendbuf, sendcount, sendtype,
                                   (char *) recvbuf + comm->rank * recvcount * extent, recvcount,
                                   recvtype);
        MPIDI_NTBRING_pass_note(&pass, mpi_errno);
    }
    pass_all(&pass, recvbuf, recvcount, recvtype, extent);
    return MPIDI_NTBRING_pass_outcome(&pass);
}

/* Allreduce: all ranks gather all vectors and compute the same result in the same order. */
int MPIDI_NTBRING_ring_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                 MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                 MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_pass_t pass = { comm, MPIR_ALLREDUCE_TAG, errflag, MPI_SUCCESS };
    int last = comm->local_size - 1;
    MPI_Aint size = count * MPIR_Datatype_get_basic_size(datatype);
    char *vectors;
    MPIR_CHKLMEM_DECL(1);

    MPIR_CHKLMEM_MALLOC(vectors, char *, comm->local_size * size, mpi_errno, "vectors",
                        MPL_MEM_BUFFER);
    memcpy(vectors + comm->rank * size, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, size);
    pass_all(&pass, vectors, size, MPI_BYTE, 1);
    mpi_errno = MPIDI_NTBRING_pass_outcome(&pass);
    MPIR_ERR_CHECK(mpi_errno);
    memcpy(recvbuf, vectors + last * size, size);
    for (int i = last - 1; i >= 0; i--) {
        mpi_errno = MPIR_Reduce_local(vectors + i * size, recvbuf, count, datatype, op);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Alltoall: each rank sends to each neighbour the block for it and the block for the rank beyond
 * it, and the neighbour passes the latter on. On a ring of four, the block for the opposite rank
 * goes right. */
int MPIDI_NTBRING_ring_alltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_pass_t pass = { comm, MPIR_ALLTOALL_TAG, errflag, MPI_SUCCESS };
    int size = comm->local_size, rank = comm->rank;
    int sides = size > 4 ? 2 : 1;       /* directions in which blocks are passed on */
    MPI_Aint send_extent, recv_extent, type_size, block_sz;
    MPIR_Request *transit[2];
    MPIR_Request *reqs[10];
    int n = 0;
    char *beyond;
    MPIR_CHKLMEM_DECL(1);

    MPIR_Datatype_get_extent_macro(sendtype, send_extent);
    MPIR_Datatype_get_extent_macro(recvtype, recv_extent);
    MPIR_Datatype_get_size_macro(recvtype, type_size);
    block_sz = recvcount * type_size;
#define SEND_BLOCK(of) ((const char *) sendbuf + ((of) % size) * sendcount * send_extent)
#define RECV_BLOCK(of) ((char *) recvbuf + ((of) % size) * recvcount * recv_extent)

    MPIR_CHKLMEM_MALLOC(beyond, char *, sides * block_sz, mpi_errno, "transit", MPL_MEM_BUFFER);

    for (int side = 0; side < 2; side++) {
        /* a stream that comes from the left continues to the right */
        int from = (rank + (side == 0 ? size - 1 : 1)) % size;
        int origin = (rank + (side == 0 ? size - 2 : 2)) % size;
        if (side < sides) {
            MPIDI_NTBRING_pass_receive(&pass, beyond + side * block_sz, block_sz, MPI_BYTE, from,
                                       &transit[side]);
        }
        MPIDI_NTBRING_pass_receive(&pass, RECV_BLOCK(from), recvcount, recvtype, from, &reqs[n++]);
        if (side < sides) {
            MPIDI_NTBRING_pass_receive(&pass, RECV_BLOCK(origin), recvcount, recvtype, from,
                                       &reqs[n++]);
        }
    }
    for (int side = 0; side < 2; side++) {
        int to = (rank + (side == 0 ? 1 : size - 1)) % size;
        int end = rank + (side == 0 ? 2 : size - 2);
        /* the block to be passed on first, since another rank waits for it */
        if (side < sides) {
            MPIDI_NTBRING_pass_send(&pass, SEND_BLOCK(end), sendcount, sendtype, to, &reqs[n++]);
        }
        MPIDI_NTBRING_pass_send(&pass, SEND_BLOCK(to), sendcount, sendtype, to, &reqs[n++]);
    }
    for (int side = 0; side < sides; side++) {
        int to = (rank + (side == 0 ? 1 : size - 1)) % size;
        MPIDI_NTBRING_pass_finish_all_of(&pass, transit[side], block_sz);
        MPIDI_NTBRING_pass_send(&pass, beyond + side * block_sz, block_sz, MPI_BYTE, to, &reqs[n++]);
    }
    mpi_errno = MPIR_Localcopy(SEND_BLOCK(rank), sendcount, sendtype,
                               RECV_BLOCK(rank), recvcount, recvtype);
    MPIDI_NTBRING_pass_note(&pass, mpi_errno);
    for (int i = 0; i < n; i++) {
        MPIDI_NTBRING_pass_finish(&pass, reqs[i]);
    }
    mpi_errno = MPIDI_NTBRING_pass_outcome(&pass);
#undef SEND_BLOCK
#undef RECV_BLOCK

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
