/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

int MPIDI_NTBRING_mpi_op_commit_hook(MPIR_Op * op_p)
{
    MPIDI_NTBRING_UNUSED(op_p);
    return MPI_SUCCESS;
}

int MPIDI_NTBRING_mpi_op_free_hook(MPIR_Op * op_p)
{
    MPIDI_NTBRING_UNUSED(op_p);
    return MPI_SUCCESS;
}
