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
    MPIDI_NTBRING_UNUSED(comm);
    /* the caller frees both */
    *local_upid_size = NULL;
    *local_upids = NULL;
    return not_supported();
}

int MPIDI_NTBRING_upids_to_gpids(int size, int *remote_upid_size, char *remote_upids,
                                 uint64_t * remote_gpids)
{
    MPIDI_NTBRING_UNUSED(size);
    MPIDI_NTBRING_UNUSED(remote_upid_size);
    MPIDI_NTBRING_UNUSED(remote_upids);
    MPIDI_NTBRING_UNUSED(remote_gpids);
    return not_supported();
}

int MPIDI_NTBRING_dynamic_send(uint64_t remote_gpid, int tag, const void *buf, int size,
                               int timeout)
{
    MPIDI_NTBRING_UNUSED(remote_gpid);
    MPIDI_NTBRING_UNUSED(tag);
    MPIDI_NTBRING_UNUSED(buf);
    MPIDI_NTBRING_UNUSED(size);
    MPIDI_NTBRING_UNUSED(timeout);
    return not_supported();
}

int MPIDI_NTBRING_dynamic_recv(int tag, void *buf, int size, int timeout)
{
    MPIDI_NTBRING_UNUSED(tag);
    MPIDI_NTBRING_UNUSED(buf);
    MPIDI_NTBRING_UNUSED(size);
    MPIDI_NTBRING_UNUSED(timeout);
    return not_supported();
}
