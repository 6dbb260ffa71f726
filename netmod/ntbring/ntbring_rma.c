/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* MPIR_Typerep_op takes predefined types as its source: anything else is packed. */
typedef struct {
    void *buf;
    MPI_Aint count;
    MPI_Datatype datatype;
    int kind;
    void *packed;               /* to be freed */
} source_t;

static int make_source(const void *buf, MPI_Aint count, MPI_Datatype datatype, MPI_Aint data_sz,
                       source_t * source)
{
    int mpi_errno = MPI_SUCCESS;

    source->buf = (void *) buf;
    source->count = count;
    source->datatype = datatype;
    source->kind = MPIDIG_ACC_SRCBUF_DEFAULT;
    source->packed = NULL;
    if (MPIR_DATATYPE_IS_PREDEFINED(datatype)) {
        goto fn_exit;
    }

    MPIR_Datatype *dt_ptr;
    MPI_Aint basic_sz, actual;
    MPIR_Datatype_get_ptr(datatype, dt_ptr);
    MPIR_ERR_CHKANDJUMP(dt_ptr->basic_type == MPI_DATATYPE_NULL, mpi_errno, MPI_ERR_TYPE, "**dtype");
    MPIR_Datatype_get_size_macro(dt_ptr->basic_type, basic_sz);

    source->packed = MPL_malloc(data_sz, MPL_MEM_BUFFER);
    MPIR_ERR_CHKANDJUMP(!source->packed, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    mpi_errno = MPIR_Typerep_pack(buf, count, datatype, 0, source->packed, data_sz, &actual);
    MPIR_ERR_CHECK(mpi_errno);
    source->buf = source->packed;
    source->count = data_sz / basic_sz;
    source->datatype = dt_ptr->basic_type;
    source->kind = MPIDIG_ACC_SRCBUF_PACKED;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_accumulate(const void *origin_addr, int origin_count,
                             MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
                             int target_count, MPI_Datatype target_datatype, MPI_Op op,
                             MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_target_t *target = MPIDI_NTBRING_target(target_rank, win);
    MPI_Aint origin_data_sz, target_data_sz;
    source_t source = { 0 };
    char *target_addr;
    MPIR_FUNC_ENTER;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win);
    MPIDI_Datatype_check_size(origin_datatype, origin_count, origin_data_sz);
    MPIDI_Datatype_check_size(target_datatype, target_count, target_data_sz);
    if (origin_data_sz == 0 || target_data_sz == 0 || op == MPI_NO_OP) {
        goto fn_exit;
    }

    mpi_errno = MPIDI_NTBRING_locate(target, target_disp, target_count, target_datatype,
                                     &target_addr);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = make_source(origin_addr, origin_count, origin_datatype, origin_data_sz, &source);
    MPIR_ERR_CHECK(mpi_errno);

    mpi_errno = MPIDI_NTBRING_acc_lock(target);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDIG_compute_acc_op(source.buf, source.count, source.datatype, target_addr,
                                      target_count, target_datatype, op, source.kind);
    MPIDI_NTBRING_acc_unlock(target);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPL_free(source.packed);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_get_accumulate(const void *origin_addr, int origin_count,
                                 MPI_Datatype origin_datatype, void *result_addr, int result_count,
                                 MPI_Datatype result_datatype, int target_rank,
                                 MPI_Aint target_disp, int target_count,
                                 MPI_Datatype target_datatype, MPI_Op op, MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_target_t *target = MPIDI_NTBRING_target(target_rank, win);
    MPI_Aint origin_data_sz = 0, result_data_sz, target_data_sz;
    source_t source = { 0 };
    char *target_addr;
    MPIR_FUNC_ENTER;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win);
    MPIDI_Datatype_check_size(result_datatype, result_count, result_data_sz);
    MPIDI_Datatype_check_size(target_datatype, target_count, target_data_sz);
    if (op != MPI_NO_OP) {
        MPIDI_Datatype_check_size(origin_datatype, origin_count, origin_data_sz);
    }
    if (target_data_sz == 0 || (origin_data_sz == 0 && result_data_sz == 0)) {
        goto fn_exit;
    }

    mpi_errno = MPIDI_NTBRING_locate(target, target_disp, target_count, target_datatype,
                                     &target_addr);
    MPIR_ERR_CHECK(mpi_errno);
    if (origin_data_sz > 0) {
        mpi_errno = make_source(origin_addr, origin_count, origin_datatype, origin_data_sz,
                                &source);
        MPIR_ERR_CHECK(mpi_errno);
    }

    mpi_errno = MPIDI_NTBRING_acc_lock(target);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = MPIDI_NTBRING_copy(target_addr, target_count, target_datatype, result_addr,
                                   result_count, result_datatype);
    if (mpi_errno == MPI_SUCCESS && origin_data_sz > 0) {
        mpi_errno = MPIDIG_compute_acc_op(source.buf, source.count, source.datatype, target_addr,
                                          target_count, target_datatype, op, source.kind);
    }
    MPIDI_NTBRING_acc_unlock(target);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    MPL_free(source.packed);
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* For handlers of MPIDIG's messages, around an accumulate on this process's own memory. */

static const MPIDI_NTBRING_target_t *own_memory(MPIR_Win * win)
{
    /* an MPI library may be built with other netmods, too */
    MPIDI_NTBRING_target_t *targets =
        MPIDI_NTBRING_global.endpoint ? win->dev.netmod.ntbring.targets : NULL;
    return targets ? &targets[win->comm_ptr->rank] : NULL;
}

int MPIDI_NTBRING_rma_op_cs_enter(MPIR_Win * win)
{
    const MPIDI_NTBRING_target_t *own = own_memory(win);
    return own ? MPIDI_NTBRING_acc_lock(own) : MPI_SUCCESS;
}

void MPIDI_NTBRING_rma_op_cs_exit(MPIR_Win * win)
{
    const MPIDI_NTBRING_target_t *own = own_memory(win);
    if (own) {
        MPIDI_NTBRING_acc_unlock(own);
    }
}
