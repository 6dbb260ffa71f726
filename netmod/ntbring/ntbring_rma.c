/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"
#include "ntbring_numbers.h"
#include "mpir_op_util.h"

/* Origin data of an accumulate. MPIR_Typerep_op requires a predefined type: other data is
 * packed. */
typedef struct {
    void *buf;
    MPI_Aint count;
    MPI_Datatype datatype;
    int kind;
    void *packed;               /* to be freed afterwards */
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
    MPIR_ERR_CHKANDJUMP(dt_ptr->basic_type == MPI_DATATYPE_NULL, mpi_errno, MPI_ERR_TYPE,
                        "**dtype");
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

int MPIDI_NTBRING_accumulate_directly(const void *origin_addr, int origin_count,
                                      MPI_Datatype origin_datatype, void *result_addr,
                                      int result_count, MPI_Datatype result_datatype,
                                      int target_rank, MPI_Aint target_disp, int target_count,
                                      MPI_Datatype target_datatype, MPI_Op op, MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_target_t *target = MPIDI_NTBRING_target(target_rank, win);
    bool has_result = (result_datatype != MPI_DATATYPE_NULL);
    MPI_Aint origin_data_sz = 0, result_data_sz = 0, target_data_sz;
    source_t source = { 0 };
    char *target_addr;
    MPIR_FUNC_ENTER;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    MPIDIG_RMA_OP_CHECK_SYNC(target_rank, win);
    MPIDI_Datatype_check_size(target_datatype, target_count, target_data_sz);
    if (has_result) {
        MPIDI_Datatype_check_size(result_datatype, result_count, result_data_sz);
    }
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
    if (has_result) {
        mpi_errno = MPIDI_NTBRING_copy(target_addr, target_count, target_datatype, result_addr,
                                       result_count, result_datatype);
    }
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

/* A critical section for the handlers of MPIDIG's messages, around an accumulate on this
 * process's own memory. */

static const MPIDI_NTBRING_target_t *own_memory(MPIR_Win * win)
{
    /* the MPI library may have been built with several netmods, of which another one is in use */
    MPIDI_NTBRING_target_t *targets =
        MPIDI_NTBRING_VCI(0).endpoint ? win->dev.netmod.ntbring.targets : NULL;
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

/* The operations and types that other hosts can compute with. */

#define INTEGER(size_, is_unsigned_) \
    ((size_) == 1 ? NTBRING_TYPE_INT8 + (is_unsigned_) : \
     (size_) == 2 ? NTBRING_TYPE_INT16 + (is_unsigned_) : \
     (size_) == 4 ? NTBRING_TYPE_INT32 + (is_unsigned_) : \
     (size_) == 8 ? NTBRING_TYPE_INT64 + (is_unsigned_) : -1)

int MPIDI_NTBRING_number_type(MPI_Datatype datatype)
{
    switch (datatype) {
#undef MPIR_OP_TYPE_MACRO
#define MPIR_OP_TYPE_MACRO(mpi_type_, c_type_, type_name_) \
        case (mpi_type_): return INTEGER(sizeof(c_type_), (c_type_) -1 > (c_type_) 1);
        MPIR_OP_TYPE_GROUP(C_INTEGER)
        MPIR_OP_TYPE_GROUP(C_INTEGER_EXTRA)
        MPIR_OP_TYPE_GROUP(FORTRAN_INTEGER)
#undef MPIR_OP_TYPE_MACRO
#define MPIR_OP_TYPE_MACRO(mpi_type_, c_type_, type_name_) \
        case (mpi_type_): return INTEGER(sizeof(c_type_), 1);
        MPIR_OP_TYPE_GROUP(LOGICAL)
#undef MPIR_OP_TYPE_MACRO
#define MPIR_OP_TYPE_MACRO(mpi_type_, c_type_, type_name_) \
        case (mpi_type_): return sizeof(c_type_) == sizeof(float) ? NTBRING_TYPE_FLOAT : \
                                 sizeof(c_type_) == sizeof(double) ? NTBRING_TYPE_DOUBLE : -1;
        MPIR_OP_TYPE_GROUP(FLOATING_POINT)
#undef MPIR_OP_TYPE_MACRO
#define MPIR_OP_TYPE_MACRO(mpi_type_, c_type_, type_name_) \
        case (mpi_type_): \
            return sizeof(c_type_) == 2 * sizeof(float) ? NTBRING_TYPE_COMPLEX : \
                sizeof(c_type_) == 2 * sizeof(double) ? NTBRING_TYPE_DOUBLE_COMPLEX : -1;
        MPIR_OP_TYPE_GROUP(COMPLEX)
#undef MPIR_OP_TYPE_MACRO
#define MPIR_OP_TYPE_MACRO(mpi_type_, c_type_, type_name_) \
        case (mpi_type_): return NTBRING_TYPE_BYTES;
        MPIR_OP_TYPE_GROUP(BYTE)
#undef MPIR_OP_TYPE_MACRO
        default:
            return -1;
    }
}

bool MPIDI_NTBRING_can_compute(MPI_Op mpi_op, MPI_Datatype datatype, ntbring_remote_t * remote)
{
    static const struct {
        MPI_Op mpi_op;
        uint8_t op;
    } ops[] = {
        {MPI_SUM, NTBRING_OP_SUM},
        {MPI_PROD, NTBRING_OP_PROD},
        {MPI_MAX, NTBRING_OP_MAX},
        {MPI_MIN, NTBRING_OP_MIN},
        {MPI_LAND, NTBRING_OP_LAND},
        {MPI_LOR, NTBRING_OP_LOR},
        {MPI_LXOR, NTBRING_OP_LXOR},
        {MPI_BAND, NTBRING_OP_BAND},
        {MPI_BOR, NTBRING_OP_BOR},
        {MPI_BXOR, NTBRING_OP_BXOR},
    };
    int type = MPIDI_NTBRING_number_type(datatype);

    if (type < 0) {             /* a pair type with a gap, for instance, which is not contiguous */
        return false;
    }
    if (mpi_op == MPI_REPLACE || mpi_op == MPI_NO_OP) {
        remote->op = mpi_op == MPI_REPLACE ? NTBRING_OP_REPLACE : NTBRING_OP_NO_OP;
        remote->type = NTBRING_TYPE_BYTES;
        return true;
    }
    for (int i = 0; i < (int) (sizeof(ops) / sizeof(ops[0])); i++) {
        if (mpi_op == ops[i].mpi_op) {
            remote->op = ops[i].op;
            remote->type = (uint8_t) type;
            return ntbring_can_compute(remote->op, remote->type) > 0;
        }
    }
    return false;
}
