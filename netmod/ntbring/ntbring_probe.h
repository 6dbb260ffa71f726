/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_PROBE_H_INCLUDED
#define NTBRING_PROBE_H_INCLUDED

#include "ntbring_impl.h"

/* Called when a probe has found nothing: the message may be held back by its sender for lack of
 * credit, or may never come because the sender is lost. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_not_found(int source, MPIR_Comm * comm, int vci)
{
    int mpi_errno = MPI_SUCCESS;

    if (unlikely(MPIDI_NTBRING_global.has_lost)) {
        mpi_errno = MPIDI_NTBRING_check_source(source, comm);
        if (mpi_errno) {
            return mpi_errno;
        }
    }
    int src = source == MPI_ANY_SOURCE ? -1 : MPIDI_NTBRING_dest(source, comm);
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    int rc = ntbring_allow_more(MPIDI_NTBRING_VCI(vci).endpoint, src, true);
    MPIDI_NTBRING_CHKRC(rc);

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_improbe(int source, int tag, MPIR_Comm * comm,
                                                  int context_offset, MPIDI_av_entry_t * addr,
                                                  int *flag, MPIR_Request ** message,
                                                  MPI_Status * status)
{
    MPIDI_NTBRING_UNUSED(addr);
    int vci = MPIDI_NTBRING_RECV_VCI(source, tag, comm);
    int mpi_errno = MPIDIG_mpi_improbe(source, tag, comm, context_offset, vci, flag, message,
                                       status);
    if (mpi_errno == MPI_SUCCESS && !*flag) {
        mpi_errno = MPIDI_NTBRING_not_found(source, comm, vci);
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_iprobe(int source, int tag, MPIR_Comm * comm,
                                                 int context_offset, MPIDI_av_entry_t * addr,
                                                 int *flag, MPI_Status * status)
{
    MPIDI_NTBRING_UNUSED(addr);
    int vci = MPIDI_NTBRING_RECV_VCI(source, tag, comm);
    int mpi_errno = MPIDIG_mpi_iprobe(source, tag, comm, context_offset, vci, flag, status);
    if (mpi_errno == MPI_SUCCESS && !*flag) {
        mpi_errno = MPIDI_NTBRING_not_found(source, comm, vci);
    }
    return mpi_errno;
}

#endif /* NTBRING_PROBE_H_INCLUDED */
