/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_COLL_H_INCLUDED
#define NTBRING_COLL_H_INCLUDED

#include "ntbring_impl.h"

/* What takes its partners from the ring is here; everything else is the fall-back's. */
#define MPIDI_NM_mpi_barrier MPIDI_NTBRING_fallback_barrier
#define MPIDI_NM_mpi_allreduce MPIDI_NTBRING_fallback_allreduce
#define MPIDI_NM_mpi_allgather MPIDI_NTBRING_fallback_allgather
#define MPIDI_NM_mpi_alltoall MPIDI_NTBRING_fallback_alltoall
#include "netmod_am_fallback_coll.h"
#undef MPIDI_NM_mpi_barrier
#undef MPIDI_NM_mpi_allreduce
#undef MPIDI_NM_mpi_allgather
#undef MPIDI_NM_mpi_alltoall

/* Rings on which nobody is further away than a neighbour's neighbour, and blocks of a size for which
 * a step more is cheaper than a relay. */
#define MPIDI_NTBRING_RING_ALLTOALL_MIN_RANKS 4
#define MPIDI_NTBRING_RING_ALLTOALL_MAX_RANKS 5
#define MPIDI_NTBRING_RING_ALLTOALL_MIN_SZ 32768

/* Looks for what neighbours share between two at everything else. */
#define MPIDI_NTBRING_SHARE_LOOKS 8

void MPIDI_NTBRING_open_group(MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_ring_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_ring_allreduce(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                 MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                 MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_ring_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                 void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                 MPIR_Comm * comm, MPIR_Errflag_t * errflag);
int MPIDI_NTBRING_ring_alltoall(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype,
                                MPIR_Comm * comm, MPIR_Errflag_t * errflag);

/* Whether small collectives of a communicator go by ntbring_share; the same at all of its ranks.
 * Without a group, the 1st, 2nd, 4th, 8th ... of them tries to open one. */
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

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_BARRIER_INTRA_ALGORITHM == MPIR_CVAR_BARRIER_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_has_group(comm, errflag)) {
        return MPIDI_NTBRING_ring_barrier(comm, errflag);
    }
    return MPIDI_NTBRING_fallback_barrier(comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_allreduce(const void *sendbuf, void *recvbuf,
                                                    MPI_Aint count, MPI_Datatype datatype,
                                                    MPI_Op op, MPIR_Comm * comm,
                                                    MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM == MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM_auto &&
        HANDLE_IS_BUILTIN(op) && HANDLE_IS_BUILTIN(datatype) &&
        count * MPIR_Datatype_get_basic_size(datatype) <= NTBRING_BLOCK_MAX &&
        MPIDI_NTBRING_has_group(comm, errflag)) {
        return MPIDI_NTBRING_ring_allreduce(sendbuf, recvbuf, count, datatype, op, comm, errflag);
    }
    return MPIDI_NTBRING_fallback_allreduce(sendbuf, recvbuf, count, datatype, op, comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_allgather(const void *sendbuf, MPI_Aint sendcount,
                                                    MPI_Datatype sendtype, void *recvbuf,
                                                    MPI_Aint recvcount, MPI_Datatype recvtype,
                                                    MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    MPI_Aint type_size;

    /* all ranks must decide alike, and what they know in common is the size of a block */
    MPIR_Datatype_get_size_macro(recvtype, type_size);
    if (MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM == MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM_auto &&
        recvcount * type_size <= NTBRING_BLOCK_MAX &&
        MPIDI_NTBRING_has_group(comm, errflag)) {
        return MPIDI_NTBRING_ring_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                            recvtype, comm, errflag);
    }
    return MPIDI_NTBRING_fallback_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                            recvtype, comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_alltoall(const void *sendbuf, MPI_Aint sendcount,
                                                   MPI_Datatype sendtype, void *recvbuf,
                                                   MPI_Aint recvcount, MPI_Datatype recvtype,
                                                   MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    if (MPIDI_NTBRING_COMM(comm)->is_ring && sendbuf != MPI_IN_PLACE &&
        MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM == MPIR_CVAR_ALLTOALL_INTRA_ALGORITHM_auto &&
        comm->local_size >= MPIDI_NTBRING_RING_ALLTOALL_MIN_RANKS &&
        comm->local_size <= MPIDI_NTBRING_RING_ALLTOALL_MAX_RANKS) {
        MPI_Aint type_size;
        MPIR_Datatype_get_size_macro(recvtype, type_size);
        if (recvcount * type_size >= MPIDI_NTBRING_RING_ALLTOALL_MIN_SZ) {
            return MPIDI_NTBRING_ring_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                               recvtype, comm, errflag);
        }
    }
    return MPIDI_NTBRING_fallback_alltoall(sendbuf, sendcount, sendtype, recvbuf, recvcount,
                                           recvtype, comm, errflag);
}

#endif /* NTBRING_COLL_H_INCLUDED */
