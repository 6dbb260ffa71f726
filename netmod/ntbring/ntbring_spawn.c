/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* Time in seconds after which a process that does not read its mailbox is given up. */
#define MPIDI_NTBRING_PEER_TIMEOUT 60

static int make_progress(void)
{
    int mpi_errno = MPID_Progress_test(NULL);
    MPIDI_PROGRESS_IDLE(0);
    return mpi_errno;
}

static double seconds_since(MPL_time_t * start)
{
    MPL_time_t now;
    double seconds;

    MPL_wtime(&now);
    MPL_wtime_diff(start, &now, &seconds);
    return seconds;
}

static int add_peer(const char *upid, int upid_size, int32_t * peer)
{
    int mpi_errno = MPI_SUCCESS;
    int rc;
    MPL_time_t start;

    MPL_wtime(&start);
    for (;;) {
        MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_peer_add(MPIDI_NTBRING_VCI(0).endpoint, upid,
                                                       upid_size, peer));
        MPIDI_NTBRING_CHKRC(rc);
        if (rc == NTBRING_OK) {
            break;
        }
        MPIR_ERR_CHKANDJUMP(seconds_since(&start) > MPIDI_NTBRING_PEER_TIMEOUT, mpi_errno,
                            MPI_ERR_PORT, "**ntbring_peer");
        mpi_errno = make_progress();
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Finds the id under which earlier communicators know a process. */
static bool find_gpid(int32_t peer, uint64_t * gpid)
{
    if (peer < MPIR_Process.size) {
        *gpid = MPIDIU_GPID_CREATE(0, peer);
        return true;
    }
    for (int avtid = 1; avtid < MPIDIU_get_n_avts(); avtid++) {
        MPIDI_av_table_t *table = MPIDIU_get_av_table(avtid);
        for (int lpid = 0; table && lpid < table->size; lpid++) {
            if (MPIDI_NTBRING_AV(&table->table[lpid]).peer == peer) {
                *gpid = MPIDIU_GPID_CREATE(avtid, lpid);
                return true;
            }
        }
    }
    return false;
}

static bool is_known(int32_t peer)
{
    uint64_t gpid;
    return find_gpid(peer, &gpid);
}

/* Frees address tables whose processes are all lost and which no communicator uses, and the
 * entries of these processes. A process that connects later is a new one, or one that is alive,
 * so that no lost one is looked up again. */
static int forget_lost(void)
{
    for (int avtid = 1; avtid < MPIDIU_get_n_avts(); avtid++) {
        MPIDI_av_table_t *table = MPIDIU_get_av_table(avtid);
        bool is_over = table && MPIR_Object_get_ref(table) == 1;
        for (int lpid = 0; is_over && lpid < table->size; lpid++) {
            is_over =
                MPIDI_NTBRING_is_lost_external_peer(MPIDI_NTBRING_AV(&table->table[lpid]).peer);
        }
        if (is_over) {
            /* the same as MPIDIU_free_avt, whose mutex this thread holds already */
            MPL_free(table);
            MPIDI_global.avt_mgr.av_tables[avtid] = NULL;
            MPIDI_global.avt_mgr.n_free++;
        }
    }
    return MPIDI_NTBRING_forget_external_peers(is_known);
}

/* Converts addresses of processes to ids. MPICH's callers ignore its return code and would use
 * invalid ids: an error aborts the job. */
int MPIDI_NTBRING_upids_to_gpids(int size, int *remote_upid_size, char *remote_upids,
                                 uint64_t * remote_gpids)
{
    int mpi_errno = MPI_SUCCESS;
    int new_procs = 0;
    int avtid = -1;
    int32_t *peers;
    MPIR_CHKLMEM_DECL(1);

    MPIR_CHKLMEM_MALLOC(peers, int32_t *, size * sizeof(int32_t), mpi_errno, "peers",
                        MPL_MEM_ADDRESS);

    mpi_errno = forget_lost();
    MPIR_ERR_CHECK(mpi_errno);
    for (int i = 0; i < size; i++) {
        mpi_errno = add_peer(remote_upids, remote_upid_size[i], &peers[i]);
        MPIR_ERR_CHECK(mpi_errno);
        remote_upids += remote_upid_size[i];
    }
    /* no progress may be made from here on, since it may free tables */
    for (int i = 0; i < size; i++) {
        new_procs += !find_gpid(peers[i], &remote_gpids[i]);
    }
    if (new_procs > 0) {
        mpi_errno = MPIDIU_new_avt(new_procs, &avtid);
        MPIR_ERR_CHECK(mpi_errno);
        /* this is the only reference until the communicator is created: see forget_lost */
        MPIDIU_avt_add_ref(avtid);
        new_procs = 0;
    }
    for (int i = 0; i < size; i++) {
        if (!find_gpid(peers[i], &remote_gpids[i])) {
            MPIDI_NTBRING_AV(&MPIDIU_get_av(avtid, new_procs)).peer = peers[i];
            remote_gpids[i] = MPIDIU_GPID_CREATE(avtid, new_procs++);
        }
    }

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    MPID_Abort(MPIR_Process.comm_world, mpi_errno, 1, "a process of another job cannot be reached");
    goto fn_exit;
}

/* The caller frees both arrays. */
int MPIDI_NTBRING_get_local_upids(MPIR_Comm * comm, int **local_upid_size, char **local_upids)
{
    int mpi_errno = MPI_SUCCESS;
    MPI_Aint total = 0;
    MPIR_CHKPMEM_DECL(2);

    MPIR_CHKPMEM_MALLOC(*local_upid_size, int *, comm->local_size * sizeof(int), mpi_errno,
                        "local_upid_size", MPL_MEM_ADDRESS);
    MPIR_CHKPMEM_MALLOC(*local_upids, char *, comm->local_size * NTBRING_ADDRESS_MAX, mpi_errno,
                        "local_upids", MPL_MEM_ADDRESS);
    for (int i = 0; i < comm->local_size; i++) {
        uint64_t size;
        int rc;
        MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_peer_address(MPIDI_NTBRING_VCI(0).endpoint,
                                                           MPIDI_NTBRING_dest(i, comm),
                                                           *local_upids + total, &size));
        MPIDI_NTBRING_CHKRC(rc);
        (*local_upid_size)[i] = size;
        total += size;
    }

    MPIR_CHKPMEM_COMMIT();
  fn_exit:
    return mpi_errno;
  fn_fail:
    MPIR_CHKPMEM_REAP();
    *local_upid_size = NULL;
    *local_upids = NULL;
    goto fn_exit;
}

int MPIDI_NTBRING_dynamic_send(uint64_t remote_gpid, int tag, const void *buf, int size,
                               int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    int avtid = MPIDIU_GPID_GET_AVTID(remote_gpid);
    int lpid = MPIDIU_GPID_GET_LPID(remote_gpid);
    int rc;
    MPIDI_NTBRING_UNUSED(timeout);

    MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_dpm_send(MPIDI_NTBRING_VCI(0).endpoint,
                                                MPIDI_NTBRING_peer(avtid, lpid), tag, buf, size));
    MPIDI_NTBRING_CHKRC(rc);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* The timeout is in seconds; 0 means no timeout. */
int MPIDI_NTBRING_dynamic_recv(int tag, void *buf, int size, int timeout)
{
    int mpi_errno = MPI_SUCCESS;
    int rc;
    MPL_time_t start;

    MPL_wtime(&start);
    for (;;) {
        MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_dpm_receive(MPIDI_NTBRING_VCI(0).endpoint, tag, buf,
                                                       size));
        MPIDI_NTBRING_CHKRC(rc);
        if (rc == NTBRING_OK) {
            break;
        }
        if (timeout > 0 && seconds_since(&start) > timeout) {
            MPIR_ERR_SETANDJUMP1(mpi_errno, MPI_ERR_PORT, "**ntbring_answer",
                                 "**ntbring_answer %d", timeout);
        }
        mpi_errno = make_progress();
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_dpm_withdraw(MPIDI_NTBRING_VCI(0).endpoint, tag));
    goto fn_exit;
}
