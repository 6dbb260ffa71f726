/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"
#include "mpidig_pt2pt_callbacks.h"

#define MPIDI_NTBRING_POLL_BATCH 16

/* Number of polls without an event between two checks for requests that wait for lost processes. */
#define MPIDI_NTBRING_POLLS_A_LOSS 64

/* Smallest size of each handler's header in bytes. */
static const uint16_t header_min[MPIDI_AM_HANDLERS_MAX] = {
    [MPIDIG_SEND] = sizeof(MPIDIG_hdr_t),
    [MPIDIG_SEND_CTS] = sizeof(MPIDIG_send_cts_msg_t),
    [MPIDIG_SEND_DATA] = sizeof(MPIDIG_send_data_msg_t),
    [MPIDIG_SSEND_ACK] = sizeof(MPIDIG_ssend_ack_msg_t),
    [MPIDIG_PART_SEND_INIT] = sizeof(MPIDIG_part_send_init_msg_t),
    [MPIDIG_PART_CTS] = sizeof(MPIDIG_part_cts_msg_t),
    [MPIDIG_PART_SEND_DATA] = sizeof(MPIDIG_part_send_data_msg_t),
    [MPIDIG_PUT_REQ] = sizeof(MPIDIG_put_msg_t),
    [MPIDIG_PUT_ACK] = sizeof(MPIDIG_put_ack_msg_t),
    [MPIDIG_PUT_DT_REQ] = sizeof(MPIDIG_put_msg_t),
    [MPIDIG_PUT_DAT_REQ] = sizeof(MPIDIG_put_dat_msg_t),
    [MPIDIG_PUT_DT_ACK] = sizeof(MPIDIG_put_dt_ack_msg_t),
    [MPIDIG_GET_REQ] = sizeof(MPIDIG_get_msg_t),
    [MPIDIG_GET_ACK] = sizeof(MPIDIG_get_ack_msg_t),
    [MPIDIG_ACC_REQ] = sizeof(MPIDIG_acc_req_msg_t),
    [MPIDIG_ACC_ACK] = sizeof(MPIDIG_acc_ack_msg_t),
    [MPIDIG_ACC_DT_REQ] = sizeof(MPIDIG_acc_req_msg_t),
    [MPIDIG_ACC_DAT_REQ] = sizeof(MPIDIG_acc_dat_msg_t),
    [MPIDIG_ACC_DT_ACK] = sizeof(MPIDIG_acc_dt_ack_msg_t),
    [MPIDIG_GET_ACC_REQ] = sizeof(MPIDIG_get_acc_req_msg_t),
    [MPIDIG_GET_ACC_ACK] = sizeof(MPIDIG_get_acc_ack_msg_t),
    [MPIDIG_GET_ACC_DT_REQ] = sizeof(MPIDIG_get_acc_req_msg_t),
    [MPIDIG_GET_ACC_DAT_REQ] = sizeof(MPIDIG_get_acc_dat_msg_t),
    [MPIDIG_GET_ACC_DT_ACK] = sizeof(MPIDIG_get_acc_dt_ack_msg_t),
    [MPIDIG_CSWAP_REQ] = sizeof(MPIDIG_cswap_req_msg_t),
    [MPIDIG_CSWAP_ACK] = sizeof(MPIDIG_cswap_ack_msg_t),
    [MPIDIG_WIN_COMPLETE] = sizeof(MPIDIG_win_cntrl_msg_t),
    [MPIDIG_WIN_POST] = sizeof(MPIDIG_win_cntrl_msg_t),
    [MPIDIG_WIN_LOCK] = sizeof(MPIDIG_win_cntrl_msg_t),
    [MPIDIG_WIN_LOCK_ACK] = sizeof(MPIDIG_win_cntrl_msg_t),
    [MPIDIG_WIN_UNLOCK] = sizeof(MPIDIG_win_cntrl_msg_t),
    [MPIDIG_WIN_UNLOCK_ACK] = sizeof(MPIDIG_win_cntrl_msg_t),
    [MPIDIG_WIN_LOCKALL] = sizeof(MPIDIG_win_cntrl_msg_t),
    [MPIDIG_WIN_LOCKALL_ACK] = sizeof(MPIDIG_win_cntrl_msg_t),
    [MPIDIG_WIN_UNLOCKALL] = sizeof(MPIDIG_win_cntrl_msg_t),
    [MPIDIG_WIN_UNLOCKALL_ACK] = sizeof(MPIDIG_win_cntrl_msg_t),
    [MPIDIG_COMM_ABORT] = sizeof(int),
    [MPIDI_NTBRING_CANCEL] = sizeof(MPIDI_NTBRING_cancel_hdr_t),
    [MPIDI_NTBRING_CANCELLED] = sizeof(MPIDI_NTBRING_cancel_hdr_t),
    [MPIDI_IPC_ACK] = UINT16_MAX,       /* valid only through shared memory */
};

/* Returns true if the sizes inside a header are consistent with the sizes of the message. */
static bool header_fits(const ntbring_event_t * event)
{
    if (event->handler >= MPIDI_AM_HANDLERS_MAX ||
        MPIDIG_global.target_msg_cbs[event->handler] == NULL ||
        event->hdr_size < header_min[event->handler]) {
        return false;
    }

    uint64_t tail_sz = event->hdr_size - header_min[event->handler];
    const MPIDIG_hdr_t *send = event->hdr;
    const MPIDIG_put_msg_t *put = event->hdr;
    const MPIDIG_acc_req_msg_t *acc = event->hdr;
    switch (event->handler) {
        case MPIDIG_SEND:
            if (send->flags & MPIDIG_AM_SEND_FLAGS_RTS) {
                return MPIDIG_AM_SEND_GET_RNDV_ID(send->flags) == MPIDIG_RNDV_GENERIC &&
                    send->data_sz >= 0 && (uint64_t) send->rndv_hdr_sz <= tail_sz;
            }
            return (uint64_t) send->data_sz == event->total;
        case MPIDIG_PUT_REQ:
            return (uint64_t) put->flattened_sz <= tail_sz &&
                (uint64_t) put->origin_data_sz == event->total;
        case MPIDIG_ACC_REQ:
        case MPIDIG_GET_ACC_REQ:
            return (uint64_t) acc->flattened_sz <= tail_sz;
        default:
            return true;
    }
}

/* Dequeues the first posted receive and sets its status if a message matches it, the most frequent
 * case, and only the payload has to be copied. Otherwise returns NULL, without any effect. A call
 * would cost small messages time. */
ATTRIBUTE((always_inline)) static inline MPIR_Request *take_first(const MPIDIG_hdr_t * hdr, int vci)
{
    MPIR_Request **posted = &MPIDI_global.per_vci[vci].posted_list;
    MPIR_Request *rreq = *posted;
    if (rreq == NULL || !MPIDIG_match_request(hdr->src_rank, hdr->tag, hdr->context_id, rreq,
                                              MPIDIG_PT2PT_POSTED)) {
        return NULL;
    }
    MPI_Datatype datatype = MPIDIG_REQUEST(rreq, datatype);
    if (MPIDI_REQUEST_ANYSOURCE_PARTNER(rreq) || !HANDLE_IS_BUILTIN(datatype)) {
        return NULL;
    }
    /* a truncated message or a partial element is left to the general path, which reports the
     * error */
    uint64_t element = MPIR_Datatype_get_basic_size(datatype);
    uint64_t data_sz = hdr->data_sz;
    if (data_sz > element * (uint64_t) MPIDIG_REQUEST(rreq, count) ||
        (element & (element - 1)) || (data_sz & (element - 1))) {
        return NULL;
    }

    MPIDIG_rreq_dequeue(hdr->src_rank, hdr->tag, hdr->context_id, posted, MPIDIG_PT2PT_POSTED);
    rreq->status.MPI_SOURCE = hdr->src_rank;
    rreq->status.MPI_TAG = hdr->tag;
    rreq->status.MPI_ERROR = hdr->error_bits;
    MPIR_STATUS_SET_COUNT(rreq->status, hdr->data_sz);
    return rreq;
}

/* Passes up a message whose payload follows in chunks, and tells where the payload goes. */
static int begin_message(ntbring_event_t * event, int handler, void *hdr, uint32_t attr)
{
    MPIR_Request *rreq = NULL;
    int mpi_errno = MPIDIG_global.target_msg_cbs[handler] (hdr, NULL, event->total,
                                                           attr | MPIDIG_AM_ATTR__IS_ASYNC, &rreq);
    if (mpi_errno == MPI_SUCCESS && rreq) {
        MPIDI_NTBRING_recv_begin(rreq);
        event->data_size = MPIDI_NTBRING_recv_room(rreq, event->total, &event->data);
        event->cookie = rreq;
    }
    return mpi_errno;
}

static MPIDIG_hdr_t long_hdr(const MPIDI_NTBRING_short_hdr_t * hdr, MPI_Aint data_sz)
{
    return (MPIDIG_hdr_t) {
        .src_rank = MPIDI_NTBRING_SHORT_LOW(hdr->envelope),
        .tag = MPIDI_NTBRING_SHORT_HIGH(hdr->envelope),
        .context_id = MPIDI_NTBRING_SHORT_HIGH(hdr->context),
        .error_bits = MPIDI_NTBRING_SHORT_LOW(hdr->context),
        .data_sz = data_sz,
    };
}

static int handle_short(ntbring_event_t * event, uint32_t attr, int vci)
{
    MPIDIG_hdr_t hdr = long_hdr(event->hdr, event->data_size);
    MPIR_Request *rreq = take_first(&hdr, vci);
    if (rreq == NULL) {
        return MPIDIG_send_target_msg_cb(&hdr, event->data, event->data_size, attr, NULL);
    }
    if (event->data_size > 0) {
        memcpy(MPIDIG_REQUEST(rreq, buffer), event->data, event->data_size);
    }
    MPID_Request_complete(rreq);
    return MPI_SUCCESS;
}

/* The same for a message whose payload follows in chunks. */
static int begin_short(ntbring_event_t * event, uint32_t attr, int vci)
{
    MPIDIG_hdr_t hdr = long_hdr(event->hdr, event->total);
    MPIR_Request *rreq = take_first(&hdr, vci);
    if (rreq == NULL) {
        return begin_message(event, MPIDIG_SEND, &hdr, attr);
    }
    /* for MPI_Cancel, and for the search for receives from processes that are lost */
    MPIDIG_REQUEST(rreq, u.recv.source) = hdr.src_rank;
    MPIDIG_REQUEST(rreq, u.recv.tag) = hdr.tag;
    MPIDIG_REQUEST(rreq, req->status) |= MPIDIG_REQ_IN_PROGRESS;
    /* does nothing but complete the request */
    MPIDIG_REQUEST(rreq, req->target_cmpl_cb) = MPIDIG_send_origin_cb;
    event->data = MPIDIG_REQUEST(rreq, buffer);
    event->data_size = event->total;
    event->cookie = rreq;
    return MPI_SUCCESS;
}

static bool offer_fits(const ntbring_event_t * event)
{
    const MPIDIG_hdr_t *hdr = event->hdr;
    return event->handler == MPIDIG_SEND && event->hdr_size == sizeof(*hdr) &&
        hdr->flags & MPIDIG_AM_SEND_FLAGS_RTS &&
        MPIDIG_AM_SEND_GET_RNDV_ID(hdr->flags) == MPIDI_NTBRING_RNDV &&
        (uint64_t) hdr->data_sz == event->total;
}

static int handle_offer(ntbring_event_t * event, uint32_t attr)
{
    struct {
        MPIDIG_hdr_t hdr;
        ntbring_offer_t offer;
    } msg = {
        .hdr = *(const MPIDIG_hdr_t *) event->hdr,
        .offer = event->offer,
    };
    msg.hdr.rndv_hdr_sz = sizeof(msg.offer);
    return MPIDIG_send_target_msg_cb(&msg.hdr, NULL, 0, attr, NULL);
}

static int handle_chunk(ntbring_event_t * event)
{
    MPIR_Request *rreq = event->cookie;
    if (rreq == NULL) {
        return MPI_SUCCESS;
    }
    MPIDI_NTBRING_recv_chunk(rreq, event->data, event->data_size);
    if (!event->last) {
        return MPI_SUCCESS;
    }
    MPIDI_NTBRING_recv_end(rreq);
    return MPIDIG_REQUEST(rreq, req->target_cmpl_cb) (rreq);
}

static int handle_sent(ntbring_event_t * event)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *sreq = event->cookie;
    MPIDI_NTBRING_am_request_t *am = MPIDI_NTBRING_AM(sreq);

    if (am->handler_id == event->handler) {
        MPIDI_NTBRING_release_datatype(am);
    }
    am->is_leaving = false;
    bool is_cancelling = am->is_cancelling;
    mpi_errno = MPIDIG_global.origin_cbs[event->handler] (sreq);
    MPID_Request_complete(sreq);
    MPIR_ERR_CHECK(mpi_errno);
    if (unlikely(is_cancelling)) {
        mpi_errno = MPIDI_NTBRING_cancel_left(sreq);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Called by MPICH when an unexpected message has been matched with a receive. */
void MPIDI_NTBRING_unexpected_taken(MPIR_Request * rreq)
{
    MPIDI_NTBRING_am_request_t *am = MPIDI_NTBRING_AM(rreq);
    if (am->charge > 0) {
        ntbring_discharge(MPIDI_NTBRING_VCI(MPIDI_NTBRING_REQUEST_VCI(rreq)).endpoint, am->peer,
                          am->charge);
        am->charge = 0;
    }
}

/* Removes a message from the unexpected queue, so that no receive can match it. */
void MPIDI_NTBRING_unexpected_unlink(MPIR_Request * req, int vci)
{
    DL_DELETE(MPIDI_global.per_vci[vci].unexp_list, req);
    MPIDIG_DO_DEQUEUE_EVENT(MPIDIG_PT2PT_UNEXP);
    MPIDIG_PVAR_QUEUE_LEVEL_DEC(MPIDIG_PT2PT_UNEXP);
}

/* Lets a stalled sender continue if a receive waits for one of the messages that it holds back. */
static int handle_stalled(int src, int vci)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *rreq;
    bool any_source = false;

    DL_FOREACH(MPIDI_global.per_vci[vci].posted_list, rreq) {
        int rank = MPIDIG_REQUEST(rreq, u.recv.source);
        any_source |= rank == MPI_ANY_SOURCE;
        if (rank != MPI_ANY_SOURCE && MPIDI_NTBRING_dest(rank, rreq->comm) == src) {
            int rc = ntbring_allow_more(MPIDI_NTBRING_VCI(vci).endpoint, src, false);
            MPIDI_NTBRING_CHKRC(rc);
            goto fn_exit;
        }
    }
    if (any_source) {
        int rc = ntbring_allow_more(MPIDI_NTBRING_VCI(vci).endpoint, src, true);
        MPIDI_NTBRING_CHKRC(rc);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int handle_event(ntbring_event_t * event, int vci)
{
    int mpi_errno = MPI_SUCCESS;
    uint32_t attr = 0;
    MPIDIG_AM_ATTR_SET_VCIS(attr, (uint32_t) vci, (uint32_t) vci);

    switch (event->kind) {
        case NTBRING_EVENT_MESSAGE:
            if (event->handler == MPIDI_NTBRING_SEND_SHORT &&
                event->hdr_size == sizeof(MPIDI_NTBRING_short_hdr_t)) {
                mpi_errno = handle_short(event, attr, vci);
                break;
            }
            MPIR_ERR_CHKANDJUMP2(!header_fits(event), mpi_errno, MPI_ERR_OTHER, "**ntbring_header",
                                 "**ntbring_header %d %d", event->src, (int) event->handler);
            mpi_errno = MPIDIG_global.target_msg_cbs[event->handler] (event->hdr, event->data,
                                                                      event->data_size, attr,
                                                                      NULL);
            break;
        case NTBRING_EVENT_BEGIN:
            event->cookie = NULL;
            if (event->handler == MPIDI_NTBRING_SEND_SHORT &&
                event->hdr_size == sizeof(MPIDI_NTBRING_short_hdr_t)) {
                mpi_errno = begin_short(event, attr, vci);
                break;
            }
            MPIR_ERR_CHKANDJUMP2(!header_fits(event), mpi_errno, MPI_ERR_OTHER, "**ntbring_header",
                                 "**ntbring_header %d %d", event->src, (int) event->handler);
            mpi_errno = begin_message(event, event->handler, event->hdr, attr);
            break;
        case NTBRING_EVENT_CHUNK:
            mpi_errno = handle_chunk(event);
            break;
        case NTBRING_EVENT_SENT:
            mpi_errno = handle_sent(event);
            break;
        case NTBRING_EVENT_OFFER:
            MPIR_ERR_CHKANDJUMP2(!offer_fits(event), mpi_errno, MPI_ERR_OTHER, "**ntbring_header",
                                 "**ntbring_header %d %d", event->src, (int) event->handler);
            mpi_errno = handle_offer(event, attr);
            break;
        case NTBRING_EVENT_FETCHED:
            mpi_errno = MPIDIG_REQUEST((MPIR_Request *) event->cookie, req->target_cmpl_cb)
                (event->cookie);
            break;
        case NTBRING_EVENT_TAKEN:
            mpi_errno = MPIDI_NTBRING_offer_taken(event->cookie);
            break;
        case NTBRING_EVENT_REMOTE:
            MPIDI_NTBRING_far_done(event->cookie);
            break;
        case NTBRING_EVENT_LOST:
            mpi_errno = MPIDI_NTBRING_handle_lost(event->src, !event->last, ntbring_error_text(),
                                                  vci);
            break;
        case NTBRING_EVENT_STALLED:
            mpi_errno = handle_stalled(event->src, vci);
            break;
        default:
            break;
    }
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_progress(int vci)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_vci_t *self = &MPIDI_NTBRING_VCI(vci);
    ntbring_endpoint_t *endpoint = self->endpoint;
    MPIR_FUNC_ENTER;

    if (unlikely(endpoint == NULL)) {
        goto fn_exit;
    }

    int progress_count = MPIDI_NTBRING_PROGRESS_COUNT(vci);
    for (int i = 0; i < MPIDI_NTBRING_POLL_BATCH; i++) {
        ntbring_event_t event;
        int rc = ntbring_poll(endpoint, &event);
        if (rc == NTBRING_NONE) {
            if (unlikely(MPIDI_NTBRING_global.has_lost_ranks) &&
                self->fruitless++ % MPIDI_NTBRING_POLLS_A_LOSS == 0) {
                MPIDI_NTBRING_end_lost(vci);
            }
            break;
        }
        MPIDI_NTBRING_CHKRC(rc);

        self->arriving_src = event.src;
        self->arriving_charge = event.charge;
        mpi_errno = handle_event(&event, vci);
        event.charge = self->arriving_charge;
        self->arriving_charge = 0;
        self->arriving_src = MPIDI_NTBRING_NOBODY;
        rc = ntbring_release(endpoint, &event);
        MPIR_ERR_CHECK(mpi_errno);
        MPIDI_NTBRING_CHKRC(rc);

        /* return, since a caller may be waiting for an operation that has just completed */
        if (!event.more && progress_count != MPIDI_NTBRING_PROGRESS_COUNT(vci)) {
            break;
        }
    }

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
