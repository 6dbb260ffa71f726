/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_COLL_H_INCLUDED
#define NTBRING_COLL_H_INCLUDED

#include "ntbring_impl.h"

/* Collectives with an algorithm of the netmod's own are redefined here; all others are MPICH's
 * fall-backs. */
#define MPIDI_NM_mpi_barrier MPIDI_NTBRING_fallback_barrier
#define MPIDI_NM_mpi_bcast MPIDI_NTBRING_fallback_bcast
#define MPIDI_NM_mpi_reduce MPIDI_NTBRING_fallback_reduce
#define MPIDI_NM_mpi_allreduce MPIDI_NTBRING_fallback_allreduce
#define MPIDI_NM_mpi_allgather MPIDI_NTBRING_fallback_allgather
#define MPIDI_NM_mpi_allgatherv MPIDI_NTBRING_fallback_allgatherv
#define MPIDI_NM_mpi_alltoall MPIDI_NTBRING_fallback_alltoall
#define MPIDI_NM_mpi_alltoallv MPIDI_NTBRING_fallback_alltoallv
#define MPIDI_NM_mpi_reduce_scatter MPIDI_NTBRING_fallback_reduce_scatter
#define MPIDI_NM_mpi_reduce_scatter_block MPIDI_NTBRING_fallback_reduce_scatter_block
#define MPIDI_NM_mpi_scan MPIDI_NTBRING_fallback_scan
#define MPIDI_NM_mpi_exscan MPIDI_NTBRING_fallback_exscan
#include "netmod_am_fallback_coll.h"
#undef MPIDI_NM_mpi_barrier
#undef MPIDI_NM_mpi_bcast
#undef MPIDI_NM_mpi_reduce
#undef MPIDI_NM_mpi_allreduce
#undef MPIDI_NM_mpi_allgather
#undef MPIDI_NM_mpi_allgatherv
#undef MPIDI_NM_mpi_alltoall
#undef MPIDI_NM_mpi_alltoallv
#undef MPIDI_NM_mpi_reduce_scatter
#undef MPIDI_NM_mpi_reduce_scatter_block
#undef MPIDI_NM_mpi_scan
#undef MPIDI_NM_mpi_exscan

/* Number of looks for blocks of neighbours between two polls for anything else. */
#define MPIDI_NTBRING_ALLGATHER_POLLS 8

void MPIDI_NTBRING_open_group(MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_small_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_small_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                MPI_Datatype datatype, MPI_Op op, bool is_wanted, MPIR_Comm * comm,
                                MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_small_blocks(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                int blocks, MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_find_blocks(const void *buf, MPI_Datatype datatype, MPI_Aint all_sz,
                              bool * is_packed, void **blocks);

bool MPIDI_NTBRING_begin_sharing(MPI_Aint size, MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_bcast(void *buffer, MPI_Aint count, MPI_Datatype datatype, int root,
                               MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_reduce(int kind, const void *sendbuf, void *recvbuf, MPI_Aint count,
                                MPI_Datatype datatype, MPI_Op op, int root, MPIR_Comm * comm,
                                MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_reduce_scatter(const void *sendbuf, void *recvbuf,
                                        const MPI_Aint counts[], MPI_Aint count,
                                        MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                        MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, const MPI_Aint counts[],
                                   const MPI_Aint displs[], MPI_Aint recvcount,
                                   MPI_Datatype recvtype, MPIR_Comm * comm,
                                   MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_alltoall(const void *sendbuf, const MPI_Aint sendcounts[],
                                  const MPI_Aint sdispls[], MPI_Aint sendcount,
                                  MPI_Datatype sendtype, void *recvbuf,
                                  const MPI_Aint recvcounts[], const MPI_Aint rdispls[],
                                  MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm,
                                  MPIR_Errflag_t * errflag);

/* ntbring_schedule_begin and the collectives that follow its schedule. */
int MPIDI_NTBRING_begin(int kind, MPI_Aint elements, MPI_Aint element_sz, int root, bool in_place,
                        MPIR_Comm * comm, ntbring_schedule_t * schedule);
int MPIDI_NTBRING_ring_bcast(void *buffer, MPI_Aint count, MPI_Datatype datatype, int root,
                             MPIR_Comm * comm, MPIR_Errflag_t * errflag,
                             ntbring_schedule_t * schedule);
int MPIDI_NTBRING_ring_reduce(const void *sendbuf, void *recvbuf, MPI_Datatype datatype, MPI_Op op,
                              int tag, MPIR_Comm * comm, MPIR_Errflag_t * errflag,
                              ntbring_schedule_t * schedule);
int MPIDI_NTBRING_ring_blocks(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                              void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype, int tag,
                              MPIR_Comm * comm, MPIR_Errflag_t * errflag,
                              ntbring_schedule_t * schedule);

/* Records an error in errflag. A failed process takes precedence over any other error. */
MPL_STATIC_INLINE_PREFIX void MPIDI_NTBRING_note_error(int mpi_errno, MPIR_Errflag_t * errflag)
{
    if (mpi_errno && *errflag != MPIR_ERR_PROC_FAILED) {
        *errflag = MPIX_ERR_PROC_FAILED == MPIR_ERR_GET_CLASS(mpi_errno) ?
            MPIR_ERR_PROC_FAILED : MPIR_ERR_OTHER;
    }
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_failed_before(MPIR_Errflag_t errflag)
{
    int mpi_errno = MPI_SUCCESS;

    if (errflag != MPIR_ERR_NONE) {
        MPIR_ERR_SET(mpi_errno, errflag, "**coll_fail");
    }
    return mpi_errno;
}

/* Returns NTBRING_BY_MESSAGES if a collective with large blocks is left to MPICH, with the same
 * result at all ranks. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_method(int kind, MPI_Aint elements, MPI_Aint element_sz,
                                                  int root, bool in_place, MPIR_Comm * comm,
                                                  ntbring_schedule_t * schedule)
{
    return MPIDI_NTBRING_COMM(comm)->is_ring ?
        MPIDI_NTBRING_begin(kind, elements, element_sz, root, in_place, comm, schedule) :
        NTBRING_BY_MESSAGES;
}

/* Returns true if elements are contiguous and can be reduced one by one, in any order of the
 * ranks. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_NTBRING_sums_up(MPI_Op op, MPI_Datatype datatype)
{
    return HANDLE_IS_BUILTIN(op) && HANDLE_IS_BUILTIN(datatype) &&
        op != MPI_REPLACE && op != MPI_NO_OP;
}

/* Returns true if there is a group, with the same result at all ranks. Without one, the 1st,
 * 2nd, 4th, 8th ... collective of a communicator that could use a group tries to open it. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_NTBRING_has_group(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    MPIDI_NTBRING_comm_t *ring = MPIDI_NTBRING_COMM(comm);

    if (ring->is_ring && unlikely(!ring->has_group)) {
        ring->without_group++;
        if ((ring->without_group & (ring->without_group - 1)) == 0) {
            MPIDI_NTBRING_open_group(comm, errflag);
        }
    }
    return ring->has_group;
}

/* Returns true if a collective with blocks of this size uses ntbring_allgather; the same at all
 * ranks. Ranks that can share buffers do not. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_NTBRING_uses_allgather(MPI_Aint block_sz, MPIR_Comm * comm,
                                                   MPIR_Errflag_t * errflag)
{
    return (uint64_t) block_sz <= MPIDI_NTBRING_global.limits.block_max &&
        !MPIDI_NTBRING_COMM(comm)->may_share && MPIDI_NTBRING_has_group(comm, errflag);
}

/* Returns true if a collective goes through shared buffers, with the same result at all ranks.
 * size: bytes, the same at all ranks. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_NTBRING_shares(MPI_Aint size, MPIR_Comm * comm,
                                                   MPIR_Errflag_t * errflag)
{
    return MPIDI_NTBRING_COMM(comm)->may_share &&
        (MPIDI_NTBRING_COMM(comm)->shared || MPIDI_NTBRING_begin_sharing(size, comm, errflag));
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_BARRIER_INTRA_ALGORITHM == MPIR_CVAR_BARRIER_INTRA_ALGORITHM_auto) {
        if (MPIDI_NTBRING_shares(0, comm, errflag)) {
            return MPIDI_NTBRING_shared_barrier(comm, errflag);
        }
        if (MPIDI_NTBRING_uses_allgather(0, comm, errflag)) {
            return MPIDI_NTBRING_small_barrier(comm, errflag);
        }
    }
    return MPIDI_NTBRING_fallback_barrier(comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_bcast(void *buffer, MPI_Aint count, MPI_Datatype datatype,
                                                int root, MPIR_Comm * comm,
                                                MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_BCAST_INTRA_ALGORITHM == MPIR_CVAR_BCAST_INTRA_ALGORITHM_auto) {
        ntbring_schedule_t schedule;
        MPI_Aint type_size;
        MPIR_Datatype_get_size_macro(datatype, type_size);
        if (MPIDI_NTBRING_shares(count * type_size, comm, errflag)) {
            return MPIDI_NTBRING_shared_bcast(buffer, count, datatype, root, comm, errflag);
        }
        if (MPIDI_NTBRING_method(NTBRING_BCAST, count * type_size, 1, root, false, comm,
                                 &schedule) == NTBRING_OK) {
            return MPIDI_NTBRING_ring_bcast(buffer, count, datatype, root, comm, errflag,
                                            &schedule);
        }
    }
    return MPIDI_NTBRING_fallback_bcast(buffer, count, datatype, root, comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                                 MPI_Datatype datatype, MPI_Op op, int root,
                                                 MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_REDUCE_INTRA_ALGORITHM == MPIR_CVAR_REDUCE_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_sums_up(op, datatype)) {
        ntbring_schedule_t schedule;
        MPI_Aint width = MPIR_Datatype_get_basic_size(datatype);
        if (MPIDI_NTBRING_shares(count * width, comm, errflag)) {
            return MPIDI_NTBRING_shared_reduce(NTBRING_SHARED_REDUCE, sendbuf, recvbuf, count,
                                               datatype, op, root, comm, errflag);
        }
        if (MPIDI_NTBRING_uses_allgather(count * width, comm, errflag)) {
            return MPIDI_NTBRING_small_reduce(sendbuf, recvbuf, count, datatype, op,
                                               comm->rank == root, comm, errflag);
        }
        if (MPIDI_NTBRING_method(NTBRING_REDUCE, count, width, root, sendbuf == MPI_IN_PLACE, comm,
                                 &schedule) == NTBRING_OK) {
            return MPIDI_NTBRING_ring_reduce(sendbuf, recvbuf, datatype, op, MPIR_REDUCE_TAG, comm,
                                             errflag, &schedule);
        }
    }
    return MPIDI_NTBRING_fallback_reduce(sendbuf, recvbuf, count, datatype, op, root, comm,
                                         errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_allreduce(const void *sendbuf, void *recvbuf,
                                                    MPI_Aint count, MPI_Datatype datatype,
                                                    MPI_Op op, MPIR_Comm * comm,
                                                    MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM == MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_sums_up(op, datatype)) {
        ntbring_schedule_t schedule;
        MPI_Aint width = MPIR_Datatype_get_basic_size(datatype);
        if (MPIDI_NTBRING_shares(count * width, comm, errflag)) {
            return MPIDI_NTBRING_shared_reduce(NTBRING_SHARED_ALLREDUCE, sendbuf, recvbuf, count,
                                               datatype, op, 0, comm, errflag);
        }
        if (MPIDI_NTBRING_uses_allgather(count * width, comm, errflag)) {
            return MPIDI_NTBRING_small_reduce(sendbuf, recvbuf, count, datatype, op,
                                               true, comm, errflag);
        }
        if (MPIDI_NTBRING_method(NTBRING_ALLREDUCE, count, width, 0, sendbuf == MPI_IN_PLACE, comm,
                                 &schedule) == NTBRING_OK) {
            return MPIDI_NTBRING_ring_reduce(sendbuf, recvbuf, datatype, op, MPIR_ALLREDUCE_TAG,
                                             comm, errflag, &schedule);
        }
    }
    return MPIDI_NTBRING_fallback_allreduce(sendbuf, recvbuf, count, datatype, op, comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_allgather(const void *sendbuf, MPI_Aint sendcount,
                                                    MPI_Datatype sendtype, void *recvbuf,
                                                    MPI_Aint recvcount, MPI_Datatype recvtype,
                                                    MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM == MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM_auto) {
        /* all ranks must decide alike, and the only value that is the same at all is the size of
         * a block */
        ntbring_schedule_t schedule;
        MPI_Aint type_size, size;
        MPIR_Datatype_get_size_macro(recvtype, type_size);
        size = recvcount * type_size;
        if (MPIDI_NTBRING_shares(size, comm, errflag)) {
            return MPIDI_NTBRING_shared_allgather(sendbuf, sendcount, sendtype, recvbuf, NULL,
                                                  NULL, recvcount, recvtype, comm, errflag);
        }
        if (MPIDI_NTBRING_uses_allgather(size, comm, errflag)) {
            return MPIDI_NTBRING_small_blocks(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                               recvtype, 1, comm, errflag);
        }
        if (MPIDI_NTBRING_method(NTBRING_ALLGATHER, 1, size, 0, sendbuf == MPI_IN_PLACE, comm,
                                 &schedule) == NTBRING_OK) {
            return MPIDI_NTBRING_ring_blocks(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                             recvtype, MPIR_ALLGATHER_TAG, comm, errflag,
                                             &schedule);
        }
    }
    return MPIDI_NTBRING_fallback_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                            recvtype, comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_alltoall(const void *sendbuf, MPI_Aint sendcount,
                                                   MPI_Datatype sendtype, void *recvbuf,
                                                   MPI_Aint recvcount, MPI_Datatype recvtype,
                                                   MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    if (sendbuf != MPI_IN_PLACE &&
        MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM == MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM_auto) {
        ntbring_schedule_t schedule;
        MPI_Aint type_size, size;
        MPIR_Datatype_get_size_macro(recvtype, type_size);
        size = recvcount * type_size;
        if (MPIDI_NTBRING_shares(size, comm, errflag)) {
            return MPIDI_NTBRING_shared_alltoall(sendbuf, NULL, NULL, sendcount, sendtype, recvbuf,
                                                 NULL, NULL, recvcount, recvtype, comm, errflag);
        }
        if (MPIDI_NTBRING_uses_allgather(size * comm->local_size, comm, errflag)) {
            return MPIDI_NTBRING_small_blocks(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                               recvtype, comm->local_size, comm, errflag);
        }
        if (MPIDI_NTBRING_method(NTBRING_ALLTOALL, 1, size, 0, false, comm,
                                 &schedule) == NTBRING_OK) {
            return MPIDI_NTBRING_ring_blocks(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                             recvtype, MPIR_ALLTOALL_TAG, comm, errflag, &schedule);
        }
    }
    return MPIDI_NTBRING_fallback_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                           recvtype, comm, errflag);
}

#include "ntbring_shared_coll.h"

#endif /* NTBRING_COLL_H_INCLUDED */
