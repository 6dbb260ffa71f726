/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

static int not_supported(void)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_ERR_SET(mpi_errno, MPI_ERR_OTHER, "**ntbring_notsupported");
    return mpi_errno;
}

int MPIDI_NTBRING_get_local_upids(MPIR_Comm * comm, int **local_upid_size, char **local_upids)
{
    MPL_UNREFERENCED_ARG(comm);
    /* the caller frees both */
    *local_upid_size = NULL;
    *local_upids = NULL;
    return not_supported();
}

int MPIDI_NTBRING_upids_to_gpids(int size, int *remote_upid_size, char *remote_upids,
                                 uint64_t * remote_gpids)
{
    MPL_UNREFERENCED_ARG(size);
    MPL_UNREFERENCED_ARG(remote_upid_size);
    MPL_UNREFERENCED_ARG(remote_upids);
    MPL_UNREFERENCED_ARG(remote_gpids);
    return not_supported();
}

int MPIDI_NTBRING_dynamic_send(uint64_t remote_gpid, int tag, const void *buf, int size,
                               int timeout)
{
    MPL_UNREFERENCED_ARG(remote_gpid);
    MPL_UNREFERENCED_ARG(tag);
    MPL_UNREFERENCED_ARG(buf);
    MPL_UNREFERENCED_ARG(size);
    MPL_UNREFERENCED_ARG(timeout);
    return not_supported();
}

int MPIDI_NTBRING_dynamic_recv(int tag, void *buf, int size, int timeout)
{
    MPL_UNREFERENCED_ARG(tag);
    MPL_UNREFERENCED_ARG(buf);
    MPL_UNREFERENCED_ARG(size);
    MPL_UNREFERENCED_ARG(timeout);
    return not_supported();
}
