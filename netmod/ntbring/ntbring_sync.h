/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_SYNC_H_INCLUDED
#define NTBRING_SYNC_H_INCLUDED

#include "ntbring_impl.h"
#include "ntbring_rma.h"

/* Number of attempts in one MPI_Win_test. */
#define MPIDI_NTBRING_WIN_TESTS 16

/* Number of flushes without pending operations for which messages are polled once. */
#define MPIDI_NTBRING_FLUSHES_A_POLL 64

/* Prevents the next wait from sleeping at once. It is called before a wait for a reply that this
 * process may have to give itself through shared memory, which rings no doorbell and completes
 * no request: several polls must precede a sleep. */
MPL_STATIC_INLINE_PREFIX void MPIDI_NTBRING_stay_awake(void)
{
    MPIDI_NTBRING_VCI(0).idle_count = 0;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_start(MPIR_Group * group, int assert, MPIR_Win * win)
{
    MPIDI_NTBRING_stay_awake();
    return MPIDIG_mpi_win_start(group, assert, win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_complete(MPIR_Win * win)
{
    MPIDI_NTBRING_stay_awake();
    return MPIDIG_mpi_win_complete(win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_post(MPIR_Group * group, int assert, MPIR_Win * win)
{
    MPIDI_NTBRING_stay_awake();
    return MPIDIG_mpi_win_post(group, assert, win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_wait(MPIR_Win * win)
{
    MPIDI_NTBRING_stay_awake();
    return MPIDIG_mpi_win_wait(win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_test(MPIR_Win * win, int *flag)
{
    int mpi_errno = MPI_SUCCESS;
    *flag = 0;
    /* MPIDIG tests before it polls, and the message may arrive later than that of a barrier
     * after it */
    for (int i = 0; i < MPIDI_NTBRING_WIN_TESTS && !*flag && mpi_errno == MPI_SUCCESS; i++) {
        mpi_errno = MPIDIG_mpi_win_test(win, flag);
        if (!*flag) {
            MPL_thread_yield();
        }
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_lock(int lock_type, int rank, int assert,
                                                   MPIR_Win * win, MPIDI_av_entry_t * addr)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_stay_awake();
    if (win->dev.netmod.ntbring.has_locks) {
        return MPIDI_NTBRING_win_lock(lock_type, rank, assert, win);
    }
    return MPIDIG_mpi_win_lock(lock_type, rank, assert, win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_unlock(int rank, MPIR_Win * win,
                                                     MPIDI_av_entry_t * addr)
{
    MPIDI_NTBRING_UNUSED(addr);
    MPIDI_NTBRING_stay_awake();
    if (win->dev.netmod.ntbring.has_locks) {
        return MPIDI_NTBRING_win_unlock(rank, win);
    }
    return MPIDIG_mpi_win_unlock(rank, win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_fence(int assert, MPIR_Win * win)
{
    return MPIDIG_mpi_win_fence(assert, win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_shared_query(MPIR_Win * win,
                                                           int rank,
                                                           MPI_Aint * size, int *disp_unit,
                                                           void *baseptr)
{
    return MPIDIG_mpi_win_shared_query(win, rank, size, disp_unit, baseptr);
}

/* Sets *done if there is nothing to wait for. After MPIDI_NTBRING_FLUSHES_A_POLL calls it leaves
 * *done false once, so that the caller polls for messages of other processes. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_flush(int rank, MPIR_Win * win, bool * done)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_FUNC_ENTER;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    MPIDIG_EPOCH_CHECK_PASSIVE(win, mpi_errno, goto fn_fail);

    *done = MPIDI_NTBRING_target(rank, win) &&
        ++MPIDI_NTBRING_global.flushes % MPIDI_NTBRING_FLUSHES_A_POLL != 0;

    MPIDIG_win_target_t *target_ptr = MPIDIG_win_target_find(win, rank);
    if (target_ptr) {
        if (MPIDIG_WIN(win, sync).access_epoch_type == MPIDIG_EPOTYPE_LOCK)
            MPIDIG_EPOCH_CHECK_TARGET_LOCK(target_ptr, mpi_errno, goto fn_fail);
        if (MPIR_cc_get(target_ptr->local_cmpl_cnts) != 0 ||
            MPIR_cc_get(target_ptr->remote_cmpl_cnts) != 0 ||
            MPIR_cc_get(target_ptr->remote_acc_cmpl_cnts) != 0) {
            *done = false;
        }
    }
    MPIDI_NTBRING_FULL_BARRIER();

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_flush(int rank, MPIR_Win * win,
                                                    MPIDI_av_entry_t * addr)
{
    MPIDI_NTBRING_UNUSED(addr);
    bool done = false;
    int mpi_errno = MPIDI_NTBRING_flush(rank, win, &done);
    if (mpi_errno == MPI_SUCCESS && !done) {
        mpi_errno = MPIDIG_mpi_win_flush(rank, win);
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_flush_local(int rank, MPIR_Win * win,
                                                          MPIDI_av_entry_t * addr)
{
    MPIDI_NTBRING_UNUSED(addr);
    bool done = false;
    int mpi_errno = MPIDI_NTBRING_flush(rank, win, &done);
    if (mpi_errno == MPI_SUCCESS && !done) {
        mpi_errno = MPIDIG_mpi_win_flush_local(rank, win);
    }
    return mpi_errno;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_flush_local_all(MPIR_Win * win)
{
    return MPIDIG_mpi_win_flush_local_all(win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_unlock_all(MPIR_Win * win)
{
    MPIDI_NTBRING_stay_awake();
    if (win->dev.netmod.ntbring.has_locks) {
        return MPIDI_NTBRING_win_unlock_all(win);
    }
    return MPIDIG_mpi_win_unlock_all(win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_sync(MPIR_Win * win)
{
    MPIDI_NTBRING_FULL_BARRIER();
    return MPIDIG_mpi_win_sync(win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_flush_all(MPIR_Win * win)
{
    return MPIDIG_mpi_win_flush_all(win);
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_mpi_win_lock_all(int assert, MPIR_Win * win)
{
    MPIDI_NTBRING_stay_awake();
    if (win->dev.netmod.ntbring.has_locks) {
        return MPIDI_NTBRING_win_lock_all(assert, win);
    }
    return MPIDIG_mpi_win_lock_all(assert, win);
}

/* Direct operations are complete at origin and target once no later access can overtake them. */
MPL_STATIC_INLINE_PREFIX int MPIDI_NM_rma_win_cmpl_hook(MPIR_Win * win)
{
    MPIDI_NTBRING_UNUSED(win);
    MPIDI_NTBRING_FULL_BARRIER();
    return MPI_SUCCESS;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_rma_win_local_cmpl_hook(MPIR_Win * win)
{
    MPIDI_NTBRING_UNUSED(win);
    return MPI_SUCCESS;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_rma_target_cmpl_hook(int rank, MPIR_Win * win)
{
    MPIDI_NTBRING_UNUSED(rank);
    MPIDI_NTBRING_UNUSED(win);
    MPIDI_NTBRING_FULL_BARRIER();
    return MPI_SUCCESS;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_rma_target_local_cmpl_hook(int rank, MPIR_Win * win)
{
    MPIDI_NTBRING_UNUSED(rank);
    MPIDI_NTBRING_UNUSED(win);
    return MPI_SUCCESS;
}

#endif /* NTBRING_SYNC_H_INCLUDED */
