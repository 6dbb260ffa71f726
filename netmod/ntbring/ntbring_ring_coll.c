/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

/* Collectives of one rank a host in which everybody talks to its neighbours only: what is for others
 * is passed on, rather than relayed by forwarders. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* Half of the way round there are this many hops to the right, the others are to the left. */
#define HOPS_RIGHT(size) ((size) / 2)
#define HOPS_LEFT(size) (((size) - 1) / 2)

/* What fails is noted, and the collective goes on: others take part in it. */
static void note(int mpi_errno, MPIR_Errflag_t * errflag, int *mpi_errno_ret)
{
    if (mpi_errno) {
        MPIDI_NTBRING_note_error(mpi_errno, errflag);
        MPIR_ERR_SET(mpi_errno, *errflag, "**fail");
        MPIR_ERR_ADD(*mpi_errno_ret, mpi_errno);
    }
}

static void receive_block(void *buf, MPI_Aint count, MPI_Datatype datatype, int from, int tag,
                          MPIR_Comm * comm, MPIR_Request ** req, MPIR_Errflag_t * errflag,
                          int *mpi_errno_ret)
{
    int mpi_errno = MPIC_Irecv(buf, count, datatype, from, tag, comm, req);
    if (mpi_errno) {
        *req = NULL;
        note(mpi_errno, errflag, mpi_errno_ret);
    }
}

static void send_block(const void *buf, MPI_Aint count, MPI_Datatype datatype, int to, int tag,
                       MPIR_Comm * comm, MPIR_Request ** req, MPIR_Errflag_t * errflag,
                       int *mpi_errno_ret)
{
    int mpi_errno = MPIC_Isend(buf, count, datatype, to, tag, comm, req, errflag);
    if (mpi_errno) {
        *req = NULL;
        note(mpi_errno, errflag, mpi_errno_ret);
    }
}

/* Waits for what was sent or is received; the number of bytes, if it has come. */
static MPI_Aint finish(MPIR_Request * req, MPIR_Errflag_t * errflag, int *mpi_errno_ret)
{
    int mpi_errno = MPI_SUCCESS;
    MPI_Aint bytes = -1;

    if (req) {
        mpi_errno = MPIC_Wait(req, errflag);
        if (mpi_errno == MPI_SUCCESS) {
            mpi_errno = req->status.MPI_ERROR;
        }
        if (mpi_errno == MPI_SUCCESS) {
            MPIR_Get_count_impl(&req->status, MPI_BYTE, &bytes);
        }
        MPIR_Request_free(req);
    }
    note(mpi_errno, errflag, mpi_errno_ret);
    return bytes;
}

/* Also who has heard of a failure only must not take what it has for good. */
static int outcome(int mpi_errno_ret, MPIR_Errflag_t errflag)
{
    return mpi_errno_ret ? mpi_errno_ret : MPIDI_NTBRING_failed_before(errflag);
}

/* Large vectors are passed on in segments, so that all hosts copy at once: what is sent without asking. */
#define SEGMENT 65536
/* Of these so many are under way in each direction. */
#define DEPTH 4

static int bcast_bytes(char *bytes, MPI_Aint total, int root, MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int mpi_errno_ret = MPI_SUCCESS;
    int size = comm->local_size, rank = comm->rank;
    int hops = (rank - root + size) % size;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int from = hops <= HOPS_RIGHT(size) ? left : right;
    int to[2], num_to = 0;
    MPI_Aint segments = (total + SEGMENT - 1) / SEGMENT;
    MPIR_Request *come[DEPTH];
    MPIR_Request *gone[DEPTH][2];
#define LENGTH(i) MPL_MIN(SEGMENT, total - (i) * SEGMENT)

    if (hops < HOPS_RIGHT(size)) {
        to[num_to++] = right;
    }
    if ((hops == 0 ? 0 : size - hops) < HOPS_LEFT(size)) {
        to[num_to++] = left;
    }
    /* the first DEPTH times only receives are posted, the last only what was sent is waited for */
    for (MPI_Aint next = 0; next < segments + 2 * DEPTH; next++) {
        MPI_Aint now = next - DEPTH, past = now - DEPTH;
        if (now >= 0 && now < segments && hops > 0) {
            MPI_Aint received = finish(come[now % DEPTH], errflag, &mpi_errno_ret);
            if (received >= 0 && received != LENGTH(now)) {
                MPIR_ERR_SET2(mpi_errno, MPI_ERR_OTHER, "**collective_size_mismatch",
                              "**collective_size_mismatch %d %d", (int) received, (int) LENGTH(now));
                note(mpi_errno, errflag, &mpi_errno_ret);
            }
        }
        if (next < segments && hops > 0) {
            receive_block(bytes + next * SEGMENT, LENGTH(next), MPI_BYTE, from, MPIR_BCAST_TAG, comm,
                          &come[next % DEPTH], errflag, &mpi_errno_ret);
        }
        for (int i = 0; i < num_to; i++) {
            if (past >= 0 && past < segments) {
                finish(gone[past % DEPTH][i], errflag, &mpi_errno_ret);
            }
            if (now >= 0 && now < segments) {
                send_block(bytes + now * SEGMENT, LENGTH(now), MPI_BYTE, to[i], MPIR_BCAST_TAG, comm,
                           &gone[now % DEPTH][i], errflag, &mpi_errno_ret);
            }
        }
    }
#undef LENGTH

    return outcome(mpi_errno_ret, *errflag);
}

int MPIDI_NTBRING_ring_bcast(void *buffer, MPI_Aint count, MPI_Datatype datatype, int root,
                             MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int mpi_errno_ret = MPI_SUCCESS;
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
            note(mpi_errno, errflag, &mpi_errno_ret);
        }
    }
    mpi_errno = bcast_bytes(bytes, total, root, comm, errflag);
    MPIR_ERR_CHECK(mpi_errno);
    if (!is_contig && comm->rank != root) {
        mpi_errno = MPIR_Localcopy(bytes, total, MPI_BYTE, buffer, count, datatype);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno_ret ? mpi_errno_ret : mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Everybody's block, of which each has its own in its place, gets to all. */
static int pass_all(void *blocks, MPI_Aint count, MPI_Datatype datatype, MPI_Aint extent, int tag,
                    MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno_ret = MPI_SUCCESS;
    int size = comm->local_size, rank = comm->rank;
    int to[2] = { (rank + 1) % size, (rank + size - 1) % size };
    int hops[2] = { HOPS_RIGHT(size), HOPS_LEFT(size) };
    MPIR_Request *come[2][NTBRING_HOSTS_MAX / 2 + 1];
    MPIR_Request *gone[NTBRING_HOSTS_MAX];
    int n = 0;
    /* that which comes from so many hosts away by a stream that goes to the right, or the left */
#define BLOCK(side, i) ((char *) blocks + \
                        (rank + size + ((side) == 0 ? -(i) : (i))) % size * count * extent)

    for (int side = 0; side < 2; side++) {
        for (int i = 1; i <= hops[side]; i++) {
            receive_block(BLOCK(side, i), count, datatype, to[1 - side], tag, comm, &come[side][i],
                          errflag, &mpi_errno_ret);
        }
    }
    for (int i = 0; i <= hops[0]; i++) {
        for (int side = 0; side < 2; side++) {
            if (i > 0 && i <= hops[side]) {
                finish(come[side][i], errflag, &mpi_errno_ret);
            }
            if (i < hops[side]) {
                send_block(BLOCK(side, i), count, datatype, to[side], tag, comm, &gone[n++], errflag,
                           &mpi_errno_ret);
            }
        }
    }
    for (int i = 0; i < n; i++) {
        finish(gone[i], errflag, &mpi_errno_ret);
    }
#undef BLOCK

    return outcome(mpi_errno_ret, *errflag);
}

int MPIDI_NTBRING_ring_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                 MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int mpi_errno_ret = MPI_SUCCESS;
    MPI_Aint extent;

    MPIR_Datatype_get_extent_macro(recvtype, extent);
    if (sendbuf != MPI_IN_PLACE) {
        mpi_errno = MPIR_Localcopy(sendbuf, sendcount, sendtype,
                                   (char *) recvbuf + comm->rank * recvcount * extent, recvcount,
                                   recvtype);
        note(mpi_errno, errflag, &mpi_errno_ret);
    }
    mpi_errno = pass_all(recvbuf, recvcount, recvtype, extent, MPIR_ALLGATHER_TAG, comm, errflag);
    return mpi_errno_ret ? mpi_errno_ret : mpi_errno;
}

/* All ranks compute the same in the same order. */
int MPIDI_NTBRING_ring_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                 MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                 MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int last = comm->local_size - 1;
    MPI_Aint size = count * MPIR_Datatype_get_basic_size(datatype);
    char *vectors;
    MPIR_CHKLMEM_DECL(1);

    MPIR_CHKLMEM_MALLOC(vectors, char *, comm->local_size * size, mpi_errno, "vectors",
                        MPL_MEM_BUFFER);
    memcpy(vectors + comm->rank * size, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, size);
    mpi_errno = pass_all(vectors, size, MPI_BYTE, 1, MPIR_ALLREDUCE_TAG, comm, errflag);
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

/* Each rank gives its neighbours what is for them and what is for those beyond them, and passes the
 * latter on. Of four ranks, that to the opposite one goes right. */
int MPIDI_NTBRING_ring_alltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int mpi_errno_ret = MPI_SUCCESS;
    int size = comm->local_size, rank = comm->rank;
    int sides = size > 4 ? 2 : 1;       /* by which something is passed on */
    MPI_Aint send_extent, recv_extent, type_size, block_sz;
    MPIR_Request *transit[2];
    MPIR_Request *reqs[10];
    int n = 0;
    MPIR_CHKLMEM_DECL(1);

    MPIR_Datatype_get_extent_macro(sendtype, send_extent);
    MPIR_Datatype_get_extent_macro(recvtype, recv_extent);
    MPIR_Datatype_get_size_macro(recvtype, type_size);
    block_sz = recvcount * type_size;
#define SEND_BLOCK(of) ((const char *) sendbuf + ((of) % size) * sendcount * send_extent)
#define RECV_BLOCK(of) ((char *) recvbuf + ((of) % size) * recvcount * recv_extent)
#define SEND(buf, count, type, to, req) \
    send_block(buf, count, type, to, MPIR_ALLTOALL_TAG, comm, req, errflag, &mpi_errno_ret)
#define RECEIVE(buf, count, type, from, req) \
    receive_block(buf, count, type, from, MPIR_ALLTOALL_TAG, comm, req, errflag, &mpi_errno_ret)

    char *beyond;
    MPIR_CHKLMEM_MALLOC(beyond, char *, sides * block_sz, mpi_errno, "transit", MPL_MEM_BUFFER);

    for (int side = 0; side < 2; side++) {
        /* what comes from the left goes right */
        int from = (rank + (side == 0 ? size - 1 : 1)) % size;
        int origin = (rank + (side == 0 ? size - 2 : 2)) % size;
        if (side < sides) {
            RECEIVE(beyond + side * block_sz, block_sz, MPI_BYTE, from, &transit[side]);
        }
        RECEIVE(RECV_BLOCK(from), recvcount, recvtype, from, &reqs[n++]);
        if (side < sides) {
            RECEIVE(RECV_BLOCK(origin), recvcount, recvtype, from, &reqs[n++]);
        }
    }
    for (int side = 0; side < 2; side++) {
        int to = (rank + (side == 0 ? 1 : size - 1)) % size;
        int end = rank + (side == 0 ? 2 : size - 2);
        /* first what others wait for to pass it on */
        if (side < sides) {
            SEND(SEND_BLOCK(end), sendcount, sendtype, to, &reqs[n++]);
        }
        SEND(SEND_BLOCK(to), sendcount, sendtype, to, &reqs[n++]);
    }
    for (int side = 0; side < sides; side++) {
        int to = (rank + (side == 0 ? 1 : size - 1)) % size;
        finish(transit[side], errflag, &mpi_errno_ret);
        SEND(beyond + side * block_sz, block_sz, MPI_BYTE, to, &reqs[n++]);
    }
    mpi_errno = MPIR_Localcopy(SEND_BLOCK(rank), sendcount, sendtype,
                               RECV_BLOCK(rank), recvcount, recvtype);
    note(mpi_errno, errflag, &mpi_errno_ret);
    for (int i = 0; i < n; i++) {
        finish(reqs[i], errflag, &mpi_errno_ret);
    }
    mpi_errno = outcome(mpi_errno_ret, *errflag);

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
#undef SEND
#undef RECEIVE
#undef SEND_BLOCK
#undef RECV_BLOCK
}
