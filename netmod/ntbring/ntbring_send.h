/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_SEND_H_INCLUDED
#define NTBRING_SEND_H_INCLUDED

#include "ntbring_impl.h"

/* Offers the payload to its receiver (rendezvous). */
int MPIDI_NTBRING_offer(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                        MPIR_Comm * comm, int context_offset, int vci, MPIR_Errflag_t errflag,
                        bool is_sync, MPIR_Request ** request);

/* Sends a message in one of the two ways that bypass MPIDIG: at once as a whole, or as an offer.
 * Leaves *request NULL if neither applies. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_isend(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset, int vci,
                                                 MPIR_Errflag_t errflag, bool is_sync,
                                                 MPIR_Request ** request)
{
    int mpi_errno = MPI_SUCCESS;
    int dt_contig;
    MPI_Aint data_sz, dt_true_lb;
    MPIR_Datatype *dt_ptr;
    MPIR_FUNC_ENTER;

    MPIDI_Datatype_get_info(count, datatype, dt_contig, data_sz, dt_ptr, dt_true_lb);
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);

    if (sizeof(MPIDI_NTBRING_short_hdr_t) + data_sz <= MPIDI_NTBRING_global.limits.eager_max) {
        if (dt_contig && !is_sync) {
            MPIR_Context_id_t context_id = comm->context_id + context_offset;
            int rc = ntbring_send_now(MPIDI_NTBRING_VCI(vci).endpoint,
                                      MPIDI_NTBRING_dest(rank, comm), MPIDI_NTBRING_SEND_SHORT,
                                      MPIDI_NTBRING_SHORT_WORD(comm->rank, tag),
                                      MPIDI_NTBRING_SHORT_WORD(errflag, context_id),
                                      MPIR_get_contig_ptr(buf, dt_true_lb), data_sz);
            MPIDI_NTBRING_CHKRC(rc);
            if (rc == NTBRING_OK) {
                *request = MPIR_Request_create_complete(MPIR_REQUEST_KIND__SEND);
            }
        }
    }
    /* an offer always replaces MPIDIG's own rendezvous, which could not be cancelled */
    if (*request == NULL && data_sz > 0 &&
        sizeof(MPIDIG_hdr_t) + data_sz >
        ntbring_eager_max(MPIDI_NTBRING_VCI(vci).endpoint, MPIDI_NTBRING_dest(rank, comm))) {
        mpi_errno = MPIDI_NTBRING_offer(buf, count, datatype, rank, tag, comm, context_offset,
                                        vci, errflag, is_sync, request);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Stores the destination in the request, since MPIDIG's header of a rendezvous does not name the
 * request. */
MPL_STATIC_INLINE_PREFIX void MPIDI_NTBRING_sends_to(MPIR_Request * sreq, int rank,
                                                     MPIR_Comm * comm)
{
    if (sreq && MPIDIG_REQUEST(sreq, req)) {
        MPIDI_NTBRING_AM(sreq)->peer = MPIDI_NTBRING_dest(rank, comm);
    }
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_isend(const void *buf, MPI_Aint count,
                                                MPI_Datatype datatype, int rank, int tag,
                                                MPIR_Comm * comm, int context_offset,
                                                MPIDI_av_entry_t * addr, MPIR_Request ** request)
{
    int vci = MPIDI_NTBRING_SEND_VCI(rank, tag, comm);
    int mpi_errno = MPIDI_NTBRING_isend(buf, count, datatype, rank, tag, comm, context_offset, vci,
                                        MPIR_ERR_NONE, false, request);
    if (mpi_errno == MPI_SUCCESS && *request == NULL) {
        mpi_errno = MPIDIG_mpi_isend(buf, count, datatype, rank, tag, comm, context_offset, addr,
                                     vci, vci, request);
        MPIDI_NTBRING_sends_to(*request, rank, comm);
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_issend(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 MPIDI_av_entry_t * addr, MPIR_Request ** request)
{
    int vci = MPIDI_NTBRING_SEND_VCI(rank, tag, comm);
    int mpi_errno = MPIDI_NTBRING_isend(buf, count, datatype, rank, tag, comm, context_offset, vci,
                                        MPIR_ERR_NONE, true, request);
    if (mpi_errno == MPI_SUCCESS && *request == NULL) {
        mpi_errno = MPIDIG_mpi_issend(buf, count, datatype, rank, tag, comm, context_offset, addr,
                                      vci, vci, request);
        MPIDI_NTBRING_sends_to(*request, rank, comm);
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_isend_coll(const void *buf, MPI_Aint count,
                                                 MPI_Datatype datatype, int rank, int tag,
                                                 MPIR_Comm * comm, int context_offset,
                                                 MPIDI_av_entry_t * addr, MPIR_Request ** request,
                                                 MPIR_Errflag_t * errflag)
{
    int vci = MPIDI_NTBRING_SEND_VCI(rank, tag, comm);
    int mpi_errno = MPIDI_NTBRING_isend(buf, count, datatype, rank, tag, comm, context_offset, vci,
                                        *errflag, false, request);
    if (mpi_errno == MPI_SUCCESS && *request == NULL) {
        mpi_errno = MPIDIG_isend_coll(buf, count, datatype, rank, tag, comm, context_offset, addr,
                                      vci, vci, request, errflag);
        MPIDI_NTBRING_sends_to(*request, rank, comm);
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_cancel_send(MPIR_Request * sreq)
{
    return MPIDI_NTBRING_cancel_send(sreq);
}

#endif /* NTBRING_SEND_H_INCLUDED */
