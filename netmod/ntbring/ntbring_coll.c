/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* Opens a group for small collectives. All ranks of a communicator call it together; it uses a
 * collective of MPICH's own. A failure is recorded in errflag, and the collective continues
 * without a group, as MPICH's collectives do, since other ranks take part in it. */
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
    MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_group_offer(endpoint, &mine));
    MPIR_Assert(rc == NTBRING_OK);

    mpi_errno = MPIR_Allreduce_intra_recursive_doubling(&mine, &all, 1, MPI_UINT32_T, MPI_BAND,
                                                        comm, errflag);
    MPIDI_NTBRING_note_error(mpi_errno, errflag);
    if (*errflag) {
        all = 0;
    }
    MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_group_open(endpoint, comm->context_id, ranks, mine, all));
    MPIR_Assert(rc >= 0);
    MPIDI_NTBRING_COMM(comm)->has_group = (rc == NTBRING_OK);
}

/* Waits for the end of an allgather. */
static int await_end(void *blocks, MPI_Aint blocks_sz, MPIR_Comm * comm)
{
    int mpi_errno = MPI_SUCCESS;
    int error_ret = MPI_SUCCESS;
    int rc;
    ntbring_endpoint_t *endpoint = MPIDI_NTBRING_VCI(0).endpoint;
    /* with threads, the VCI lock is held here, so the library must not yield the core */
    uint32_t looks = MPIR_IS_THREADED ? 0 : MPIDI_NTBRING_ALLGATHER_POLLS;

    for (;;) {
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
        rc = ntbring_allgather_wait(endpoint, comm->context_id, blocks, blocks_sz, looks);
        if (rc == NTBRING_PENDING) {
            /* nonblocking collectives make progress, too: other ranks may have to complete one
             * first */
            mpi_errno = MPIDI_progress_test_vci(0);
        }
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
        MPIDI_NTBRING_CHKRC(rc);
        if (rc != NTBRING_PENDING) {
            break;
        }
        if (mpi_errno) {
            /* go on after the first error, since other ranks need the blocks that this rank
             * passes on; give up at the second, as the collective may never end */
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
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Contributes a block and gets the blocks of all ranks, in rank order. A rank that has failed
 * before contributes none, so that the allgather fails at all ranks. */
static int share(int failed, const void *block, MPI_Aint block_sz, void *blocks, MPIR_Comm * comm)
{
    int mpi_errno = MPI_SUCCESS;
    int rc;
    ntbring_endpoint_t *endpoint = MPIDI_NTBRING_VCI(0).endpoint;

    MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_allgather(endpoint, comm->context_id,
                                                    failed ? NULL : block,
                                                    failed ? 1 : block_sz));
    MPIDI_NTBRING_CHKRC(rc);
    mpi_errno = await_end(blocks, block_sz * comm->local_size, comm);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return failed ? failed : mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Sets *blocks to the address of all blocks if they are contiguous. Otherwise sets it to a
 * temporary buffer, into or from which they are packed. */
int MPIDI_NTBRING_find_blocks(const void *buf, MPI_Datatype datatype, MPI_Aint all_sz,
                              bool * is_packed, void **blocks)
{
    int mpi_errno = MPI_SUCCESS;
    int is_contig;
    MPI_Aint true_lb, true_extent;

    MPIR_Datatype_is_contig(datatype, &is_contig);
    *is_packed = !is_contig;
    if (is_contig) {
        MPIR_Type_get_true_extent_impl(datatype, &true_lb, &true_extent);
        *blocks = (char *) buf + true_lb;
    } else {
        *blocks = MPL_malloc(all_sz, MPL_MEM_BUFFER);
        MPIR_ERR_CHKANDJUMP2(*blocks == NULL, mpi_errno, MPI_ERR_OTHER, "**nomem2",
                             "**nomem2 %d %s", MPIDI_NTBRING_KIB(all_sz),
                             "KiB of packed blocks");
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_small_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = share(MPIDI_NTBRING_failed_before(*errflag), NULL, 0, NULL, comm);
    MPIDI_NTBRING_note_error(mpi_errno, errflag);
    return mpi_errno;
}

/* Reduces with an allgather. All ranks that need the result compute it in the same order. */
int MPIDI_NTBRING_small_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                MPI_Datatype datatype, MPI_Op op, bool is_wanted, MPIR_Comm * comm,
                                MPIR_Errflag_t * errflag)
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

/* An allgather, for which this rank contributes one block, or an alltoall, for which it contributes
 * a block for each rank. */
int MPIDI_NTBRING_small_blocks(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                int blocks, MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int size = comm->local_size;
    MPI_Aint recv_extent, type_size, block_sz;
    char mine[NTBRING_BLOCK_MAX] MPL_ATTR_ALIGNED(64);
    char all[NTBRING_BLOCKS_MAX] MPL_ATTR_ALIGNED(64);

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
        mpi_errno = MPIR_Localcopy(sendbuf, sendcount * blocks, sendtype,
                                   mine, block_sz * blocks, MPI_BYTE);
    }
    mpi_errno = share(mpi_errno, mine, block_sz * blocks, all, comm);
    MPIR_ERR_CHECK(mpi_errno);
    if (blocks == 1) {
        mpi_errno = MPIR_Localcopy(all, block_sz * size, MPI_BYTE, recvbuf, recvcount * size,
                                   recvtype);
        MPIR_ERR_CHECK(mpi_errno);
        goto fn_exit;
    }
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
