/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

int64_t MPIDI_NTBRING_pack(void *cookie, uint64_t offset, void *dest, uint64_t max)
{
    MPIDI_NTBRING_am_request_t *am = MPIDI_NTBRING_AM((MPIR_Request *) cookie);
    MPI_Aint actual = 0;
    int mpi_errno = MPIR_Typerep_pack(am->buffer, am->count, am->datatype, offset, dest, max,
                                      &actual);
    return mpi_errno == MPI_SUCCESS ? actual : -1;
}

int MPIDI_NTBRING_mpi_type_commit_hook(MPIR_Datatype * datatype_p)
{
    MPIDI_NTBRING_UNUSED(datatype_p);
    return MPI_SUCCESS;
}

int MPIDI_NTBRING_mpi_type_free_hook(MPIR_Datatype * datatype_p)
{
    MPIDI_NTBRING_UNUSED(datatype_p);
    return MPI_SUCCESS;
}
