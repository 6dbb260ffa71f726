/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* Returns the number of hosts of the ring. A node without a rank is not one of them. */
static int host_count(void)
{
    int hosts = 0;
    for (int node = 0; node < MPIR_Process.num_nodes; node++) {
        for (int i = 0; i < MPIR_Process.size; i++) {
            if (MPIR_Process.node_map[i] == node) {
                hosts++;
                break;
            }
        }
    }
    return hosts;
}

static bool is_ring(MPIR_Comm * comm)
{
    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM || comm->local_size < 2 ||
        comm->local_size != host_count()) {
        return false;
    }
    /* as many ranks as hosts, with increasing node numbers: one rank on each host, in ring order */
    int last = -1;
    for (int i = 0; i < comm->local_size; i++) {
        int avtid = 0, lpid = 0;
        MPIDIU_comm_rank_to_pid(comm, i, &lpid, &avtid);
        if (avtid != 0 || lpid >= MPIR_Process.size || MPIR_Process.node_map[lpid] <= last) {
            return false;
        }
        last = MPIR_Process.node_map[lpid];
    }
    return true;
}

int MPIDI_NTBRING_mpi_comm_commit_pre_hook(MPIR_Comm * comm)
{
    MPIDI_NTBRING_COMM(comm)->is_ring = false;
    MPIDI_NTBRING_COMM(comm)->has_group = false;
    MPIDI_NTBRING_COMM(comm)->without_group = 0;
    MPIDI_NTBRING_COMM(comm)->may_share = false;
    MPIDI_NTBRING_COMM(comm)->shared_worth = 0;
    MPIDI_NTBRING_COMM(comm)->shared = NULL;
    return MPI_SUCCESS;
}

/* Selects the algorithms of a communicator: with its hierarchy, as MPICH does, or without, because
 * those by shared buffers are for all its ranks together, wherever they are. */
int MPIDI_NTBRING_select(MPIR_Comm * comm, bool is_flat)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Comm like = *comm;

    if (is_flat) {
        like.hierarchy_kind = MPIR_COMM_HIERARCHY_KIND__FLAT;
        like.node_comm = NULL;
    }
    if (MPIDI_COMM(comm, csel_comm)) {
        mpi_errno = MPIR_Csel_free(MPIDI_COMM(comm, csel_comm));
        MPIR_ERR_CHECK(mpi_errno);
        mpi_errno = MPIR_Csel_prune(MPIDI_global.csel_root, &like, &MPIDI_COMM(comm, csel_comm));
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_mpi_comm_commit_post_hook(MPIR_Comm * comm)
{
    MPIDI_NTBRING_COMM(comm)->is_ring = is_ring(comm);
    MPIDI_NTBRING_COMM(comm)->may_share = MPIDI_NTBRING_may_share(comm);
    return MPIDI_NTBRING_COMM(comm)->may_share ? MPIDI_NTBRING_select(comm, true) :
        MPI_SUCCESS;
}

int MPIDI_NTBRING_mpi_comm_free_hook(MPIR_Comm * comm)
{
    int mpi_errno = MPI_SUCCESS;

    if (MPIDI_NTBRING_COMM(comm)->has_group && MPIDI_NTBRING_VCI(0).endpoint) {
        int rc = ntbring_group_close(MPIDI_NTBRING_VCI(0).endpoint, comm->context_id);
        MPIDI_NTBRING_CHKRC(rc);
    }

  fn_exit:
    MPIDI_NTBRING_close_shared(comm);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_comm_set_hints(MPIR_Comm * comm, MPIR_Info * info)
{
    MPIDI_NTBRING_UNUSED(comm);
    MPIDI_NTBRING_UNUSED(info);
    return MPI_SUCCESS;
}
