/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* What becomes of requests when ranks have died: those that concern them end with an error, and all others
 * go on. Each rank has a word: a bit for each VCI whose endpoint has forgotten it, and why it is lost. */
typedef struct {
    volatile uint64_t vcis;
    char *why;
} lost_t;

static lost_t *lost;

int MPIDI_NTBRING_lost_init(void)
{
    int mpi_errno = MPI_SUCCESS;

    MPL_COMPILE_TIME_ASSERT(MPIDI_CH4_MAX_VCIS <= 64);
    lost = MPL_calloc(MPIR_Process.size, sizeof(*lost), MPL_MEM_OTHER);
    MPIR_ERR_CHKANDJUMP(!lost, mpi_errno, MPI_ERR_OTHER, "**nomem");

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void MPIDI_NTBRING_lost_finalize(void)
{
    for (int peer = 0; lost && peer < MPIR_Process.size; peer++) {
        MPL_free(lost[peer].why);
    }
    MPL_free(lost);
    lost = NULL;
    MPIDI_NTBRING_global.has_lost = false;
}

/* Whether the endpoints of some of these VCIs have forgotten a rank. */
static bool is_lost(int32_t peer, uint64_t vcis)
{
    return peer >= 0 && peer < MPIR_Process.size && (lost[peer].vcis & vcis) != 0;
}

static int error_of(int32_t peer)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_ERR_SET1(mpi_errno, MPIX_ERR_PROC_FAILED, "**ntbring", "**ntbring %s", lost[peer].why);
    return mpi_errno;
}

/* The rank that is lost and that a receive from source may wait for, or -1. */
static int32_t lost_source(int source, MPIR_Comm * comm, uint64_t vcis)
{
    int first = source, last = source;
    if (source == MPI_ANY_SOURCE) {
        first = 0;
        last = comm->remote_size - 1;
    }
    for (int rank = first; rank >= 0 && rank <= last; rank++) {
        int32_t peer = MPIDI_NTBRING_dest(rank, comm);
        if (is_lost(peer, vcis)) {
            return peer;
        }
    }
    return -1;
}

int MPIDI_NTBRING_check_source(int source, MPIR_Comm * comm)
{
    int32_t peer = lost_source(source, comm, UINT64_MAX);
    return peer >= 0 ? error_of(peer) : MPI_SUCCESS;
}

int MPIDI_NTBRING_check_all(void)
{
    for (int32_t peer = 0; MPIDI_NTBRING_global.has_lost && peer < MPIR_Process.size; peer++) {
        if (is_lost(peer, UINT64_MAX)) {
            return error_of(peer);
        }
    }
    return MPI_SUCCESS;
}

static void end_request(MPIR_Request * req, int32_t peer)
{
    req->status.MPI_ERROR = error_of(peer);
    MPIR_STATUS_SET_COUNT(req->status, 0);
    MPIR_cc_set(req->cc_ptr, 1);
    MPID_Request_complete(req);
}

static void end_send(MPIR_Request * sreq, int vci)
{
    MPIDI_NTBRING_am_request_t *am = MPIDI_NTBRING_AM(sreq);
    if (!is_lost(am->peer, 1ULL << vci)) {
        return;
    }
    if (MPIDIG_REQUEST(sreq, req) && am->datatype != MPI_DATATYPE_NULL) {
        MPIR_Datatype_release_if_not_builtin(am->datatype);
        am->datatype = MPI_DATATYPE_NULL;
    }
    end_request(sreq, am->peer);
}

static void end_receive(MPIR_Request * rreq, int32_t peer)
{
    rreq->status.MPI_SOURCE = MPIDIG_REQUEST(rreq, u.recv.source);
    rreq->status.MPI_TAG = MPIDIG_REQUEST(rreq, u.recv.tag);
    MPIR_Datatype_release_if_not_builtin(MPIDIG_REQUEST(rreq, datatype));
    end_request(rreq, peer);
}

static void end_posted(MPIR_Request * rreq, int vci)
{
    int32_t peer = lost_source(MPIDIG_REQUEST(rreq, u.recv.source), rreq->comm, 1ULL << vci);
    if (peer < 0) {
        return;
    }
    MPIR_Request **posted = &MPIDI_global.per_vci[vci].posted_list;
    MPIDIG_delete_posted(rreq, posted);
#ifndef MPIDI_CH4_DIRECT_NETMOD
    MPIR_Request *partner = MPIDI_REQUEST_ANYSOURCE_PARTNER(rreq);
    if (partner) {
        MPIDI_REQUEST_ANYSOURCE_PARTNER(rreq) = NULL;
        MPIDI_REQUEST_ANYSOURCE_PARTNER(partner) = NULL;
        MPIDIG_delete_posted(partner, posted);
        /* the user's is the one of shared memory */
        MPIDI_CH4_REQUEST_FREE(MPIDI_REQUEST(rreq, is_local) ? partner : rreq);
        end_receive(partner, peer);
    }
#endif
    end_receive(rreq, peer);
}

/* A message of which the rest will never come: nobody is to find it. */
static void end_unexpected(MPIR_Request * rreq, int vci)
{
    int32_t peer = MPIDI_NTBRING_AM(rreq)->peer;
    uint64_t status = MPIDIG_REQUEST(rreq, req->status);
    if (!is_lost(peer, 1ULL << vci) || !(status & (MPIDIG_REQ_BUSY | MPIDIG_REQ_RTS))) {
        return;
    }
    if (status & MPIDIG_REQ_UNEXP_DQUED) {
        if (status & MPIDIG_REQ_UNEXP_CLAIMED) {
            MPIDIG_REQUEST(rreq, datatype) = MPIDIG_REQUEST(rreq, req->rreq.mrcv_datatype);
            end_receive(rreq, peer);
        }
        return;
    }
    MPIR_Request *match_req = MPIDIG_REQUEST(rreq, req->rreq.match_req);
    if (status & MPIDIG_REQ_MATCHED && match_req) {
        end_receive(match_req, peer);
    } else {
        MPIDIG_delete_posted(rreq, &MPIDI_global.per_vci[vci].unexp_list);
    }
    MPL_free(MPIDIG_REQUEST(rreq, rndv_hdr));
    MPL_free(MPIDIG_REQUEST(rreq, buffer));
    /* one reference is for the receive that does not come */
    MPIDI_CH4_REQUEST_FREE(rreq);
    end_request(rreq, peer);
}

static void end_recv(MPIR_Request * rreq, int vci)
{
    int source = MPIDIG_REQUEST(rreq, u.recv.source);
    if (!(MPIDIG_REQUEST(rreq, req->status) & MPIDIG_REQ_IN_PROGRESS)) {
        end_posted(rreq, vci);
    } else if (rreq->comm && source != MPI_ANY_SOURCE) {
        /* from any, it waits for a message that is here in part */
        int32_t peer = lost_source(source, rreq->comm, 1ULL << vci);
        if (peer >= 0) {
            end_receive(rreq, peer);
        }
    }
}

static void end_partitioned(MPIR_Request * req, int vci)
{
    if (req->comm == NULL) {
        return;                 /* it has come before its receive */
    }
    int rank = req->kind == MPIR_REQUEST_KIND__PART_SEND ?
        MPIDI_PART_REQUEST(req, u.send.dest) : MPIDI_PART_REQUEST(req, u.recv.source);
    int32_t peer = MPIDI_NTBRING_dest(rank, req->comm);
    if (is_lost(peer, 1ULL << vci)) {
        req->status.MPI_ERROR = error_of(peer);
        MPIR_cc_set(req->cc_ptr, 0);
        MPIDI_NTBRING_MADE_PROGRESS(vci);
    }
}

static bool is_unexpected(MPIR_Request * req)
{
    return req->kind == MPIR_REQUEST_KIND__RECV && MPIDIG_REQUEST(req, req) &&
        MPIDIG_REQUEST(req, req->status) & MPIDIG_REQ_UNEXPECTED;
}

static void end_one(MPIR_Request * req, bool unexpected, int vci)
{
    if (MPIR_Object_get_ref(req) <= 0 || MPIR_Request_is_complete(req) ||
        is_unexpected(req) != unexpected) {
        return;
    }
    if (unexpected) {
        end_unexpected(req, vci);
        return;
    }
    switch (req->kind) {
        case MPIR_REQUEST_KIND__RMA:
            end_send(req, vci);
            break;
        case MPIR_REQUEST_KIND__SEND:
            if (MPIDIG_REQUEST(req, req)) {
                end_send(req, vci);
            }
            break;
        case MPIR_REQUEST_KIND__RECV:
            if (MPIDIG_REQUEST(req, req)) {
                end_recv(req, vci);
            }
            break;
        case MPIR_REQUEST_KIND__PART_SEND:
        case MPIR_REQUEST_KIND__PART_RECV:
            end_partitioned(req, vci);
            break;
        default:
            break;
    }
}

static void end_some(bool unexpected, int vci)
{
    const MPIR_Object_alloc_t *pool = &MPIR_Request_mem[vci];
    MPIR_Request *direct = pool->direct;

    for (int i = 0; i < pool->direct_size; i++) {
        end_one(&direct[i], unexpected, vci);
    }
    for (int block = 0; block < pool->indirect_size; block++) {
        MPIR_Request *reqs = pool->indirect[block];
        for (int i = 0; i < REQUEST_NUM_INDICES; i++) {
            end_one(&reqs[i], unexpected, vci);
        }
    }
}

/* Ends all requests of a VCI that wait for who is lost. They are where all requests are: whoever begins one
 * does not have to remember it for this. */
void MPIDI_NTBRING_end_lost(int vci)
{
    /* those first that end the receives which wait for them */
    end_some(true, vci);
    end_some(false, vci);
}

int MPIDI_NTBRING_handle_lost(int32_t peer, const char *why, int vci)
{
    int mpi_errno = MPI_SUCCESS;

    if (lost[peer].why == NULL) {
        lost[peer].why = MPL_strdup(why);
        MPIR_ERR_CHKANDJUMP(!lost[peer].why, mpi_errno, MPI_ERR_OTHER, "**nomem");
    }
    __atomic_fetch_or(&lost[peer].vcis, 1ULL << vci, __ATOMIC_RELEASE);
    MPIDI_NTBRING_global.has_lost = true;
    MPIDI_NTBRING_end_lost(vci);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
