/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

static void note_error(int mpi_errno, MPIR_Errflag_t * errflag)
{
    if (mpi_errno) {
        *errflag = MPIX_ERR_PROC_FAILED == MPIR_ERR_GET_CLASS(mpi_errno) ?
            MPIR_ERR_PROC_FAILED : MPIR_ERR_OTHER;
    }
}

/* The partner in a step of recursive doubling, in the order of the reflected Gray code: partners
 * are nearer on the ring than in the order of ranks. Of four hosts all are neighbours. */
static int gray_partner(MPIR_Comm * comm, int bit)
{
    int partner = comm->rank ^ comm->rank >> 1 ^ bit;
    for (int shift = 1; shift < comm->local_size; shift <<= 1) {
        partner ^= partner >> shift;
    }
    return partner;
}

/* What is heard from both neighbours comes from one host further away in each round, without a
 * relay. */
static int neighbour_round(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int size = comm->local_size;
    int sides[2] = { (comm->rank + 1) % size, (comm->rank + size - 1) % size };
    MPIR_Request *reqs[4];
    MPI_Status statuses[4];

    for (int i = 0; i < 2; i++) {
        mpi_errno = MPIC_Irecv(NULL, 0, MPI_BYTE, sides[i], MPIR_BARRIER_TAG, comm, &reqs[i]);
        MPIR_ERR_CHECK(mpi_errno);
    }
    for (int i = 0; i < 2; i++) {
        mpi_errno = MPIC_Isend(NULL, 0, MPI_BYTE, sides[i], MPIR_BARRIER_TAG, comm, &reqs[2 + i],
                               errflag);
        MPIR_ERR_CHECK(mpi_errno);
    }
    mpi_errno = MPIC_Waitall(4, reqs, statuses, errflag);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_ring_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int mpi_errno_ret = MPI_SUCCESS;
    int size = comm->local_size;
    bool is_pof2 = MPL_is_pof2(size, NULL);

    /* a step doubles what has been heard of, or adds one on either side */
    for (int bit = 1, reach = 0; is_pof2 ? bit < size : reach < size / 2; bit <<= 1, reach++) {
        if (is_pof2) {
            int partner = gray_partner(comm, bit);
            mpi_errno = MPIC_Sendrecv(NULL, 0, MPI_BYTE, partner, MPIR_BARRIER_TAG,
                                      NULL, 0, MPI_BYTE, partner, MPIR_BARRIER_TAG,
                                      comm, MPI_STATUS_IGNORE, errflag);
        } else {
            mpi_errno = neighbour_round(comm, errflag);
        }
        if (mpi_errno) {
            note_error(mpi_errno, errflag);
            MPIR_ERR_ADD(mpi_errno_ret, mpi_errno);
        }
    }
    return mpi_errno_ret;
}

int MPIDI_NTBRING_ring_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                 MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                 MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int mpi_errno_ret = MPI_SUCCESS;
    char theirs[MPIDI_NTBRING_RING_ALLREDUCE_MAX_SZ] MPL_ATTR_ALIGNED(64);

    if (sendbuf != MPI_IN_PLACE) {
        mpi_errno = MPIR_Localcopy(sendbuf, count, datatype, recvbuf, count, datatype);
        MPIR_ERR_CHECK(mpi_errno);
    }
    for (int bit = 1; bit < comm->local_size; bit <<= 1) {
        int partner = gray_partner(comm, bit);
        mpi_errno = MPIC_Sendrecv(recvbuf, count, datatype, partner, MPIR_ALLREDUCE_TAG,
                                  theirs, count, datatype, partner, MPIR_ALLREDUCE_TAG,
                                  comm, MPI_STATUS_IGNORE, errflag);
        if (mpi_errno) {
            note_error(mpi_errno, errflag);
            MPIR_ERR_ADD(mpi_errno_ret, mpi_errno);
        }
        mpi_errno = MPIR_Reduce_local(theirs, recvbuf, count, datatype, op);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno_ret ? mpi_errno_ret : mpi_errno;
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
    MPI_Status statuses[10];
    int n = 0;
    MPIR_CHKLMEM_DECL(1);

    MPIR_Datatype_get_extent_macro(sendtype, send_extent);
    MPIR_Datatype_get_extent_macro(recvtype, recv_extent);
    MPIR_Datatype_get_size_macro(recvtype, type_size);
    block_sz = recvcount * type_size;
#define SEND_BLOCK(of) ((const char *) sendbuf + ((of) % size) * sendcount * send_extent)
#define RECV_BLOCK(of) ((char *) recvbuf + ((of) % size) * recvcount * recv_extent)

    char *beyond;
    MPIR_CHKLMEM_MALLOC(beyond, char *, sides * block_sz, mpi_errno, "transit", MPL_MEM_BUFFER);

    for (int side = 0; side < 2; side++) {
        /* what comes from the left goes right */
        int from = (rank + (side == 0 ? size - 1 : 1)) % size;
        int origin = (rank + (side == 0 ? size - 2 : 2)) % size;
        mpi_errno = MPIC_Irecv(RECV_BLOCK(from), recvcount, recvtype, from, MPIR_ALLTOALL_TAG, comm,
                               &reqs[n++]);
        MPIR_ERR_CHECK(mpi_errno);
        if (side < sides) {
            mpi_errno = MPIC_Irecv(beyond + side * block_sz, block_sz, MPI_BYTE, from,
                                   MPIR_ALLTOALL_TAG, comm, &transit[side]);
            MPIR_ERR_CHECK(mpi_errno);
            mpi_errno = MPIC_Irecv(RECV_BLOCK(origin), recvcount, recvtype, from,
                                   MPIR_ALLTOALL_TAG, comm, &reqs[n++]);
            MPIR_ERR_CHECK(mpi_errno);
        }
    }
    for (int side = 0; side < 2; side++) {
        int to = rank + (side == 0 ? 1 : size - 1);
        mpi_errno = MPIC_Isend(SEND_BLOCK(to), sendcount, sendtype, to % size, MPIR_ALLTOALL_TAG,
                               comm, &reqs[n++], errflag);
        MPIR_ERR_CHECK(mpi_errno);
        if (side < sides) {
            int end = rank + (side == 0 ? 2 : size - 2);
            mpi_errno = MPIC_Isend(SEND_BLOCK(end), sendcount, sendtype, to % size,
                                   MPIR_ALLTOALL_TAG, comm, &reqs[n++], errflag);
            MPIR_ERR_CHECK(mpi_errno);
        }
    }
    mpi_errno = MPIR_Localcopy(SEND_BLOCK(rank), sendcount, sendtype,
                               RECV_BLOCK(rank), recvcount, recvtype);
    MPIR_ERR_CHECK(mpi_errno);

    mpi_errno = MPIC_Waitall(sides, transit, statuses, errflag);
    if (mpi_errno) {
        note_error(mpi_errno, errflag);
        MPIR_ERR_ADD(mpi_errno_ret, mpi_errno);
    }
    for (int side = 0; side < sides; side++) {
        int to = (rank + (side == 0 ? 1 : size - 1)) % size;
        mpi_errno = MPIC_Isend(beyond + side * block_sz, block_sz, MPI_BYTE, to, MPIR_ALLTOALL_TAG,
                               comm, &reqs[n++], errflag);
        MPIR_ERR_CHECK(mpi_errno);
    }
    mpi_errno = MPIC_Waitall(n, reqs, statuses, errflag);
    if (mpi_errno) {
        note_error(mpi_errno, errflag);
        MPIR_ERR_ADD(mpi_errno_ret, mpi_errno);
    }

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno_ret ? mpi_errno_ret : mpi_errno;
  fn_fail:
    goto fn_exit;
#undef SEND_BLOCK
#undef RECV_BLOCK
}
