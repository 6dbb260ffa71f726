/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_AM_H_INCLUDED
#define NTBRING_AM_H_INCLUDED

#include "ntbring_impl.h"

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_send_hdr(int rank, MPIR_Comm * comm, int handler_id,
                                                  const void *am_hdr, MPI_Aint am_hdr_sz,
                                                  int src_vci, int dst_vci)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_UNUSED(dst_vci);
    MPIR_FUNC_ENTER;

    ntbring_message_t message = {
        .dest = MPIDI_NTBRING_dest(rank, comm),
        .handler = handler_id,
        .hdr = am_hdr,
        .hdr_size = am_hdr_sz,
    };
    int rc = ntbring_send(MPIDI_NTBRING_VCI(src_vci).endpoint, &message);
    MPIDI_NTBRING_CHKRC(rc);

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_isend(int rank, MPIR_Comm * comm, int handler_id,
                                               const void *am_hdr, MPI_Aint am_hdr_sz,
                                               const void *data, MPI_Aint count,
                                               MPI_Datatype datatype, int src_vci, int dst_vci,
                                               MPIR_Request * sreq)
{
    int mpi_errno = MPI_SUCCESS;
    int dt_contig;
    MPI_Aint data_sz, dt_true_lb;
    MPIR_Datatype *dt_ptr;
    MPIDI_NTBRING_UNUSED(dst_vci);
    MPIR_FUNC_ENTER;

    MPIDI_Datatype_get_info(count, datatype, dt_contig, data_sz, dt_ptr, dt_true_lb);

    ntbring_message_t message = {
        .dest = MPIDI_NTBRING_dest(rank, comm),
        .handler = handler_id,
        .hdr = am_hdr,
        .hdr_size = am_hdr_sz,
        .data_size = data_sz,
        .cookie = sreq,
    };
    MPIDI_NTBRING_AM(sreq)->peer = message.dest;
    bool need_pack = !dt_contig && data_sz > 0;
    if (need_pack) {
        MPIDI_NTBRING_am_request_t *am = MPIDI_NTBRING_AM(sreq);
        am->buffer = data;
        am->count = count;
        am->datatype = datatype;
        am->handler_id = handler_id;
        message.pack = MPIDI_NTBRING_pack;
    } else if (data_sz > 0) {
        message.data = MPIR_get_contig_ptr(data, dt_true_lb);
    }

    int rc = ntbring_send(MPIDI_NTBRING_VCI(src_vci).endpoint, &message);
    MPIDI_NTBRING_CHKRC(rc);

    if (rc == NTBRING_PENDING) {
        /* the handler of NTBRING_EVENT_SENT undoes these three steps */
        MPIR_cc_inc(sreq->cc_ptr);
        MPIDI_NTBRING_AM(sreq)->is_leaving = true;
        if (need_pack) {
            MPIR_Datatype_add_ref_if_not_builtin(datatype);
        }
    } else {
        if (need_pack) {
            MPIDI_NTBRING_AM(sreq)->datatype = MPI_DATATYPE_NULL;
        }
        mpi_errno = MPIDIG_global.origin_cbs[handler_id] (sreq);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_send_hdr_reply(MPIR_Comm * comm, int src_rank,
                                                        int handler_id, const void *am_hdr,
                                                        MPI_Aint am_hdr_sz, int src_vci,
                                                        int dst_vci)
{
    return MPIDI_NM_am_send_hdr(src_rank, comm, handler_id, am_hdr, am_hdr_sz, src_vci, dst_vci);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_am_isend_reply(MPIR_Comm * comm, int src_rank,
                                                     int handler_id, const void *am_hdr,
                                                     MPI_Aint am_hdr_sz, const void *data,
                                                     MPI_Aint count, MPI_Datatype datatype,
                                                     int src_vci, int dst_vci, MPIR_Request * sreq)
{
    return MPIDI_NM_am_isend(src_rank, comm, handler_id, am_hdr, am_hdr_sz, data, count, datatype,
                             src_vci, dst_vci, sreq);
}

MPL_STATIC_INLINE_PREFIX MPI_Aint MPIDI_NM_am_hdr_max_sz(void)
{
    return MPIDI_NTBRING_global.limits.header_max;
}

MPL_STATIC_INLINE_PREFIX MPI_Aint MPIDI_NM_am_eager_limit(void)
{
    return MPIDI_NTBRING_global.limits.eager_max;
}

MPL_STATIC_INLINE_PREFIX MPI_Aint MPIDI_NM_am_eager_buf_limit(void)
{
    return MPIDI_NTBRING_global.limits.eager_max;
}

MPL_STATIC_INLINE_PREFIX bool MPIDI_NM_am_check_eager(MPI_Aint am_hdr_sz, MPI_Aint data_sz,
                                                      const void *data, MPI_Aint count,
                                                      MPI_Datatype datatype, MPIR_Request * sreq)
{
    MPIDI_NTBRING_UNUSED(data);
    MPIDI_NTBRING_UNUSED(count);
    MPIDI_NTBRING_UNUSED(datatype);
    MPIDI_NTBRING_UNUSED(sreq);
    return am_hdr_sz + data_sz <= MPIDI_NM_am_eager_limit();
}

MPL_STATIC_INLINE_PREFIX MPIDIG_recv_data_copy_cb MPIDI_NM_am_get_data_copy_cb(uint32_t attr)
{
    MPIDI_NTBRING_UNUSED(attr);
    return NULL;
}

#endif /* NTBRING_AM_H_INCLUDED */
