/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

/* Collectives through buffers that all ranks of a communicator map (ntbring_shared_run). */

#include "mpidimpl.h"
#include "ntbring_impl.h"
#include "ntbring_numbers.h"
#include "ntbring_shared.h"

/* Largest number of groups with shared buffers that a rank takes part in. */
#define MPIDI_NTBRING_SHARED_GROUPS 8

/* A group is opened when its collectives so far are worth it: each counts 1, and this many bytes
 * count 1, too. */
#define MPIDI_NTBRING_SHARED_WORTH 4
#define MPIDI_NTBRING_SHARED_WORTH_SZ 65536

/* Number of groups that this rank has, or is opening. */
static MPL_atomic_int_t groups_open = MPL_ATOMIC_INT_T_INITIALIZER(0);

bool MPIDI_NTBRING_may_share(MPIR_Comm * comm)
{
    ntbring_endpoint_t *endpoint = MPIDI_NTBRING_VCI(0).endpoint;

    if (comm->comm_kind != MPIR_COMM_KIND__INTRACOMM || comm->local_size < 2 ||
        comm->local_size > NTBRING_SHARED_MAX || endpoint == NULL) {
        return false;
    }
    for (int i = 0; i < comm->local_size; i++) {
        int avtid = 0, lpid = 0, rc;
        MPIDIU_comm_rank_to_pid(comm, i, &lpid, &avtid);
        if (avtid != 0 || lpid >= MPIR_Process.size) {
            return false;
        }
        MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_can_share(endpoint, lpid));
        if (rc != 1) {
            return false;
        }
    }
    return true;
}

/* Opens the buffers of a communicator. All its ranks call it together; it uses collectives of
 * MPICH's own. A failure is recorded in errflag. */
static void open_shared(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno, rc = NTBRING_ERR_RESOURCE;
    int size = comm->local_size;
    uint32_t mine = 0, all = 0;
    ntbring_shared_t *shared = NULL;
    ntbring_shared_card_t card, *cards;
    int32_t *ranks;
    ntbring_endpoint_t *endpoint = MPIDI_NTBRING_VCI(0).endpoint;

    memset(&card, 0, sizeof(card));
    cards = MPL_calloc(size, sizeof(*cards), MPL_MEM_COMM);
    ranks = MPL_calloc(size, sizeof(*ranks), MPL_MEM_COMM);
    MPIR_Assert(cards && ranks);
    if (MPL_atomic_fetch_add_int(&groups_open, 1) < MPIDI_NTBRING_SHARED_GROUPS) {
        MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_shared_create(endpoint, size, &shared, &card));
    }
    mpi_errno = MPIR_Allgather_intra_brucks(&card, sizeof(card), MPI_BYTE, cards, sizeof(card),
                                            MPI_BYTE, comm, errflag);
    MPIDI_NTBRING_note_error(mpi_errno, errflag);
    if (rc == NTBRING_OK && *errflag == MPIR_ERR_NONE) {
        for (int i = 0; i < size; i++) {
            ranks[i] = MPIDI_NTBRING_dest(i, comm);
        }
        MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_shared_open(endpoint, shared, comm->rank, ranks,
                                                          cards));
        mine = (rc == NTBRING_OK);
    }
    mpi_errno = MPIR_Allreduce_intra_recursive_doubling(&mine, &all, 1, MPI_UINT32_T, MPI_BAND,
                                                        comm, errflag);
    MPIDI_NTBRING_note_error(mpi_errno, errflag);
    if (all && *errflag == MPIR_ERR_NONE) {
        ntbring_shared_seal(shared);
        MPIDI_NTBRING_COMM(comm)->shared = shared;
    } else {
        ntbring_shared_free(shared);
        MPL_atomic_fetch_sub_int(&groups_open, 1);
        MPIDI_NTBRING_COMM(comm)->may_share = false;
        mpi_errno = MPIDI_NTBRING_select(comm, false);
        MPIDI_NTBRING_note_error(mpi_errno, errflag);
    }
    MPL_free(cards);
    MPL_free(ranks);
}

void MPIDI_NTBRING_close_shared(MPIR_Comm * comm)
{
    if (MPIDI_NTBRING_COMM(comm)->shared) {
        ntbring_shared_free(MPIDI_NTBRING_COMM(comm)->shared);
        MPIDI_NTBRING_COMM(comm)->shared = NULL;
        MPL_atomic_fetch_sub_int(&groups_open, 1);
    }
}

/* Counts a collective of a communicator without buffers, and opens them when they are worth it.
 * Returns true also if that has failed with an error, which the collective then returns: MPICH's
 * algorithms might wait for ranks that have returned it already. size: bytes, the same at all
 * ranks. */
bool MPIDI_NTBRING_begin_sharing(MPI_Aint size, MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    MPIDI_NTBRING_comm_t *ring = MPIDI_NTBRING_COMM(comm);
    MPI_Aint worth = ring->shared_worth + 1 + size / MPIDI_NTBRING_SHARED_WORTH_SZ;

    ring->shared_worth = MPL_MIN(worth, MPIDI_NTBRING_SHARED_WORTH);
    if (worth < MPIDI_NTBRING_SHARED_WORTH) {
        return false;
    }
    open_shared(comm, errflag);
    return ring->shared != NULL || *errflag != MPIR_ERR_NONE;
}

/* Returns an error if a rank of the communicator is lost, or the communicator was revoked. */
static int check_ranks(MPIR_Comm * comm)
{
    int mpi_errno = MPI_SUCCESS;

    if (comm->revoked) {
        MPIR_ERR_SET(mpi_errno, MPIX_ERR_REVOKED, "**revoked");
    }
    for (int i = 0; MPIDI_NTBRING_global.has_lost_ranks && i < comm->local_size; i++) {
        if (mpi_errno == MPI_SUCCESS) {
            mpi_errno = MPIDI_NTBRING_check_source(i, comm);
        }
    }
    return mpi_errno;
}

static int pass_time(void *cookie, int32_t may_sleep)
{
    MPIDI_NTBRING_shared_state_t *state = cookie;
    int mpi_errno;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    mpi_errno = MPIDI_progress_test_vci(0);
    if (mpi_errno == MPI_SUCCESS) {
        mpi_errno = check_ranks(state->comm);
        state->gives_up = (mpi_errno != MPI_SUCCESS);
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    if (mpi_errno) {
        /* go on after the first error of something else */
        state->gives_up |= (state->mpi_errno != MPI_SUCCESS);
        state->mpi_errno = state->mpi_errno ? state->mpi_errno : mpi_errno;
    }
    if (state->gives_up) {
        return 0;
    }
    if (may_sleep) {
        MPIDI_PROGRESS_IDLE(0);
    } else {
        /* another thread may have to send first what other ranks wait for */
        MPID_THREAD_CS_YIELD(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
        ntbring_idle(MPIDI_NTBRING_VCI(0).endpoint, 0, 0);
    }
    return 1;
}

static int relay(void *cookie)
{
    int rc;

    MPIDI_NTBRING_UNUSED(cookie);
    /* an error will be found by the next poll */
    MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_relay(MPIDI_NTBRING_VCI(0).endpoint));
    return rc == NTBRING_SOME;
}

static void wake(void *cookie, int32_t member)
{
    MPIDI_NTBRING_shared_state_t *state = cookie;
    int rc, rank = MPIDI_NTBRING_dest(member, state->comm);

    /* an error will be found by the next poll */
    MPIDI_NTBRING_CALL_LOCKED(rc, ntbring_wake(MPIDI_NTBRING_VCI(0).endpoint, rank));
    MPIDI_NTBRING_UNUSED(rc);
}

static void found(void *cookie)
{
    MPIDI_NTBRING_UNUSED(cookie);
    ntbring_found(MPIDI_NTBRING_VCI(0).endpoint);
}

static void fold(void *cookie, const void *from, void *to, uint64_t count)
{
    MPIDI_NTBRING_shared_state_t *state = cookie;
    int mpi_errno = MPIR_Reduce_local(from, to, count, state->datatype, state->op);

    state->mpi_errno = state->mpi_errno ? state->mpi_errno : mpi_errno;
}

/* Executes a collective. A rank that has failed before makes it fail where its data are needed. */
int MPIDI_NTBRING_shared_run(ntbring_shared_call_t * call, int failed,
                             MPIDI_NTBRING_shared_state_t * state, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS;
    int rc;

    if (failed == MPI_SUCCESS) {
        failed = MPIDI_NTBRING_failed_before(*errflag);
    }
    if (failed == MPI_SUCCESS && unlikely(MPIDI_NTBRING_global.has_lost_ranks)) {
        failed = check_ranks(state->comm);
    }
    if (failed) {
        call->kind = NTBRING_SHARED_FAIL;
        call->root = (MPIR_ERR_GET_CLASS(failed) == MPIX_ERR_PROC_FAILED);
    }
    call->pass_time = pass_time;
    call->relay = relay;
    call->wake = wake;
    call->found = found;
    call->cookie = state;
    rc = MPIDI_NTBRING_COMM(state->comm)->shared == NULL ? NTBRING_OK :
        ntbring_shared_run(MPIDI_NTBRING_COMM(state->comm)->shared, call);
    mpi_errno = failed ? failed : state->mpi_errno;
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_NTBRING_CHKRC(rc);

  fn_exit:
    return mpi_errno;
  fn_fail:
    MPIDI_NTBRING_note_error(mpi_errno, errflag);
    goto fn_exit;
}

int MPIDI_NTBRING_shared_barrier(MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    MPIDI_NTBRING_shared_state_t state = {.comm = comm };
    ntbring_shared_call_t call = {.kind = NTBRING_SHARED_BARRIER };
    return MPIDI_NTBRING_shared_run(&call, MPI_SUCCESS, &state, errflag);
}

int MPIDI_NTBRING_shared_bcast(void *buffer, MPI_Aint count, MPI_Datatype datatype, int root,
                               MPIR_Comm * comm, MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS, failed;
    MPI_Aint type_size;
    bool is_packed = false;
    void *bytes = NULL;
    MPIDI_NTBRING_shared_state_t state = {.comm = comm };
    ntbring_shared_call_t call = {.kind = NTBRING_SHARED_BCAST,.root = root };

    MPIR_Datatype_get_size_macro(datatype, type_size);
    call.output_size = count * type_size;
    failed = MPIDI_NTBRING_find_blocks(buffer, datatype, call.output_size, &is_packed, &bytes);
    if (!failed && is_packed && comm->rank == root) {
        failed = MPIR_Localcopy(buffer, count, datatype, bytes, call.output_size, MPI_BYTE);
    }
    call.output = bytes;
    mpi_errno = MPIDI_NTBRING_shared_run(&call, failed, &state, errflag);
    MPIR_ERR_CHECK(mpi_errno);
    if (is_packed && comm->rank != root) {
        mpi_errno = MPIR_Localcopy(bytes, call.output_size, MPI_BYTE, buffer, count, datatype);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    if (is_packed) {
        MPL_free(bytes);
    }
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Reductions and scans of `count` elements of a predefined datatype. */
int MPIDI_NTBRING_shared_reduce(int kind, const void *sendbuf, void *recvbuf, MPI_Aint count,
                                MPI_Datatype datatype, MPI_Op op, int root, MPIR_Comm * comm,
                                MPIR_Errflag_t * errflag)
{
    MPIDI_NTBRING_shared_state_t state = {.comm = comm,.op = op,.datatype = datatype };
    MPI_Aint width = MPIR_Datatype_get_basic_size(datatype);
    ntbring_remote_t known;
    bool is_known = MPIDI_NTBRING_can_compute(op, datatype, &known);
    ntbring_shared_call_t call = {
        .kind = kind,
        .root = root,
        .input = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf,
        .input_size = count * width,
        .output = recvbuf,
        .output_size = count * width,
        .element_size = width,
        .op = is_known ? known.op : -1,
        .type = is_known ? known.type : -1,
        .fold = fold
    };

    if (kind == NTBRING_SHARED_EXSCAN && comm->rank == 0) {
        /* the receive buffer may be NULL, and is not written */
        call.output = (void *) call.input;
    }
    if (kind == NTBRING_SHARED_REDUCE && comm->rank != root) {
        call.output = NULL;
        call.output_size = 0;
    }
    return MPIDI_NTBRING_shared_run(&call, MPI_SUCCESS, &state, errflag);
}

/* counts: elements of each rank's slice; NULL: `count` at each rank. */
int MPIDI_NTBRING_shared_reduce_scatter(const void *sendbuf, void *recvbuf,
                                        const MPI_Aint counts[], MPI_Aint count,
                                        MPI_Datatype datatype, MPI_Op op, MPIR_Comm * comm,
                                        MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS, failed = MPI_SUCCESS;
    int size = comm->local_size;
    MPI_Aint width = MPIR_Datatype_get_basic_size(datatype), total = 0;
    MPIDI_NTBRING_shared_state_t state = {.comm = comm,.op = op,.datatype = datatype };
    ntbring_part_t parts[NTBRING_SHARED_MAX];
    ntbring_remote_t known;
    bool is_known = MPIDI_NTBRING_can_compute(op, datatype, &known);
    void *copy = NULL;

    for (int i = 0; i < size; i++) {
        parts[i].offset = total;
        parts[i].size = (counts ? counts[i] : count) * width;
        total += parts[i].size;
    }
    if (sendbuf == MPI_IN_PLACE) {
        /* the result overlaps with elements of other ranks' slices */
        copy = MPL_malloc(MPL_MAX(total, 1), MPL_MEM_BUFFER);
        if (copy) {
            memcpy(copy, recvbuf, total);
        } else {
            MPIR_ERR_SET2(failed, MPI_ERR_OTHER, "**nomem2", "**nomem2 %d %s",
                          MPIDI_NTBRING_KIB(total), "KiB of elements to be reduced");
        }
    }
    ntbring_shared_call_t call = {
        .kind = NTBRING_SHARED_REDUCE_SCATTER,
        .input = copy ? copy : sendbuf,
        .input_size = total,
        .output = recvbuf,
        .output_size = parts[comm->rank].size,
        .sends = parts,
        .element_size = width,
        .op = is_known ? known.op : -1,
        .type = is_known ? known.type : -1,
        .fold = fold
    };
    mpi_errno = MPIDI_NTBRING_shared_run(&call, failed, &state, errflag);
    MPL_free(copy);
    return mpi_errno;
}
