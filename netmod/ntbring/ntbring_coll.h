/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_COLL_H_INCLUDED
#define NTBRING_COLL_H_INCLUDED

#include "ntbring_impl.h"

/* Collectives with an algorithm for the ring are redefined here; all others are MPICH's
 * fall-backs. */
#define MPIDI_NM_mpi_barrier MPIDI_NTBRING_fallback_barrier
#define MPIDI_NM_mpi_bcast MPIDI_NTBRING_fallback_bcast
#define MPIDI_NM_mpi_reduce MPIDI_NTBRING_fallback_reduce
#define MPIDI_NM_mpi_allreduce MPIDI_NTBRING_fallback_allreduce
#define MPIDI_NM_mpi_allgather MPIDI_NTBRING_fallback_allgather
#define MPIDI_NM_mpi_alltoall MPIDI_NTBRING_fallback_alltoall
#include "netmod_am_fallback_coll.h"
#undef MPIDI_NM_mpi_barrier
#undef MPIDI_NM_mpi_bcast
#undef MPIDI_NM_mpi_reduce
#undef MPIDI_NM_mpi_allreduce
#undef MPIDI_NM_mpi_allgather
#undef MPIDI_NM_mpi_alltoall

/* Least number of ranks on a ring on which not all are neighbours, so that passing blocks on
 * from rank to rank avoids the forwarders. */
#define MPIDI_NTBRING_RING_MIN_RANKS 4
/* Largest vector in bytes for which an allgather and a reduction of all vectors at every rank is
 * cheaper than twice as many rounds. */
#define MPIDI_NTBRING_RING_ALLREDUCE_MAX_SZ 16384
/* Largest number of ranks on a ring on which no two ranks are more than two hops apart. */
#define MPIDI_NTBRING_RING_ALLTOALL_MAX_RANKS 5

/* Sizes in bytes of an alltoall's blocks for which ntbring_exchange is faster than messages.
 * Smaller blocks are sent without a rendezvous, and larger ones between neighbours (NEAR_MAX) are
 * copied by sender and receiver at once. Elsewhere the limit only bounds the memory for packed
 * blocks. */
#define MPIDI_NTBRING_EXCHANGE_MIN_SZ 4096
#define MPIDI_NTBRING_EXCHANGE_NEAR_MAX_SZ 65536
#define MPIDI_NTBRING_EXCHANGE_MAX_SZ 4194304

/* Number of looks for blocks of neighbours between two polls for anything else. */
#define MPIDI_NTBRING_SHARE_LOOKS 8

void MPIDI_NTBRING_open_group(MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                MPI_Datatype datatype, MPI_Op op, int root, MPIR_Comm * comm,
                                MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                   MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                   MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                   MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_shared_alltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                  void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                  MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_exchange_alltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                    void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                    MPIR_Comm * comm, MPIR_Errflag_t * errflag, bool * is_done);
int MPIDI_NTBRING_ring_bcast(void *buffer, MPI_Aint count, MPI_Datatype datatype, int root,
                             MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_ring_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                              MPI_Datatype datatype, MPI_Op op, int root, MPIR_Comm * comm,
                              MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_ring_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                 MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                 MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_ring_allreduce_parts(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                       MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                       MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_ring_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                 MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_ring_alltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                MPIR_Comm * comm, MPIR_Errflag_t * errflag);

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

/* Returns true if ranks pass on the blocks for ranks that are no neighbours. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_NTBRING_passes_on(MPIR_Comm * comm)
{
    return MPIDI_NTBRING_COMM(comm)->is_ring && comm->local_size >= MPIDI_NTBRING_RING_MIN_RANKS;
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

/* Returns true if a collective with blocks of this size uses ntbring_share; the same at all
 * ranks. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_NTBRING_shares(MPI_Aint block_sz, MPIR_Comm * comm,
                                                   MPIR_Errflag_t * errflag)
{
    return (uint64_t) block_sz <= MPIDI_NTBRING_global.limits.block_max &&
        MPIDI_NTBRING_has_group(comm, errflag);
}

/* Returns true if an alltoall with blocks of this size tries ntbring_exchange; the same at all
 * ranks. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_NTBRING_exchanges(MPI_Aint block_sz, MPIR_Comm * comm,
                                                      MPIR_Errflag_t * errflag)
{
    return block_sz > MPIDI_NTBRING_EXCHANGE_MIN_SZ && !MPIDI_NTBRING_COMM(comm)->no_exchange &&
        comm->local_size <= MPIDI_NTBRING_RING_ALLTOALL_MAX_RANKS &&
        block_sz <= (MPIDI_NTBRING_passes_on(comm) ? MPIDI_NTBRING_EXCHANGE_MAX_SZ :
                     MPIDI_NTBRING_EXCHANGE_NEAR_MAX_SZ) &&
        MPIDI_NTBRING_has_group(comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_BARRIER_INTRA_ALGORITHM == MPIR_CVAR_BARRIER_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_shares(0, comm, errflag)) {
        return MPIDI_NTBRING_shared_barrier(comm, errflag);
    }
    return MPIDI_NTBRING_fallback_barrier(comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_bcast(void *buffer, MPI_Aint count, MPI_Datatype datatype,
                                                int root, MPIR_Comm * comm,
                                                MPIR_Errflag_t * errflag)
{
    if (MPIDI_NTBRING_passes_on(comm) &&
        MPIR_CVAR_BCAST_INTRA_ALGORITHM == MPIR_CVAR_BCAST_INTRA_ALGORITHM_auto) {
        return MPIDI_NTBRING_ring_bcast(buffer, count, datatype, root, comm, errflag);
    }
    return MPIDI_NTBRING_fallback_bcast(buffer, count, datatype, root, comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_reduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                                 MPI_Datatype datatype, MPI_Op op, int root,
                                                 MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_REDUCE_INTRA_ALGORITHM == MPIR_CVAR_REDUCE_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_sums_up(op, datatype)) {
        MPI_Aint size = count * MPIR_Datatype_get_basic_size(datatype);
        if (MPIDI_NTBRING_shares(size, comm, errflag)) {
            return MPIDI_NTBRING_shared_reduce(sendbuf, recvbuf, count, datatype, op, root, comm,
                                               errflag);
        }
        if (MPIDI_NTBRING_passes_on(comm) && size > 0) {
            return MPIDI_NTBRING_ring_reduce(sendbuf, recvbuf, count, datatype, op, root, comm,
                                             errflag);
        }
    }
    return MPIDI_NTBRING_fallback_reduce(sendbuf, recvbuf, count, datatype, op, root, comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_allreduce(const void *sendbuf, void *recvbuf,
                                                    MPI_Aint count, MPI_Datatype datatype,
                                                    MPI_Op op, MPIR_Comm * comm,
                                                    MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM == MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_sums_up(op, datatype)) {
        MPI_Aint size = count * MPIR_Datatype_get_basic_size(datatype);
        if (MPIDI_NTBRING_shares(size, comm, errflag)) {
            return MPIDI_NTBRING_shared_allreduce(sendbuf, recvbuf, count, datatype, op, comm,
                                                  errflag);
        }
        if (MPIDI_NTBRING_passes_on(comm) && size > 0) {
            return size <= MPIDI_NTBRING_RING_ALLREDUCE_MAX_SZ ?
                MPIDI_NTBRING_ring_allreduce(sendbuf, recvbuf, count, datatype, op, comm, errflag) :
                MPIDI_NTBRING_ring_allreduce_parts(sendbuf, recvbuf, count, datatype, op, comm,
                                                   errflag);
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
        MPI_Aint type_size, size;
        MPIR_Datatype_get_size_macro(recvtype, type_size);
        size = recvcount * type_size;
        if (MPIDI_NTBRING_shares(size, comm, errflag)) {
            return MPIDI_NTBRING_shared_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                                  recvtype, comm, errflag);
        }
        if (MPIDI_NTBRING_passes_on(comm)) {
            return MPIDI_NTBRING_ring_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                                recvtype, comm, errflag);
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
        MPI_Aint type_size, size;
        MPIR_Datatype_get_size_macro(recvtype, type_size);
        size = recvcount * type_size;
        if (MPIDI_NTBRING_shares(size * comm->local_size, comm, errflag)) {
            return MPIDI_NTBRING_shared_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                                 recvtype, comm, errflag);
        }
        if (MPIDI_NTBRING_exchanges(size, comm, errflag)) {
            bool is_done = false;
            int mpi_errno = MPIDI_NTBRING_exchange_alltoall(sendbuf, sendcount, sendtype, recvbuf,
                                                            recvcount, recvtype, comm, errflag,
                                                            &is_done);
            if (mpi_errno || is_done) {
                return mpi_errno;
            }
        }
        if (MPIDI_NTBRING_passes_on(comm) &&
            comm->local_size <= MPIDI_NTBRING_RING_ALLTOALL_MAX_RANKS) {
            return MPIDI_NTBRING_ring_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                               recvtype, comm, errflag);
        }
    }
    return MPIDI_NTBRING_fallback_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                           recvtype, comm, errflag);
}

#endif /* NTBRING_COLL_H_INCLUDED */
