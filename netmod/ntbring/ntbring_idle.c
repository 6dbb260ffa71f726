/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* Longest sleep in us with threads: another thread may complete the operation that this one
 * waits for, without ringing a doorbell. */
#define MPIDI_NTBRING_IDLE_THREADED_US 1000

/* Longest sleep in us of a thread that waits for several VCIs, since only the doorbell of one of
 * them wakes it. */
#define MPIDI_NTBRING_IDLE_SEVERAL_US 100

/* Number of calls without progress after which all VCIs are polled. */
#define MPIDI_NTBRING_IDLE_ALL_VCIS 16

#ifndef MPIDI_CH4_DIRECT_NETMOD
/* Returns true if a message is in transit through shared memory, perhaps from this rank to
 * itself: each of its chunks needs a poll. */
static bool posix_is_busy(void)
{
    for (int vsi = 0; vsi < MPIDI_POSIX_global.num_vsis; vsi++) {
        if (MPIDI_POSIX_global.per_vsi[vsi].postponed_queue) {
            return true;
        }
        for (int i = 0; i < MPIR_Process.local_size; i++) {
            if (MPIDI_POSIX_global.per_vsi[vsi].active_rreq[i]) {
                return true;
            }
        }
    }
    return false;
}
#endif

/* Returns the longest sleep, and if there was progress since the latest call. */
static uint32_t idle_max_us(int vci, bool * progress)
{
    MPIDI_NTBRING_vci_t *self = &MPIDI_NTBRING_VCI(vci);
    int progress_count = MPIDI_NTBRING_PROGRESS_COUNT(vci);
    *progress = progress_count != self->idle_progress_count;
    if (*progress) {
        self->idle_progress_count = progress_count;
        self->idle_count = 0;
    }
    /* a race between threads that wait for the same VCI may lose a count, which does no harm */
    int count = self->idle_count;
    if (count < MPL_MAX(MPIDI_NTBRING_global.idle_polls, MPIDI_NTBRING_IDLE_ALL_VCIS)) {
        self->idle_count = count + 1;
    }
    if (MPIDI_global.n_vcis > 1 && count >= MPIDI_NTBRING_IDLE_ALL_VCIS) {
        MPIDI_NTBRING_POLL_ALL();
    }
    if (count < MPIDI_NTBRING_global.idle_polls) {
        return 0;
    }
    if (MPIR_Progress_hook_any_active()) {
        return 0;
    }
#ifndef MPIDI_CH4_DIRECT_NETMOD
    if (posix_is_busy()) {
        return 0;
    }
#endif
#ifdef MPICH_IS_THREADED
    if (MPIR_ThreadInfo.isThreaded) {
        return MPL_MIN(MPIDI_NTBRING_global.idle_max_us, MPIDI_NTBRING_IDLE_THREADED_US);
    }
#endif
    return MPIDI_NTBRING_global.idle_max_us;
}

/* Waits, in a loop that waits for a VCI, or for several of them (-1), after a poll has found
 * nothing. It must be called without VCI locks. */
void MPIDI_NTBRING_idle(int vci)
{
    MPIDI_NTBRING_vci_t *self = &MPIDI_NTBRING_VCI(MPL_MAX(vci, 0));
    if (self->spins > 0) {
        self->spins--;
        return;
    }
    self->fruitless = 0;        /* the next poll checks for requests that wait for lost processes */
    bool several = vci < 0 && MPIDI_global.n_vcis > 1;
    ntbring_endpoint_t *endpoint = self->endpoint;
    if (unlikely(endpoint == NULL)) {
        MPL_thread_yield();
        return;
    }
    bool progress;
    uint32_t max_us = idle_max_us(MPL_MAX(vci, 0), &progress);
    if (several) {
        max_us = MPL_MIN(max_us, MPIDI_NTBRING_IDLE_SEVERAL_US);
    }

#if defined(MPICH_IS_THREADED) && MPICH_THREAD_GRANULARITY == MPICH_THREAD_GRANULARITY__GLOBAL
    /* release the global lock during the wait, as MPIDU_Thread_yield does */
    MPID_Thread_mutex_t *mutex = &MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX;
    if (MPIR_ThreadInfo.isThreaded) {
        int err = 0;
        int saved_count = mutex->count;
        MPL_thread_id_t saved_owner = mutex->owner;
        MPIR_Assert(saved_count > 0);
        mutex->count = 0;
        mutex->owner = 0;
        MPIDU_Thread_mutex_unlock(mutex, &err);
        ntbring_idle(endpoint, max_us, progress);
        MPIDU_Thread_mutex_lock(mutex, &err, MPL_THREAD_PRIO_LOW);
        MPIR_Assert(mutex->count == 0);
        mutex->count = saved_count;
        mutex->owner = saved_owner;
        return;
    }
#endif
    uint32_t spins = ntbring_idle(endpoint, max_us, progress);
#ifdef MPICH_IS_THREADED
    if (MPIR_ThreadInfo.isThreaded) {
        return;
    }
#endif
    if (MPIDI_global.n_vcis == 1) {
        self->spins = spins;
    }
}
