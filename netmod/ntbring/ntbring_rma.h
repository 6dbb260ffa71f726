/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_RMA_H_INCLUDED
#define NTBRING_RMA_H_INCLUDED

#include "ntbring_impl.h"

/* Operations on memory that this process maps access it directly; all others are in
 * ntbring_rma_far.c. If request is not NULL, they are those of MPI_Rput and so on. An accumulate
 * without a result has the result_datatype MPI_DATATYPE_NULL. */

int MPIDI_NTBRING_accumulate_directly(const void *origin_addr, int origin_count,
                                      MPI_Datatype origin_datatype, void *result_addr,
                                      int result_count, MPI_Datatype result_datatype,
                                      int target_rank, MPI_Aint target_disp, int target_count,
                                      MPI_Datatype target_datatype, MPI_Op op, MPIR_Win * win);

/* The same operations on a target that this process does not map: they are performed by the
 * target's host or sent as MPIDIG's messages. */
int MPIDI_NTBRING_far_put_or_get(bool is_get, void *origin_addr, int origin_count,
                                 MPI_Datatype origin_datatype, int target_rank,
                                 MPI_Aint target_disp, int target_count,
                                 MPI_Datatype target_datatype, MPIR_Win * win,
                                 MPIR_Request ** request);
int MPIDI_NTBRING_far_accumulate(const void *origin_addr, int origin_count,
                                 MPI_Datatype origin_datatype, void *result_addr, int result_count,
                                 MPI_Datatype result_datatype, int target_rank,
                                 MPI_Aint target_disp, int target_count,
                                 MPI_Datatype target_datatype, MPI_Op op, MPIR_Win * win,
                                 MPIR_Request ** request);
int MPIDI_NTBRING_far_compare_and_swap(const void *origin_addr, const void *compare_addr,
                                       void *result_addr, MPI_Datatype datatype, int target_rank,
                                       MPI_Aint target_disp, MPIR_Win * win);

/* Returns the target's memory; NULL if this process does not map it. */
MPL_STATIC_INLINE_PREFIX MPIDI_NTBRING_target_t *MPIDI_NTBRING_target(int rank, MPIR_Win * win)
{
    MPIDI_NTBRING_target_t *targets = win->dev.netmod.ntbring.targets;
    return targets && targets[rank].base ? &targets[rank] : NULL;
}

/* Computes the offset of an operation in the target's memory. Fails if the operation exceeds the
 * window. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_offset(const MPIDI_NTBRING_target_t * target,
                                                  MPI_Aint disp, MPI_Aint count,
                                                  MPI_Datatype datatype, MPI_Aint * offset)
{
    int mpi_errno = MPI_SUCCESS;
    *offset = target->disp_unit * disp;

#ifdef HAVE_ERROR_CHECKING
    MPID_BEGIN_ERROR_CHECKS;
    MPI_Aint low = *offset, high = *offset;
    if (HANDLE_IS_BUILTIN(datatype)) {
        high += count * (MPI_Aint) MPIR_Datatype_get_basic_size(datatype);
    } else {
        MPIR_Datatype *dt_ptr;
        MPIR_Datatype_get_ptr(datatype, dt_ptr);
        MPI_Aint last = (count - 1) * dt_ptr->extent;
        low += dt_ptr->true_lb + MPL_MIN(last, 0);
        high += dt_ptr->true_ub + MPL_MAX(last, 0);
    }
    MPIR_ERR_CHKANDJUMP(unlikely(low < 0 || high > target->size), mpi_errno, MPI_ERR_RMA_RANGE,
                        "**rmarange");
    MPID_END_ERROR_CHECKS;
#endif

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_locate(const MPIDI_NTBRING_target_t * target,
                                                  MPI_Aint disp, MPI_Aint count,
                                                  MPI_Datatype datatype, char **addr)
{
    MPI_Aint offset;
    int mpi_errno = MPIDI_NTBRING_offset(target, disp, count, datatype, &offset);
    *addr = target->base + offset;
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_copy(const void *from, MPI_Aint from_count,
                                                MPI_Datatype from_type, void *to,
                                                MPI_Aint to_count, MPI_Datatype to_type)
{
    if (HANDLE_IS_BUILTIN(from_type) && HANDLE_IS_BUILTIN(to_type)) {
        MPI_Aint size = from_count * (MPI_Aint) MPIR_Datatype_get_basic_size(from_type);
        if (size == to_count * (MPI_Aint) MPIR_Datatype_get_basic_size(to_type)) {
            if (size != sizeof(uint64_t)) {
                return MPIR_Typerep_copy(to, from, size);
            }
            /* one load and one store instead of function calls, for counters and flags */
            memcpy(to, from, sizeof(uint64_t));
            return MPI_SUCCESS;
        }
    }
    return MPIR_Localcopy(from, from_count, from_type, to, to_count, to_type);
}

/* Makes accumulates to one target atomic with respect to each other, including those that are
 * received as messages, which use it through MPIDI_NTBRING_rma_op_cs_enter. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_acc_lock(const MPIDI_NTBRING_target_t * target)
{
    int mpi_errno = MPI_SUCCESS;
    if (target->segment) {
        int rc = ntbring_segment_lock(MPIDI_NTBRING_VCI(0).endpoint, target->segment);
        MPIDI_NTBRING_CHKRC(rc);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX void MPIDI_NTBRING_acc_unlock(const MPIDI_NTBRING_target_t * target)
{
    if (target->segment) {
        ntbring_segment_unlock(target->segment);
    }
}

/* Creates the request of a direct operation, which is complete at once. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_request_complete(MPIR_Request ** request)
{
    int mpi_errno = MPI_SUCCESS;
    if (request) {
        MPIDI_RMA_REQUEST_CREATE_COMPLETE(*request);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_put_or_get(bool is_get, void *origin_addr,
                                                      int origin_count,
                                                      MPI_Datatype origin_datatype,
                                                      int target_rank, MPI_Aint target_disp,
                                                      int target_count,
                                                      MPI_Datatype target_datatype,
                                                      MPIR_Win * win, MPIR_Request ** request)
{
    int mpi_errno = MPI_SUCCESS;
    const MPIDI_NTBRING_target_t *target = MPIDI_NTBRING_target(target_rank, win);
    MPI_Aint origin_data_sz, target_data_sz;
    char *target_addr;
    MPIR_FUNC_ENTER;

    if (!target) {
        mpi_errno = MPIDI_NTBRING_far_put_or_get(is_get, origin_addr, origin_count,
                                                 origin_datatype, target_rank, target_disp,
                                                 target_count, target_datatype, win, request);
        goto fn_exit;
    }

    MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win);
    MPIDI_Datatype_check_origin_target_size(origin_datatype, target_datatype, origin_count,
                                            target_count, origin_data_sz, target_data_sz);
    if (origin_data_sz != 0 && target_data_sz != 0) {
        mpi_errno = MPIDI_NTBRING_locate(target, target_disp, target_count, target_datatype,
                                         &target_addr);
        MPIR_ERR_CHECK(mpi_errno);
        mpi_errno = is_get ?
            MPIDI_NTBRING_copy(target_addr, target_count, target_datatype,
                               origin_addr, origin_count, origin_datatype) :
            MPIDI_NTBRING_copy(origin_addr, origin_count, origin_datatype,
                               target_addr, target_count, target_datatype);
        MPIR_ERR_CHECK(mpi_errno);
    }
    mpi_errno = MPIDI_NTBRING_request_complete(request);

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Largest number of elements for which MPICH's function of an operation is at least as fast as its
 * datatype engine, which starts slowly. */
#define MPIDI_NTBRING_UPDATE_MAX 64

/* Combines elements of a predefined datatype with those at the target. result_addr: where the
 * elements that were there before are stored; may be NULL. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_update(const void *origin_addr, void *result_addr,
                                                  MPI_Aint count, MPI_Datatype datatype,
                                                  int target_rank, MPI_Aint target_disp, MPI_Op op,
                                                  MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_target_t *target = MPIDI_NTBRING_target(target_rank, win);
    char *target_addr;
    MPIR_FUNC_ENTER;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win);
    mpi_errno = MPIDI_NTBRING_locate(target, target_disp, count, datatype, &target_addr);
    MPIR_ERR_CHECK(mpi_errno);
    if (op != MPI_NO_OP) {
        mpi_errno = (*MPIR_OP_HDL_TO_DTYPE_FN(op)) (datatype);
        MPIR_ERR_CHECK(mpi_errno);
    }

    mpi_errno = MPIDI_NTBRING_acc_lock(target);
    MPIR_ERR_CHECK(mpi_errno);
    if (result_addr) {
        mpi_errno = MPIDI_NTBRING_copy(target_addr, count, datatype, result_addr, count, datatype);
    }
    if (mpi_errno == MPI_SUCCESS && op != MPI_NO_OP) {
        (*MPIR_OP_HDL_TO_FN(op)) ((void *) origin_addr, target_addr, &count, &datatype);
    }
    MPIDI_NTBRING_acc_unlock(target);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_accumulate(const void *origin_addr, int origin_count,
                                                      MPI_Datatype origin_datatype,
                                                      void *result_addr, int result_count,
                                                      MPI_Datatype result_datatype,
                                                      int target_rank, MPI_Aint target_disp,
                                                      int target_count,
                                                      MPI_Datatype target_datatype, MPI_Op op,
                                                      MPIR_Win * win, MPIR_Request ** request)
{
    int mpi_errno;

    if (!MPIDI_NTBRING_target(target_rank, win)) {
        return MPIDI_NTBRING_far_accumulate(origin_addr, origin_count, origin_datatype, result_addr,
                                            result_count, result_datatype, target_rank,
                                            target_disp, target_count, target_datatype, op, win,
                                            request);
    }
    if (result_datatype == MPI_DATATYPE_NULL && origin_datatype == target_datatype &&
        HANDLE_IS_BUILTIN(target_datatype) && HANDLE_IS_BUILTIN(op) && op != MPI_REPLACE &&
        origin_count == target_count && target_count > 0 &&
        target_count <= MPIDI_NTBRING_UPDATE_MAX) {
        mpi_errno = MPIDI_NTBRING_update(origin_addr, NULL, target_count, target_datatype,
                                         target_rank, target_disp, op, win);
    } else {
        mpi_errno = MPIDI_NTBRING_accumulate_directly(origin_addr, origin_count, origin_datatype,
                                                      result_addr, result_count, result_datatype,
                                                      target_rank, target_disp, target_count,
                                                      target_datatype, op, win);
    }
    return mpi_errno ? mpi_errno : MPIDI_NTBRING_request_complete(request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_compare_and_swap(const void *origin_addr,
                                                            const void *compare_addr,
                                                            void *result_addr,
                                                            MPI_Datatype datatype, int target_rank,
                                                            MPI_Aint target_disp, MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_target_t *target = MPIDI_NTBRING_target(target_rank, win);
    MPI_Aint size;
    char *target_addr;
    MPIR_FUNC_ENTER;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win);
    MPIDI_Datatype_check_size(datatype, 1, size);
    mpi_errno = MPIDI_NTBRING_locate(target, target_disp, 1, datatype, &target_addr);
    MPIR_ERR_CHECK(mpi_errno);

    mpi_errno = MPIDI_NTBRING_acc_lock(target);
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_Typerep_copy(result_addr, target_addr, size);
    if (MPIR_Compare_equal(compare_addr, target_addr, datatype)) {
        MPIR_Typerep_copy(target_addr, origin_addr, size);
    }
    MPIDI_NTBRING_acc_unlock(target);

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

#include "ntbring_rma_ops.h"

#endif /* NTBRING_RMA_H_INCLUDED */
