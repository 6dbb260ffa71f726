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

/* What is heard from both neighbours comes from one host further away in each round, without a
 * relay. With an even number of hosts the last round needs to hear from one side only. */
int MPIDI_NTBRING_ring_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int mpi_errno_ret = MPI_SUCCESS;
    int size = comm->local_size;
    int right = (comm->rank + 1) % size;
    int left = (comm->rank + size - 1) % size;

    for (int round = 1; round <= size / 2; round++) {
        MPIR_Request *reqs[4] = { NULL, NULL, NULL, NULL };
        int n = 0;
        bool both = 2 * round != size;
        mpi_errno = MPIC_Irecv(NULL, 0, MPI_BYTE, left, MPIR_BARRIER_TAG, comm, &reqs[n++]);
        MPIR_ERR_CHECK(mpi_errno);
        if (both) {
            mpi_errno = MPIC_Irecv(NULL, 0, MPI_BYTE, right, MPIR_BARRIER_TAG, comm, &reqs[n++]);
            MPIR_ERR_CHECK(mpi_errno);
        }
        mpi_errno = MPIC_Isend(NULL, 0, MPI_BYTE, right, MPIR_BARRIER_TAG, comm, &reqs[n++],
                               errflag);
        MPIR_ERR_CHECK(mpi_errno);
        if (both) {
            mpi_errno = MPIC_Isend(NULL, 0, MPI_BYTE, left, MPIR_BARRIER_TAG, comm, &reqs[n++],
                                   errflag);
            MPIR_ERR_CHECK(mpi_errno);
        }
        mpi_errno = MPIC_Waitall(n, reqs, MPI_STATUSES_IGNORE, errflag);
        if (mpi_errno) {
            note_error(mpi_errno, errflag);
            MPIR_ERR_ADD(mpi_errno_ret, mpi_errno);
        }
    }

  fn_exit:
    return mpi_errno_ret ? mpi_errno_ret : mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Recursive doubling in the order of the reflected Gray code, where partners are nearer on the
 * ring than in the order of ranks: of four hosts all are neighbours. */
int MPIDI_NTBRING_ring_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                 MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                 MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int mpi_errno_ret = MPI_SUCCESS;
    char theirs[MPIDI_NTBRING_RING_ALLREDUCE_MAX_SZ] MPL_ATTR_ALIGNED(64);
    int size = comm->local_size;
    int code = comm->rank ^ comm->rank >> 1;

    if (sendbuf != MPI_IN_PLACE) {
        mpi_errno = MPIR_Localcopy(sendbuf, count, datatype, recvbuf, count, datatype);
        MPIR_ERR_CHECK(mpi_errno);
    }
    for (int bit = 1; bit < size; bit <<= 1) {
        int partner = code ^ bit;
        for (int shift = 1; shift < size; shift <<= 1) {
            partner ^= partner >> shift;
        }
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
