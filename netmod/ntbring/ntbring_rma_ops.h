/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_RMA_OPS_H_INCLUDED
#define NTBRING_RMA_OPS_H_INCLUDED

/* The functions that ch4 calls. */

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_put(const void *origin_addr, int origin_count,
                                              MPI_Datatype origin_datatype, int target_rank,
                                              MPI_Aint target_disp, int target_count,
                                              MPI_Datatype target_datatype, MPIR_Win * win,
                                              MPIDI_av_entry_t * addr, MPIDI_winattr_t winattr)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_UNUSED(winattr);
    return MPIDI_NTBRING_put_or_get(false, (void *) origin_addr, origin_count, origin_datatype,
                                    target_rank, target_disp, target_count, target_datatype, win,
                                    NULL);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_rput(const void *origin_addr, int origin_count,
                                               MPI_Datatype origin_datatype, int target_rank,
                                               MPI_Aint target_disp, int target_count,
                                               MPI_Datatype target_datatype, MPIR_Win * win,
                                               MPIDI_av_entry_t * addr, MPIDI_winattr_t winattr,
                                               MPIR_Request ** request)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_UNUSED(winattr);
    return MPIDI_NTBRING_put_or_get(false, (void *) origin_addr, origin_count, origin_datatype,
                                    target_rank, target_disp, target_count, target_datatype, win,
                                    request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_get(void *origin_addr, int origin_count,
                                              MPI_Datatype origin_datatype, int target_rank,
                                              MPI_Aint target_disp, int target_count,
                                              MPI_Datatype target_datatype, MPIR_Win * win,
                                              MPIDI_av_entry_t * addr, MPIDI_winattr_t winattr)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_UNUSED(winattr);
    return MPIDI_NTBRING_put_or_get(true, origin_addr, origin_count, origin_datatype,
                                    target_rank, target_disp, target_count, target_datatype, win,
                                    NULL);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_rget(void *origin_addr, int origin_count,
                                               MPI_Datatype origin_datatype, int target_rank,
                                               MPI_Aint target_disp, int target_count,
                                               MPI_Datatype target_datatype, MPIR_Win * win,
                                               MPIDI_av_entry_t * addr, MPIDI_winattr_t winattr,
                                               MPIR_Request ** request)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_UNUSED(winattr);
    return MPIDI_NTBRING_put_or_get(true, origin_addr, origin_count, origin_datatype,
                                    target_rank, target_disp, target_count, target_datatype, win,
                                    request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_accumulate(const void *origin_addr, int origin_count,
                                                     MPI_Datatype origin_datatype, int target_rank,
                                                     MPI_Aint target_disp, int target_count,
                                                     MPI_Datatype target_datatype, MPI_Op op,
                                                     MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                     MPIDI_winattr_t winattr)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_UNUSED(winattr);
    return MPIDI_NTBRING_accumulate(origin_addr, origin_count, origin_datatype, NULL, 0,
                                    MPI_DATATYPE_NULL, target_rank, target_disp, target_count,
                                    target_datatype, op, win, NULL);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_raccumulate(const void *origin_addr, int origin_count,
                                                      MPI_Datatype origin_datatype, int target_rank,
                                                      MPI_Aint target_disp, int target_count,
                                                      MPI_Datatype target_datatype, MPI_Op op,
                                                      MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                      MPIDI_winattr_t winattr,
                                                      MPIR_Request ** request)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_UNUSED(winattr);
    return MPIDI_NTBRING_accumulate(origin_addr, origin_count, origin_datatype, NULL, 0,
                                    MPI_DATATYPE_NULL, target_rank, target_disp, target_count,
                                    target_datatype, op, win, request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_get_accumulate(const void *origin_addr, int origin_count,
                                                         MPI_Datatype origin_datatype,
                                                         void *result_addr, int result_count,
                                                         MPI_Datatype result_datatype,
                                                         int target_rank, MPI_Aint target_disp,
                                                         int target_count,
                                                         MPI_Datatype target_datatype, MPI_Op op,
                                                         MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                         MPIDI_winattr_t winattr)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_UNUSED(winattr);
    return MPIDI_NTBRING_accumulate(origin_addr, origin_count, origin_datatype, result_addr,
                                    result_count, result_datatype,
                                    target_rank, target_disp, target_count, target_datatype, op,
                                    win, NULL);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_rget_accumulate(const void *origin_addr, int origin_count,
                                                          MPI_Datatype origin_datatype,
                                                          void *result_addr, int result_count,
                                                          MPI_Datatype result_datatype,
                                                          int target_rank, MPI_Aint target_disp,
                                                          int target_count,
                                                          MPI_Datatype target_datatype, MPI_Op op,
                                                          MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                          MPIDI_winattr_t winattr,
                                                          MPIR_Request ** request)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_UNUSED(winattr);
    return MPIDI_NTBRING_accumulate(origin_addr, origin_count, origin_datatype, result_addr,
                                    result_count, result_datatype,
                                    target_rank, target_disp, target_count, target_datatype, op,
                                    win, request);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_fetch_and_op(const void *origin_addr, void *result_addr,
                                                       MPI_Datatype datatype, int target_rank,
                                                       MPI_Aint target_disp, MPI_Op op,
                                                       MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                       MPIDI_winattr_t winattr)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_UNUSED(winattr);
    if (MPIDI_NTBRING_target(target_rank, win)) {
        return MPIDI_NTBRING_update(origin_addr, result_addr, 1, datatype, target_rank,
                                    target_disp, op, win);
    }
    return MPIDI_NTBRING_far_accumulate(origin_addr, 1, datatype, result_addr, 1, datatype,
                                        target_rank, target_disp, 1, datatype, op, win, NULL);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_compare_and_swap(const void *origin_addr,
                                                           const void *compare_addr,
                                                           void *result_addr, MPI_Datatype datatype,
                                                           int target_rank, MPI_Aint target_disp,
                                                           MPIR_Win * win, MPIDI_av_entry_t * addr,
                                                           MPIDI_winattr_t winattr)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_UNUSED(winattr);
    if (MPIDI_NTBRING_target(target_rank, win)) {
        return MPIDI_NTBRING_compare_and_swap(origin_addr, compare_addr, result_addr, datatype,
                                              target_rank, target_disp, win);
    }
    return MPIDI_NTBRING_far_compare_and_swap(origin_addr, compare_addr, result_addr, datatype,
                                              target_rank, target_disp, win);
}

#endif /* NTBRING_RMA_OPS_H_INCLUDED */
