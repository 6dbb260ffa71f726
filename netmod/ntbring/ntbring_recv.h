/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_RECV_H_INCLUDED
#define NTBRING_RECV_H_INCLUDED

#include "ntbring_impl.h"

/* The same as MPICH's fall-back, except for the choice of the VCI. */

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_imrecv(void *buf, MPI_Aint count, MPI_Datatype datatype,
                                                 MPIR_Request * message)
{
    return MPIDIG_mpi_imrecv(buf, count, datatype, message);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_irecv(void *buf, MPI_Aint count, MPI_Datatype datatype,
                                                int rank, int tag, MPIR_Comm * comm,
                                                int context_offset, MPIDI_av_entry_t * addr,
                                                MPIR_Request ** request, MPIR_Request * partner)
{
    MPIDI_NTBRING_UNUSED(addr);
    int vci = MPIDI_NTBRING_RECV_VCI(rank, tag, comm);
    return MPIDIG_mpi_irecv(buf, count, datatype, rank, tag, comm, context_offset, vci, request, 0,
                            partner);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_cancel_recv(MPIR_Request * rreq)
{
    return MPIDIG_mpi_cancel_recv(rreq);
}

#endif /* NTBRING_RECV_H_INCLUDED */
