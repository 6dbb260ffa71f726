/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_SHARED_COLL_H_INCLUDED
#define NTBRING_SHARED_COLL_H_INCLUDED

#include "ntbring_impl.h"

/* Collectives that have no algorithm of the netmod's own but that by shared buffers. */

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_allgatherv(const void *sendbuf, MPI_Aint sendcount,
                                                     MPI_Datatype sendtype, void *recvbuf,
                                                     const MPI_Aint * recvcounts,
                                                     const MPI_Aint * displs,
                                                     MPI_Datatype recvtype, MPIR_Comm * comm,
                                                     MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_ALLGATHERV_INTRA_ALGORITHM == MPIR_CVAR_ALLGATHERV_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_shares(0, comm, errflag)) {
        return MPIDI_NTBRING_shared_allgather(sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                                              displs, 0, recvtype, comm, errflag);
    }
    return MPIDI_NTBRING_fallback_allgatherv(sendbuf, sendcount, sendtype, recvbuf, recvcounts,
                                             displs, recvtype, comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_alltoallv(const void *sendbuf,
                                                    const MPI_Aint * sendcounts,
                                                    const MPI_Aint * sdispls,
                                                    MPI_Datatype sendtype, void *recvbuf,
                                                    const MPI_Aint * recvcounts,
                                                    const MPI_Aint * rdispls,
                                                    MPI_Datatype recvtype, MPIR_Comm * comm,
                                                    MPIR_Errflag_t * errflag)
{
    if (sendbuf != MPI_IN_PLACE &&
        MPIR_CVAR_ALLTOALLV_INTRA_ALGORITHM == MPIR_CVAR_ALLTOALLV_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_shares(0, comm, errflag)) {
        return MPIDI_NTBRING_shared_alltoall(sendbuf, sendcounts, sdispls, 0, sendtype, recvbuf,
                                             recvcounts, rdispls, 0, recvtype, comm, errflag);
    }
    return MPIDI_NTBRING_fallback_alltoallv(sendbuf, sendcounts, sdispls, sendtype, recvbuf,
                                            recvcounts, rdispls, recvtype, comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_reduce_scatter(const void *sendbuf, void *recvbuf,
                                                         const MPI_Aint recvcounts[],
                                                         MPI_Datatype datatype, MPI_Op op,
                                                         MPIR_Comm * comm,
                                                         MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_REDUCE_SCATTER_INTRA_ALGORITHM ==
        MPIR_CVAR_REDUCE_SCATTER_INTRA_ALGORITHM_auto && MPIDI_NTBRING_sums_up(op, datatype) &&
        MPIDI_NTBRING_shares(0, comm, errflag)) {
        return MPIDI_NTBRING_shared_reduce_scatter(sendbuf, recvbuf, recvcounts, 0, datatype, op,
                                                   comm, errflag);
    }
    return MPIDI_NTBRING_fallback_reduce_scatter(sendbuf, recvbuf, recvcounts, datatype, op, comm,
                                                 errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_reduce_scatter_block(const void *sendbuf, void *recvbuf,
                                                               MPI_Aint recvcount,
                                                               MPI_Datatype datatype, MPI_Op op,
                                                               MPIR_Comm * comm,
                                                               MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM ==
        MPIR_CVAR_REDUCE_SCATTER_BLOCK_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_sums_up(op, datatype) && MPIDI_NTBRING_shares(0, comm, errflag)) {
        return MPIDI_NTBRING_shared_reduce_scatter(sendbuf, recvbuf, NULL, recvcount, datatype, op,
                                                   comm, errflag);
    }
    return MPIDI_NTBRING_fallback_reduce_scatter_block(sendbuf, recvbuf, recvcount, datatype, op,
                                                       comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_scan(const void *sendbuf, void *recvbuf, MPI_Aint count,
                                               MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                               MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_SCAN_INTRA_ALGORITHM == MPIR_CVAR_SCAN_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_sums_up(op, datatype) && MPIDI_NTBRING_shares(0, comm, errflag)) {
        return MPIDI_NTBRING_shared_reduce(NTBRING_SHARED_SCAN, sendbuf, recvbuf, count, datatype,
                                           op, 0, comm, errflag);
    }
    return MPIDI_NTBRING_fallback_scan(sendbuf, recvbuf, count, datatype, op, comm, errflag);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_exscan(const void *sendbuf, void *recvbuf,
                                                 MPI_Aint count, MPI_Datatype datatype, MPI_Op op,
                                                 MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    if (MPIR_CVAR_EXSCAN_INTRA_ALGORITHM == MPIR_CVAR_EXSCAN_INTRA_ALGORITHM_auto &&
        MPIDI_NTBRING_sums_up(op, datatype) && MPIDI_NTBRING_shares(0, comm, errflag)) {
        return MPIDI_NTBRING_shared_reduce(NTBRING_SHARED_EXSCAN, sendbuf, recvbuf, count,
                                           datatype, op, 0, comm, errflag);
    }
    return MPIDI_NTBRING_fallback_exscan(sendbuf, recvbuf, count, datatype, op, comm, errflag);
}

#endif /* NTBRING_SHARED_COLL_H_INCLUDED */
