/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

int MPIDI_NTBRING_mpi_comm_commit_pre_hook(MPIR_Comm * comm)
{
    MPIDI_NTBRING_UNUSED(comm);
    return MPI_SUCCESS;
}

int MPIDI_NTBRING_mpi_comm_commit_post_hook(MPIR_Comm * comm)
{
    MPIDI_NTBRING_UNUSED(comm);
    return MPI_SUCCESS;
}

int MPIDI_NTBRING_mpi_comm_free_hook(MPIR_Comm * comm)
{
    MPIDI_NTBRING_UNUSED(comm);
    return MPI_SUCCESS;
}

int MPIDI_NTBRING_comm_set_hints(MPIR_Comm * comm, MPIR_Info * info)
{
    MPIDI_NTBRING_UNUSED(comm);
    MPIDI_NTBRING_UNUSED(info);
    return MPI_SUCCESS;
}
