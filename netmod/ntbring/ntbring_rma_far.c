/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"
#include "ntbring_numbers.h"
#include "ntbring_rma.h"

/* Operations on memory that this process does not map. The target's host performs them if their
 * data is contiguous and, for accumulates, if it can compute with the operation and the
 * predefined datatype; all others are sent as MPIDIG's messages. An accumulate does not switch
 * between the two methods while earlier accumulates are incomplete, so that accumulates stay in
 * order. */

typedef struct {
    MPIR_Win *win;
    int target_rank;
    bool is_acc;
    bool is_lock;
    MPIR_cc_t *local_cnt;
    MPIR_Request *request;      /* NULL if it has no request of its own */
    void *packed;               /* to be freed afterwards */
    char swap[2 * sizeof(long double)];
} far_op_t;

static MPIDI_NTBRING_target_t *served_target(int rank, MPIR_Win * win)
{
    MPIDI_NTBRING_target_t *targets = win->dev.netmod.ntbring.targets;
    return targets && targets[rank].served ? &targets[rank] : NULL;
}

static far_op_t *make_op(MPIR_Win * win, int rank, bool is_acc)
{
    far_op_t *op = MPL_calloc(1, sizeof(*op), MPL_MEM_RMA);
    if (op) {
        op->win = win;
        op->target_rank = rank;
        op->is_acc = is_acc;
    }
    return op;
}

static void free_op(far_op_t * op)
{
    if (op) {
        MPL_free(op->packed);
        MPL_free(op);
    }
}

/* Counts an operation in MPIDIG's counters. It completes locally and at the target at the same
 * time. */
static void count_op(far_op_t * op)
{
    if (op->is_lock) {
        op->win->dev.netmod.ntbring.locking++;
        return;
    }
    MPIDIG_win_cmpl_cnts_incr(op->win, op->target_rank, &op->local_cnt);
    if (op->is_acc) {
        op->win->dev.netmod.ntbring.targets[op->target_rank].accs++;
    }
}

static void uncount_op(far_op_t * op)
{
    if (op->is_lock) {
        op->win->dev.netmod.ntbring.locking--;
        return;
    }
    MPIR_cc_dec(op->local_cnt);
    MPIDIG_win_remote_cmpl_cnt_decr(op->win, op->target_rank);
    if (op->is_acc) {
        op->win->dev.netmod.ntbring.targets[op->target_rank].accs--;
    }
}

/* Begins an operation and takes ownership of op. */
static int begin(ntbring_remote_t * remote, far_op_t * op, MPIR_Request ** request)
{
    int mpi_errno = MPI_SUCCESS;
    const MPIDI_NTBRING_target_t *target = &op->win->dev.netmod.ntbring.targets[op->target_rank];

    if (request) {
        /* one reference is the user's, the other is released on completion */
        MPIDI_CH4_REQUEST_CREATE(op->request, MPIR_REQUEST_KIND__RMA, 0, 2);
        MPIR_ERR_CHKANDJUMP(!op->request, mpi_errno, MPIX_ERR_NOREQ, "**nomemreq");
    }
    remote->dest = MPIDI_NTBRING_dest(op->target_rank, op->win->comm_ptr);
    if (op->request) {
        MPIDI_NTBRING_AM(op->request)->peer = remote->dest;
    }
    remote->segment = target->address;
    remote->cookie = op;
    count_op(op);
    int rc = ntbring_remote(MPIDI_NTBRING_VCI(0).endpoint, remote);
    if (unlikely(rc < 0)) {
        uncount_op(op);
    }
    MPIDI_NTBRING_CHKRC(rc);
    if (request) {
        *request = op->request;
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    if (op->request) {
        MPIDI_CH4_REQUEST_FREE(op->request);
        MPIDI_CH4_REQUEST_FREE(op->request);
    }
    free_op(op);
    goto fn_exit;
}

void MPIDI_NTBRING_far_done(void *cookie)
{
    far_op_t *op = cookie;
    uncount_op(op);
    if (op->request) {
        MPID_Request_complete(op->request);
    }
    free_op(op);
}

int MPIDI_NTBRING_far_lock(MPIR_Win * win, int rank, int action, bool alone)
{
    int mpi_errno = MPI_SUCCESS;
    ntbring_remote_t remote = {.action = action,.op = alone };
    far_op_t *op = make_op(win, rank, false);
    MPIR_ERR_CHKANDJUMP(!op, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    op->is_lock = true;
    mpi_errno = begin(&remote, op, NULL);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Computes size and lower bound of contiguous data; returns false if the data is not contiguous. */
static bool contiguous(MPI_Aint count, MPI_Datatype datatype, MPI_Aint * size, MPI_Aint * lb)
{
    bool is_contig;
    MPIDI_Datatype_check_contig_size_lb(datatype, count, is_contig, *size, *lb);
    return is_contig;
}

int MPIDI_NTBRING_far_put_or_get(bool is_get, void *origin_addr, int origin_count,
                                 MPI_Datatype origin_datatype, int target_rank,
                                 MPI_Aint target_disp, int target_count,
                                 MPI_Datatype target_datatype, MPIR_Win * win,
                                 MPIR_Request ** request)
{
#define OPERANDS origin_addr, origin_count, origin_datatype, target_rank, target_disp, \
        target_count, target_datatype, win
    int mpi_errno = MPI_SUCCESS;
    const MPIDI_NTBRING_target_t *target = served_target(target_rank, win);
    MPI_Aint size = 0, lb = 0, origin_size, origin_lb, offset, actual;
    far_op_t *op = NULL;
    MPIR_FUNC_ENTER;

    bool is_contig = contiguous(origin_count, origin_datatype, &origin_size, &origin_lb);
    if (!target || !contiguous(target_count, target_datatype, &size, &lb) || size == 0 ||
        size != origin_size || (is_get && !is_contig)) {
        if (is_get) {
            mpi_errno = request ? MPIDIG_mpi_rget(OPERANDS, request) : MPIDIG_mpi_get(OPERANDS);
        } else {
            mpi_errno = request ? MPIDIG_mpi_rput(OPERANDS, request) : MPIDIG_mpi_put(OPERANDS);
        }
        goto fn_exit_unlocked;
    }

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win);
    mpi_errno = MPIDI_NTBRING_offset(target, target_disp, target_count, target_datatype, &offset);
    MPIR_ERR_CHECK(mpi_errno);
    op = make_op(win, target_rank, false);
    MPIR_ERR_CHKANDJUMP(!op, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    ntbring_remote_t remote = {.offset = offset + lb,.size = size };
    remote.action = is_get ? NTBRING_REMOTE_GET : NTBRING_REMOTE_PUT;
    remote.data = remote.result = (char *) origin_addr + origin_lb;
    if (!is_contig) {
        op->packed = MPL_malloc(size, MPL_MEM_BUFFER);
        MPIR_ERR_CHKANDJUMP(!op->packed, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
        mpi_errno = MPIR_Typerep_pack(origin_addr, origin_count, origin_datatype, 0, op->packed,
                                      size, &actual);
        MPIR_ERR_CHECK(mpi_errno);
        remote.data = op->packed;
    }
    mpi_errno = begin(&remote, op, request);
    op = NULL;
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
  fn_exit_unlocked:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    free_op(op);
    goto fn_exit;
#undef OPERANDS
}

/* Returns true if accumulates to this target are in transit as messages. */
static bool has_messages(int rank, MPIR_Win * win)
{
    MPIDIG_win_target_t *target_ptr = MPIDIG_win_target_find(win, rank);
    return MPIR_cc_get(MPIDIG_WIN(win, remote_acc_cmpl_cnts)) != 0 ||
        (target_ptr && MPIR_cc_get(target_ptr->remote_acc_cmpl_cnts) != 0);
}

/* Waits until the host has completed earlier accumulates. Called before an accumulate is sent as
 * a message, to keep the order. */
static int wait_for_host(int rank, MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    const MPIDI_NTBRING_target_t *target = served_target(rank, win);

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    if (target) {
        MPIDIU_PROGRESS_WHILE(target->accs > 0, 0);
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Begins an accumulate of any kind at the target's host, unless earlier ones are in transit as
 * messages. remote is complete except for offset and size. */
static int accumulate_there(ntbring_remote_t * remote, int target_rank, MPI_Aint target_disp,
                            MPI_Aint count, MPI_Datatype datatype, MPIR_Win * win,
                            MPIR_Request ** request, bool * done)
{
    int mpi_errno = MPI_SUCCESS;
    const MPIDI_NTBRING_target_t *target = served_target(target_rank, win);
    MPI_Aint offset;

    *done = false;
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    if (has_messages(target_rank, win)) {
        goto fn_exit;
    }
    *done = true;
    MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win);
    mpi_errno = MPIDI_NTBRING_offset(target, target_disp, count, datatype, &offset);
    MPIR_ERR_CHECK(mpi_errno);
    far_op_t *op = make_op(win, target_rank, true);
    MPIR_ERR_CHKANDJUMP(!op, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    remote->offset = offset;
    remote->size = count * (MPI_Aint) MPIR_Datatype_get_basic_size(datatype);
    if (remote->action == NTBRING_REMOTE_SWAP) {
        /* both values side by side, the one to compare with first */
        memcpy(op->swap, remote->data, 2 * remote->size);
        remote->data = op->swap;
    }
    mpi_errno = begin(remote, op, request);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_far_accumulate(const void *origin_addr, int origin_count,
                                 MPI_Datatype origin_datatype, void *result_addr, int result_count,
                                 MPI_Datatype result_datatype, int target_rank,
                                 MPI_Aint target_disp, int target_count,
                                 MPI_Datatype target_datatype, MPI_Op op, MPIR_Win * win,
                                 MPIR_Request ** request)
{
#define ORIGIN origin_addr, origin_count, origin_datatype
#define RESULT result_addr, result_count, result_datatype
#define TARGET target_rank, target_disp, target_count, target_datatype, op, win
    int mpi_errno = MPI_SUCCESS;
    ntbring_remote_t remote = {.data = origin_addr,.result = result_addr };
    bool has_result = (result_datatype != MPI_DATATYPE_NULL);
    bool origin_fits = (origin_datatype == target_datatype && origin_count == target_count);
    bool result_fits = (result_datatype == target_datatype && result_count == target_count);
    bool done = false;
    MPIR_FUNC_ENTER;

    remote.action = has_result ? NTBRING_REMOTE_FETCH : NTBRING_REMOTE_ACCUMULATE;
    if (served_target(target_rank, win) && target_count > 0 && (!has_result || result_fits) &&
        (op == MPI_NO_OP ? has_result : origin_fits) &&
        MPIDI_NTBRING_can_compute(op, target_datatype, &remote)) {
        mpi_errno = accumulate_there(&remote, target_rank, target_disp, target_count,
                                     target_datatype, win, request, &done);
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (!done) {
        mpi_errno = wait_for_host(target_rank, win);
        MPIR_ERR_CHECK(mpi_errno);
        if (has_result) {
            mpi_errno = request ? MPIDIG_mpi_rget_accumulate(ORIGIN, RESULT, TARGET, request) :
                MPIDIG_mpi_get_accumulate(ORIGIN, RESULT, TARGET);
        } else {
            mpi_errno = request ? MPIDIG_mpi_raccumulate(ORIGIN, TARGET, request) :
                MPIDIG_mpi_accumulate(ORIGIN, TARGET);
        }
    }

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
#undef ORIGIN
#undef RESULT
#undef TARGET
}

int MPIDI_NTBRING_far_compare_and_swap(const void *origin_addr, const void *compare_addr,
                                       void *result_addr, MPI_Datatype datatype, int target_rank,
                                       MPI_Aint target_disp, MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    char both[2 * sizeof(long double)];
    ntbring_remote_t remote = {.action = NTBRING_REMOTE_SWAP,.data = both };
    int type = HANDLE_IS_BUILTIN(datatype) ? MPIDI_NTBRING_number_type(datatype) : -1;
    bool done = false;
    MPIR_FUNC_ENTER;

    remote.result = result_addr;
    /* not for floating point: equal numbers may have different bytes (0.0 and -0.0), and the
     * host compares bytes */
    if (served_target(target_rank, win) && type >= 0 && type < NTBRING_TYPE_FLOAT) {
        MPI_Aint size = MPIR_Datatype_get_basic_size(datatype);
        memcpy(both, compare_addr, size);
        memcpy(both + size, origin_addr, size);
        mpi_errno = accumulate_there(&remote, target_rank, target_disp, 1, datatype, win, NULL,
                                     &done);
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (!done) {
        mpi_errno = wait_for_host(target_rank, win);
        MPIR_ERR_CHECK(mpi_errno);
        mpi_errno = MPIDIG_mpi_compare_and_swap(origin_addr, compare_addr, result_addr, datatype,
                                                target_rank, target_disp, win);
    }

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
