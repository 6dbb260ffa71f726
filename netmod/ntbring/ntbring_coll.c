/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* Tried by all ranks of a communicator at once, with a collective of MPICH's own. What fails here is
 * noted, and the collective goes on without a group, as MPICH's do: others take part in it. */
void MPIDI_NTBRING_open_group(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int rc;
    uint32_t mine = 0, all = 0;
    int32_t ranks[NTBRING_HOSTS_MAX];
    ntbring_endpoint_t *endpoint = MPIDI_NTBRING_VCI(0).endpoint;

    for (int i = 0; i < comm->local_size; i++) {
        ranks[i] = MPIDI_NTBRING_dest(i, comm);
    }
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    rc = ntbring_group_offer(endpoint, &mine);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    MPIR_Assert(rc == NTBRING_OK);

    mpi_errno = MPIR_Allreduce_intra_recursive_doubling(&mine, &all, 1, MPI_UINT32_T, MPI_BAND,
                                                        comm, errflag);
    MPIDI_NTBRING_note_error(mpi_errno, errflag);
    if (*errflag) {
        all = 0;
    }
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    rc = ntbring_group_open(endpoint, comm->context_id, ranks, mine, all);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    MPIR_Assert(rc >= 0);
    MPIDI_NTBRING_COMM(comm)->has_group = (rc == NTBRING_OK);
}

/* Gives a block, gets everybody's in the order of ranks. A rank that has failed before gives none:
 * then all of them fail. */
static int share(int failed, const void *block, MPI_Aint block_sz, void *blocks, MPIR_Comm * comm)
{
    int mpi_errno = MPI_SUCCESS;
    int error_ret = MPI_SUCCESS;
    int rc;
    ntbring_endpoint_t *endpoint = MPIDI_NTBRING_VCI(0).endpoint;
    /* whoever holds the lock does not give the core away */
    uint32_t looks = MPIR_IS_THREADED ? 0 : MPIDI_NTBRING_SHARE_LOOKS;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    rc = failed ? ntbring_share(endpoint, comm->context_id, NULL, 1) :
        ntbring_share(endpoint, comm->context_id, block, block_sz);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    MPIDI_NTBRING_CHKRC(rc);

    for (;;) {
        int made_progress = 0;
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
        rc = ntbring_shared(endpoint, comm->context_id, blocks, block_sz * comm->local_size, looks);
        if (rc == NTBRING_PENDING) {
            mpi_errno = MPIDI_progress_test_vci(0);
        }
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
        MPIDI_NTBRING_CHKRC(rc);
        if (rc == NTBRING_OK) {
            break;
        }
        if (mpi_errno == MPI_SUCCESS) {
            /* others may have to get on with something else first */
            mpi_errno = MPIR_Progress_hook_exec_all(&made_progress);
        }
        if (mpi_errno) {
            /* others need what this rank passes on, unless there is no end to it */
            if (error_ret) {
                goto fn_fail;
            }
            error_ret = mpi_errno;
            mpi_errno = MPI_SUCCESS;
        }
        MPIDI_PROGRESS_IDLE(0);
    }
    mpi_errno = error_ret;

  fn_exit:
    return failed ? failed : mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_shared_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = share(MPIDI_NTBRING_failed_before(*errflag), NULL, 0, NULL, comm);
    MPIDI_NTBRING_note_error(mpi_errno, errflag);
    return mpi_errno;
}

/* All ranks that want the result compute the same in the same order. */
static int shared_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count, MPI_Datatype datatype,
                         MPI_Op op, bool is_wanted, MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    MPI_Aint size = count * MPIR_Datatype_get_basic_size(datatype);
    char blocks[NTBRING_BLOCKS_MAX] MPL_ATTR_ALIGNED(64);

    mpi_errno = share(MPIDI_NTBRING_failed_before(*errflag),
                      sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, size, blocks, comm);
    MPIR_ERR_CHECK(mpi_errno);
    if (is_wanted) {
        memcpy(recvbuf, blocks + (comm->local_size - 1) * size, size);
        for (int i = comm->local_size - 2; i >= 0; i--) {
            mpi_errno = MPIR_Reduce_local(blocks + i * size, recvbuf, count, datatype, op);
            MPIR_ERR_CHECK(mpi_errno);
        }
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    MPIDI_NTBRING_note_error(mpi_errno, errflag);
    goto fn_exit;
}

int MPIDI_NTBRING_shared_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                MPI_Datatype datatype, MPI_Op op, int root, MPIR_Comm * comm,
                                MPIR_Errflag_t * errflag)
{
    return shared_reduce(sendbuf, recvbuf, count, datatype, op, comm->rank == root, comm, errflag);
}

int MPIDI_NTBRING_shared_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                   MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                   MPIR_Errflag_t * errflag)
{
    return shared_reduce(sendbuf, recvbuf, count, datatype, op, true, comm, errflag);
}

int MPIDI_NTBRING_shared_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                   MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    MPI_Aint recv_extent, type_size, block_sz;
    char block[NTBRING_BLOCK_MAX] MPL_ATTR_ALIGNED(64);
    char blocks[NTBRING_BLOCKS_MAX] MPL_ATTR_ALIGNED(64);

    MPIR_Datatype_get_extent_macro(recvtype, recv_extent);
    MPIR_Datatype_get_size_macro(recvtype, type_size);
    block_sz = recvcount * type_size;
    if (sendbuf == MPI_IN_PLACE) {
        sendbuf = (char *) recvbuf + comm->rank * recvcount * recv_extent;
        sendcount = recvcount;
        sendtype = recvtype;
    }
    mpi_errno = MPIDI_NTBRING_failed_before(*errflag);
    if (mpi_errno == MPI_SUCCESS) {
        mpi_errno = MPIR_Localcopy(sendbuf, sendcount, sendtype, block, block_sz, MPI_BYTE);
    }
    mpi_errno = share(mpi_errno, block, block_sz, blocks, comm);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIR_Localcopy(blocks, block_sz * comm->local_size, MPI_BYTE,
                               recvbuf, recvcount * comm->local_size, recvtype);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    MPIDI_NTBRING_note_error(mpi_errno, errflag);
    goto fn_exit;
}

int MPIDI_NTBRING_shared_alltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                  MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int size = comm->local_size;
    MPI_Aint recv_extent, type_size, block_sz;
    char mine[NTBRING_BLOCK_MAX] MPL_ATTR_ALIGNED(64);
    char all[NTBRING_BLOCKS_MAX] MPL_ATTR_ALIGNED(64);

    MPIR_Datatype_get_extent_macro(recvtype, recv_extent);
    MPIR_Datatype_get_size_macro(recvtype, type_size);
    block_sz = recvcount * type_size;
    mpi_errno = MPIDI_NTBRING_failed_before(*errflag);
    if (mpi_errno == MPI_SUCCESS) {
        mpi_errno = MPIR_Localcopy(sendbuf, sendcount * size, sendtype,
                                   mine, block_sz * size, MPI_BYTE);
    }
    mpi_errno = share(mpi_errno, mine, block_sz * size, all, comm);
    MPIR_ERR_CHECK(mpi_errno);
    for (int i = 0; i < size; i++) {
        mpi_errno = MPIR_Localcopy(all + (i * size + comm->rank) * block_sz, block_sz, MPI_BYTE,
                                   (char *) recvbuf + i * recvcount * recv_extent, recvcount,
                                   recvtype);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    MPIDI_NTBRING_note_error(mpi_errno, errflag);
    goto fn_exit;
}
