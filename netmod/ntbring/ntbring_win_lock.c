/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* MPI_Win_lock on windows of which every target has a segment: the lock is a word in the
 * segment, and the target is not involved. MPIDIG, which would send messages, is called with
 * MPI_MODE_NOCHECK. */

/* Longest sleep in us while waiting for such a lock, whose release rings no doorbell. */
#define MPIDI_NTBRING_LOCK_NAP_US 100

/* Number of threads that wait for such a lock, and the longest sleep otherwise. */
static int waiters;
static uint32_t idle_max_us;

static void sleep_lightly(void)
{
    if (waiters++ == 0) {
        idle_max_us = MPIDI_NTBRING_global.idle_max_us;
        MPIDI_NTBRING_global.idle_max_us = MPL_MIN(idle_max_us, MPIDI_NTBRING_LOCK_NAP_US);
    }
}

static void sleep_well(void)
{
    if (--waiters == 0) {
        MPIDI_NTBRING_global.idle_max_us = idle_max_us;
    }
}

/* Takes the lock of a segment that this process maps. */
static int hold(MPIDI_NTBRING_target_t * target, bool alone)
{
    int mpi_errno = MPI_SUCCESS, rc = NTBRING_OK;

    sleep_lightly();
    MPIDIU_PROGRESS_WHILE((rc = ntbring_segment_acquire(MPIDI_NTBRING_VCI(0).endpoint,
                                                     target->segment, alone)) == NTBRING_PENDING,
                          0);
    MPIDI_NTBRING_CHKRC(rc);

  fn_exit:
    sleep_well();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Locks the ranks from first to last. Requests to hosts are sent first, so that these locks are
 * taken in parallel. */
static int lock_some(MPIR_Win * win, int first, int last, bool alone)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_target_t *targets = win->dev.netmod.ntbring.targets;

    for (int rank = first; rank <= last; rank++) {
        if (targets[rank].served) {
            mpi_errno = MPIDI_NTBRING_far_lock(win, rank, NTBRING_REMOTE_ACQUIRE, alone);
            MPIR_ERR_CHECK(mpi_errno);
        }
    }
    for (int rank = first; rank <= last; rank++) {
        if (!targets[rank].served) {
            mpi_errno = hold(&targets[rank], alone);
            MPIR_ERR_CHECK(mpi_errno);
        }
    }
    MPIDIU_PROGRESS_WHILE(win->dev.netmod.ntbring.locking > 0, 0);
    for (int rank = first; rank <= last; rank++) {
        targets[rank].held = alone ? MPIDI_NTBRING_ALONE : MPIDI_NTBRING_TOGETHER;
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Unlocks the ranks from first to last, as far as they are locked. */
static int unlock_some(MPIR_Win * win, int first, int last)
{
    int mpi_errno = MPI_SUCCESS;
    MPIDI_NTBRING_target_t *targets = win->dev.netmod.ntbring.targets;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    for (int rank = first; rank <= last; rank++) {
        bool alone = targets[rank].held == MPIDI_NTBRING_ALONE;
        if (targets[rank].held == MPIDI_NTBRING_FREE) {
            continue;
        }
        targets[rank].held = MPIDI_NTBRING_FREE;
        if (targets[rank].served) {
            mpi_errno = MPIDI_NTBRING_far_lock(win, rank, NTBRING_REMOTE_RELEASE, alone);
            MPIR_ERR_CHECK(mpi_errno);
        } else {
            int rc = ntbring_segment_release(targets[rank].segment, alone);
            MPIDI_NTBRING_CHKRC(rc);
        }
    }
    MPIDIU_PROGRESS_WHILE(win->dev.netmod.ntbring.locking > 0, 0);

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_win_lock(int lock_type, int rank, int assert, MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_FUNC_ENTER;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    /* an error must be reported before this process waits for its own lock */
    MPIDIG_LOCK_EPOCH_CHECK_NONE(win, rank, mpi_errno, goto fn_fail);
    if (!(assert & MPI_MODE_NOCHECK)) {
        mpi_errno = lock_some(win, rank, rank, lock_type == MPI_LOCK_EXCLUSIVE);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    if (mpi_errno == MPI_SUCCESS) {
        mpi_errno = MPIDIG_mpi_win_lock(lock_type, rank, assert | MPI_MODE_NOCHECK, win);
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_win_unlock(int rank, MPIR_Win * win)
{
    int mpi_errno = MPIDIG_mpi_win_unlock(rank, win);
    return mpi_errno == MPI_SUCCESS ? unlock_some(win, rank, rank) : mpi_errno;
}

int MPIDI_NTBRING_win_lock_all(int assert, MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_FUNC_ENTER;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    MPIDIG_ACCESS_EPOCH_CHECK_NONE(win, mpi_errno, goto fn_fail);
    if (!(assert & MPI_MODE_NOCHECK)) {
        mpi_errno = lock_some(win, 0, win->comm_ptr->local_size - 1, false);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    if (mpi_errno == MPI_SUCCESS) {
        mpi_errno = MPIDIG_mpi_win_lock_all(assert | MPI_MODE_NOCHECK, win);
    }
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_win_unlock_all(MPIR_Win * win)
{
    int mpi_errno = MPIDIG_mpi_win_unlock_all(win);
    return mpi_errno == MPI_SUCCESS ?
        unlock_some(win, 0, win->comm_ptr->local_size - 1) : mpi_errno;
}
