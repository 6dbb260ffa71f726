/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* MPI_Cancel of sends. A message that has not left is withdrawn. Otherwise the receiver is asked
 * to discard the message; if a receive has matched it already, the send completes like any
 * other. A send that is not synchronous completes when its message has left. */

static int tell(int vci, int32_t dest, int handler, const MPIDI_NTBRING_cancel_hdr_t * hdr)
{
    int mpi_errno = MPI_SUCCESS;
    ntbring_message_t message = {
        .dest = dest,
        .handler = handler,
        .hdr = hdr,
        .hdr_size = sizeof(*hdr),
    };
    int rc = ntbring_send(MPIDI_NTBRING_VCI(vci).endpoint, &message);
    MPIDI_NTBRING_CHKRC(rc);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static void mark_cancelled(MPIR_Request * sreq)
{
    MPIR_STATUS_SET_CANCEL_BIT(sreq->status, TRUE);
    MPIR_STATUS_SET_COUNT(sreq->status, 0);
}

static void end_withdrawn(MPIR_Request * sreq)
{
    MPIDI_NTBRING_release_datatype(MPIDI_NTBRING_AM(sreq));
    mark_cancelled(sreq);
    MPIR_cc_set(sreq->cc_ptr, 1);
    MPID_Request_complete(sreq);
}

static int ask(int vci, MPIR_Request * sreq)
{
    MPIDI_NTBRING_cancel_hdr_t hdr = {.sreq = sreq };
    return tell(vci, MPIDI_NTBRING_AM(sreq)->peer, MPIDI_NTBRING_CANCEL, &hdr);
}

/* Called when the message has left: an earlier request to discard it would overtake its chunks. */
int MPIDI_NTBRING_cancel_left(MPIR_Request * sreq)
{
    if (MPIR_Request_is_complete(sreq)) {
        MPIDI_NTBRING_AM(sreq)->is_cancelling = false;
        MPIDI_CH4_REQUEST_FREE(sreq);
        return MPI_SUCCESS;
    }
    return ask(MPIDI_NTBRING_REQUEST_VCI(sreq), sreq);
}

int MPIDI_NTBRING_cancel_send(MPIR_Request * sreq)
{
    int mpi_errno = MPI_SUCCESS;
    int vci = MPIDI_NTBRING_REQUEST_VCI(sreq);

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
    if (MPIR_Request_is_complete(sreq) || MPIDIG_REQUEST(sreq, req) == NULL) {
        goto fn_exit;
    }
    int32_t peer = MPIDI_NTBRING_AM(sreq)->peer;
    int rc = ntbring_withdraw(MPIDI_NTBRING_VCI(vci).endpoint, peer, sreq, false);
    MPIDI_NTBRING_CHKRC(rc);
    if (rc == NTBRING_SOME) {
        end_withdrawn(sreq);
    } else if (rc == NTBRING_NONE && !MPIDI_NTBRING_AM(sreq)->is_cancelling) {
        MPIDI_NTBRING_AM(sreq)->is_cancelling = true;
        MPIR_Request_add_ref(sreq);     /* until the receiver's reply */
        if (!MPIDI_NTBRING_AM(sreq)->is_leaving) {
            mpi_errno = ask(vci, sreq);
            MPIR_ERR_CHECK(mpi_errno);
        }
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Returns the unexpected message of this send, if it has arrived completely and is not matched. */
static MPIR_Request *find_unexpected(int32_t src, const MPIR_Request * sreq, int vci)
{
    MPIR_Request *rreq;
    DL_FOREACH(MPIDI_global.per_vci[vci].unexp_list, rreq) {
        uint64_t status = MPIDIG_REQUEST(rreq, req->status);
        if (MPIDI_NTBRING_AM(rreq)->peer == src &&
            status & (MPIDIG_REQ_PEER_SSEND | MPIDIG_REQ_RTS) &&
            MPIDIG_REQUEST(rreq, req->rreq.peer_req_ptr) == sreq) {
            return status & MPIDIG_REQ_BUSY ? NULL : rreq;
        }
    }
    return NULL;
}

static int handle_cancel(void *am_hdr, void *data, MPI_Aint data_sz, uint32_t attr,
                         MPIR_Request ** req)
{
    MPIDI_NTBRING_UNUSED(data);
    MPIDI_NTBRING_UNUSED(data_sz);
    MPIDI_NTBRING_UNUSED(req);
    int vci = MPIDIG_AM_ATTR_DST_VCI(attr);
    int32_t src = MPIDI_NTBRING_VCI(vci).arriving_src;
    MPIDI_NTBRING_cancel_hdr_t hdr = *(const MPIDI_NTBRING_cancel_hdr_t *) am_hdr;

    MPIR_Request *rreq = find_unexpected(src, hdr.sreq, vci);
    hdr.is_forgotten = rreq != NULL;
    if (rreq) {
        hdr.is_sync = (MPIDIG_REQUEST(rreq, req->status) & MPIDIG_REQ_PEER_SSEND) != 0;
        MPIDI_NTBRING_unexpected_unlink(rreq, vci);
        MPIDI_NTBRING_unexpected_taken(rreq);
        MPL_free(MPIDIG_REQUEST(rreq, rndv_hdr));
        MPL_free(MPIDIG_REQUEST(rreq, buffer));
        /* one reference belongs to the receive, which will not come */
        MPIDI_CH4_REQUEST_FREE(rreq);
        MPIR_cc_set(rreq->cc_ptr, 1);
        MPID_Request_complete(rreq);
    }
    return tell(vci, src, MPIDI_NTBRING_CANCELLED, &hdr);
}

static int handle_cancelled(void *am_hdr, void *data, MPI_Aint data_sz, uint32_t attr,
                            MPIR_Request ** req)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_UNUSED(data);
    MPIDI_NTBRING_UNUSED(data_sz);
    MPIDI_NTBRING_UNUSED(req);
    const MPIDI_NTBRING_cancel_hdr_t *hdr = am_hdr;
    MPIR_Request *sreq = hdr->sreq;
    int vci = MPIDIG_AM_ATTR_DST_VCI(attr);

    if (hdr->is_forgotten) {
        mark_cancelled(sreq);
        int rc = ntbring_withdraw(MPIDI_NTBRING_VCI(vci).endpoint, MPIDI_NTBRING_AM(sreq)->peer,
                                  sreq, true);
        MPIDI_NTBRING_CHKRC(rc);
        if (rc == NTBRING_SOME) {
            mpi_errno = MPIDI_NTBRING_offer_taken(sreq);
            MPIR_ERR_CHECK(mpi_errno);
        }
        if (hdr->is_sync) {
            MPID_Request_complete(sreq);        /* as SSEND_ACK would do */
        }
    }
    MPIDI_NTBRING_AM(sreq)->is_cancelling = false;
    MPIDI_CH4_REQUEST_FREE(sreq);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_NTBRING_cancel_init(void)
{
    MPIDIG_am_reg_cb(MPIDI_NTBRING_CANCEL, NULL, &handle_cancel);
    MPIDIG_am_reg_cb(MPIDI_NTBRING_CANCELLED, NULL, &handle_cancelled);
}
