/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"
#include "mpidig_pt2pt_callbacks.h"

int MPIDI_NTBRING_offer(const void *buf, MPI_Aint count, MPI_Datatype datatype, int rank, int tag,
                        MPIR_Comm * comm, int context_offset, int vci, MPIR_Errflag_t errflag,
                        bool is_sync, MPIR_Request ** request)
{
    int mpi_errno = MPI_SUCCESS;
    int dt_contig;
    MPI_Aint data_sz, dt_true_lb;
    MPIR_Datatype *dt_ptr;
    MPIR_FUNC_ENTER;

    MPIDI_Datatype_get_info(count, datatype, dt_contig, data_sz, dt_ptr, dt_true_lb);
    MPIR_Request *sreq = MPIDIG_request_create(MPIR_REQUEST_KIND__SEND, 2, vci, vci);
    MPIR_ERR_CHKANDSTMT(sreq == NULL, mpi_errno, MPIX_ERR_NOREQ, goto fn_fail, "**nomemreq");
    *request = sreq;
    sreq->comm = comm;
    MPIR_Comm_add_ref(comm);
#ifdef HAVE_DEBUGGER_SUPPORT
    MPIDIG_REQUEST(sreq, buffer) = (void *) buf;
    MPIDIG_REQUEST(sreq, count) = count;
    MPIDIG_REQUEST(sreq, datatype) = datatype;
#endif

    MPIDIG_hdr_t hdr = {
        .src_rank = comm->rank,
        .tag = tag,
        .context_id = comm->context_id + context_offset,
        .error_bits = errflag,
        .flags = is_sync ? MPIDIG_AM_SEND_FLAGS_SYNC : MPIDIG_AM_SEND_FLAGS_NONE,
        .sreq_ptr = sreq,
        .data_sz = data_sz,
        .rndv_hdr_sz = sizeof(ntbring_offer_t),
    };
    MPIDIG_AM_SEND_SET_RNDV(hdr.flags, MPIDI_NTBRING_RNDV);
    if (is_sync) {
        MPIR_cc_inc(sreq->cc_ptr);      /* expecting SSEND_ACK */
    }

    ntbring_message_t message = {
        .dest = MPIDI_NTBRING_dest(rank, comm),
        .handler = MPIDIG_SEND,
        .hdr = &hdr,
        .hdr_size = sizeof(hdr),
        .data_size = data_sz,
        .cookie = sreq,
    };
    MPIDI_NTBRING_AM(sreq)->peer = message.dest;
    if (dt_contig) {
        message.data = MPIR_get_contig_ptr(buf, dt_true_lb);
    } else {
        MPIDI_NTBRING_am_request_t *am = MPIDI_NTBRING_AM(sreq);
        am->buffer = buf;
        am->count = count;
        am->datatype = datatype;
        MPIR_Datatype_add_ref_if_not_builtin(datatype);
        message.pack = MPIDI_NTBRING_pack;
    }
    int rc = ntbring_offer(MPIDI_NTBRING_VCI(vci).endpoint, &message);
    MPIDI_NTBRING_CHKRC(rc);

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_offer_taken(MPIR_Request * sreq)
{
    MPIDI_NTBRING_release_datatype(MPIDI_NTBRING_AM(sreq));
    MPID_Request_complete(sreq);
    return MPI_SUCCESS;
}

/* Called by MPIDIG when an offer has been matched with a receive. */
int MPIDI_NTBRING_offer_matched(MPIR_Request * rreq)
{
    int mpi_errno = MPI_SUCCESS;
    const ntbring_offer_t *offer = MPIDIG_REQUEST(rreq, rndv_hdr);
    int dt_contig;
    MPI_Aint room_sz, dt_true_lb;

    MPIDI_Datatype_check_contig_size_lb(MPIDIG_REQUEST(rreq, datatype),
                                        MPIDIG_REQUEST(rreq, count), dt_contig, room_sz,
                                        dt_true_lb);
    MPI_Aint data_sz = MPL_MIN(room_sz, (MPI_Aint) offer->total);
    MPIR_STATUS_SET_COUNT(rreq->status, data_sz);

    void *buffer = NULL;
    if (dt_contig || data_sz == 0) {
        buffer = MPIR_get_contig_ptr(MPIDIG_REQUEST(rreq, buffer), dt_true_lb);
    } else {
        MPIDI_NTBRING_recv_begin(rreq);
    }
    int rc = ntbring_accept(MPIDI_NTBRING_VCI(MPIDI_NTBRING_REQUEST_VCI(rreq)).endpoint, offer,
                            buffer, data_sz, rreq);
    MPIDI_NTBRING_CHKRC(rc);
    if (rc == NTBRING_OK) {
        mpi_errno = MPIDIG_REQUEST(rreq, req->target_cmpl_cb) (rreq);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
