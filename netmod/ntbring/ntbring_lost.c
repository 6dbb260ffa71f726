/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* Ends requests after processes have died, or processes of other jobs have left: requests that
 * involve them complete with an error, and all others go on. For each such process there is an
 * entry: a bit for each VCI whose endpoint has given it up, and the reason. */
typedef struct {
    uint64_t vcis;
    char *volatile why;
    bool has_left;              /* it has left in an orderly way, and has not died */
} lost_t;

/* Entries of ranks, followed by those of processes of other jobs, whose number may grow. Blocks
 * of entries are never moved, so that they can be read without a lock. */
#define PEERS_A_BLOCK 1024
#define BLOCKS 4096
static lost_t *volatile blocks[BLOCKS];

/* A process of another job that died while there was a window to which other jobs contribute
 * memory. */
static volatile int32_t dead_external_peer = MPIDI_NTBRING_NOBODY;
static int external_peer_windows;

int MPIDI_NTBRING_lost_init(void)
{
    MPL_COMPILE_TIME_ASSERT(MPIDI_CH4_MAX_VCIS <= 64);
    return MPI_SUCCESS;
}

void MPIDI_NTBRING_lost_finalize(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        for (int j = 0; blocks[i] && j < PEERS_A_BLOCK; j++) {
            MPL_free(blocks[i][j].why);
        }
        MPL_free(blocks[i]);
        blocks[i] = NULL;
    }
    MPIDI_NTBRING_global.has_lost = false;
    MPIDI_NTBRING_global.has_lost_ranks = false;
    dead_external_peer = MPIDI_NTBRING_NOBODY;
}

static lost_t *lost_of(int32_t peer)
{
    lost_t *block = NULL;
    if (peer >= 0 && peer / PEERS_A_BLOCK < BLOCKS) {
        block = __atomic_load_n(&blocks[peer / PEERS_A_BLOCK], __ATOMIC_ACQUIRE);
    }
    return block ? &block[peer % PEERS_A_BLOCK] : NULL;
}

/* Returns true if the endpoint of one of these VCIs has given up a process. */
static bool is_lost(int32_t peer, uint64_t vcis)
{
    lost_t *lost = lost_of(peer);
    return lost && (__atomic_load_n(&lost->vcis, __ATOMIC_ACQUIRE) & vcis) != 0;
}

bool MPIDI_NTBRING_is_lost_external_peer(int32_t peer)
{
    return peer >= MPIR_Process.size && is_lost(peer, UINT64_MAX);
}

static int error_of(int32_t peer)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_ERR_SET1(mpi_errno, MPIX_ERR_PROC_FAILED, "**ntbring", "**ntbring %s", lost_of(peer)->why);
    return mpi_errno;
}

/* Returns a lost process that a receive from source may be waiting for, or -1. A process that
 * has left counts only if no other process can send. */
static int32_t lost_source(int source, MPIR_Comm * comm, uint64_t vcis)
{
    int first = source, last = source;
    int32_t left = -1;
    bool are_others = false;
    if (source == MPI_ANY_SOURCE) {
        first = 0;
        last = comm->remote_size - 1;
    }
    for (int rank = first; rank >= 0 && rank <= last; rank++) {
        int32_t peer = MPIDI_NTBRING_dest(rank, comm);
        if (!is_lost(peer, vcis)) {
            are_others = true;
        } else if (lost_of(peer)->has_left) {
            left = peer;
        } else {
            return peer;
        }
    }
    return are_others ? -1 : left;
}

int MPIDI_NTBRING_check_source(int source, MPIR_Comm * comm)
{
    int32_t peer = lost_source(source, comm, UINT64_MAX);
    return peer >= 0 ? error_of(peer) : MPI_SUCCESS;
}

int MPIDI_NTBRING_check_all(void)
{
    for (int32_t peer = 0; MPIDI_NTBRING_global.has_lost_ranks && peer < MPIR_Process.size;
         peer++) {
        if (is_lost(peer, UINT64_MAX)) {
            return error_of(peer);
        }
    }
    if (unlikely(dead_external_peer != MPIDI_NTBRING_NOBODY)) {
        return error_of(dead_external_peer);
    }
    return MPI_SUCCESS;
}

static bool has_external_peers(MPIR_Comm * comm)
{
    for (int rank = 0; rank < comm->local_size; rank++) {
        if (MPIDI_NTBRING_dest(rank, comm) >= MPIR_Process.size) {
            return true;
        }
    }
    return false;
}

/* Counts windows to which other jobs contribute memory. After the last of them is freed, no
 * operation can wait for their processes that have died. */
static void count_window(int how)
{
    if (__atomic_add_fetch(&external_peer_windows, how, __ATOMIC_RELAXED) == 0) {
        dead_external_peer = MPIDI_NTBRING_NOBODY;
    }
}

void MPIDI_NTBRING_lost_add_window(MPIR_Win * win)
{
    win->dev.netmod.ntbring.has_external_peers = has_external_peers(win->comm_ptr);
    count_window(win->dev.netmod.ntbring.has_external_peers);
}

void MPIDI_NTBRING_lost_remove_window(MPIR_Win * win)
{
    count_window(-win->dev.netmod.ntbring.has_external_peers);
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
    if (MPIDIG_REQUEST(sreq, req)) {
        MPIDI_NTBRING_release_datatype(am);
        if (am->is_cancelling) {
            am->is_cancelling = false;
            MPIDI_CH4_REQUEST_FREE(sreq);       /* no reply will come */
        }
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
        /* of the two requests, the user has the one of shared memory */
        MPIDI_CH4_REQUEST_FREE(MPIDI_REQUEST(rreq, is_local) ? partner : rreq);
        end_receive(partner, peer);
    }
#endif
    end_receive(rreq, peer);
}

/* Ends a message whose remaining chunks will never come, so that no receive matches it. */
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
        MPIDI_NTBRING_unexpected_unlink(rreq, vci);
    }
    MPL_free(MPIDIG_REQUEST(rreq, rndv_hdr));
    MPL_free(MPIDIG_REQUEST(rreq, buffer));
    /* one reference belongs to the receive, which will not come */
    MPIDI_CH4_REQUEST_FREE(rreq);
    end_request(rreq, peer);
}

static void end_recv(MPIR_Request * rreq, int vci)
{
    int source = MPIDIG_REQUEST(rreq, u.recv.source);
    if (!(MPIDIG_REQUEST(rreq, req->status) & MPIDIG_REQ_IN_PROGRESS)) {
        end_posted(rreq, vci);
    } else if (rreq->comm && source != MPI_ANY_SOURCE) {
        /* a receive from any source here waits for a message that has arrived in part */
        int32_t peer = lost_source(source, rreq->comm, 1ULL << vci);
        if (peer >= 0) {
            end_receive(rreq, peer);
        }
    }
}

static void end_partitioned(MPIR_Request * req, int vci)
{
    if (req->comm == NULL) {
        return;                 /* it has arrived before its receive was started */
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

/* Ends all requests of a VCI that wait for lost processes. It is called repeatedly, since such
 * requests may also be begun later. It searches the pool of all requests, so that requests need
 * not be registered when they are begun. */
void MPIDI_NTBRING_end_lost(int vci)
{
    /* unexpected messages first, since they end the receives that they are matched with */
    end_some(true, vci);
    end_some(false, vci);
}

/* Stores a pointer if none has been stored, and otherwise frees it. */
static void put_once(void *volatile *place, void *what)
{
    void *nothing = NULL;
    if (what && !__atomic_compare_exchange_n(place, &nothing, what, false, __ATOMIC_ACQ_REL,
                                             __ATOMIC_RELAXED)) {
        MPL_free(what);
    }
}

/* Removes the entries of those lost processes of other jobs that are not in use, so that their
 * numbers can be assigned again. */
int MPIDI_NTBRING_forget_external_peers(bool(*is_used) (int32_t peer))
{
    int mpi_errno = MPI_SUCCESS;

    for (int32_t peer = MPIR_Process.size; lost_of(peer); peer++) {
        lost_t *lost = lost_of(peer);
        if (!is_lost(peer, UINT64_MAX) || is_used(peer)) {
            continue;
        }
        if (dead_external_peer == peer) {
            dead_external_peer = MPIDI_NTBRING_NOBODY;
        }
        __atomic_store_n(&lost->vcis, 0, __ATOMIC_RELEASE);
        MPL_free(lost->why);
        lost->why = NULL;
        int rc;
        MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_peer_drop(MPIDI_NTBRING_VCI(0).endpoint, peer));
        MPIDI_NTBRING_CHKRC(rc);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_handle_lost(int32_t peer, bool is_dead, const char *why, int vci)
{
    int mpi_errno = MPI_SUCCESS;
    lost_t *lost;

    /* several VCIs may detect the loss at the same time */
    if (lost_of(peer) == NULL && peer / PEERS_A_BLOCK < BLOCKS) {
        put_once((void *volatile *) &blocks[peer / PEERS_A_BLOCK],
                 MPL_calloc(PEERS_A_BLOCK, sizeof(lost_t), MPL_MEM_OTHER));
    }
    lost = lost_of(peer);
    MPIR_ERR_CHKANDJUMP(!lost, mpi_errno, MPI_ERR_OTHER, "**nomem");
    if (lost->why == NULL) {
        put_once((void *volatile *) &lost->why, MPL_strdup(why));
        MPIR_ERR_CHKANDJUMP(!lost->why, mpi_errno, MPI_ERR_OTHER, "**nomem");
    }
    lost->has_left = !is_dead;
    uint64_t known = __atomic_fetch_or(&lost->vcis, 1ULL << vci, __ATOMIC_RELEASE);
    if (peer < MPIR_Process.size) {
        MPIDI_NTBRING_global.has_lost_ranks = true;
    } else if (is_dead && !known && __atomic_load_n(&external_peer_windows, __ATOMIC_RELAXED) > 0) {
        dead_external_peer = peer;
    }
    MPIDI_NTBRING_global.has_lost = true;
    MPIDI_NTBRING_end_lost(vci);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
